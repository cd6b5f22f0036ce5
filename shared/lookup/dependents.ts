import { BrokerError } from '../events/broker.ts';
import type { Target } from '../events/parse.ts';
import { KubeError } from '../kube/errors.ts';
import type { KindName, LldapGroup, LldapMembership, LldapUser, ResourceOf } from '../kube/resources.ts';
import { foldId } from '../lldap/names.ts';
import { isLetGo } from '../rules/predicates.ts';
import { refOf } from '../rules/resource-names.ts';
import type { Io } from './io.ts';

/** Who may go on because of a change: found by what their own statuses say that they name. */

export function targetOf(resource: ResourceOf[KindName]): Target {
  return { kind: resource.kind, namespace: resource.metadata.namespace, name: resource.metadata.name };
}

/** The memberships that name a user or group and are waiting. */
export async function joinedBy(
  io: Io,
  key: { userKey: string } | { groupKey: string },
  waits: (membership: LldapMembership) => boolean,
): Promise<Target[]> {
  const fields = Object.fromEntries(Object.entries(key).map(([field, value]) => [`status.${field}`, value]));
  return (await io.lookup.select('LldapMembership', fields)).filter(waits).map(targetOf);
}

/**
 * Other resources that declare a name which is being freed. Those that are Ready, too: lldap has no preconditions, so what
 * was deleted may have been theirs by then.
 */
export async function contenders(io: Io, self: LldapUser | LldapGroup, name: string): Promise<Target[]> {
  const declaring: (LldapUser | LldapGroup)[] = await io.lookup.declaring(self.kind, name);
  return declaring.filter((r) => refOf(r) !== refOf(self)).map(targetOf);
}

/** Users or groups that name an attribute. */
export async function usersOf(io: Io, kind: 'LldapUser' | 'LldapGroup', attributeName: string): Promise<(LldapUser | LldapGroup)[]> {
  const all: (LldapUser | LldapGroup)[] = await io.lookup.all(kind);
  return all.filter((r) => !isLetGo(r) && r.spec.attributes?.some((a) => foldId(a.name) === attributeName));
}

/** Posts reconcile events; what is not found or not taken is logged, since the dependents' own retries and the sweep cover it. */
export async function wake(io: Io, find: () => Promise<Target[]>): Promise<void> {
  try {
    for (const target of await find()) await io.broker.reconcile(target);
  } catch (error) {
    if (!(error instanceof BrokerError || error instanceof KubeError)) throw error;
    io.log.warn('dependents could not be woken', { reason: error instanceof KubeError ? error.brief : error.message });
  }
}
