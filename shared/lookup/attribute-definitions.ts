import type { AttributeTarget, KindName, LldapAttributeSchema, ResourceOf } from '../kube/resources.ts';
import type { LldapError } from '../lldap/api.ts';
import { foldId } from '../lldap/names.ts';
import type { Definition, Definitions } from '../rules/attributes.ts';
import { type Failure, notReady } from '../rules/failure.ts';
import { mayDeleteDefinition } from '../rules/ownership.ts';
import type { Policy } from '../rules/policy.ts';
import { claimsName, hasFinalizer, isDeleting, isReady } from '../rules/predicates.ts';
import { declaredName, refOf } from '../rules/resource-names.ts';
import { enqueueDependents, targetOf } from './dependents.ts';
import type { Io } from './io.ts';

interface Context<K extends KindName> {
  io: Io;
  resource: ResourceOf[K];
}

/**
 * Finds the definitions of the attributes that a user or group names, as lldap has them, whatever a schema's spec and status
 * say. A definition in lldap never changes, so the resource waits for a schema that is not Ready only while lldap has no
 * definition, or if the schema may be about to delete it. If a Ready schema's definition is missing in lldap, it is left
 * out, and the failing write leads to {@link askForDefinition}.
 *
 * @throws Failure NotReady that names the first attribute without a definition
 */
export async function findDefinitions({
  io,
  policy,
  resource,
}: Context<'LldapUser' | 'LldapGroup'> & { policy: Policy }): Promise<Definitions> {
  const definitions = new Map<string, Definition>();
  const { attributes } = resource.spec;
  if (!attributes?.length) return definitions;
  const target = resource.kind === 'LldapUser' ? 'User' : 'Group';
  const schemas = (await io.lookup.all('LldapAttributeSchema')).filter((s) => s.spec.target === target && claimsName(s));
  const defined = (await io.lookup.schema())[target];
  for (const { name } of attributes) {
    const declaring = schemas.filter((s) => declaredName(s) === foldId(name));
    const definition = defined.find((a) => a.name === foldId(name));
    if (definition) definitions.set(foldId(name), definition);
    if (declaring.some((s) => isReady(s) && !isDeleting(s))) continue;
    if (!definition) throw missingDefinition(declaring[0], name, target);
    const deleting = declaring.find((s) => isDeleting(s) && hasFinalizer(s) && mayDeleteDefinition(s, definition, policy));
    if (deleting) throw leavingDefinition(deleting, name);
  }
  return definitions;
}

/**
 * Enqueues the Ready resource that declares an attribute which is missing in lldap, where somebody must have deleted it.
 *
 * @returns the failure of the resource that names the attribute; lldap's error if no Ready resource declares it
 */
export async function askForDefinition({ io, resource }: Context<KindName>, error: LldapError): Promise<Failure | LldapError> {
  const target = resource.kind === 'LldapUser' ? 'User' : 'Group';
  const declaring = (await io.lookup.all('LldapAttributeSchema')).find(
    (s) => s.spec.target === target && declaredName(s) === error.attribute && claimsName(s) && isReady(s),
  );
  if (!declaring) return error;
  await enqueueDependents(io, async () => [targetOf(declaring)]);
  return notReady(
    'DependencyNotReady',
    `lldap no longer has the attribute ${error.attribute} of the LldapAttributeSchema ${refOf(declaring)}. The operator has asked that resource to define it again.`,
  );
}

function missingDefinition(waiting: LldapAttributeSchema | undefined, name: string, target: AttributeTarget): Failure {
  return notReady(
    'DependencyNotReady',
    waiting
      ? `The LldapAttributeSchema ${refOf(waiting)}, which declares the attribute ${name}, is not Ready. See its status for the reason.`
      : `lldap has no attribute ${name} for ${target.toLowerCase()}s. Create an LldapAttributeSchema for it, or correct spec.attributes.`,
  );
}

function leavingDefinition(deleting: LldapAttributeSchema, name: string): Failure {
  return notReady(
    'DependencyNotReady',
    `The LldapAttributeSchema ${refOf(deleting)} is being deleted, and the attribute ${name} with it. Remove ${name} from spec.attributes, or create another LldapAttributeSchema for it.`,
  );
}
