import { shareRead } from '../concurrency.ts';
import type { Kube } from '../kube/client.ts';
import type { Secret } from '../kube/objects.ts';
import type { KindName, LldapAttributeSchema, LldapGroup, LldapMembership, LldapUser, ResourceOf } from '../kube/resources.ts';
import type { LldapClient, LldapGroupAccount } from '../lldap/api.ts';
import { INSTANCE_LABEL } from '../names.ts';
import { condition, hasFinalizer, isLetGo, notReadyReason } from './decide.ts';
import type { Mark } from './mark.ts';
import { declaredName, refOf } from './names.ts';
import type { Owner } from './standing.ts';

type Named = 'LldapUser' | 'LldapGroup';

/** Reads of other resources that decisions need; those that are costly are shared by all who wait. */
export interface Lookup {
  /** The resources that declare a folded name, found by their status. */
  declaring<K extends Named>(kind: K, name: string): Promise<ResourceOf[K][]>;
  /** The resources that record lldap's uuid. */
  recording<K extends Named>(kind: K, uuid: string): Promise<ResourceOf[K][]>;
  schemas(): Promise<LldapAttributeSchema[]>;
  memberships(): Promise<LldapMembership[]>;
  /** Found by their spec, so those without a status too; like the two above, one list for all who wait. */
  all<K extends KindName>(kind: K): Promise<ResourceOf[K][]>;
  select<K extends KindName>(kind: K, fields: Record<string, string>): Promise<ResourceOf[K][]>;
  /** lldap's groups, in one list for all who wait. */
  groups(): Promise<LldapGroupAccount[]>;
  get<K extends KindName>(kind: K, namespace: string, name: string): Promise<ResourceOf[K] | undefined>;
  /** The Secrets that carry the instance's label. */
  secrets(): Promise<Secret[]>;
}

/** @param scope the one namespace that the installation serves; undefined for all */
export function createLookup(
  kube: Kube,
  lldap: LldapClient,
  instance: string,
  scope: () => Promise<string | undefined> = everywhere,
): Lookup {
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
    schemas: every.LldapAttributeSchema,
    memberships: every.LldapMembership,
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

async function everywhere(): Promise<undefined> {
  return undefined;
}

/**
 * Whom an object in lldap belongs to: the resource that its mark names, if that exists and declares the name or
 * records the object, or has not settled since it was changed; else the resource that declares the name and records the object; else nobody.
 *
 * @param self the resource that asks; it declares the object's name or records it
 * @param object as lldap has it, `name` folded
 */
export async function findOwner<K extends Named>(
  lookup: Lookup,
  kind: K,
  self: LldapUser | LldapGroup,
  object: { uuid: string; name: string; mark: Mark | undefined },
  instance: string,
): Promise<Owner> {
  const { mark } = object;
  if (mark && mark.instance !== instance) return { who: 'foreign', instance: mark.instance };
  if (mark && `${mark.namespace}/${mark.name}` === refOf(self)) return { who: 'self', origin: mark.origin, marked: true };
  if (mark) {
    const named: LldapUser | LldapGroup | undefined = await lookup.get(kind, mark.namespace, mark.name);
    const isIts =
      named && !isLetGo(named) && (declaredName(named) === object.name || named.status?.uuid === object.uuid || mayBeUnrecorded(named));
    if (isIts) return { who: 'other', ref: refOf(named) };
  }
  const recording: (LldapUser | LldapGroup)[] = await lookup.recording(kind, object.uuid);
  const owners = recording.filter((r) => !isLetGo(r) && (declaredName(r) === object.name || refOf(r) === refOf(self))).sort(byAge);
  const [owner] = owners;
  if (!owner) return { who: 'nobody', ...(mark && { markNamespace: mark.namespace, origin: mark.origin }) };
  if (refOf(owner) === refOf(self)) return { who: 'self', origin: self.status?.origin ?? 'adopted', marked: false };
  return { who: 'other', ref: refOf(owner) };
}

/** Renamed, or being deleted, before its status could tell what it had made: the mark alone knows. */
function mayBeUnrecorded(resource: LldapUser | LldapGroup): boolean {
  return hasFinalizer(resource) && resource.status?.observedGeneration !== resource.metadata.generation;
}

function byAge(a: LldapUser | LldapGroup, b: LldapUser | LldapGroup): number {
  return a.metadata.creationTimestamp.localeCompare(b.metadata.creationTimestamp) || a.metadata.uid.localeCompare(b.metadata.uid);
}

/** A resource with one of these reasons does not get what it declares, so others need not wait for it. */
const NOT_DECLARING = new Set(['Conflict', 'NotOurs', 'Forbidden', 'Protected']);

/** Whether a resource counts as declaring its name. */
export function declares(resource: LldapUser | LldapGroup | LldapAttributeSchema): boolean {
  if (resource.kind === 'LldapAttributeSchema' && condition(resource.status, 'Stalled')?.status === 'True') return false;
  return !isLetGo(resource) && !NOT_DECLARING.has(notReadyReason(resource) ?? '');
}
