import { API_VERSION } from '../../shared/constants.ts';
import type { Connection, KubeRequest } from '../../shared/kube/connection.ts';
import { KubeError } from '../../shared/kube/errors.ts';
import type { Namespace, Secret } from '../../shared/kube/objects.ts';
import {
  type CommonStatus,
  type Condition,
  type KindName,
  type ObjectMeta,
  PLURALS,
  type Resource,
  type ResourceOf,
} from '../../shared/kube/resources.ts';
import type { Process } from './process.ts';
import type { Context, Faulty, Scheduler } from './scheduler.ts';

export type AnyResource = ResourceOf[KindName];
export type Change = 'add' | 'update' | 'delete';

export const keyOf = (kind: string, namespace: string, name: string) => `${kind} ${namespace}/${name}`;
export const resourceKey = (resource: AnyResource) => keyOf(resource.kind, resource.metadata.namespace, resource.metadata.name);

/** What the API server tells others of. */
export interface KubeListener {
  onChange(change: Change, resource: AnyResource): void;
  onSecret(change: Change, secret: Secret): void;
  /** Before a status is written: may it be? */
  onStatus(context: Context | undefined, resource: AnyResource, status: CommonStatus): void;
  /** The rest of a list is asked for that is too old. */
  onExpired(): void;
  /** A process has read its own resource. */
  onRead(context: Context, resource: AnyResource | undefined): void;
}

/** Few, so that lists have pages. */
const PAGE_SIZE = 2;
/** Versions after which a list that was read in part is gone, as after a compaction of etcd. */
const LIST_LIVES = 1;

/** The API server gives up, or its client does, after this time. */
const LIMIT_MS = 15_000;

/**
 * An API server in memory, for the calls that the operator makes: resourceVersions, generations that a spec's change
 * and a deletion raise, Server-Side Apply by one manager, finalizers, selectors. What is stored is never changed, only
 * replaced.
 */
export class KubeDouble {
  resources: ReadonlyMap<string, AnyResource> = new Map();
  secrets: ReadonlyMap<string, Secret> = new Map();
  /** Labels that somebody gave to namespaces; each has the one with its name as well. */
  namespaceLabels: ReadonlyMap<string, Record<string, string>> = new Map();
  readonly #scheduler: Scheduler;
  readonly #listener: KubeListener;
  readonly #operatorNamespace: string;
  #version = 100;
  /** What is left of lists that were read in part, and as of which version. */
  readonly #lists = new Map<string, { at: number; items: AnyResource[] }>();
  #uid = 0;

  constructor(scheduler: Scheduler, listener: KubeListener, operatorNamespace: string) {
    this.#scheduler = scheduler;
    this.#listener = listener;
    this.#operatorNamespace = operatorNamespace;
  }

  /** The way of one process to it. */
  connection(process: Process): Connection {
    return {
      namespace: async () => this.#operatorNamespace,
      request: (request) =>
        this.#scheduler.call<unknown>(process, {
          service: 'kube',
          what: `${request.method} ${request.path.replace(/\?.*$/, '')}`,
          limitMs: LIMIT_MS,
          carryOut: (by) => this.#carryOut(request, by),
          faults: faultsOf(request),
        }),
      close: () => undefined,
    };
  }

  get<K extends KindName>(kind: K, namespace: string, name: string): ResourceOf[K] | undefined {
    return this.resources.get(keyOf(kind, namespace, name)) as ResourceOf[K] | undefined;
  }

  all<K extends KindName>(kind: K): ResourceOf[K][] {
    return [...this.resources.values()].filter((r): r is ResourceOf[K] => r.kind === kind);
  }

  create(kind: KindName, namespace: string, name: string, labels: Record<string, string>, spec: AnyResource['spec']): AnyResource {
    const metadata: ObjectMeta = {
      name,
      namespace,
      uid: `uid-${++this.#uid}`,
      resourceVersion: '',
      generation: 1,
      creationTimestamp: new Date(this.#scheduler.now).toISOString().replace(/\.\d+Z$/, 'Z'),
      labels,
    };
    return this.put('add', { apiVersion: API_VERSION, kind, metadata, spec } as AnyResource);
  }

  /** Another spec is another generation; what is equal is not written. */
  changeSpec(resource: AnyResource, spec: AnyResource['spec']): AnyResource {
    if (JSON.stringify(spec) === JSON.stringify(resource.spec)) return resource;
    const metadata = { ...resource.metadata, generation: resource.metadata.generation + 1 };
    return this.put('update', { ...resource, spec, metadata } as AnyResource);
  }

  changeMetadata(resource: AnyResource, change: Partial<ObjectMeta>): AnyResource {
    const changed = { ...resource, metadata: { ...resource.metadata, ...change } } as AnyResource;
    if (changed.metadata.deletionTimestamp === undefined || (changed.metadata.finalizers?.length ?? 0) > 0)
      return this.put('update', changed);
    return this.drop(changed);
  }

  changeStatus(resource: AnyResource, status: CommonStatus | undefined): AnyResource {
    const { status: _status, ...rest } = resource;
    return this.put('update', (status === undefined ? rest : { ...rest, status }) as AnyResource);
  }

  delete(resource: AnyResource): void {
    if (resource.metadata.deletionTimestamp !== undefined) return;
    if ((resource.metadata.finalizers?.length ?? 0) === 0) return void this.drop(resource);
    this.changeMetadata(resource, {
      deletionTimestamp: new Date(this.#scheduler.now).toISOString(),
      generation: resource.metadata.generation + 1,
    });
  }

  putSecret(secret: Secret): void {
    const key = `${secret.metadata.namespace}/${secret.metadata.name}`;
    const change = this.secrets.has(key) ? 'update' : 'add';
    this.secrets = new Map(this.secrets).set(key, secret);
    this.#listener.onSecret(change, secret);
  }

  deleteSecret(key: string): void {
    const secret = this.secrets.get(key);
    if (!secret) return;
    const secrets = new Map(this.secrets);
    secrets.delete(key);
    this.secrets = secrets;
    this.#listener.onSecret('delete', secret);
  }

  put(change: Change, resource: AnyResource): AnyResource {
    const stored = frozen({ ...resource, metadata: { ...resource.metadata, resourceVersion: String(++this.#version) } });
    this.resources = new Map(this.resources).set(resourceKey(stored), stored);
    this.#listener.onChange(change, stored);
    return stored;
  }

  drop(resource: AnyResource): AnyResource {
    const resources = new Map(this.resources);
    resources.delete(resourceKey(resource));
    this.resources = resources;
    const gone = frozen({ ...resource, metadata: { ...resource.metadata, resourceVersion: String(++this.#version) } });
    this.#listener.onChange('delete', gone);
    return gone;
  }

  /** All resources and Secrets at once, as from a backup; nobody who watches is told. */
  restore(resources: readonly AnyResource[], secrets: ReadonlyMap<string, Secret>): void {
    this.resources = new Map(
      resources.map((r) => [resourceKey(r), frozen({ ...r, metadata: { ...r.metadata, resourceVersion: String(++this.#version) } })]),
    );
    this.secrets = secrets;
  }

  newUid(): string {
    return `uid-${++this.#uid}`;
  }

  /** One namespace, or every one that has a resource or a label. */
  #namespaceCall(asked: string | undefined): unknown {
    const of = (name: string): Namespace => ({
      metadata: { name, labels: { 'kubernetes.io/metadata.name': name, ...this.namespaceLabels.get(name) } },
    });
    if (asked !== undefined) return of(asked);
    const used = [...this.resources.values()].map(({ metadata }) => metadata.namespace);
    return { items: [...new Set([...this.namespaceLabels.keys(), ...used])].map(of) };
  }

  #carryOut(request: KubeRequest, by: Context | undefined): unknown {
    const url = new URL(request.path, 'http://kube');
    const secrets = /^\/api\/v1(?:\/namespaces\/([^/]+))?\/secrets(?:\/([^/]+))?$/.exec(url.pathname);
    if (secrets) return this.#secretCall(request, url, secrets[1], secrets[2]);
    const namespaces = /^\/api\/v1\/namespaces(?:\/([^/]+))?$/.exec(url.pathname);
    if (namespaces) return this.#namespaceCall(namespaces[1]);
    const [, namespace, plural, name, sub] =
      /^\/apis\/[^/]+\/v1alpha1(?:\/namespaces\/([^/]+))?\/([^/]+)(?:\/([^/]+))?(?:\/(status))?$/.exec(url.pathname) ?? [];
    const kind = (Object.keys(PLURALS) as KindName[]).find((k) => PLURALS[k] === plural);
    if (!kind) return {};
    if (namespace === undefined || name === undefined) return this.#page(url, () => this.#list(kind, namespace, url));
    const current = this.get(kind, namespace, name);
    if (request.method === 'GET') {
      const own = by?.target;
      if (by && own?.kind === kind && own.namespace === namespace && own.name === name) this.#listener.onRead(by, current);
      return current ?? notFound();
    }
    if (sub === 'status') return this.#applyStatus(current ?? notFound(), request.body as AnyResource, by);
    if (Array.isArray(request.body)) return this.#patch(current ?? notFound(), request.body as Operation[]);
    return this.#apply(kind, namespace, name, current, request.body as AnyResource);
  }

  /** So many at a time, all as they were at the first page; what is too old to go on with is answered 410. */
  #page(url: URL, list: () => AnyResource[]): unknown {
    const token = url.searchParams.get('continue');
    const listed = token === null ? { at: this.#version, items: list() } : this.#lists.get(token);
    if (!listed || this.#version - listed.at > LIST_LIVES) {
      this.#listener.onExpired();
      throw new KubeError(410, 'the provided continue parameter is too old', 'Expired');
    }
    const items = listed.items.slice(0, PAGE_SIZE);
    const rest = listed.items.slice(PAGE_SIZE);
    if (rest.length === 0) return { items };
    const next = `page-${this.#lists.size}`;
    this.#lists.set(next, { at: listed.at, items: rest });
    return { items, metadata: { continue: next } };
  }

  #list(kind: KindName, namespace: string | undefined, url: URL): AnyResource[] {
    const fields = terms(url.searchParams.get('fieldSelector'));
    const labels = terms(url.searchParams.get('labelSelector'));
    for (const [field] of fields)
      if (!SELECTABLE[kind].includes(field)) throw new KubeError(400, `field label not supported: ${field}`, 'BadRequest');
    return this.all(kind).filter(
      (r) =>
        (namespace === undefined || r.metadata.namespace === namespace) &&
        labels.every(([name, value]) => r.metadata.labels?.[name] === value) &&
        fields.every(([field, value, isExcluded]) => (String(fieldOf(r, field) ?? '') === value) !== isExcluded),
    );
  }

  #secretCall(request: KubeRequest, url: URL, namespace: string | undefined, name: string | undefined): unknown {
    if (request.method === 'POST') {
      const { metadata, data } = request.body as Secret;
      if (this.secrets.has(`${namespace}/${metadata.name}`)) throw new KubeError(409, 'exists', 'AlreadyExists');
      const secret: Secret = { metadata: { ...metadata, namespace: namespace ?? '' }, ...(data && { data }) };
      this.putSecret(secret);
      return secret;
    }
    if (name !== undefined) return this.secrets.get(`${namespace}/${name}`) ?? notFound();
    const labels = terms(url.searchParams.get('labelSelector'));
    return { items: [...this.secrets.values()].filter((s) => labels.every(([label, value]) => s.metadata.labels?.[label] === value)) };
  }

  #applyStatus(current: AnyResource, body: AnyResource, by: Context | undefined): AnyResource {
    checkVersion(current, body.metadata);
    const status: CommonStatus = body.status ?? {};
    const own = new Set(status.conditions?.map((c) => c.type));
    const foreign = (current.status?.conditions ?? []).filter((c) => isForeign(c) && !own.has(c.type));
    const next = {
      ...status,
      ...((status.conditions || foreign.length > 0) && { conditions: [...(status.conditions ?? []), ...foreign] }),
    };
    this.#listener.onStatus(by, current, status);
    return this.changeStatus(current, next);
  }

  #patch(current: AnyResource, operations: Operation[]): AnyResource {
    const [test, ...rest] = operations;
    if (test?.op !== 'test' || test.value !== current.metadata.resourceVersion) throw new KubeError(422, 'the server rejected our request');
    let finalizers = [...(current.metadata.finalizers ?? [])];
    for (const { op, path, value } of rest) {
      const index = Number(path.split('/').at(-1));
      if (op === 'test' && finalizers[index] !== value) throw new KubeError(422, 'testing path failed');
      if (op === 'add') finalizers = Array.isArray(value) ? value : [...finalizers, String(value)];
      if (op === 'remove') finalizers.splice(index, 1);
    }
    return this.changeMetadata(current, { finalizers });
  }

  #apply(kind: KindName, namespace: string, name: string, current: AnyResource | undefined, body: AnyResource): AnyResource {
    const labels = { ...current?.metadata.labels, ...body.metadata.labels };
    if (!current) return this.create(kind, namespace, name, labels, body.spec);
    const changed = this.changeSpec(current, { ...current.spec, ...body.spec } as AnyResource['spec']);
    return JSON.stringify(labels) === JSON.stringify(changed.metadata.labels) ? changed : this.changeMetadata(changed, { labels });
  }
}

interface Operation {
  op: 'test' | 'add' | 'remove';
  path: string;
  value?: unknown;
}

const SELECTABLE: Record<KindName, string[]> = {
  LldapUser: ['spec.passwordSecretRef.name', 'status.nameKey', 'status.uuid', 'status.ready'],
  LldapGroup: ['status.nameKey', 'status.uuid', 'status.ready'],
  LldapMembership: ['status.userKey', 'status.groupKey', 'status.ready', 'status.joined.groupUuid'],
  LldapAttributeSchema: ['status.ready'],
};

/** A condition that another controller wrote: Server-Side Apply keeps it. */
export const FOREIGN_CONDITION = 'Audited';
const isForeign = (condition: Condition) => condition.type === FOREIGN_CONDITION;

function checkVersion(current: AnyResource, { uid, resourceVersion }: { uid?: string; resourceVersion?: string }): void {
  if (uid !== current.metadata.uid || resourceVersion !== current.metadata.resourceVersion)
    throw new KubeError(409, 'the object has been modified; please apply your changes to the latest version', 'Conflict');
}

function notFound(): never {
  throw new KubeError(404, 'not found', 'NotFound');
}

/** `a=b,c=d`, with `\` before what separates. */
function terms(selector: string | null): [name: string, value: string, isExcluded: boolean][] {
  return (selector?.match(/(?:\\.|[^,\\])+/g) ?? []).map((term) => {
    const [, name = '', not = '', value = ''] = /^([^!=]+)(!?)=(.*)$/s.exec(term) ?? [];
    return [name, value.replace(/\\(.)/g, '$1'), not === '!'];
  });
}

function fieldOf(resource: Resource, path: string): unknown {
  let value: unknown = resource;
  for (const part of path.split('.')) value = (value as Record<string, unknown> | undefined)?.[part];
  return value;
}

function faultsOf({ method, path }: KubeRequest): Faulty<unknown> {
  const error = (status: number, message: string) => (): never => {
    throw new KubeError(status, message);
  };
  return {
    refused: { done: false, answer: error(0, 'The API server did not answer: no connection (ECONNREFUSED)') },
    lost: { done: false, answer: error(0, 'The API server did not answer: no answer within 15000 ms') },
    unanswered: { done: true, answer: error(0, 'The API server did not answer: the connection was lost') },
    busy: { done: false, answer: error(429, 'too many requests') },
    broken: { done: true, answer: error(504, 'etcdserver: request timed out') },
    denied: { done: false, answer: error(403, 'forbidden while the API server starts') },
    odd: { done: false, answer: method === 'PATCH' && /\/status\?/.test(path) ? error(422, 'status is invalid') : error(500, 'odd') },
  };
}

/** Whoever changes what was read makes a mistake that would stay unseen over a real connection. */
export function frozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const inner of Object.values(value)) frozen(inner);
  }
  return value;
}
