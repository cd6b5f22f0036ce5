import { BUILT_IN_GROUPS, INSTANCE_LABEL, VIRTUAL_LABEL } from '../../shared/constants.ts';
import { buildStatus, sameStatus } from '../../shared/engine/conditions.ts';
import { readyCondition } from '../../shared/engine/outcome.ts';
import type { LldapGroup, LldapGroupStatus } from '../../shared/kube/resources.ts';
import type { LldapGroupRef } from '../../shared/lldap/api.ts';
import { foldGroupName, hasGroupName } from '../../shared/lldap/names.ts';
import { enqueueDependents, membershipsNaming } from '../../shared/lookup/dependents.ts';
import type { Io } from '../../shared/lookup/io.ts';
import { recordedGroup } from '../../shared/lookup/owner.ts';
import { type Failure, notReady } from '../../shared/rules/failure.ts';
import type { Policy } from '../../shared/rules/policy.ts';
import { isReady } from '../../shared/rules/predicates.ts';
import { statusKeys, virtualGroupName } from '../../shared/rules/resource-names.ts';

/**
 * Keeps the resources that stand for lldap's built-in groups: one that a person deleted comes back, and what lldap
 * gave another id is recorded anew. Nothing is created, renamed or deleted in lldap.
 *
 * @returns how many were written
 */
export async function keepVirtualGroups(io: Io, policy: Policy, existing: readonly LldapGroup[]): Promise<number> {
  let written = 0;
  for (const name of BUILT_IN_GROUPS) {
    const resource = existing.find((g) => g.metadata.namespace === policy.operatorNamespace && g.metadata.name === virtualGroupName(name));
    if (await keep(io, policy, name, resource)) written++;
  }
  return written;
}

async function keep(io: Io, policy: Policy, name: string, existing: LldapGroup | undefined): Promise<boolean> {
  const labels = { [INSTANCE_LABEL]: policy.instance, [VIRTUAL_LABEL]: 'true' };
  const intact =
    existing?.spec.displayName === name && Object.entries(labels).every(([label, value]) => existing.metadata.labels?.[label] === value);
  const resource = intact
    ? existing
    : await io.kube.apply('LldapGroup', policy.operatorNamespace, virtualGroupName(name), labels, { displayName: name });
  const group = await find(io, name, resource);
  const failure = group ? undefined : missing(name);
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
  if (sameStatus(resource.status, status)) return !intact;
  await io.kube.applyStatus(resource, status);
  const gained = group && (!isReady(resource) || resource.status?.uuid !== group.uuid);
  if (gained)
    await enqueueDependents(io, () =>
      membershipsNaming(io, { groupKey: foldGroupName(name) }, (m) => !isReady(m) || m.status?.joined?.groupUuid !== group.uuid),
    );
  return true;
}

/** By the recorded id; the costly list only when that fails. */
async function find(io: Io, name: string, { status }: LldapGroup): Promise<LldapGroupRef | undefined> {
  const recorded = await recordedGroup(io, status);
  return recorded && hasGroupName(recorded, name) ? recorded : (await io.lookup.groups()).find((g) => hasGroupName(g, name));
}

function missing(name: string): Failure {
  return notReady('DependencyNotReady', `lldap has no group ${name}, which is built into it; restart lldap, which creates it again.`);
}
