import { FIELD_MANAGER, FINALIZER, INSTANCE_LABEL, REQUESTED_AT, VIRTUAL_LABEL } from '../constants.ts';
import { copyStart } from '../platform/text.ts';
import type { KindName, ResourceOf } from './resources.ts';

/**
 * The part of a resource that a list keeps in memory: only the fields that are read. Tenants may fill their resources with
 * a megabyte each, and a list contains thousands. It keeps the operator's own labels, annotations and finalizer.
 */
export type Listed<K extends KindName = KindName> = ResourceOf[K] & {
  spec: { attributes?: never };
  /** Replaces `managedFields`: the name of another manager that owns the condition Ready. */
  rival: string | undefined;
};

/** Of the annotation requested-at, in UTF-16 code units: no reader compares more. */
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

/** Other tools may write conditions of their own into a status. */
function ownsReady({ subresource, fieldsV1 }: ManagedFields): boolean {
  return subresource === 'status' && JSON.stringify(fieldsV1 ?? {}).includes('{\\"type\\":\\"Ready\\"}');
}

function pick(record: Record<string, string> | undefined, keys: readonly string[]): Record<string, string> {
  return Object.fromEntries(Object.entries(record ?? {}).filter(([key]) => keys.includes(key)));
}
