import type { StatusOf } from '../../shared/engine/context.ts';
import type { Plan, PlanInput } from '../../shared/engine/kind.ts';
import type { LldapAttributeSchema } from '../../shared/kube/resources.ts';
import type { AttributeDefinition } from '../../shared/lldap/api.ts';
import { type Failure, invalid, notReady } from '../../shared/rules/failure.ts';
import { mayUndefine } from '../../shared/rules/ownership.ts';
import { declaredName } from '../../shared/rules/resource-names.ts';

/** What was read for one definition. */
export interface Observed {
  definition?: AttributeDefinition | undefined;
  /** At deletion: another resource that declares it. */
  alsoDeclared?: boolean;
  /** At deletion: a resource that has values of it. */
  usedBy?: string;
}

export type Step = { do: 'create' } | { do: 'delete' };

/** An equal definition is taken as it is; another cannot be edited in lldap, and deleting it would drop everybody's values. */
export function plan(
  { resource }: PlanInput<'LldapAttributeSchema'>,
  { definition }: Observed,
): Plan<Step, StatusOf<'LldapAttributeSchema'>> {
  if (!definition) return { steps: [{ do: 'create' }] };
  const mismatch = difference(resource, definition);
  return mismatch ? { refused: mismatch } : { steps: [] };
}

/**
 * 1. Only what our own creation is recorded for, or what a privileged namespace says to delete.
 * 2. Not while another resource declares it, nor while one uses it.
 * 3. Not what is another definition by now.
 */
export function planDeletion({ resource, draft, policy }: PlanInput<'LldapAttributeSchema'>, observed: Observed): Plan<Step> {
  const { definition, alsoDeclared, usedBy } = observed;
  const may = mayUndefine({ ...resource, status: draft }, policy);
  if (!definition || alsoDeclared || !may || difference(resource, definition)) return { steps: [] };
  if (!usedBy) return { steps: [{ do: 'delete' }] };
  const name = declaredName(resource);
  return {
    steps: [],
    unmet: notReady('AttributeInUse', `${usedBy} uses the attribute ${name}; remove it from that resource's spec.attributes first.`),
  };
}

/** What the spec leaves to the defaults of the API. */
export function desired({ spec }: LldapAttributeSchema) {
  return {
    type: spec.attributeType,
    isList: spec.isList ?? false,
    isVisible: spec.isVisible ?? false,
    isEditable: spec.isEditable ?? false,
  };
}

function difference(resource: LldapAttributeSchema, definition: AttributeDefinition): Failure | undefined {
  const name = declaredName(resource);
  if (definition.isHardcoded) return invalid('Protected', `spec.attributeName: ${name} is built into lldap; choose another name.`);
  const want = Object.entries(desired(resource));
  const have: Record<string, unknown> = { ...definition };
  const differing = want.filter(([field, value]) => have[field] !== value);
  if (differing.length === 0) return undefined;
  const fields = differing.map(([field, value]) => `${field === 'type' ? 'attributeType' : field} ${have[field]}, not ${value}`);
  return invalid(
    'SchemaMismatch',
    `lldap has the attribute ${name} with ${fields.join(' and ')}, and definitions cannot be edited; use another name, or a resource with lldap's definition.`,
  );
}
