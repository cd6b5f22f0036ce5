import type { StatusOf } from '../../shared/engine/context.ts';
import type { Plan, PlanInput } from '../../shared/engine/kind.ts';
import type { AttributeTarget, Joined, LldapGroup, LldapMembership, LldapUser } from '../../shared/kube/resources.ts';
import type { LldapAccount, LldapGroupRef } from '../../shared/lldap/api.ts';
import { foldGroupName, isBuiltInGroup } from '../../shared/lldap/names.ts';
import { type Failure, invalid, notReady } from '../../shared/rules/failure.ts';
import { markOf } from '../../shared/rules/owner-mark.ts';
import { isPrivileged, type Policy } from '../../shared/rules/policy.ts';
import { isDeleting } from '../../shared/rules/predicates.ts';
import { membershipKeys, refOf } from '../../shared/rules/resource-names.ts';

/** What was read for one membership. */
export interface Observed {
  account?: LldapAccount | undefined;
  /** The group of that name, as lldap has it. */
  group?: LldapGroupRef | undefined;
  /** What was joined before and is not what the names mean now, while the user is still in it. */
  left?: LldapGroupRef;
  /** Another membership asks for the pair that would be left. */
  claimed?: boolean;
  /** Which of the two names resources declare. */
  declared?: AttributeTarget[];
  /** Ready resources whose objects lldap lacks; they were asked to make them again. */
  vanished?: readonly (LldapUser | LldapGroup)[];
}

interface Pair {
  user: { id: string; uuid: string };
  group: LldapGroupRef;
}
export type JoinStep = { do: 'join'; joined: Joined } & Pair;
export type Step = ({ do: 'leave' } & Pair) | JoinStep;

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

function noLonger({ vanished = [] }: Observed): Failure | undefined {
  const [resource] = vanished;
  if (!resource) return undefined;
  return notReady(
    'DependencyNotReady',
    `lldap no longer has what the ${resource.kind} ${refOf(resource)} declares; that resource was asked to create it again.`,
  );
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
  const { account, group, left, claimed, declared = [] } = observed;
  const { userName, groupName } = resource.spec;
  if (!account) return { refused: noLonger(observed) ?? notReady('DependencyNotReady', noUser(userName)) };
  if (!group) return { refused: noLonger(observed) ?? notReady('DependencyNotReady', noGroup(groupName)) };
  const refused = forbidden(group.displayName, resource.metadata.namespace, policy);
  if (refused) return { refused };
  if ([groupName, group.displayName].some(isBuiltInGroup) && !isOwnedByPrivileged(account, policy)) {
    return { refused: notPrivileged(resource, account, policy) };
  }
  const leaves = left && !claimed && mayLeave(account, left, resource, policy);
  const steps: Step[] = leaves ? [{ do: 'leave', user: account, group: left }] : [];
  const joined: Joined = { userUuid: account.uuid, groupId: group.id, groupUuid: group.uuid, declared };
  if (!isMember(account, group)) steps.push({ do: 'join', user: account, group, joined });
  return { keep: isMember(account, group) ? { joined } : {}, steps };
}

/** Whether an account's mark names a privileged namespace of this installation. */
export function isOwnedByPrivileged(account: LldapAccount, policy: Policy): boolean {
  const mark = markOf(account);
  return mark?.instance === policy.instance && isPrivileged(policy, mark.namespace);
}

export function notPrivileged({ spec }: LldapMembership, account: LldapAccount, policy: Policy): Failure {
  const mark = markOf(account);
  return notReady(
    'UserNotPrivileged',
    `${spec.groupName} is joined only by users that a privileged namespace owns, and ${spec.userName} ${mark?.instance === policy.instance ? `belongs to ${mark.namespace}/${mark.name}; set deletionPolicy: Retain on that LldapUser, delete it, and then` : 'is not;'} declare an LldapUser for it there (passwordPolicy: Ignore leaves its password).`,
  );
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
      !isDeleting(m) &&
      userKey === pair.userId &&
      groupKey === foldGroupName(pair.groupName) &&
      refuse(m, policy) === undefined
    );
  });
}
