import { VIRTUAL_LABEL } from '../../shared/constants.ts';
import type { StatusOf } from '../../shared/engine/context.ts';
import type { Plan, PlanInput } from '../../shared/engine/kind.ts';
import type { AttributeValue, LldapGroup } from '../../shared/kube/resources.ts';
import type { GroupChange, LldapGroupAccount } from '../../shared/lldap/api.ts';
import { isBuiltInGroup } from '../../shared/lldap/names.ts';
import { checkAttributes, type Definitions, diffAttributes } from '../../shared/rules/attributes.ts';
import { Failure, invalid, taken } from '../../shared/rules/failure.ts';
import { markFor, type Owner, standing } from '../../shared/rules/ownership.ts';

/** What was read for one group. */
export interface Observed {
  /** The recorded group, the one with our mark, or the one of the name. */
  group?: LldapGroupAccount;
  owner?: Owner;
  definitions: Definitions;
  /** Another group that has the name which the spec asks for; known only after a search. */
  nameHolder?: { id: number; owner: string };
}

export type Step =
  | { do: 'create' }
  /** `name`: as lldap has it so far. */
  | { do: 'update'; id: number; name: string; change: GroupChange }
  | { do: 'delete'; id: number };

/**
 * 1. Values must fit their definitions before anything is written.
 * 2. An absent group is created with its mark.
 * 3. A group that is there is written to only by whom §standing allows, and only where it differs; a new name
 *    renames it.
 * 4. A built-in group is never renamed.
 */
export function plan({ resource, policy }: PlanInput<'LldapGroup'>, observed: Observed): Plan<Step, StatusOf<'LldapGroup'>> {
  const { group, owner, definitions } = observed;
  const wrong = checkAttributes(resource.spec.attributes, definitions);
  if (wrong) return { refused: wrong };
  if (!group || !owner) return { steps: [{ do: 'create' }] };

  const stand = standing(owner, `group ${group.displayName}`, resource.metadata.namespace, resource.kind, policy);
  if (stand instanceof Failure) return { refused: stand };
  const refused = isBuiltInGroup(group.displayName) ? builtIn(group.displayName, resource) : nameTaken(resource, observed);
  if (refused) return { refused };
  const change = differences(resource, group, definitions, stand.marked ? undefined : markFor(resource, stand.origin, policy));
  return {
    keep: { groupId: group.id, uuid: group.uuid, origin: stand.origin },
    steps: change ? [{ do: 'update', id: group.id, name: group.displayName, change }] : [],
  };
}

/** Only what is ours, unless told otherwise only what we made, and never a built-in group. */
export function planDeletion({ resource }: PlanInput<'LldapGroup'>, { group, owner }: Observed): Plan<Step> {
  if (!group || owner?.who !== 'self' || isBuiltInGroup(group.displayName)) return { steps: [] };
  const remove = resource.spec.deletionPolicy === 'Delete' || owner.origin === 'created';
  return { steps: remove ? [{ do: 'delete', id: group.id }] : [] };
}

/** @param resource one that has another name and records the group; with the virtual label somebody edited what is startup's */
export function builtIn(name: string, resource?: LldapGroup): Failure {
  if (resource?.metadata.labels?.[VIRTUAL_LABEL] === 'true')
    return invalid(
      'Protected',
      `This resource stands for lldap's built-in group ${name} and cannot stand for ${resource.spec.displayName}; nothing is written to lldap, and the next run of startup sets spec.displayName back. For a group of your own, create another LldapGroup.`,
    );
  return invalid(
    'Protected',
    `The group ${name} is built into lldap and no resource may own it; name it in LldapMemberships, and give this resource another displayName.`,
  );
}

function nameTaken({ spec }: LldapGroup, { group, nameHolder }: Observed): Failure | undefined {
  if (!nameHolder || nameHolder.id === group?.id) return undefined;
  return taken(
    'NameTaken',
    `spec.displayName: the name ${spec.displayName} belongs to another group in lldap (${nameHolder.owner}); use another name or free it there. To swap two names, give one of the groups a third one first.`,
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
