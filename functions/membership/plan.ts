import type { Joined, LldapMembership } from '../../shared/kube/resources.ts';
import type { LldapAccount, LldapGroupRef } from '../../shared/lldap/api.ts';
import { type Failure, invalid, notReady } from '../../shared/reconcile/failure.ts';
import type { Plan, PlanInput, StatusOf } from '../../shared/reconcile/kind.ts';
import { markOf } from '../../shared/reconcile/mark.ts';
import { foldGroupName, isBuiltInGroup, membershipKeys } from '../../shared/reconcile/names.ts';
import { isPrivileged, type Policy } from '../../shared/reconcile/standing.ts';

/** What was read for one membership. */
export interface Observed {
  account?: LldapAccount;
  /** The group of that name, as lldap has it. */
  group?: LldapGroupRef;
  /** What was joined before and is not what the names mean now, while the user is still in it. */
  left?: LldapGroupRef;
  /** Another membership asks for the pair that would be left. */
  claimed?: boolean;
}

export type Step = { do: 'leave' | 'join'; user: { id: string; uuid: string }; group: LldapGroupRef };

/** Neither name can be edited, so the way out is another membership. */
export function noUser(name: string): string {
  return `lldap has no user ${name} yet; if no LldapUser declares it, create one, or replace this membership by one with the right userName.`;
}

export function noGroup(name: string): string {
  const builtIn = foldGroupName(name).replaceAll('-', '_');
  if (isBuiltInGroup(builtIn) && !isBuiltInGroup(name))
    return `lldap has no group ${name}; its own is called ${builtIn}: replace this membership by one with that groupName.`;
  return `lldap has no group ${name} yet; if no LldapGroup declares it, create one, or replace this membership by one with the right groupName.`;
}

/** Memberships of lldap's own groups make administrators: only a privileged namespace may ask for them. */
export function refuse({ spec, metadata }: LldapMembership, policy: Policy): Failure | undefined {
  return forbidden(spec.groupName, metadata.namespace, policy);
}

function forbidden(groupName: string, namespace: string, policy: Policy): Failure | undefined {
  if (!isBuiltInGroup(groupName) || isPrivileged(policy, namespace)) return undefined;
  return invalid(
    'Forbidden',
    `spec.groupName: memberships of ${groupName} are made in privileged namespaces only; move this resource there, or name another group.`,
  );
}

/**
 * 1. What was joined under a name that now means another group is left first, unless another membership asks for it.
 * 2. A membership that is there is taken as it is.
 * 3. A built-in group is joined only by a user whose mark names a privileged namespace: whoever creates the awaited
 *    user, or removes a mark, would be an administrator.
 * 4. What counts is also the name that the group has in lldap: somebody may have given it a built-in one since.
 */
export function plan({ resource, policy }: PlanInput<'LldapMembership'>, observed: Observed): Plan<Step, StatusOf<'LldapMembership'>> {
  const { account, group, left, claimed } = observed;
  const { userName, groupName } = resource.spec;
  if (!account)
    return {
      refused: notReady('DependencyNotReady', noUser(userName)),
    };
  if (!group)
    return {
      refused: notReady('DependencyNotReady', noGroup(groupName)),
    };
  const refused = forbidden(group.displayName, resource.metadata.namespace, policy);
  if (refused) return { refused };
  const mark = markOf(account);
  if ([groupName, group.displayName].some(isBuiltInGroup) && !(mark?.instance === policy.instance && isPrivileged(policy, mark.namespace)))
    return {
      refused: notReady(
        'UserNotPrivileged',
        `${groupName} is joined only by users that a privileged namespace owns, and ${userName} ${mark?.instance === policy.instance ? `belongs to ${mark.namespace}/${mark.name}; set deletionPolicy: Retain on that LldapUser, delete it, and then` : 'is not;'} declare an LldapUser for it there (passwordPolicy: Ignore leaves its password).`,
      ),
    };
  const leaves = left && !claimed && mayLeave(account, left, resource, policy);
  const steps: Step[] = leaves ? [{ do: 'leave', user: account, group: left }] : [];
  if (!isMember(account, group)) steps.push({ do: 'join', user: account, group });
  return { keep: isMember(account, group) ? { joined: joinedOf(account, group) } : {}, steps };
}

/** The user leaves what was joined, unless another membership asks for the pair; the operator's own rights stay. */
export function planDeletion({ resource, policy }: PlanInput<'LldapMembership'>, { account, left, claimed }: Observed): Plan<Step> {
  if (!account || !left || claimed || !mayLeave(account, left, resource, policy)) return { steps: [] };
  return { steps: [{ do: 'leave', user: account, group: left }] };
}

/** By the name that the group has in lldap now; the operator's own rights stay, whoever asks. */
function mayLeave(account: LldapAccount, left: LldapGroupRef, { metadata }: LldapMembership, policy: Policy): boolean {
  if (account.id === policy.operatorLogin && foldGroupName(left.displayName) === 'lldap_admin') return false;
  return forbidden(left.displayName, metadata.namespace, policy) === undefined;
}

export function joinedOf(account: { uuid: string }, group: LldapGroupRef): Joined {
  return { userUuid: account.uuid, groupId: group.id, groupUuid: group.uuid };
}

export function isMember(account: LldapAccount, group: LldapGroupRef): boolean {
  return account.groups.some((g) => g.id === group.id && g.uuid === group.uuid);
}

/** Other memberships that keep a user in a group: they declare the pair by the names that both have in lldap now, and may. */
export function claimants(
  self: LldapMembership,
  pair: { userId: string; groupName: string },
  memberships: readonly LldapMembership[],
  policy: Policy,
): LldapMembership[] {
  return memberships.filter((m) => {
    const { userKey, groupKey } = membershipKeys(m);
    return (
      m.metadata.uid !== self.metadata.uid &&
      m.metadata.deletionTimestamp === undefined &&
      userKey === pair.userId &&
      groupKey === foldGroupName(pair.groupName) &&
      refuse(m, policy) === undefined
    );
  });
}
