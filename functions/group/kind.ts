import type { Work } from '../../shared/engine/context.ts';
import type { Kind } from '../../shared/engine/kind.ts';
import type { LldapGroupAccount } from '../../shared/lldap/api.ts';
import { foldGroupName, isBuiltInGroup, isNamed } from '../../shared/lldap/names.ts';
import { findDefinitions } from '../../shared/lookup/attribute-definitions.ts';
import { contenders, joinedBy } from '../../shared/lookup/dependents.ts';
import { findOwner, recordedGroup } from '../../shared/lookup/owner.ts';
import { type Definitions, diffAttributes } from '../../shared/rules/attributes.ts';
import { markOf, ownerText } from '../../shared/rules/owner-mark.ts';
import { markFor } from '../../shared/rules/ownership.ts';
import { hasFinalizer, isDeleting, isReady } from '../../shared/rules/predicates.ts';
import { declaredName, isVirtual } from '../../shared/rules/resource-names.ts';
import { builtIn, type Observed, plan, planDeletion, type Step } from './plan.ts';

type GroupWork = Work<'LldapGroup'>;

/** Groups: known by their id and uuid, so that a new name renames and a restored lldap misleads nobody. */
export const groupKind: Kind<'LldapGroup', Definitions, Observed, Step> = {
  name: 'LldapGroup',
  ignores: (resource, policy) => isVirtual(resource, policy.operatorNamespace),
  // At deletion the group counts, not the name: one that was made under another name goes.
  refuse: (resource) =>
    isBuiltInGroup(resource.spec.displayName) && !isDeleting(resource) ? builtIn(resource.spec.displayName) : undefined,
  unchanged: async () => true,
  hasDependencies: ({ spec }) => (spec.attributes?.length ?? 0) > 0,
  depend: findDefinitions,
  async observe(work, definitions, sought) {
    const recorded = await recordedGroup(work.io, work.draft);
    // Without our finalizer no earlier pass can have made a group, and the list is costly.
    if (!sought && (recorded || !hasFinalizer(work.resource))) return { definitions, ...(await owned(work, recorded)) };
    const { found, holder } = await seek(work);
    const group = recorded ?? found;
    return {
      definitions,
      ...(await owned(work, group)),
      ...(holder && { nameHolder: { id: holder.id, owner: ownerText('LldapGroup', holder) } }),
    };
  },
  plan,
  async observeDeletion(work, onlyMade) {
    const group = (await recordedGroup(work.io, work.draft)) ?? (onlyMade ? undefined : (await seek(work)).found);
    return { definitions: new Map(), ...(await owned(work, group)) };
  },
  planDeletion,
  apply,
  describe: (step) => DESCRIPTIONS[step.do],
  async dependants({ io, resource, draft, formerName }, { becameReady, gone }) {
    const name = declaredName(resource);
    // A name that was declared in vain stands in the status, too: what lldap had is known only where it was changed.
    const former = new Set([formerName ?? name, resource.status?.nameKey ?? name]);
    former.delete(name);
    if (!gone && !becameReady && former.size === 0 && resource.status?.uuid === draft.uuid) return [];
    const woken = gone ? [] : await joinedBy(io, { groupKey: name }, (m) => !isReady(m) || m.status?.joined?.groupUuid !== draft.uuid);
    for (const key of gone ? [name, ...former] : former)
      woken.push(...(await joinedBy(io, { groupKey: key }, () => true)), ...(await contenders(io, resource, key)));
    return woken;
  },
};

const DESCRIPTIONS: Record<Step['do'], string> = {
  create: 'created the group',
  update: 'updated the group',
  delete: 'deleted the group',
};

/** By mark, then by name, in one list that all who wait share; there is no query by name. */
async function seek({ io, resource }: GroupWork): Promise<{ [Way in 'found' | 'holder']: LldapGroupAccount | undefined }> {
  const groups = await io.lookup.groups();
  const marked = groups.find((group) => markOf(group)?.uid === resource.metadata.uid);
  const holder = groups.find((group) => isNamed(group, resource.spec.displayName));
  return { found: marked ?? holder, holder };
}

async function owned(
  { io, resource, policy }: GroupWork,
  group: LldapGroupAccount | undefined,
): Promise<Pick<Observed, 'group' | 'owner'>> {
  if (!group) return {};
  const object = { uuid: group.uuid, name: foldGroupName(group.displayName), mark: markOf(group) };
  return { group, owner: await findOwner(io.lookup, resource, object, policy.instance) };
}

async function apply(step: Step, work: GroupWork): Promise<void> {
  const { io, resource, draft, policy } = work;
  switch (step.do) {
    case 'create': {
      const { insertAttributes = [] } = diffAttributes(resource.spec.attributes, [], new Map(), markFor(resource, 'created', policy));
      const group = await io.lldap.createGroup({ displayName: resource.spec.displayName, attributes: insertAttributes });
      Object.assign(draft, { groupId: group.id, uuid: group.uuid, origin: 'created' });
      work.made = true;
      return;
    }
    case 'update':
      await io.lldap.updateGroup(step.id, step.change);
      if (step.change.displayName !== undefined) work.formerName = foldGroupName(step.name);
      return;
    case 'delete':
      return io.lldap.deleteGroup(step.id);
  }
}
