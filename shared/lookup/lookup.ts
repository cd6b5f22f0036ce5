import { INSTANCE_LABEL } from '../constants.ts';
import type { Kube } from '../kube/client.ts';
import type { Secret } from '../kube/objects.ts';
import type { KindName, LldapAttributeSchema, LldapGroup, LldapGroupStatus, LldapUser, ResourceOf } from '../kube/resources.ts';
import type { LldapClient, LldapGroupAccount } from '../lldap/api.ts';
import { shareRead } from '../platform/concurrency.ts';
import { type OwnedObject, type Owner, ownerByMark, ownerByRecord } from '../rules/ownership.ts';
import { condition, isLetGo, notReadyReason } from '../rules/predicates.ts';
import { declaredName, refOf } from '../rules/resource-names.ts';

type Named = 'LldapUser' | 'LldapGroup';

/** Reads of other resources that decisions need; those that are costly are shared by all who wait. */
export interface Lookup {
  /** The resources that declare a folded name, found by their status. */
  declaring<K extends Named>(kind: K, name: string): Promise<ResourceOf[K][]>;
  /** The resources that record lldap's uuid. */
  recording<K extends Named>(kind: K, uuid: string): Promise<ResourceOf[K][]>;
  /** Those without a status too; one list for all who wait. */
  all<K extends KindName>(kind: K): Promise<ResourceOf[K][]>;
  select<K extends KindName>(kind: K, fields: Record<string, string>): Promise<ResourceOf[K][]>;
  /** lldap's groups, in one list for all who wait. */
  groups(): Promise<LldapGroupAccount[]>;
  get<K extends KindName>(kind: K, namespace: string, name: string): Promise<ResourceOf[K] | undefined>;
  /** The Secrets that carry the instance's label. */
  secrets(): Promise<Secret[]>;
}

/** @param scope the one namespace that the installation serves; undefined for all */
export function createLookup(kube: Kube, lldap: LldapClient, instance: string, scope: () => Promise<string | undefined>): Lookup {
  const labels = { [INSTANCE_LABEL]: instance };
  const list = async <K extends KindName>(kind: K, fields?: Record<string, string>): Promise<ResourceOf[K][]> => {
    const namespace = await scope();
    return kube.list(kind, { labels, ...(namespace && { namespace }), ...(fields && { fields }) });
  };
  const every: { [K in KindName]: () => Promise<ResourceOf[K][]> } = {
    LldapUser: shareRead(() => list('LldapUser')),
    LldapGroup: shareRead(() => list('LldapGroup')),
    LldapMembership: shareRead(() => list('LldapMembership')),
    LldapAttributeSchema: shareRead(() => list('LldapAttributeSchema')),
  };
  return {
    declaring: async (kind, name) => (await list(kind, { 'status.nameKey': name })).filter((r) => declaredName(r) === name),
    recording: (kind, uuid) => list(kind, { 'status.uuid': uuid }),
    all: (kind) => every[kind](),
    select: list,
    groups: shareRead(() => lldap.groups()),
    async get(kind, namespace, name) {
      const only = await scope();
      if (only !== undefined && namespace !== only) return undefined;
      const resource = await kube.get(kind, namespace, name);
      return resource?.metadata.labels?.[INSTANCE_LABEL] === instance ? resource : undefined;
    },
    secrets: async () => kube.secrets(labels, await scope()),
  };
}

/**
 * Whom an object in lldap belongs to, by the rules of {@link ownerByMark} and {@link ownerByRecord}.
 *
 * @param self the resource that asks; it declares the object's name or records it
 */
export async function findOwner(lookup: Lookup, self: LldapUser | LldapGroup, object: OwnedObject, instance: string): Promise<Owner> {
  const { mark } = object;
  const isSelf = mark && refOf(self) === `${mark.namespace}/${mark.name}`;
  let named: LldapUser | LldapGroup | undefined = self;
  if (!isSelf) named = mark?.instance === instance ? await lookup.get(self.kind, mark.namespace, mark.name) : undefined;
  return (
    ownerByMark({ self, object, instance, named }) ??
    ownerByRecord({ self, object, recording: await lookup.recording(self.kind, object.uuid) })
  );
}

/** The group that a status records: only if id and uuid both match, since a restored lldap gives ids anew. */
export async function recordedGroup(
  { lldap }: { lldap: LldapClient },
  { groupId, uuid }: LldapGroupStatus = {},
): Promise<LldapGroupAccount | undefined> {
  const group = groupId === undefined ? undefined : await lldap.group(groupId);
  return group?.uuid === uuid ? group : undefined;
}

/** A resource with one of these reasons does not get what it declares, so others need not wait for it. */
const NOT_DECLARING = new Set(['Conflict', 'NotOurs', 'Forbidden', 'Protected']);

/** Whether a resource counts as declaring its name. */
export function declares(resource: LldapUser | LldapGroup | LldapAttributeSchema): boolean {
  if (resource.kind === 'LldapAttributeSchema' && condition(resource.status, 'Stalled')?.status === 'True') return false;
  return !isLetGo(resource) && !NOT_DECLARING.has(notReadyReason(resource) ?? '');
}
