import type { StatusOf } from '../../shared/engine/context.ts';
import type { Plan, PlanInput } from '../../shared/engine/kind.ts';
import type { LldapAttributeSchema } from '../../shared/kube/resources.ts';
import type { AttributeDefinition } from '../../shared/lldap/api.ts';
import { differingFields } from '../../shared/rules/attributes.ts';
import { type Failure, invalid, notReady } from '../../shared/rules/failure.ts';
import { mayDeleteDefinition } from '../../shared/rules/ownership.ts';
import { declaredName } from '../../shared/rules/resource-names.ts';

/** What was read for one definition. */
export interface Observed {
  definition?: AttributeDefinition | undefined;
  /** At deletion: whether another resource declares it, too. */
  isAlsoDeclared?: boolean;
  /** At deletion: a resource that names it. */
  usedBy?: string;
}

export type Step = { do: 'create' } | { do: 'delete' };

/** An equal definition is taken as it is. lldap cannot edit a different one, and deleting it would drop everybody's values. */
export function plan(
  { resource }: PlanInput<'LldapAttributeSchema'>,
  { definition }: Observed,
): Plan<Step, StatusOf<'LldapAttributeSchema'>> {
  if (!definition) return { steps: [{ do: 'create' }] };
  const mismatch = difference(resource, definition);
  return mismatch ? { rejected: mismatch } : { steps: [] };
}

/**
 * 1. Deletes only a definition that this resource created, or that a privileged namespace says to delete.
 * 2. Not while another resource declares the attribute, nor while one names it.
 * 3. Not if lldap has another definition by now.
 */
export function planDeletion({ resource, draft, policy }: PlanInput<'LldapAttributeSchema'>, observed: Observed): Plan<Step> {
  const { definition, isAlsoDeclared, usedBy } = observed;
  if (!definition || isAlsoDeclared || !mayDeleteDefinition({ ...resource, status: draft }, definition, policy)) return { steps: [] };
  if (!usedBy) return { steps: [{ do: 'delete' }] };
  const name = declaredName(resource);
  return {
    steps: [],
    blockedBy: notReady('AttributeInUse', `${usedBy} uses the attribute ${name}. Remove it from that resource's spec.attributes first.`),
  };
}

function difference(resource: LldapAttributeSchema, definition: AttributeDefinition): Failure | undefined {
  const name = declaredName(resource);
  if (definition.isHardcoded) return invalid('Protected', `spec.attributeName: ${name} is built into lldap. Choose another name.`);
  const differing = differingFields(resource, definition);
  if (differing.length === 0) return undefined;
  const fields = differing.map((d) => `${d.field === 'type' ? 'attributeType' : d.field} ${d.observed}, not ${d.desired}`);
  return invalid(
    'SchemaMismatch',
    `lldap has the attribute ${name} with ${fields.join(' and ')}, and cannot edit definitions. Use another name, or declare lldap's definition.`,
  );
}
