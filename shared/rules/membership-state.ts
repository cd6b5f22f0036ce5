import type { AttributeTarget, Joined, LldapGroup, LldapMembership, LldapUser } from '../kube/resources.ts';
import { foldGroupName } from '../lldap/names.ts';
import { declares, isDeleting, isReady } from './predicates.ts';
import { declaredName } from './resource-names.ts';

/** The resources that bear on one membership. */
export interface Parties {
  /** Those that declare the membership's user name. */
  users: readonly LldapUser[];
  /** Those that declare the membership's group name. */
  groups: readonly LldapGroup[];
  /** Those that record the group that was joined. */
  joinedGroups: readonly LldapGroup[];
}

/**
 * Whether what a membership had joined is no longer what its names mean: the resource that declares a name
 * records another object or is no more, or the one that records the joined group declares another name.
 */
export function isJoinedStale(membership: LldapMembership, { users, groups, joinedGroups }: Parties): boolean {
  const joined = membership.status?.joined;
  if (!joined) return true;
  const speaks = (r: LldapUser | LldapGroup) => declares(r) && isReady(r) && r.status?.uuid !== undefined;
  const groupKey = foldGroupName(membership.spec.groupName);
  return (
    isOtherwiseDeclared(joined, users, groups) ||
    users.some((u) => speaks(u) && u.status?.uuid !== joined.userUuid) ||
    groups.some((g) => speaks(g) && (g.status?.uuid !== joined.groupUuid || g.status?.groupId !== joined.groupId)) ||
    joinedGroups.some((g) => isReady(g) && declaredName(g) !== groupKey)
  );
}

/** What resources declared is missed when they are gone, or never get it; so it must be known whether they did. */
function isOtherwiseDeclared(joined: Joined, users: readonly LldapUser[], groups: readonly LldapGroup[]): boolean {
  const isThere = (r: LldapUser | LldapGroup) => declares(r) && isReady(r) && !isDeleting(r);
  const has = (r: LldapUser | LldapGroup, uuid: string) => declares(r) && (isReady(r) || r.status?.uuid === uuid);
  const { declared } = joined;
  if (!declared) return false;
  const isOther = (target: AttributeTarget, resources: readonly (LldapUser | LldapGroup)[], uuid: string) =>
    declared.includes(target) ? !resources.some((r) => has(r, uuid)) : resources.some(isThere);
  return isOther('User', users, joined.userUuid) || isOther('Group', groups, joined.groupUuid);
}
