import { API_VERSION, FIELD_MANAGER, FINALIZER } from '../constants.ts';
import { type Connection, connect } from './connection.ts';
import { KubeError, TOO_LARGE } from './errors.ts';
import { createListReducer, type Listed } from './listed.ts';
import type { KubernetesEvent, Namespace, Secret } from './objects.ts';
import { type CommonStatus, type KindName, PLURALS, type ResourceOf } from './resources.ts';

export interface Selection {
  namespace?: string;
  /** Field to value; values are escaped here. */
  fields?: Record<string, string>;
  /** Field to a value that it must not have. */
  without?: Record<string, string>;
  /** Label to value. */
  labels?: Record<string, string>;
}

/** The functions' calls to the API server. All reads are consistent, not from its cache. Throws {@link KubeError}. */
export interface Kube {
  /** The operator's own namespace. */
  namespace(): Promise<string>;
  get<K extends KindName>(kind: K, namespace: string, name: string): Promise<ResourceOf[K] | undefined>;
  /** All matching resources, read in pages. */
  list<K extends KindName>(kind: K, selection?: Selection): Promise<Listed<K>[]>;
  /** Returns the results of `keep` for all matching resources. Only one page of whole resources is in memory at a time. */
  scan<K extends KindName, R>(kind: K, selection: Selection, keep: (resource: ResourceOf[K]) => R): Promise<R[]>;
  /** Adds the operator's finalizer if the resource is unchanged since it was read. Returns the new resource. */
  addFinalizer<K extends KindName>(resource: ResourceOf[K]): Promise<ResourceOf[K]>;
  /** Removes the operator's finalizer, and no other, on the same condition. */
  removeFinalizer<K extends KindName>(resource: ResourceOf[K]): Promise<void>;
  /** Applies `status` as everything that the operator owns in it, if the resource is unchanged since it was read. */
  applyStatus<K extends KindName>(resource: ResourceOf[K], status: CommonStatus): Promise<ResourceOf[K]>;
  /** Creates the resource, or applies its labels and spec. */
  apply<K extends KindName>(
    kind: K,
    namespace: string,
    name: string,
    labels: Record<string, string>,
    spec: ResourceOf[K]['spec'],
  ): Promise<ResourceOf[K]>;
  /** The labels of one namespace. */
  namespaceLabels(name: string): Promise<Record<string, string> | undefined>;
  /** The labels of all namespaces, by name. */
  allNamespaceLabels(): Promise<Map<string, Record<string, string>>>;
  secret(namespace: string, name: string): Promise<Secret | undefined>;
  /** As {@link scan}, for the Secrets of all namespaces or of one. */
  scanSecrets<R>(selection: Pick<Selection, 'namespace' | 'labels'>, keep: (secret: Secret) => R): Promise<R[]>;
  /** Returns undefined if a Secret of that name exists. */
  createSecret(namespace: string, name: string, labels: Record<string, string>, data: Record<string, string>): Promise<Secret | undefined>;
  createEvent(event: KubernetesEvent): Promise<void>;
  close(): void;
}

const PAGE_SIZE = 500;
/** A list whose version etcd compacts before its end starts again, but not for ever. */
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
        // The API server answers a failed `test` with 422; it means a conflict.
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
    list: (kind, selection = {}) => listAll(connection, collection(kind, selection.namespace), selection, createListReducer<typeof kind>()),
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
    async namespaceLabels(name) {
      const read = connection.request({ method: 'GET', path: `/api/v1/namespaces/${name}` });
      return (await undefinedIf<Namespace>(({ gone }) => gone, read))?.metadata.labels;
    },
    async allNamespaceLabels() {
      const keep = ({ metadata }: Namespace) => [metadata.name, metadata.labels] as const;
      return new Map(await listAll(connection, '/api/v1/namespaces', {}, keep));
    },
    secret: (namespace, name) =>
      undefinedIf(({ gone }) => gone, connection.request({ method: 'GET', path: `/api/v1/namespaces/${namespace}/secrets/${name}` })),
    scanSecrets: ({ namespace, labels }, keep) =>
      listAll(connection, `/api/v1/${namespace ? `namespaces/${namespace}/` : ''}secrets`, { labels: labels ?? {} }, keep),
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

async function listAll<T, R>(connection: Connection, path: string, selection: Selection, keep: (item: T) => R): Promise<R[]> {
  let items: R[] = [];
  let restarts = 0;
  const query = queryOf(selection);
  for (let limit = PAGE_SIZE; ; ) {
    query.set('limit', String(limit));
    const page = await pageOf<T>(connection, `${path}?${query}`, {
      limit,
      mayRestart: query.has('continue') && restarts < MAX_LIST_RESTARTS,
    });
    // Objects may have 1.5 MB each, for example users with photos.
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

function queryOf({ fields = {}, without = {}, labels = {} }: Selection): URLSearchParams {
  const selectors = { fieldSelector: [...terms(fields, '='), ...terms(without, '!=')], labelSelector: terms(labels, '=') };
  const used = Object.entries(selectors).filter(([, all]) => all.length > 0);
  return new URLSearchParams(used.map(([name, all]): [string, string] => [name, all.join()]));
}

/** Escapes the three characters that separate terms. A field's value may contain them, a label's cannot. */
function terms(values: Record<string, string>, operator: '=' | '!='): string[] {
  return Object.entries(values).map(([name, value]) => `${name}${operator}${value.replace(/[\\,=]/g, (c) => `\\${c}`)}`);
}
