import { BUILT_IN_GROUPS, INSTANCE_LABEL, VIRTUAL_LABEL } from '../../shared/constants.ts';
import { buildStatus, sameStatus } from '../../shared/engine/conditions.ts';
import { readyCondition } from '../../shared/engine/outcome.ts';
import type { LldapGroup, LldapGroupStatus } from '../../shared/kube/resources.ts';
import { foldGroupName } from '../../shared/lldap/names.ts';
import { enqueueDependents, membershipsNaming } from '../../shared/lookup/dependents.ts';
import type { Io } from '../../shared/lookup/io.ts';
import { type Failure, notReady } from '../../shared/rules/failure.ts';
import type { Policy } from '../../shared/rules/policy.ts';
import { isReady } from '../../shared/rules/predicates.ts';
import { statusKeys, virtualGroupName } from '../../shared/rules/resource-names.ts';

/**
 * Keeps one virtual resource per built-in group of lldap: recreates it if a person deleted it, and records the group's id
 * if that changed. Writes nothing to lldap.
 *
 * @returns the number of resources written
 */
export async function keepVirtualGroups(io: Io, policy: Policy, existing: readonly LldapGroup[]): Promise<number> {
  let written = 0;
  for (const name of BUILT_IN_GROUPS) {
    const resource = existing.find((g) => g.metadata.namespace === policy.operatorNamespace && g.metadata.name === virtualGroupName(name));
    if (await keepVirtualGroup(io, policy, name, resource)) written++;
  }
  return written;
}

async function keepVirtualGroup(io: Io, policy: Policy, name: string, existing: LldapGroup | undefined): Promise<boolean> {
  const labels = { [INSTANCE_LABEL]: policy.instance, [VIRTUAL_LABEL]: 'true' };
  const isIntact =
    existing?.spec.displayName === name && Object.entries(labels).every(([label, value]) => existing.metadata.labels?.[label] === value);
  const resource = isIntact
    ? existing
    : await io.kube.apply('LldapGroup', policy.operatorNamespace, virtualGroupName(name), labels, { displayName: name });
  const group = await io.lookup.groupNamed(name, resource.status?.groupId);
  const failure = group ? undefined : missingGroup(name);
  const own: LldapGroupStatus = { ...statusKeys(resource), ...(group && { groupId: group.id, uuid: group.uuid }) };
  const status = buildStatus({
    resource,
    own,
    extra: {},
    ready: readyCondition(resource, failure),
    failure,
    retry: undefined,
    token: undefined,
    now: io.clock.now(),
  });
  if (sameStatus(resource.status, status)) return !isIntact;
  await io.kube.applyStatus(resource, status);
  const gained = group && (!isReady(resource) || resource.status?.uuid !== group.uuid);
  if (gained)
    await enqueueDependents(io, () =>
      membershipsNaming(io, { groupKey: foldGroupName(name) }, (m) => !isReady(m) || m.status?.joined?.groupUuid !== group.uuid),
    );
  return true;
}

function missingGroup(name: string): Failure {
  return notReady('DependencyNotReady', `lldap has no group ${name}, which is built into it; restart lldap, which creates it again.`);
}
