import { BrokerError } from '../events/broker.ts';
import type { Target } from '../events/parse.ts';
import type { Selection } from '../kube/client.ts';
import { KubeError } from '../kube/errors.ts';
import type { KindName, LldapGroup, LldapMembership, LldapUser, ResourceOf } from '../kube/resources.ts';
import { foldId } from '../lldap/names.ts';
import { isReady, isReleased } from '../rules/predicates.ts';
import { membershipKeys, refOf } from '../rules/resource-names.ts';
import type { Io } from './io.ts';

/** Finds the resources that a change concerns, and posts their reconcile events. */

export function targetOf(resource: ResourceOf[KindName]): Target {
  return { kind: resource.kind, namespace: resource.metadata.namespace, name: resource.metadata.name };
}

/**
 * Posts a reconcile event for each target. A failure is only logged: the dependents' own retries and the sweep make up for it.
 *
 * @returns whether all events were posted
 */
export async function enqueueDependents(io: Io, find: () => Promise<Target[]>): Promise<boolean> {
  try {
    for (const target of await find()) await io.broker.reconcile(target);
    return true;
  } catch (error) {
    if (!(error instanceof BrokerError || error instanceof KubeError)) throw error;
    io.log.warn('failed to enqueue dependents', { reason: error instanceof KubeError ? error.brief : error.message });
    return false;
  }
}

/** The memberships whose status names a user or a group, of those that `needsReconcile` selects. */
export async function membershipsNaming(
  io: Io,
  key: { userKey: string } | { groupKey: string },
  needsReconcile: (membership: LldapMembership) => boolean,
): Promise<Target[]> {
  const fields = Object.fromEntries(Object.entries(key).map(([field, value]) => [`status.${field}`, value]));
  return (await io.lookup.select('LldapMembership', fields)).filter(needsReconcile).map(targetOf);
}

/**
 * The memberships that a Ready user or group concerns: those that wait for it. If it has replaced an object that the status
 * recorded, also those that joined that one.
 *
 * @param recorded the uuid in the status, as it was read
 */
export async function membershipsAwaiting(
  io: Io,
  key: { userKey: string } | { groupKey: string },
  { uuid, recorded }: { uuid: string | undefined; recorded: string | undefined },
): Promise<Target[]> {
  const isJoined = ({ status }: LldapMembership) => uuid === ('userKey' in key ? status?.joined?.userUuid : status?.joined?.groupUuid);
  if (recorded !== undefined && recorded !== uuid) return membershipsNaming(io, key, (m) => !isReady(m) || !isJoined(m));
  const isNaming = (m: LldapMembership) =>
    'userKey' in key ? membershipKeys(m).userKey === key.userKey : membershipKeys(m).groupKey === key.groupKey;
  return (await io.lookup.unreadyMemberships()).filter(isNaming).map(targetOf);
}

/**
 * Other resources that declare a name which becomes free. Ready ones are included: lldap has no preconditions, so the
 * deleted object may have been theirs by then.
 */
export async function resourcesClaiming(io: Io, self: LldapUser | LldapGroup, name: string): Promise<Target[]> {
  const resources: (LldapUser | LldapGroup)[] = await io.lookup.claiming(self.kind, name);
  return resources.filter((r) => refOf(r) !== refOf(self)).map(targetOf);
}

/** The users or groups whose spec names an attribute. */
export async function resourcesNamingAttribute(
  io: Io,
  kind: 'LldapUser' | 'LldapGroup',
  attributeName: string,
  selection?: Pick<Selection, 'without'>,
): Promise<Target[]> {
  const isNaming = (r: LldapUser | LldapGroup) => !isReleased(r) && r.spec.attributes?.some(({ name }) => foldId(name) === attributeName);
  return (await io.lookup.scan(kind, (r) => (isNaming(r) ? [targetOf(r)] : []), selection)).flat();
}
