import type { ReconcileContext } from '../../shared/engine/context.ts';
import type { Kind } from '../../shared/engine/kind.ts';
import type { LldapGroupAccount } from '../../shared/lldap/api.ts';
import { foldGroupName, hasGroupName, isBuiltInGroup } from '../../shared/lldap/names.ts';
import { findDefinitions } from '../../shared/lookup/attribute-definitions.ts';
import { enqueueDependents, membershipsAwaiting, membershipsNaming, resourcesClaiming, targetOf } from '../../shared/lookup/dependents.ts';
import { findOwner, recordedGroup } from '../../shared/lookup/owner.ts';
import { changedFields, type Definitions, diffAttributes } from '../../shared/rules/attributes.ts';
import { dependsOnLabels, isConsentOutdated, ownsByRecord } from '../../shared/rules/consent.ts';
import { markOf, ownerText } from '../../shared/rules/owner-mark.ts';
import { markFor } from '../../shared/rules/ownership.ts';
import { hasFinalizer, isDeleting, isObserved, isReady } from '../../shared/rules/predicates.ts';
import { declaredName, isVirtual } from '../../shared/rules/resource-names.ts';
import { builtIn, type Observed, plan, planDeletion, type Step } from './plan.ts';

type GroupContext = ReconcileContext<'LldapGroup'>;

/** Groups, identified by id and uuid: a new name renames the group, and ids that a restored lldap reuses mislead nobody. */
export const groupKind: Kind<'LldapGroup', Definitions, Observed, Step> = {
  name: 'LldapGroup',
  ignores: (resource, policy) => isVirtual(resource, policy.operatorNamespace),
  recover: announceConsent,
  // A deletion concerns the group, not the name: a group created under another name is deleted.
  refuse: (resource) =>
    isBuiltInGroup(resource.spec.displayName) && !isDeleting(resource) ? builtIn(resource.spec.displayName) : undefined,
  isUnchanged: async () => true,
  withoutDependencies: new Map(),
  hasDependencies: ({ spec }) => (spec.attributes?.length ?? 0) > 0,
  findDependencies: findDefinitions,
  async observe(context, definitions, searchAll) {
    const recorded = await recordedGroup(context.io, context.draft);
    const { resource } = context;
    // An earlier reconcile compared, or was refused: a group of that name may well be there.
    const isExpected = !hasFinalizer(resource) && resource.status?.observedGeneration !== undefined;
    if (!searchAll && (isObserved(resource) || isExpected)) {
      const { displayName } = resource.spec;
      const isNamed = recorded && hasGroupName(recorded, displayName);
      const named = isNamed ? recorded : await context.io.lookup.groupNamed(displayName, undefined);
      return { definitions, ...(await withOwner(context, recorded ?? named)), ...withNameHolder(named) };
    }
    // Without our finalizer, no earlier reconcile can have created a group, and the list is costly.
    if (!searchAll && (recorded || !hasFinalizer(context.resource))) return { definitions, ...(await withOwner(context, recorded)) };
    const { own, nameHolder } = await searchGroups(context);
    return {
      definitions,
      ...(await withOwner(context, recorded ?? own)),
      ...withNameHolder(nameHolder),
    };
  },
  plan,
  async observeDeletion(context, onlyCreated) {
    const group = (await recordedGroup(context.io, context.draft)) ?? (onlyCreated ? undefined : (await searchGroups(context)).own);
    return { definitions: new Map(), ...(await withOwner(context, group)) };
  },
  planDeletion,
  apply,
  describe: (step) => DESCRIPTIONS[step.do],
  async preview(step) {
    return step.do === 'update' ? `change ${changedFields(step.change)}` : 'create the group';
  },
  async findDependents({ io, resource, draft, formerName }, { becameReady, gone }) {
    const name = declaredName(resource);
    // The status may hold a name that the resource declared without success; lldap's name is known only after a rename or a deletion.
    const formerNames = new Set([formerName ?? name, resource.status?.nameKey ?? name]);
    formerNames.delete(name);
    if (!gone && !becameReady && formerNames.size === 0 && resource.status?.uuid === draft.uuid) return [];
    const uuids = { uuid: draft.uuid, recorded: resource.status?.uuid };
    const dependents = gone ? [] : await membershipsAwaiting(io, { groupKey: name }, uuids);
    // Its new owner may admit others than the owner before.
    if (becameReady && draft.origin === 'adopted' && resource.status?.uuid === undefined)
      dependents.push(...(await membershipsNaming(io, { groupKey: name }, isReady)));
    for (const freed of gone ? [name, ...formerNames] : formerNames)
      dependents.push(...(await membershipsNaming(io, { groupKey: freed }, () => true)), ...(await resourcesClaiming(io, resource, freed)));
    // Those that joined it under a name that it lost before they could be found by it.
    if (gone && draft.uuid !== undefined)
      dependents.push(...(await io.lookup.select('LldapMembership', { 'status.joined.groupUuid': draft.uuid })).map(targetOf));
    return dependents;
  },
};

/**
 * Enqueues the memberships for which a new generation changes whether they may join. They read the spec, so this does not
 * wait for the group to be reconciled. To remove the field moves nobody, so the sweep can tell the memberships.
 */
async function announceConsent({ io, policy, resource }: GroupContext): Promise<void> {
  const handled = resource.status?.observedGeneration;
  const isNew = handled !== undefined && handled !== resource.metadata.generation;
  if (!isNew || !resource.spec.allowedMemberships || isDeleting(resource) || !ownsByRecord(resource)) return;
  const labels = new Map<string, Promise<Record<string, string> | undefined>>();
  const labelsOf = (namespace: string) => {
    if (!dependsOnLabels(resource, namespace)) return undefined;
    if (!labels.has(namespace)) labels.set(namespace, io.kube.namespaceLabels(namespace));
    return labels.get(namespace);
  };
  await enqueueDependents(io, async () => {
    const naming = await io.lookup.select('LldapMembership', { 'status.groupKey': declaredName(resource) });
    const { uuid } = resource.status ?? {};
    // Under a new name, which the group may not get.
    const joined = uuid === undefined ? [] : await io.lookup.select('LldapMembership', { 'status.joined.groupUuid': uuid });
    const found = [...new Map([...naming, ...joined].map((m) => [m.metadata.uid, m])).values()];
    const outdated = await Promise.all(
      found.map(async (m) => isConsentOutdated(m, resource, await labelsOf(m.metadata.namespace), policy)),
    );
    return found.filter((_, i) => outdated[i]).map(targetOf);
  });
}

const DESCRIPTIONS: Record<Step['do'], string> = {
  create: 'created the group',
  update: 'updated the group',
  delete: 'deleted the group',
};

/** By mark, then by name, in one list that concurrent callers share: lldap has no query by name. */
async function searchGroups({ io, resource }: GroupContext): Promise<{ [Found in 'own' | 'nameHolder']: LldapGroupAccount | undefined }> {
  const groups = await io.lookup.groups();
  const marked = groups.find((group) => markOf(group)?.uid === resource.metadata.uid);
  const nameHolder = groups.find((group) => hasGroupName(group, resource.spec.displayName));
  return { own: marked ?? nameHolder, nameHolder };
}

function withNameHolder(group: LldapGroupAccount | undefined): Pick<Observed, 'nameHolder'> {
  return group ? { nameHolder: { id: group.id, owner: ownerText('LldapGroup', group) } } : {};
}

async function withOwner(
  { io, resource, policy }: GroupContext,
  group: LldapGroupAccount | undefined,
): Promise<Pick<Observed, 'group' | 'owner'>> {
  if (!group) return {};
  const object = { uuid: group.uuid, name: foldGroupName(group.displayName), mark: markOf(group) };
  return { group, owner: await findOwner(io.lookup, resource, object, policy.instance) };
}

async function apply(step: Step, context: GroupContext): Promise<void> {
  const { io, resource, draft, policy } = context;
  switch (step.do) {
    case 'create': {
      const { insertAttributes = [] } = diffAttributes(resource.spec.attributes, [], new Map(), markFor(resource, 'created', policy));
      const { displayName } = resource.spec;
      const group = await io.lldap.createGroup({ displayName, attributes: insertAttributes });
      Object.assign(draft, { groupId: group.id, uuid: group.uuid, origin: 'created' });
      context.created = true;
      return;
    }
    case 'update':
      await io.lldap.updateGroup(step.id, step.change);
      if (step.change.displayName !== undefined) context.formerName = foldGroupName(step.name);
      return;
    case 'delete':
      await io.lldap.deleteGroup(step.id);
      context.formerName = foldGroupName(step.name);
  }
}
