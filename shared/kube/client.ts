import { API_VERSION, FIELD_MANAGER, FINALIZER } from '../constants.ts';
import { type Connection, connect } from './connection.ts';
import { KubeError, TOO_LARGE } from './errors.ts';
import { type Listed, toListed } from './listed.ts';
import type { KubernetesEvent, Secret } from './objects.ts';
import { type CommonStatus, type KindName, PLURALS, type ResourceOf } from './resources.ts';

export interface Selection {
  namespace?: string;
  /** Field to value; values are escaped here. */
  fields?: Record<string, string>;
  /** Label to value. */
  labels?: Record<string, string>;
}

/** The few calls that functions make; all reads are consistent, never from the API server's cache. Throws KubeError. */
export interface Kube {
  /** The operator's own namespace. */
  namespace(): Promise<string>;
  get<K extends KindName>(kind: K, namespace: string, name: string): Promise<ResourceOf[K] | undefined>;
  /** All that match, read in pages. */
  list<K extends KindName>(kind: K, selection?: Selection): Promise<Listed<K>[]>;
  /** What `keep` returns for each resource that matches: the whole resources of one page at a time are in memory. */
  scan<K extends KindName, R>(kind: K, selection: Selection, keep: (resource: ResourceOf[K]) => R): Promise<R[]>;
  /** Adds our finalizer if the resource is still the one that was read; answers the resource as it is then. */
  addFinalizer<K extends KindName>(resource: ResourceOf[K]): Promise<ResourceOf[K]>;
  /** Removes our entry, and only ours, on the same condition. */
  removeFinalizer<K extends KindName>(resource: ResourceOf[K]): Promise<void>;
  /** Makes `status` the whole of what the operator owns in it, if the resource is still the one that was read. */
  applyStatus<K extends KindName>(resource: ResourceOf[K], status: CommonStatus): Promise<ResourceOf[K]>;
  /** Creates the object or makes its labels and spec these. */
  apply<K extends KindName>(
    kind: K,
    namespace: string,
    name: string,
    labels: Record<string, string>,
    spec: ResourceOf[K]['spec'],
  ): Promise<ResourceOf[K]>;
  secret(namespace: string, name: string): Promise<Secret | undefined>;
  /** As {@link scan}, of the Secrets of all namespaces or of one. */
  scanSecrets<R>(selection: Pick<Selection, 'namespace' | 'labels'>, keep: (secret: Secret) => R): Promise<R[]>;
  /** Answers undefined when a Secret of that name is there already. */
  createSecret(namespace: string, name: string, labels: Record<string, string>, data: Record<string, string>): Promise<Secret | undefined>;
  createEvent(event: KubernetesEvent): Promise<void>;
  close(): void;
}

const PAGE_SIZE = 500;
/** A list that takes longer than etcd keeps its version is begun anew; three times is bad luck, more is no way to end. */
const MAX_LIST_RESTARTS = 3;

export function createKube(connection: Connection = connect()): Kube {
  const patchFinalizers = async ({ kind, metadata }: ResourceOf[KindName], operations: unknown[]): Promise<unknown> =>
    connection
      .request({
        method: 'PATCH',
        path: `${pathOf(kind, metadata.namespace, metadata.name)}?fieldManager=${FIELD_MANAGER}`,
        contentType: 'application/json-patch+json',
        body: [{ op: 'test', path: '/metadata/resourceVersion', value: metadata.resourceVersion }, ...operations],
      })
      .catch((error: unknown) => {
        // A failed `test` is answered 422 by the API server: the same thing as a conflict.
        throw error instanceof KubeError && error.status === 422 ? new KubeError(409, error.message, 'Conflict') : error;
      });
  const applyAt = (path: string, object: object): Promise<unknown> =>
    connection.request({
      method: 'PATCH',
      path: `${path}?fieldManager=${FIELD_MANAGER}&force=true`,
      contentType: 'application/apply-patch+yaml',
      body: { apiVersion: API_VERSION, ...object },
    });

  return {
    namespace: () => connection.namespace(),
    get: (kind, namespace, name) =>
      undefinedIf(({ gone }) => gone, connection.request({ method: 'GET', path: pathOf(kind, namespace, name) })),
    list: (kind, selection = {}) => listAll(connection, collection(kind, selection.namespace), selection, toListed<typeof kind>),
    scan: (kind, selection, keep) => listAll(connection, collection(kind, selection.namespace), selection, keep),
    async addFinalizer(resource) {
      const finalizers = resource.metadata.finalizers;
      const operation = finalizers
        ? { op: 'add', path: '/metadata/finalizers/-', value: FINALIZER }
        : { op: 'add', path: '/metadata/finalizers', value: [FINALIZER] };
      return (await patchFinalizers(resource, [operation])) as typeof resource;
    },
    async removeFinalizer(resource) {
      const index = resource.metadata.finalizers?.indexOf(FINALIZER) ?? -1;
      if (index < 0) return;
      const path = `/metadata/finalizers/${index}`;
      await patchFinalizers(resource, [
        { op: 'test', path, value: FINALIZER },
        { op: 'remove', path },
      ]);
    },
    async applyStatus(resource, status) {
      const { name, namespace, uid, resourceVersion } = resource.metadata;
      const object = { kind: resource.kind, metadata: { name, namespace, uid, resourceVersion }, status };
      return (await applyAt(`${pathOf(resource.kind, namespace, name)}/status`, object)) as typeof resource;
    },
    async apply(kind, namespace, name, labels, spec) {
      const object = { kind, metadata: { name, namespace, labels }, spec };
      return (await applyAt(pathOf(kind, namespace, name), object)) as ResourceOf[typeof kind];
    },
    secret: (namespace, name) =>
      undefinedIf(({ gone }) => gone, connection.request({ method: 'GET', path: `/api/v1/namespaces/${namespace}/secrets/${name}` })),
    scanSecrets: ({ namespace, labels }, keep) =>
      listAll(connection, `/api/v1/${namespace ? `namespaces/${namespace}/` : ''}secrets`, { ...(labels && { labels }) }, keep),
    createSecret(namespace, name, labels, data) {
      const body = { apiVersion: 'v1', kind: 'Secret', metadata: { name, labels }, data, type: 'Opaque' };
      const created = connection.request({ method: 'POST', path: `/api/v1/namespaces/${namespace}/secrets`, body });
      return undefinedIf(({ reason }) => reason === 'AlreadyExists', created);
    },
    async createEvent(event) {
      await connection.request({
        method: 'POST',
        path: `/apis/events.k8s.io/v1/namespaces/${event.metadata.namespace}/events`,
        body: { apiVersion: 'events.k8s.io/v1', kind: 'Event', ...event },
      });
    },
    close: () => connection.close(),
  };
}

function collection(kind: KindName, namespace: string | undefined): string {
  return `/apis/${API_VERSION}/${namespace ? `namespaces/${namespace}/` : ''}${PLURALS[kind]}`;
}

function pathOf(kind: KindName, namespace: string, name: string): string {
  return `${collection(kind, namespace)}/${name}`;
}

async function undefinedIf<T>(isNone: (error: KubeError) => boolean, answer: Promise<unknown>): Promise<T | undefined> {
  try {
    return (await answer) as T;
  } catch (error) {
    if (error instanceof KubeError && isNone(error)) return undefined;
    throw error;
  }
}

async function listAll<T, R>(connection: Connection, path: string, { fields, labels }: Selection, keep: (item: T) => R): Promise<R[]> {
  let items: R[] = [];
  let restarts = 0;
  const query = new URLSearchParams();
  if (fields) query.set('fieldSelector', selector(fields));
  if (labels) query.set('labelSelector', selector(labels));
  for (let limit = PAGE_SIZE; ; ) {
    query.set('limit', String(limit));
    const page = await pageOf<T>(connection, `${path}?${query}`, {
      limit,
      mayRestart: query.has('continue') && restarts < MAX_LIST_RESTARTS,
    });
    // Objects may be 1.5 MB each, users with photos for instance.
    if (page === 'too large') limit = Math.ceil(limit / 8);
    else if (page === 'expired') {
      items = [];
      query.delete('continue');
      restarts++;
    } else {
      for (const item of page.items) items.push(keep(item));
      if (!page.metadata?.continue) return items;
      query.set('continue', page.metadata.continue);
    }
  }
}

interface Page<T> {
  items: T[];
  metadata?: { continue?: string };
}

async function pageOf<T>(
  connection: Connection,
  path: string,
  { limit, mayRestart }: { limit: number; mayRestart: boolean },
): Promise<Page<T> | 'too large' | 'expired'> {
  try {
    return (await connection.request({ method: 'GET', path })) as Page<T>;
  } catch (error) {
    if (error instanceof KubeError && error.reason === TOO_LARGE && limit > 1) return 'too large';
    if (error instanceof KubeError && error.expired && mayRestart) return 'expired';
    throw error;
  }
}

/** Three characters separate the terms; a field's value may hold them, a label's cannot. */
function selector(terms: Record<string, string>): string {
  const escaped = Object.entries(terms).map(([name, value]) => `${name}=${value.replace(/[\\,=]/g, (c) => `\\${c}`)}`);
  return escaped.join(',');
}
