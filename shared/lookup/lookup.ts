import { INSTANCE_LABEL } from '../constants.ts';
import type { Kube } from '../kube/client.ts';
import type { Secret } from '../kube/objects.ts';
import type { KindName, ResourceOf } from '../kube/resources.ts';
import type { LldapClient, LldapGroupAccount } from '../lldap/api.ts';
import { shareRead } from '../platform/concurrency.ts';
import { declaredName } from '../rules/resource-names.ts';

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
