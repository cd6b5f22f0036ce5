import type { StatusOf } from '../../shared/engine/context.ts';
import type { Plan, PlanInput } from '../../shared/engine/kind.ts';
import type { AttributeTarget, Joined, LldapGroup, LldapMembership, LldapUser } from '../../shared/kube/resources.ts';
import type { LldapAccount, LldapGroupAccount, LldapGroupRef } from '../../shared/lldap/api.ts';
import { foldGroupName, isBuiltInGroup } from '../../shared/lldap/names.ts';
import { type Failure, invalid, notReady } from '../../shared/rules/failure.ts';
import { markOf } from '../../shared/rules/owner-mark.ts';
import { isPrivileged, type Policy } from '../../shared/rules/policy.ts';
import { isDeleting, isObserved } from '../../shared/rules/predicates.ts';
import { membershipKeys, refOf } from '../../shared/rules/resource-names.ts';

/** What was read for one membership. */
export interface Observed {
  account?: LldapAccount | undefined;
  /** lldap's group of that name. */
  group?: LldapGroupRef | undefined;
  /** The group that was joined before and that the name no longer means, while the user is still a member. */
  formerGroup?: LldapGroupRef;
  /** Another membership declares the pair of the user and the former group. */
  isFormerGroupClaimed?: boolean;
  /** Which of the two names resources declare. */
  declared?: AttributeTarget[];
  /** Ready resources whose objects are missing in lldap; they were enqueued to create them again. */
  vanished?: readonly (LldapUser | LldapGroup)[];
  /** The group, if a resource of another namespace owns it. */
  othersGroup?: LldapGroupAccount;
}

interface Pair {
  user: { id: string; uuid: string };
  group: LldapGroupRef;
}
/** `record`: the user is in the group already. */
export type JoinStep = { do: 'join' | 'record'; joined: Joined; othersGroup?: LldapGroupAccount } & Pair;
export type Step = ({ do: 'leave' } & Pair) | JoinStep;

/** Neither name can be edited, so the remedy is another membership. */
export function noUser(name: string): string {
  return `lldap has no user ${name}. Create an LldapUser for it, or replace this membership by one with the correct userName.`;
}

export function noGroup(name: string): string {
  const builtIn = foldGroupName(name).replaceAll('-', '_');
  if (isBuiltInGroup(builtIn) && !isBuiltInGroup(name))
    return `lldap has no group ${name}; its built-in group is called ${builtIn}. Replace this membership by one with that groupName.`;
  return `lldap has no group ${name}. Create an LldapGroup for it, or replace this membership by one with the correct groupName.`;
}

function noLonger({ vanished = [] }: Observed): Failure | undefined {
  const [resource] = vanished;
  if (!resource) return undefined;
  return notReady(
    'DependencyNotReady',
    `lldap no longer has the object of the ${resource.kind} ${refOf(resource)}. The operator has asked that resource to create it again.`,
  );
}

/** Members of lldap's built-in groups administer lldap: only a privileged namespace may declare them. */
export function refuse({ spec, metadata }: LldapMembership, policy: Policy): Failure | undefined {
  return forbidden(spec.groupName, metadata.namespace, policy);
}

function forbidden(groupName: string, namespace: string, policy: Policy): Failure | undefined {
  if (!isBuiltInGroup(groupName) || isPrivileged(policy, namespace)) return undefined;
  return invalid(
    'Forbidden',
    `spec.groupName: only privileged namespaces may add members to ${groupName}. Create it in the operator's namespace or in one of PRIVILEGED_NAMESPACES, or name another group.`,
  );
}

/**
 * 1. The user leaves the former group first, unless another membership declares that pair.
 * 2. A member that is there already is taken as it is.
 * 3. Only a user whose mark names a privileged namespace joins a built-in group. Otherwise, whoever creates the awaited
 *    user, or removes a mark, would become an administrator.
 * 4. The group's name in lldap counts as well: somebody may have renamed it to a built-in name.
 */
export function plan(
  { resource, draft, policy }: PlanInput<'LldapMembership'>,
  observed: Observed,
): Plan<Step, StatusOf<'LldapMembership'>> {
  const { account, group, formerGroup, isFormerGroupClaimed, declared = [], othersGroup } = observed;
  const { userName, groupName } = resource.spec;
  if (!account) return { rejected: noLonger(observed) ?? notReady('DependencyNotReady', noUser(userName)) };
  if (!group) return { rejected: noLonger(observed) ?? notReady('DependencyNotReady', noGroup(groupName)) };
  const rejected = forbidden(group.displayName, resource.metadata.namespace, policy);
  if (rejected) return { rejected };
  if ([groupName, group.displayName].some(isBuiltInGroup) && !isOwnedByPrivileged(account, policy)) {
    return { rejected: notPrivileged(resource, account, policy) };
  }
  const leaves = formerGroup && !isFormerGroupClaimed && mayLeave(account, formerGroup, resource, policy);
  const steps: Step[] = leaves ? [{ do: 'leave', user: account, group: formerGroup }] : [];
  const joined: Joined = { userUuid: account.uuid, groupId: group.id, groupUuid: group.uuid, declared };
  const isIn = isMember(account, group);
  const isRecorded = draft.joined?.userUuid === account.uuid && draft.joined.groupUuid === group.uuid;
  if (isIn && (!othersGroup || isRecorded)) return { statusPatch: { joined }, steps };
  steps.push({ do: isIn ? 'record' : 'join', user: account, group, joined, ...(othersGroup && { othersGroup }) });
  return { statusPatch: {}, steps };
}

/** Whether an account's mark names a privileged namespace of this installation. */
export function isOwnedByPrivileged(account: LldapAccount, policy: Policy): boolean {
  const mark = markOf(account);
  return mark?.instance === policy.instance && isPrivileged(policy, mark.namespace);
}

export function notPrivileged({ spec }: LldapMembership, account: LldapAccount, policy: Policy): Failure {
  if (account.id === policy.operatorLogin)
    return notReady(
      'UserNotPrivileged',
      `${spec.userName} is the operator's own account, whose groups only a person may change, in lldap. Delete this resource.`,
    );
  const mark = markOf(account);
  const isOurs = mark?.instance === policy.instance;
  const owner = isOurs ? `${spec.userName} belongs to ${mark.namespace}/${mark.name}` : `no resource owns ${spec.userName}`;
  const handOver = isOurs ? 'If that LldapUser exists, set deletionPolicy: Retain on it and delete it. Then declare' : 'Declare';
  return notReady(
    'UserNotPrivileged',
    `Only users that a privileged namespace owns may join ${spec.groupName}, and ${owner}. ${handOver} an LldapUser for it in a privileged namespace (passwordPolicy: Ignore keeps its password).`,
  );
}

/** The user leaves the group that was joined, unless another membership declares the pair. */
export function planDeletion(
  { resource, policy }: PlanInput<'LldapMembership'>,
  { account, formerGroup, isFormerGroupClaimed }: Observed,
): Plan<Step> {
  if (!account || !formerGroup || isFormerGroupClaimed || !mayLeave(account, formerGroup, resource, policy)) return { steps: [] };
  return { steps: [{ do: 'leave', user: account, group: formerGroup }] };
}

/** Judged by the group's current name in lldap. The operator's own account never leaves lldap_admin. */
function mayLeave(account: LldapAccount, group: LldapGroupRef, { metadata }: LldapMembership, policy: Policy): boolean {
  if (account.id === policy.operatorLogin && foldGroupName(group.displayName) === 'lldap_admin') return false;
  return forbidden(group.displayName, metadata.namespace, policy) === undefined;
}

export function isMember(account: LldapAccount, group: LldapGroupRef): boolean {
  return account.groups.some((g) => g.id === group.id && g.uuid === group.uuid);
}

/** Whether another membership declares a pair, by the current names of both in lldap, and may do so. One under Observe keeps nobody in a group. */
export function isClaiming(
  other: LldapMembership,
  self: LldapMembership,
  pair: { userId: string; groupName: string },
  policy: Policy,
): boolean {
  const { userKey, groupKey } = membershipKeys(other);
  return (
    other.metadata.uid !== self.metadata.uid &&
    !isDeleting(other) &&
    !isObserved(other) &&
    userKey === pair.userId &&
    groupKey === foldGroupName(pair.groupName) &&
    refuse(other, policy) === undefined
  );
}
