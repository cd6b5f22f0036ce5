import { stringify } from 'yaml';
import { attributeSchemaKind } from '../../functions/attribute-schema/kind.ts';
import { groupKind } from '../../functions/group/kind.ts';
import { membershipKind } from '../../functions/membership/kind.ts';
import { createRuns } from '../../functions/startup/run.ts';
import { userKind } from '../../functions/user/kind.ts';
import { type Clock, systemClock } from '../../shared/clock.ts';
import { type Config, loadConfig } from '../../shared/config.ts';
import { type Broker, BrokerError } from '../../shared/events/broker.ts';
import type { EventTarget, SweepMode, Target } from '../../shared/events/parse.ts';
import { createKube, type Kube } from '../../shared/kube/client.ts';
import { connect } from '../../shared/kube/connection.ts';
import type { CommonStatus, Condition, KindName, ResourceOf } from '../../shared/kube/resources.ts';
import { PLURALS } from '../../shared/kube/resources.ts';
import { createLldapClient } from '../../shared/lldap/client.ts';
import { createLldapPasswords } from '../../shared/lldap/passwords.ts';
import { createLog } from '../../shared/log.ts';
import { API_VERSION, INSTANCE_LABEL } from '../../shared/names.ts';
import { createEngine, type Engine, type Occasion } from '../../shared/reconcile/engine.ts';
import type { Io } from '../../shared/reconcile/kind.ts';
import { createLookup } from '../../shared/reconcile/lookup.ts';
import { foldId } from '../../shared/reconcile/names.ts';
import type { Report } from '../../shared/reconcile/pass.ts';
import { parseManifests } from '../local/knative/manifests.ts';
import { renderManifests } from '../local/knative/render.ts';
import type { Cluster } from '../local/kube/cluster.ts';
import { sharedCluster } from '../local/kube/shared.ts';
import { type LocalLldap, startLldap } from '../local/lldap/start.ts';

/**
 * The engines of all kinds in this process, over the real API server with each function's own rights and over the
 * local lldap. The broker is a list: a test sees what was posted, and delivers it when it wants to.
 */
export interface Harness {
  cluster: Cluster;
  lldap: LocalLldap;
  /** The operator's own, privileged namespace. */
  operatorNamespace: string;
  /** An ordinary namespace. */
  namespace: string;
  /** Posted and not yet delivered. */
  posted: { reconcile: Posted[]; requeue: Posted[]; startup: SweepMode[] };
  /** Makes the broker refuse what is posted. */
  breakBroker(broken: boolean): void;
  /** What every function logged, at level debug. */
  logs: string[];
  create<K extends KindName>(kind: K, name: string, spec: ResourceOf[K]['spec'], options?: CreateOptions): Promise<ResourceOf[K]>;
  secret(name: string, data: Record<string, string>, options?: { namespace?: string; labels?: Record<string, string> }): Promise<void>;
  get<K extends KindName>(kind: K, name: string, namespace?: string): Promise<ResourceOf[K]>;
  exists(kind: KindName, name: string, namespace?: string): Promise<boolean>;
  /** Merge-patches the resource as a person would. */
  edit<K extends KindName>(kind: K, name: string, patch: object, namespace?: string): Promise<ResourceOf[K]>;
  remove(kind: KindName, name: string, namespace?: string): Promise<void>;
  /** One event for a resource, answered with what the pass found and did. */
  reconcile(kind: KindName, name: string, occasion?: Occasion & { namespace?: string }): Promise<Report>;
  /** Delivers posted reconcile events until there are none. */
  settle(): Promise<void>;
  startup(mode?: SweepMode): ReturnType<ReturnType<typeof createRuns>>;
  /** Ready's condition. */
  ready(kind: KindName, name: string, namespace?: string): Promise<Condition>;
  /** Functions that remember nothing, as after a restart. */
  restart(): Promise<void>;
  events(name: string, namespace?: string): Promise<{ reason: string; note: string; type: string }[]>;
  close(): Promise<void>;
}

export interface Posted {
  target: EventTarget;
  notBefore?: string;
}

export interface CreateOptions {
  namespace?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
}

const CLUSTER_WIDE = new Set(['ClusterRole', 'ClusterRoleBinding', 'Namespace']);
const RIGHTS = new Set(['ServiceAccount', 'Role', 'RoleBinding', ...CLUSTER_WIDE]);

let count = 0;

/** @param settings in place of the ConfigMap's; `clock` in place of the system's */
export async function startHarness(settings: Record<string, string> = {}, clock: Clock = systemClock): Promise<Harness> {
  const cluster = await sharedCluster();
  const lldap = await startLldap({ passwordCost: 'cheap' });
  const namespace = await cluster.createNamespace('tenant');
  const instance = `test-${process.pid}-${++count}`;
  const operatorNamespace = `operator-${instance}`;
  await cluster.apply(await rights(operatorNamespace));

  const logs: string[] = [];
  const posted: Harness['posted'] = { reconcile: [], requeue: [], startup: [] };
  let broken = false;
  const refuse = async () => {
    if (broken) throw new BrokerError('The broker answered 503 to an event.');
  };
  const broker: Broker = {
    reconcile: async (target, options = {}) => {
      await refuse();
      posted.reconcile.push({ target, ...(options.notBefore && { notBefore: options.notBefore }) });
    },
    requeue: async (target, notBefore) => {
      await refuse();
      posted.requeue.push({ target, notBefore });
    },
    startup: async (mode) => {
      await refuse();
      posted.startup.push(mode);
    },
  };
  const config: Config = loadConfig({
    LLDAP_INSTANCE: instance,
    LLDAP_URL: lldap.url,
    LLDAP_LDAP_URL: lldap.ldapUrl,
    BROKER_URL: 'http://127.0.0.1:1',
    ...settings,
  });

  let io: Record<string, Io> = {};
  let engines: Record<KindName, Engine>;
  let runs: ReturnType<typeof createRuns>;
  const closeAll = async () => {
    for (const one of Object.values(io)) {
      one.kube.close();
      one.lldap.close();
      await one.passwords.close();
    }
  };
  const make = async () => {
    await closeAll();
    io = {};
    for (const fn of ['user', 'group', 'membership', 'attribute-schema', 'startup']) {
      const kube = createKube(connect(await cluster.kubeconfigFor(operatorNamespace, `lldap-operator-${fn}`)));
      io[fn] = createTestIo({ kube, lldap, config, broker, clock, log: (line) => logs.push(line) });
    }
    const of = (fn: string): Io => {
      const one = io[fn];
      if (!one) throw new Error(`no function ${fn}`);
      return one;
    };
    const engineSettings = { ...config, random: () => 0.5 };
    engines = {
      LldapUser: createEngine(userKind(of('user')), of('user'), engineSettings),
      LldapGroup: createEngine(groupKind, of('group'), engineSettings),
      LldapMembership: createEngine(membershipKind, of('membership'), engineSettings),
      LldapAttributeSchema: createEngine(attributeSchemaKind, of('attribute-schema'), engineSettings),
    };
    runs = createRuns(of('startup'), config);
  };
  await make();

  const path = (kind: KindName, name: string, ns: string) => `/apis/${API_VERSION}/namespaces/${ns}/${PLURALS[kind]}/${name}`;
  const ask = async <T>(method: string, url: string, body?: unknown, contentType = 'application/json'): Promise<T> => {
    const answer = await cluster.request(method, url, body === undefined ? {} : { body, contentType });
    if (answer.code >= 400) throw new Error(`${method} ${url}: ${JSON.stringify(answer.body)}`);
    return answer.body as T;
  };
  const deliver = async (target: Target, occasion: Occasion): Promise<Report> => {
    const answer = await engines[target.kind].reconcile(target, occasion, { signal: new AbortController().signal, representation: true });
    if ('body' in answer) return answer.body as Report;
    throw new Error(`no report in the answer ${answer.status}`);
  };

  const harness: Harness = {
    cluster,
    lldap,
    operatorNamespace,
    namespace,
    posted,
    breakBroker: (value) => {
      broken = value;
    },
    logs,
    create: (kind, name, spec, options = {}) => {
      const ns = options.namespace ?? namespace;
      const labels = { [INSTANCE_LABEL]: instance, ...options.labels };
      const metadata = { name, namespace: ns, labels, ...(options.annotations && { annotations: options.annotations }) };
      return ask('POST', path(kind, '', ns).replace(/\/$/, ''), { apiVersion: API_VERSION, kind, metadata, spec });
    },
    secret: async (name, data, { namespace: ns = namespace, labels = { [INSTANCE_LABEL]: instance } } = {}) => {
      await cluster.apply(stringify({ apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: ns, labels }, stringData: data }));
    },
    get: (kind, name, ns = namespace) => ask('GET', path(kind, name, ns)),
    exists: async (kind, name, ns = namespace) => (await cluster.request('GET', path(kind, name, ns))).code === 200,
    edit: (kind, name, patch, ns = namespace) => ask('PATCH', path(kind, name, ns), patch, 'application/merge-patch+json'),
    remove: async (kind, name, ns = namespace) => void (await ask('DELETE', path(kind, name, ns))),
    reconcile: (kind, name, { namespace: ns = namespace, ...occasion } = { full: true }) =>
      deliver({ kind, namespace: ns, name }, occasion),
    async settle() {
      for (let event = posted.reconcile.shift(); event; event = posted.reconcile.shift()) {
        if (event.target.kind !== 'Secret') await deliver(event.target, { full: true });
      }
    },
    startup: (mode = 'sweep') => runs(mode),
    async ready(kind, name, ns = namespace) {
      const { status } = await harness.get(kind, name, ns);
      const ready = (status as CommonStatus | undefined)?.conditions?.find((c) => c.type === 'Ready');
      if (!ready) throw new Error(`${kind} ${name} has no condition Ready`);
      return ready;
    },
    restart: make,
    async events(name, ns = namespace) {
      const { items } = await ask<{ items: { reason: string; note: string; type: string; regarding: { name: string } }[] }>(
        'GET',
        `/apis/events.k8s.io/v1/namespaces/${ns}/events`,
      );
      return items.filter((e) => e.regarding.name === name);
    },
    async close() {
      await closeAll();
      await lldap.stop();
    },
  };
  await harness.startup();
  return harness;
}

function createTestIo(parts: {
  kube: Kube;
  lldap: LocalLldap;
  config: Config;
  broker: Broker;
  clock: Clock;
  log: (line: string) => void;
}): Io {
  const { kube, lldap, config, broker, clock } = parts;
  const log = createLog('debug', parts.log);
  const credentials = async () => lldap.admin;
  const client = createLldapClient({ url: config.lldapUrl, credentials, maxCalls: config.lldapMaxCalls, timeoutMs: 2_000, logger: log });
  const passwords = createLldapPasswords({ url: config.ldapUrl, credentials, timeoutMs: 2_000, logger: log });
  return {
    kube,
    lldap: client,
    passwords,
    broker,
    lookup: createLookup(kube, client, config.instance),
    clock,
    log,
    policy: async () => ({
      instance: config.instance,
      operatorNamespace: await kube.namespace(),
      privilegedNamespaces: new Set(config.privilegedNamespaces),
      adoption: config.adoption,
      operatorLogin: foldId(lldap.admin.username),
      passwordMinLength: config.passwordMinLength,
    }),
  };
}

/** The base's own ServiceAccounts and rights, for an operator in a namespace of its own. */
async function rights(namespace: string): Promise<string> {
  const objects = parseManifests(await renderManifests())
    .map((object) => object.all() as unknown as Manifest)
    .filter(({ kind }) => RIGHTS.has(kind));
  const rename = (name: string) => (name === 'lldap-operator' ? namespace : `${name}-${namespace}`);
  for (const object of objects) {
    if (CLUSTER_WIDE.has(object.kind)) object.metadata.name = rename(object.metadata.name);
    if (object.metadata.namespace) object.metadata.namespace = namespace;
    if (object.roleRef?.kind === 'ClusterRole') object.roleRef.name = rename(object.roleRef.name);
    for (const subject of object.subjects ?? []) subject.namespace = namespace;
  }
  return objects.map((object) => stringify(object)).join('---\n');
}

interface Manifest {
  kind: string;
  metadata: { name: string; namespace?: string };
  roleRef?: { kind: string; name: string };
  subjects?: { namespace?: string }[];
}
