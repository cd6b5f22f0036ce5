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

/**
 * Reduces the resources of one list. What thousands of them have in common is one string in memory, where the parser made
 * one for each: namespaces, labels, and conditions down to their times. This halves what a list keeps.
 *
 * @returns a function of a resource as the API server returns it
 */
export function createListReducer<K extends KindName>(): (resource: ResourceOf[K]) => Listed<K> {
  const strings = new Map<string, string>();
  const shared = <T>(value: T): T => share(value, strings);
  return ({ apiVersion, kind, metadata, spec, status }) => {
    const { name, namespace, uid, resourceVersion, generation, creationTimestamp, deletionTimestamp } = metadata;
    const { attributes, ...rest } = spec as { attributes?: readonly { name: string }[] };
    const token = metadata.annotations?.[REQUESTED_AT];
    return {
      apiVersion: shared(apiVersion),
      kind: shared(kind),
      metadata: {
        name,
        namespace: shared(namespace),
        uid,
        resourceVersion,
        generation,
        creationTimestamp: shared(creationTimestamp),
        ...(deletionTimestamp !== undefined && { deletionTimestamp }),
        labels: shared(pick(metadata.labels, [INSTANCE_LABEL, VIRTUAL_LABEL])),
        ...(token !== undefined && { annotations: { [REQUESTED_AT]: copyStart(token, MAX_TOKEN_LENGTH) } }),
        finalizers: metadata.finalizers?.includes(FINALIZER) ? [FINALIZER] : [],
      },
      spec: rest,
      ...(status && { status: { ...status, ...(status.conditions && { conditions: shared(status.conditions) }) } }),
      rival: (metadata as Managed).managedFields?.find((entry) => entry.manager !== FIELD_MANAGER && ownsReady(entry))?.manager,
    } as unknown as Listed<K>;
  };
}

/** A copy of JSON that has the first of all equal strings in the place of each. */
function share<T>(value: T, strings: Map<string, string>): T {
  if (typeof value === 'string') {
    const first = strings.get(value);
    if (first === undefined) strings.set(value, value);
    return (first as T | undefined) ?? value;
  }
  if (Array.isArray(value)) return value.map((item) => share(item, strings)) as T;
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, share(item, strings)])) as T;
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
