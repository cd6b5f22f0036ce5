import { VIRTUAL_LABEL } from '../../shared/constants.ts';
import type { StatusOf } from '../../shared/engine/context.ts';
import type { Plan, PlanInput } from '../../shared/engine/kind.ts';
import type { AttributeValue, LldapGroup } from '../../shared/kube/resources.ts';
import type { GroupChange, LldapGroupAccount } from '../../shared/lldap/api.ts';
import { isBuiltInGroup } from '../../shared/lldap/names.ts';
import { checkAttributes, type Definitions, diffAttributes } from '../../shared/rules/attributes.ts';
import { Failure, invalid, taken } from '../../shared/rules/failure.ts';
import { authorize, markFor, type Owner } from '../../shared/rules/ownership.ts';
import { isObserved } from '../../shared/rules/predicates.ts';

/** What was read for one group. */
export interface Observed {
  /** The recorded group, the group with our mark, or the group of that name. */
  group?: LldapGroupAccount;
  owner?: Owner;
  definitions: Definitions;
  /** The group in lldap with the name that the spec asks for; known only after a search. */
  nameHolder?: { id: number; owner: string };
}

export type Step =
  | { do: 'create' }
  /** `name`: the current name in lldap. */
  | { do: 'update'; id: number; name: string; change: GroupChange }
  | { do: 'delete'; id: number; name: string };

/**
 * 1. An existing group is changed only where {@link authorize} allows it and only where it differs. A new displayName
 *    renames it.
 * 2. A built-in group is never renamed.
 * 3. Values must fit their definitions before anything is written.
 * 4. A missing group is created, with its mark.
 */
export function plan({ resource, policy }: PlanInput<'LldapGroup'>, observed: Observed): Plan<Step, StatusOf<'LldapGroup'>> {
  const { group, owner, definitions } = observed;
  const invalidValue = checkAttributes(resource.spec.attributes, definitions);
  if (!group || !owner) return invalidValue ? { rejected: invalidValue } : { steps: [{ do: 'create' }] };

  const access = authorize(owner, `group ${group.displayName}`, resource.metadata.namespace, resource.kind, policy);
  if (access instanceof Failure) return { rejected: access };
  const rejected = isBuiltInGroup(group.displayName)
    ? builtIn(group.displayName, resource)
    : (nameTaken(resource, observed) ?? invalidValue);
  if (rejected) return { rejected };
  const mark = access.marked || isObserved(resource) ? undefined : markFor(resource, access.origin, policy, group.uuid);
  const change = differences(resource, group, definitions, mark);
  return {
    statusPatch: { groupId: group.id, uuid: group.uuid, origin: access.origin },
    steps: change ? [{ do: 'update', id: group.id, name: group.displayName, change }] : [],
  };
}

/** Deletes only our own group: one that the operator created, or any with deletionPolicy Delete. Never a built-in group. */
export function planDeletion({ resource }: PlanInput<'LldapGroup'>, { group, owner }: Observed): Plan<Step> {
  if (!group || owner?.who !== 'self' || isBuiltInGroup(group.displayName)) return { steps: [] };
  const remove = resource.spec.deletionPolicy === 'Delete' || owner.origin === 'created';
  return { steps: remove ? [{ do: 'delete', id: group.id, name: group.displayName }] : [] };
}

/** @param resource one that declares another name and records the group; with the virtual label, somebody edited startup's resource */
export function builtIn(name: string, resource?: LldapGroup): Failure {
  if (resource?.metadata.labels?.[VIRTUAL_LABEL] === 'true')
    return invalid(
      'Protected',
      `This resource represents lldap's built-in group ${name} and cannot represent ${resource.spec.displayName}. Nothing is written to lldap, and the next run of startup restores spec.displayName. Create another LldapGroup for a group of your own.`,
    );
  return invalid(
    'Protected',
    `The group ${name} is built into lldap, and no resource may own it. Use LldapMemberships for its members, and give this resource another displayName.`,
  );
}

function nameTaken({ spec }: LldapGroup, { group, nameHolder }: Observed): Failure | undefined {
  if (!nameHolder || nameHolder.id === group?.id) return undefined;
  return taken(
    'NameTaken',
    `spec.displayName: another group in lldap has the name ${spec.displayName} (${nameHolder.owner}). Use another name, or rename that group. To swap two names, give one of the groups a third name first.`,
  );
}

function differences(
  { spec }: LldapGroup,
  group: LldapGroupAccount,
  definitions: Definitions,
  mark: AttributeValue | undefined,
): GroupChange | undefined {
  const change: GroupChange = {
    ...(spec.displayName !== group.displayName && { displayName: spec.displayName }),
    ...diffAttributes(spec.attributes, group.attributes, definitions, mark),
  };
  return Object.keys(change).length > 0 ? change : undefined;
}
