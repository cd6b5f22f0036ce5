import type { AttributeTarget, AttributeValue } from '../kube/resources.ts';
import type { Definitions } from './attributes.ts';
import { isReady } from './decide.ts';
import { notReady } from './failure.ts';
import type { Io } from './kind.ts';
import { declares } from './lookup.ts';
import { declaredName, foldId, refOf } from './names.ts';

/**
 * The definitions of the attributes that a user or group names: from the resource that declares each, once that
 * is Ready; where none does, from lldap's own schema.
 *
 * @throws Failure NotReady naming the first attribute that is not there yet
 */
export async function findDefinitions(
  io: Io,
  target: AttributeTarget,
  attributes: readonly AttributeValue[] | undefined,
): Promise<Definitions> {
  const definitions = new Map();
  if (!attributes?.length) return definitions;
  const schemas = (await io.lookup.schemas()).filter((s) => s.spec.target === target && declares(s));
  const undeclared: string[] = [];
  for (const { name } of attributes) {
    const declaring = schemas.filter((s) => declaredName(s) === foldId(name));
    const ready = declaring.find((s) => isReady(s) && s.metadata.deletionTimestamp === undefined);
    const [waiting] = declaring;
    if (ready) definitions.set(foldId(name), { type: ready.spec.attributeType, isList: ready.spec.isList ?? false, isReadonly: false });
    else if (waiting)
      throw notReady(
        'DependencyNotReady',
        `The LldapAttributeSchema ${refOf(waiting)}, which declares the attribute ${name}, is not Ready.`,
      );
    else undeclared.push(name);
  }
  if (undeclared.length === 0) return definitions;
  const schema = (await io.lldap.schema())[target];
  for (const name of undeclared) {
    const definition = schema.find((a) => a.name === foldId(name));
    if (!definition)
      throw notReady(
        'DependencyNotReady',
        `The attribute ${name} is not defined for ${target === 'User' ? 'users' : 'groups'}: create an LldapAttributeSchema for it, or correct spec.attributes.`,
      );
    definitions.set(foldId(name), definition);
  }
  return definitions;
}
