import type { Work } from '../engine/context.ts';
import type { AttributeTarget, KindName, LldapAttributeSchema } from '../kube/resources.ts';
import type { AttributeDefinition, LldapError } from '../lldap/api.ts';
import { foldId } from '../lldap/names.ts';
import type { Definition, Definitions } from '../rules/attributes.ts';
import { type Failure, notReady } from '../rules/failure.ts';
import { mayUndefine } from '../rules/ownership.ts';
import type { Policy } from '../rules/policy.ts';
import { declares, hasFinalizer, isDeleting, isReady } from '../rules/predicates.ts';
import { declaredName, refOf } from '../rules/resource-names.ts';
import { targetOf, wake } from './dependents.ts';

/**
 * The definitions of the attributes that a user or group names: from the resource that declares each, once that
 * is Ready; else from lldap's own schema. As nothing changes a definition that lldap has, a resource that is not Ready
 * is waited for only while there is none, or while it may be about to delete it.
 *
 * @throws Failure NotReady naming the first attribute that is not there yet
 */
export async function findDefinitions(work: Pick<Work<'LldapUser' | 'LldapGroup'>, 'io' | 'policy' | 'resource'>): Promise<Definitions> {
  const { io, policy, resource } = work;
  const definitions = new Map();
  const { attributes } = resource.spec;
  if (!attributes?.length) return definitions;
  const target = resource.kind === 'LldapUser' ? 'User' : 'Group';
  const schemas = (await io.lookup.all('LldapAttributeSchema')).filter((s) => s.spec.target === target && declares(s));
  let defined: AttributeDefinition[] | undefined;
  for (const { name } of attributes) {
    const declaring = schemas.filter((s) => declaredName(s) === foldId(name));
    let definition: Definition | undefined = declaredBy(declaring, name, policy);
    if (!definition) {
      defined ??= (await io.lldap.schema())[target];
      definition = defined.find((a) => a.name === foldId(name));
    }
    if (!definition) throw missing(declaring[0], name, target);
    definitions.set(foldId(name), definition);
  }
  return definitions;
}

/** By one that is Ready; undefined where lldap's own counts. @throws Failure NotReady where that may be about to go */
function declaredBy(declaring: readonly LldapAttributeSchema[], name: string, policy: Policy): Definition | undefined {
  const ready = declaring.find((s) => isReady(s) && !isDeleting(s));
  if (ready) return { type: ready.spec.attributeType, isList: ready.spec.isList ?? false, isReadonly: false };
  const going = declaring.find((s) => isDeleting(s) && hasFinalizer(s) && mayUndefine(s, policy));
  if (going)
    throw notReady(
      'DependencyNotReady',
      `The LldapAttributeSchema ${refOf(going)} is being deleted, and the attribute ${name} with it; remove ${name} from spec.attributes, or keep it by another LldapAttributeSchema that declares it.`,
    );
  return undefined;
}

/**
 * For an attribute that lldap lacks although a Ready resource declares it: somebody deleted it there. That resource is asked
 * for a full reconcile.
 */
export async function askForDefinition(
  { io, resource }: Pick<Work<KindName>, 'io' | 'resource'>,
  error: LldapError,
): Promise<Failure | LldapError> {
  const target = resource.kind === 'LldapUser' ? 'User' : 'Group';
  const declaring = (await io.lookup.all('LldapAttributeSchema')).find(
    (s) => s.spec.target === target && declaredName(s) === error.attribute && isReady(s),
  );
  if (!declaring) return error;
  await wake(io, async () => [targetOf(declaring)]);
  return notReady(
    'DependencyNotReady',
    `lldap no longer has the attribute ${error.attribute}, which the LldapAttributeSchema ${refOf(declaring)} declares; that resource was asked to define it again.`,
  );
}

function missing(waiting: LldapAttributeSchema | undefined, name: string, target: AttributeTarget): Failure {
  return notReady(
    'DependencyNotReady',
    waiting
      ? `The LldapAttributeSchema ${refOf(waiting)}, which declares the attribute ${name}, is not Ready; its own status says why.`
      : `The attribute ${name} is not defined for ${target.toLowerCase()}s: create an LldapAttributeSchema for it, or correct spec.attributes.`,
  );
}
