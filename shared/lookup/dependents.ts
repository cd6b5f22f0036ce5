import { BrokerError } from '../events/broker.ts';
import type { Target } from '../events/parse.ts';
import { KubeError } from '../kube/errors.ts';
import type { Listed } from '../kube/listed.ts';
import type { KindName, LldapGroup, LldapMembership, LldapUser, ResourceOf } from '../kube/resources.ts';
import { foldId } from '../lldap/names.ts';
import { isReleased } from '../rules/predicates.ts';
import { refOf } from '../rules/resource-names.ts';
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
 * Other resources that declare a name which becomes free. Ready ones are included: lldap has no preconditions, so the
 * deleted object may have been theirs by then.
 */
export async function resourcesClaiming(io: Io, self: LldapUser | LldapGroup, name: string): Promise<Target[]> {
  const resources: (LldapUser | LldapGroup)[] = await io.lookup.claiming(self.kind, name);
  return resources.filter((r) => refOf(r) !== refOf(self)).map(targetOf);
}

/** Users or groups whose spec names an attribute. */
export async function resourcesNamingAttribute(
  io: Io,
  kind: 'LldapUser' | 'LldapGroup',
  attributeName: string,
): Promise<(LldapUser | LldapGroup)[]> {
  const all: Listed<'LldapUser' | 'LldapGroup'>[] = await io.lookup.all(kind);
  return all.filter((r) => !isReleased(r) && r.attributeNames.some((name) => foldId(name) === attributeName));
}
