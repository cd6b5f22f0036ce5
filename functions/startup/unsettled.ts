import type { KindName, LldapGroup, LldapMembership, LldapUser, ResourceOf } from '../../shared/kube/resources.ts';
import { isMembershipStale } from '../../shared/rules/membership-state.ts';
import type { Policy } from '../../shared/rules/policy.ts';
import {
  condition,
  currentRetry,
  hasFinalizer,
  isDeleting,
  isObserved,
  isReady,
  notReadyReason,
  unhandledToken,
} from '../../shared/rules/predicates.ts';
import { declaredName, isVirtual, membershipKeys } from '../../shared/rules/resource-names.ts';
import type { Consent } from './consent.ts';

/** All resources of the instance, as one run lists them. */
export type Inventory = { [K in KindName]: ResourceOf[K][] };

/** A retry that is this late is lost. */
export const OVERDUE_MS = 120_000;

/** Whether a retry for the current generation is still to come. */
function awaitsRetry(resource: ResourceOf[KindName], now: number): boolean {
  const next = currentRetry(resource)?.nextTime;
  return next !== undefined && Date.parse(next) + OVERDUE_MS >= now;
}

/**
 * Whether the sweep must reconcile a resource, judged by the resource alone: its last event was lost, its retry is overdue,
 * a person may have fixed what stalled it, or a person requested it.
 */
export function needsReconcile(resource: ResourceOf[KindName], now: number): boolean {
  if (resource.spec.suspend) return resource.status?.observedGeneration !== resource.metadata.generation;
  if (unhandledToken(resource) !== undefined) return true;
  if (awaitsRetry(resource, now)) return false;
  if (isDeleting(resource)) return hasFinalizer(resource);
  return (
    resource.status?.observedGeneration !== resource.metadata.generation ||
    !isReady(resource) ||
    !(hasFinalizer(resource) || isObserved(resource))
  );
}

/** Whether the sweep reconciles it only because a person may have fixed what stalled it: no event was lost. */
export function isStalled(resource: ResourceOf[KindName]): boolean {
  const { status, metadata } = resource;
  const isKnown = status?.observedGeneration === metadata.generation && unhandledToken(resource) === undefined;
  return isKnown && !isDeleting(resource) && condition(status, 'Stalled')?.status === 'True';
}

/**
 * At most `max` of the resources, in equal shares for the namespaces as far as they have that many. The choice is random,
 * so that each has its turn in some sweep.
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

/** The resources that the sweep must reconcile; startup itself writes the virtual groups. */
export function findLost(
  inventory: Inventory,
  { operatorNamespace }: Policy,
  now: number,
  consent: (membership: LldapMembership) => Consent,
): ResourceOf[KindName][] {
  const groups = inventory.LldapGroup.filter((g) => !isVirtual(g, operatorNamespace));
  const isStale = staleness(inventory, operatorNamespace);
  const isShared = sharing([...inventory.LldapUser, ...groups]);
  return [
    ...inventory.LldapAttributeSchema.filter((r) => needsReconcile(r, now)),
    // The key exists by now, and no event says so.
    ...inventory.LldapUser.filter((r) => needsReconcile(r, now) || isShared(r) || notReadyReason(r) === 'PasswordKeyMissing'),
    ...groups.filter((r) => needsReconcile(r, now) || isShared(r)),
    ...inventory.LldapMembership.filter((r) => {
      const known = consent(r);
      if (known === 'outdated' || (isSteadyMember(r) && isStale(r))) return true;
      // Its group's owner would have to change something first.
      return needsReconcile(r, now) && !(known === 'forbidden' && isStalled(r));
    }),
  ];
}

/**
 * Whether two resources record the same object as theirs. lldap has no preconditions, so two resources that adopt it at
 * the same moment both succeed. The mark names the later one, and a reconcile corrects the other.
 */
function sharing(resources: readonly (LldapUser | LldapGroup)[]): (resource: LldapUser | LldapGroup) => boolean {
  const isOwner = (r: LldapUser | LldapGroup) => isReady(r) && r.status?.uuid !== undefined && !isDeleting(r) && !isObserved(r);
  const owners = Map.groupBy(resources.filter(isOwner), (r) => `${r.kind} ${r.status?.uuid}`);
  return (resource) =>
    isOwner(resource) && !resource.spec.suspend && (owners.get(`${resource.kind} ${resource.status?.uuid}`)?.length ?? 0) > 1;
}

function isSteadyMember(membership: LldapMembership): boolean {
  return isReady(membership) && !membership.spec.suspend && !isDeleting(membership) && !isObserved(membership);
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
