import { INSTANCE_LABEL } from '../constants.ts';
import type { Kube } from '../kube/client.ts';
import type { Listed } from '../kube/listed.ts';
import type { Secret } from '../kube/objects.ts';
import type { KindName, ResourceOf } from '../kube/resources.ts';
import type { LldapClient, LldapGroupAccount, LldapGroupRef } from '../lldap/api.ts';
import { shareRead } from '../platform/concurrency.ts';
import { declaredName } from '../rules/resource-names.ts';

type Claiming = 'LldapUser' | 'LldapGroup';

/** Reads other resources. Concurrent callers share the costly reads. */
export interface Lookup {
  /** The resources that declare a folded name, found by their status. */
  claiming<K extends Claiming>(kind: K, name: string): Promise<Listed<K>[]>;
  /** The resources whose status holds lldap's uuid. */
  recording<K extends Claiming>(kind: K, uuid: string): Promise<Listed<K>[]>;
  /** All resources of a kind, in one list that concurrent callers share. */
  all<K extends KindName>(kind: K): Promise<Listed<K>[]>;
  select<K extends KindName>(kind: K, fields: Record<string, string>): Promise<Listed<K>[]>;
  /** What `keep` returns for each whole resource of a kind. */
  scan<K extends KindName, R>(kind: K, keep: (resource: ResourceOf[K]) => R): Promise<R[]>;
  /** lldap's groups with their attributes, in one list that concurrent callers share. */
  groups(): Promise<LldapGroupAccount[]>;
  /** lldap's groups without their attributes, in one list that concurrent callers share. */
  groupNames(): Promise<LldapGroupRef[]>;
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
  const list = async <K extends KindName>(kind: K, fields?: Record<string, string>): Promise<Listed<K>[]> =>
    kube.list(kind, { ...(await served()), ...(fields && { fields }) });
  const lists: { [K in KindName]: () => Promise<Listed<K>[]> } = {
    LldapUser: shareRead(() => list('LldapUser')),
    LldapGroup: shareRead(() => list('LldapGroup')),
    LldapMembership: shareRead(() => list('LldapMembership')),
    LldapAttributeSchema: shareRead(() => list('LldapAttributeSchema')),
  };
  return {
    claiming: async (kind, name) => (await list(kind, { 'status.nameKey': name })).filter((r) => declaredName(r) === name),
    recording: (kind, uuid) => list(kind, { 'status.uuid': uuid }),
    all: (kind) => lists[kind](),
    select: list,
    scan: async (kind, keep) => kube.scan(kind, await served(), keep),
    groups: shareRead(() => lldap.groups()),
    groupNames: shareRead(() => lldap.groupNames()),
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
