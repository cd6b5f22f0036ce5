import type { KindName, LldapGroup, LldapMembership, LldapUser, ResourceOf } from '../../shared/kube/resources.ts';
import { isMembershipStale } from '../../shared/rules/membership-state.ts';
import {
  condition,
  currentRetry,
  hasFinalizer,
  isDeleting,
  isReady,
  notReadyReason,
  unhandledToken,
} from '../../shared/rules/predicates.ts';
import { declaredName, isVirtual, membershipKeys } from '../../shared/rules/resource-names.ts';

/** All resources of the instance, in one reading. */
export type Inventory = { [K in KindName]: ResourceOf[K][] };

/** A retry that did not come within this many milliseconds of its time is lost. */
export const OVERDUE_MS = 120_000;

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
  if (resource.spec.suspend) return resource.status?.observedGeneration !== resource.metadata.generation;
  if (unhandledToken(resource) !== undefined) return true;
  if (awaitsRetry(resource, now)) return false;
  if (isDeleting(resource)) return hasFinalizer(resource);
  return resource.status?.observedGeneration !== resource.metadata.generation || !isReady(resource) || !hasFinalizer(resource);
}

/** Whether it is looked at only because a person may have helped, and nothing of it was lost. */
export function isStalled(resource: ResourceOf[KindName]): boolean {
  const { status, metadata } = resource;
  const isKnown = status?.observedGeneration === metadata.generation && unhandledToken(resource) === undefined;
  return isKnown && !isDeleting(resource) && condition(status, 'Stalled')?.status === 'True';
}

/**
 * Not more than `max` resources, chosen at random so that each has its turn: as many of one namespace as of another,
 * as far as they have them.
 *
 * @param random as Math.random
 */
export function sampleFairly<T extends ResourceOf[KindName]>(resources: readonly T[], max: number, random: () => number): T[] {
  const shuffled = resources.map((resource) => ({ resource, place: random() })).sort((a, b) => a.place - b.place);
  const namespaces = Object.values(Object.groupBy(shuffled, ({ resource }) => resource.metadata.namespace));
  return namespaces
    .flatMap((own = []) => own.map(({ resource }, turn) => ({ resource, turn })))
    .sort((a, b) => a.turn - b.turn)
    .slice(0, max)
    .map(({ resource }) => resource);
}

/** The resources that need a look; virtual groups are startup's own. */
export function findLost(inventory: Inventory, operatorNamespace: string, now: number): ResourceOf[KindName][] {
  const groups = inventory.LldapGroup.filter((g) => !isVirtual(g, operatorNamespace));
  const isStale = staleness(inventory, operatorNamespace);
  const isShared = sharing([...inventory.LldapUser, ...groups]);
  return [
    ...inventory.LldapAttributeSchema.filter((r) => needsLook(r, now)),
    // The key is there by now, and nothing else tells those who wait for it.
    ...inventory.LldapUser.filter((r) => needsLook(r, now) || isShared(r) || notReadyReason(r) === 'PasswordKeyMissing'),
    ...groups.filter((r) => needsLook(r, now) || isShared(r)),
    ...inventory.LldapMembership.filter((r) => needsLook(r, now) || (isSettledMember(r) && isStale(r))),
  ];
}

/**
 * Whether two resources think that one object is theirs. lldap has no preconditions, so two that adopt it at the same
 * moment both succeed; the mark says who was the last, and a look at it settles the other.
 */
function sharing(resources: readonly (LldapUser | LldapGroup)[]): (resource: LldapUser | LldapGroup) => boolean {
  const isOwner = (r: LldapUser | LldapGroup) => isReady(r) && r.status?.uuid !== undefined && !isDeleting(r);
  const owners = Map.groupBy(resources.filter(isOwner), (r) => `${r.kind} ${r.status?.uuid}`);
  return (resource) =>
    isOwner(resource) && !resource.spec.suspend && (owners.get(`${resource.kind} ${resource.status?.uuid}`)?.length ?? 0) > 1;
}

function isSettledMember(membership: LldapMembership): boolean {
  return isReady(membership) && !membership.spec.suspend && !isDeleting(membership);
}

function staleness(
  { LldapUser: users, LldapGroup: groups }: Inventory,
  operatorNamespace: string,
): (membership: LldapMembership) => boolean {
  const usersByName = Map.groupBy(users, declaredName);
  // A built-in's name is declared by its virtual group alone.
  const groupsByName = Map.groupBy(groups, declaredName);
  const groupsByUuid = Map.groupBy(groups, (g) => g.status?.uuid ?? '');
  return (membership) => {
    const { userKey, groupKey } = membershipKeys(membership);
    const declaring = groupsByName.get(groupKey) ?? [];
    const virtual = declaring.filter((g) => isVirtual(g, operatorNamespace));
    return isMembershipStale(membership, {
      users: usersByName.get(userKey) ?? [],
      groups: virtual.length > 0 ? virtual : declaring,
      joinedGroups: groupsByUuid.get(membership.status?.joined?.groupUuid ?? '') ?? [],
    });
  };
}
