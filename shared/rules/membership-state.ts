import type { AttributeTarget, Joined, LldapGroup, LldapMembership, LldapUser } from '../kube/resources.ts';
import { foldGroupName } from '../lldap/names.ts';
import { claimsName, isDeleting, isReady } from './predicates.ts';
import { declaredName } from './resource-names.ts';

/** The resources that decide what one membership's names mean. */
export interface NamedResources {
  /** Users that declare the membership's user name. */
  users: readonly LldapUser[];
  /** Groups that declare the membership's group name. */
  groups: readonly LldapGroup[];
  /** Groups that record the joined group. */
  joinedGroups: readonly LldapGroup[];
}

/**
 * Whether a membership's names no longer mean what it joined: the resource that declares a name records another object
 * or no longer exists, or the resource that records the joined group declares another name.
 */
export function isMembershipStale(membership: LldapMembership, { users, groups, joinedGroups }: NamedResources): boolean {
  const joined = membership.status?.joined;
  if (!joined) return true;
  const recordsObject = (r: LldapUser | LldapGroup) => claimsName(r) && isReady(r) && r.status?.uuid !== undefined;
  const groupKey = foldGroupName(membership.spec.groupName);
  return (
    hasDeclarationChanged(joined, users, groups) ||
    users.some((u) => recordsObject(u) && u.status?.uuid !== joined.userUuid) ||
    groups.some((g) => recordsObject(g) && (g.status?.uuid !== joined.groupUuid || g.status?.groupId !== joined.groupId)) ||
    joinedGroups.some((g) => isReady(g) && declaredName(g) !== groupKey)
  );
}

/** Whether a name that resources declared at the join is declared by none now, or the other way round. */
function hasDeclarationChanged(joined: Joined, users: readonly LldapUser[], groups: readonly LldapGroup[]): boolean {
  const isReadyClaim = (r: LldapUser | LldapGroup) => claimsName(r) && isReady(r) && !isDeleting(r);
  const owns = (r: LldapUser | LldapGroup, uuid: string) => claimsName(r) && (isReady(r) || r.status?.uuid === uuid);
  const { declared } = joined;
  if (!declared) return false;
  const hasChanged = (target: AttributeTarget, resources: readonly (LldapUser | LldapGroup)[], uuid: string) =>
    declared.includes(target) ? !resources.some((r) => owns(r, uuid)) : resources.some(isReadyClaim);
  return hasChanged('User', users, joined.userUuid) || hasChanged('Group', groups, joined.groupUuid);
}
