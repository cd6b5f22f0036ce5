import { stringify } from 'yaml';
import { API_VERSION, INSTANCE_LABEL } from '../../../shared/constants.ts';
import { type CommonStatus, type Condition, type KindName, PLURALS, type ResourceOf } from '../../../shared/kube/resources.ts';
import type { Cluster } from '../../local/kube/cluster.ts';

/** What a person, or another controller, does with kubectl. Throws when the API server refuses. */
export interface Person {
  create<K extends KindName>(kind: K, name: string, spec: ResourceOf[K]['spec'], options?: CreateOptions): Promise<ResourceOf[K]>;
  /** Creates it or makes it hold just these keys. */
  secret(name: string, data: Record<string, string>, options?: { namespace?: string; labels?: Record<string, string> }): Promise<void>;
  get<K extends KindName>(kind: K, name: string, namespace?: string): Promise<ResourceOf[K]>;
  exists(kind: KindName, name: string, namespace?: string): Promise<boolean>;
  /** Merge-patches the resource. */
  edit<K extends KindName>(kind: K, name: string, patch: object, namespace?: string): Promise<ResourceOf[K]>;
  /** Merge-patches its status, as a restored backup or another controller would. */
  editStatus<K extends KindName>(kind: K, name: string, status: object, namespace?: string): Promise<ResourceOf[K]>;
  remove(kind: KindName, name: string, namespace?: string): Promise<void>;
  /** Ready's condition. */
  ready(kind: KindName, name: string, namespace?: string): Promise<Condition>;
  condition(kind: KindName, name: string, type: string, namespace?: string): Promise<Condition | undefined>;
  /** The Kubernetes Events about an object. */
  events(name: string, namespace?: string): Promise<SeenEvent[]>;
}

export interface SeenEvent {
  reason: string;
  note: string;
  type: string;
  regarding: { kind: string; name: string };
}

export interface CreateOptions {
  namespace?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
}

/**
 * @param namespace where none is given
 * @param instance the value of the label that all objects carry
 * @param secrets every password that is put into a Secret is added here
 */
export function createPerson(cluster: Cluster, namespace: string, instance: string, secrets: Set<string>): Person {
  const path = (kind: KindName, name: string, ns: string) => `/apis/${API_VERSION}/namespaces/${ns}/${PLURALS[kind]}${name && `/${name}`}`;
  const ask = async <T>(method: string, url: string, body?: unknown, contentType = 'application/json'): Promise<T> => {
    const answer = await cluster.request(method, url, body === undefined ? {} : { body, contentType });
    if (answer.code >= 400) throw new Error(`${method} ${url}: ${JSON.stringify(answer.body)}`);
    return answer.body as T;
  };
  const merge = 'application/merge-patch+json';
  const person: Person = {
    create: (kind, name, spec, { namespace: ns = namespace, labels, annotations } = {}) => {
      const metadata = { name, namespace: ns, labels: { [INSTANCE_LABEL]: instance, ...labels }, ...(annotations && { annotations }) };
      return ask('POST', path(kind, '', ns), { apiVersion: API_VERSION, kind, metadata, spec });
    },
    async secret(name, data, { namespace: ns = namespace, labels = { [INSTANCE_LABEL]: instance } } = {}) {
      // Shorter ones are words that a sentence may hold by chance.
      for (const value of Object.values(data)) if (value.length > 5) secrets.add(value);
      const encoded = Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')]);
      const manifest = { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: ns, labels }, data: Object.fromEntries(encoded) };
      const url = `/api/v1/namespaces/${ns}/secrets/${name}?fieldManager=person&force=true`;
      await ask('PATCH', url, stringify(manifest), 'application/apply-patch+yaml');
    },
    get: (kind, name, ns = namespace) => ask('GET', path(kind, name, ns)),
    exists: async (kind, name, ns = namespace) => (await cluster.request('GET', path(kind, name, ns))).code === 200,
    edit: (kind, name, patch, ns = namespace) => ask('PATCH', path(kind, name, ns), patch, merge),
    editStatus: (kind, name, status, ns = namespace) => ask('PATCH', `${path(kind, name, ns)}/status`, { status }, merge),
    remove: async (kind, name, ns = namespace) => void (await ask('DELETE', path(kind, name, ns))),
    async ready(kind, name, ns = namespace) {
      const ready = await person.condition(kind, name, 'Ready', ns);
      if (!ready) throw new Error(`${kind} ${name} has no condition Ready`);
      return ready;
    },
    async condition(kind, name, type, ns = namespace) {
      const status: CommonStatus | undefined = (await person.get(kind, name, ns)).status;
      return status?.conditions?.find((c) => c.type === type);
    },
    async events(name, ns = namespace) {
      const url = `/apis/events.k8s.io/v1/namespaces/${ns}/events`;
      const { items } = await ask<{ items: SeenEvent[] }>('GET', url);
      return items.filter((e) => e.regarding.name === name);
    },
  };
  return person;
}
