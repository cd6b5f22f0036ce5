import { FIELD_MANAGER, FINALIZER, INSTANCE_LABEL, REQUESTED_AT, VIRTUAL_LABEL } from '../constants.ts';
import { copyStart } from '../platform/text.ts';
import type { KindName, ResourceOf } from './resources.ts';

/**
 * What a list keeps of a resource: only what its readers read. Whoever creates resources may fill them with a megabyte
 * each, and a list holds thousands. Of labels, annotations and finalizers, the operator's own are kept.
 */
export type Listed<K extends KindName = KindName> = ResourceOf[K] & {
  spec: { attributes?: never };
  /** In place of `spec.attributes`. */
  attributeNames: readonly string[];
  /** In place of `managedFields`: another manager than the operator that owns the condition Ready. */
  rival: string | undefined;
};

/** Of `requested-at`: more than any reader tells apart. */
const MAX_TOKEN_LENGTH = 100;

/** @param resource as the API server returns it */
export function toListed<K extends KindName>(resource: ResourceOf[K]): Listed<K> {
  const { apiVersion, kind, metadata, spec, status } = resource;
  const { name, namespace, uid, resourceVersion, generation, creationTimestamp, deletionTimestamp } = metadata;
  const { attributes, ...rest } = spec as { attributes?: readonly { name: string }[] };
  const token = metadata.annotations?.[REQUESTED_AT];
  return {
    apiVersion,
    kind,
    metadata: {
      name,
      namespace,
      uid,
      resourceVersion,
      generation,
      creationTimestamp,
      ...(deletionTimestamp !== undefined && { deletionTimestamp }),
      labels: pick(metadata.labels, [INSTANCE_LABEL, VIRTUAL_LABEL]),
      ...(token !== undefined && { annotations: { [REQUESTED_AT]: copyStart(token, MAX_TOKEN_LENGTH) } }),
      finalizers: metadata.finalizers?.includes(FINALIZER) ? [FINALIZER] : [],
    },
    spec: rest,
    ...(status && { status }),
    attributeNames: attributes?.map((attribute) => attribute.name) ?? [],
    rival: (metadata as Managed).managedFields?.find((entry) => entry.manager !== FIELD_MANAGER && ownsReady(entry))?.manager,
  } as unknown as Listed<K>;
}

interface Managed {
  managedFields?: ManagedFields[];
}

interface ManagedFields {
  manager?: string;
  subresource?: string;
  fieldsV1?: unknown;
}

/** A status that other tools write conditions of their own into is theirs to write. */
function ownsReady({ subresource, fieldsV1 }: ManagedFields): boolean {
  return subresource === 'status' && JSON.stringify(fieldsV1 ?? {}).includes('{\\"type\\":\\"Ready\\"}');
}

function pick(record: Record<string, string> | undefined, keys: readonly string[]): Record<string, string> {
  return Object.fromEntries(Object.entries(record ?? {}).filter(([key]) => keys.includes(key)));
}
