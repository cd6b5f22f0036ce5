import { INSTANCE_LABEL } from '../constants.ts';
import type { Kube, Selection } from '../kube/client.ts';
import type { Listed } from '../kube/listed.ts';
import type { Secret } from '../kube/objects.ts';
import type { KindName, ResourceOf } from '../kube/resources.ts';
import type { LldapClient, LldapGroupAccount } from '../lldap/api.ts';
import { foldGroupName, hasGroupName } from '../lldap/names.ts';
import { shareRead } from '../platform/concurrency.ts';
import { declaredName } from '../rules/resource-names.ts';

/** Selects what is not Ready by its status, or has none. */
export const UNREADY = { without: { 'status.ready': 'true' } };

const MAX_SEEN_GROUPS = 10_000;

type Claiming = 'LldapUser' | 'LldapGroup';

/** Reads other resources. Concurrent callers share the costly reads. */
export interface Lookup {
  /** The resources that declare a folded name, found by their status. */
  claiming<K extends Claiming>(kind: K, name: string): Promise<Listed<K>[]>;
  /** The resources whose status holds lldap's uuid. */
  recording<K extends Claiming>(kind: K, uuid: string): Promise<Listed<K>[]>;
  /** All resources of a kind, in one list that concurrent callers share. */
  all<K extends KindName>(kind: K): Promise<Listed<K>[]>;
  /** The memberships whose status does not say that they are Ready, in one list that concurrent callers share. */
  unreadyMemberships(): Promise<Listed<'LldapMembership'>[]>;
  select<K extends KindName>(kind: K, fields: Record<string, string>): Promise<Listed<K>[]>;
  /** What `keep` returns for each whole resource of a kind. */
  scan<K extends KindName, R>(kind: K, keep: (resource: ResourceOf[K]) => R, selection?: Pick<Selection, 'without'>): Promise<R[]>;
  /**
   * lldap's group of that name. lldap has no query by name, so all groups are listed, unless one of a known id has the name.
   *
   * @param id a hint
   */
  groupNamed(name: string, id: number | undefined): Promise<LldapGroupAccount | undefined>;
  /** The group that {@link groupNamed} last found with that name, if it still has it. */
  groupSeen(name: string): Promise<LldapGroupAccount | undefined>;
  /** lldap's groups with their attributes, in one list that concurrent callers share. */
  groups(): Promise<LldapGroupAccount[]>;
  /** lldap's definitions, in one read that concurrent callers share. */
  schema: LldapClient['schema'];
  get<K extends KindName>(kind: K, namespace: string, name: string): Promise<ResourceOf[K] | undefined>;
  /** What `keep` returns for each Secret with the instance's label. */
  scanSecrets<R>(keep: (secret: Secret) => R): Promise<R[]>;
}

/** @param onlyNamespace the one namespace that the installation serves; undefined for all */
export function createLookup(kube: Kube, lldap: LldapClient, instance: string, onlyNamespace: () => Promise<string | undefined>): Lookup {
  const labels = { [INSTANCE_LABEL]: instance };
  const served = async () => {
    const namespace = await onlyNamespace();
    return { labels, ...(namespace && { namespace }) };
  };
  const list = async <K extends KindName>(kind: K, selection: Pick<Selection, 'fields' | 'without'> = {}): Promise<Listed<K>[]> =>
    kube.list(kind, { ...(await served()), ...selection });
  const lists: { [K in KindName]: () => Promise<Listed<K>[]> } = {
    LldapUser: shareRead(() => list('LldapUser')),
    LldapGroup: shareRead(() => list('LldapGroup')),
    LldapMembership: shareRead(() => list('LldapMembership')),
    LldapAttributeSchema: shareRead(() => list('LldapAttributeSchema')),
  };
  const groupNames = shareRead(() => lldap.groupNames());
  /** Ids by folded name. */
  const seen = new Map<string, number>();
  const groupAt = async (name: string, id: number | undefined): Promise<LldapGroupAccount | undefined> => {
    const group = id === undefined ? undefined : await lldap.group(id);
    return group && hasGroupName(group, name) ? group : undefined;
  };
  return {
    claiming: async (kind, name) => (await list(kind, { fields: { 'status.nameKey': name } })).filter((r) => declaredName(r) === name),
    recording: (kind, uuid) => list(kind, { fields: { 'status.uuid': uuid } }),
    all: (kind) => lists[kind](),
    unreadyMemberships: shareRead(() => list('LldapMembership', UNREADY)),
    select: (kind, fields) => list(kind, { fields }),
    scan: async (kind, keep, selection) => kube.scan(kind, { ...(await served()), ...selection }, keep),
    groups: shareRead(() => lldap.groups()),
    async groupNamed(name, id) {
      const group = (await groupAt(name, id)) ?? (await groupAt(name, (await groupNames()).find((g) => hasGroupName(g, name))?.id));
      if (group) {
        if (seen.size >= MAX_SEEN_GROUPS) seen.clear();
        seen.set(foldGroupName(name), group.id);
      }
      return group;
    },
    groupSeen: (name) => groupAt(name, seen.get(foldGroupName(name))),
    schema: shareRead(() => lldap.schema()),
    async get(kind, namespace, name) {
      const only = await onlyNamespace();
      if (only !== undefined && namespace !== only) return undefined;
      const resource = await kube.get(kind, namespace, name);
      return resource?.metadata.labels?.[INSTANCE_LABEL] === instance ? resource : undefined;
    },
    scanSecrets: async (keep) => kube.scanSecrets(await served(), keep),
  };
}
