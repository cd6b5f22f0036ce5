import type { KindName, LldapGroup, LldapMembership, LldapUser, ResourceOf } from '../../shared/kube/resources.ts';
import { currentRetry, hasFinalizer, isReady, unhandledToken } from '../../shared/reconcile/decide.ts';
import { isJoinedStale } from '../../shared/reconcile/joined.ts';
import { declaredName, isVirtual, membershipKeys } from '../../shared/reconcile/names.ts';

/** All resources of the instance, in one reading. */
export type Inventory = { [K in KindName]: ResourceOf[K][] };

/** A retry that did not come within this many milliseconds of its time is lost. */
const OVERDUE_MS = 120_000;

/** What was left to a retry that is still to come is left alone, with a generation that it knows. */
function awaitsRetry(resource: ResourceOf[KindName], now: number): boolean {
  const next = currentRetry(resource)?.nextTime;
  return next !== undefined && Date.parse(next) + OVERDUE_MS >= now;
}

/**
 * Whether a resource must be looked at, told from itself alone: its last event was lost, its retry did not come,
 * only a person could help (who may have), or a person asks.
 */
export function needsLook(resource: ResourceOf[KindName], now: number): boolean {
  if (resource.spec.suspend) return false;
  if (unhandledToken(resource) !== undefined) return true;
  if (awaitsRetry(resource, now)) return false;
  if (resource.metadata.deletionTimestamp !== undefined) return hasFinalizer(resource);
  return resource.status?.observedGeneration !== resource.metadata.generation || !isReady(resource) || !hasFinalizer(resource);
}

/** The resources that need a look; virtual groups are startup's own. */
export function findLost(inventory: Inventory, operatorNamespace: string, now: number): ResourceOf[KindName][] {
  const groups = inventory.LldapGroup.filter((g) => !isVirtual(g, operatorNamespace));
  const isStale = staleness(inventory, operatorNamespace);
  return [
    ...inventory.LldapAttributeSchema.filter((r) => needsLook(r, now)),
    ...inventory.LldapUser.filter((r) => needsLook(r, now)),
    ...groups.filter((r) => needsLook(r, now)),
    ...inventory.LldapMembership.filter((r) => needsLook(r, now) || (isSettledMember(r) && isStale(r))),
  ];
}

function isSettledMember(membership: LldapMembership): boolean {
  return isReady(membership) && !membership.spec.suspend && membership.metadata.deletionTimestamp === undefined;
}

function staleness(
  { LldapUser: users, LldapGroup: groups }: Inventory,
  operatorNamespace: string,
): (membership: LldapMembership) => boolean {
  const usersByName = groupBy(users, declaredName);
  // A built-in's name is declared by its virtual group alone.
  const groupsByName = groupBy(groups, (g: LldapGroup) => declaredName(g));
  const groupsByUuid = groupBy(groups, (g: LldapGroup) => g.status?.uuid ?? '');
  return (membership) => {
    const { userKey, groupKey } = membershipKeys(membership);
    const declaring = groupsByName.get(groupKey) ?? [];
    const virtual = declaring.filter((g) => isVirtual(g, operatorNamespace));
    return isJoinedStale(membership, {
      users: usersByName.get(userKey) ?? [],
      groups: virtual.length > 0 ? virtual : declaring,
      joinedGroups: groupsByUuid.get(membership.status?.joined?.groupUuid ?? '') ?? [],
    });
  };
}

function groupBy<R extends LldapUser | LldapGroup>(resources: readonly R[], keyOf: (resource: R) => string): Map<string, R[]> {
  return Map.groupBy(resources, keyOf);
}
