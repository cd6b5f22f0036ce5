import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import type { Summary } from '../../../functions/startup/run.ts';
import type { EventHint } from '../../../shared/engine/engine.ts';
import type { Report } from '../../../shared/engine/kind.ts';
import { type Broker, BrokerError } from '../../../shared/events/broker.ts';
import type { EventTarget, OperatorEvent, SweepMode, Target } from '../../../shared/events/parse.ts';
import type { KubeRequest } from '../../../shared/kube/connection.ts';
import type { KindName } from '../../../shared/kube/resources.ts';
import type { Credentials } from '../../../shared/lldap/session.ts';
import { loadConfig } from '../../../shared/service/config.ts';
import type { Answer } from '../../../shared/service/server.ts';
import type { Cluster } from '../../local/kube/cluster.ts';
import { CLUSTER_TIMEOUT_MS, sharedCluster } from '../../local/kube/shared.ts';
import { type Entry, type LocalLldap, startLldap } from '../../local/lldap/start.ts';
import { forwardTo } from '../../support/forward.ts';
import { FUNCTION_OF } from '../../support/functions.ts';
import { findLeaks } from '../../support/leaks.ts';
import { createFunctions, FUNCTIONS, type Functions, type FunctionsOptions, type KubeCall } from './functions.ts';
import { createPerson, type Person } from './person.ts';
import { grantRights } from './rights.ts';
import { TestClock } from './test-clock.ts';

/**
 * The engines of all kinds in this process, over the real API server with each function's own rights and over the
 * local lldap. The broker is a list: a test sees what was posted, and delivers it when it wants to. Time stands still
 * unless a test moves it.
 */
export interface Harness extends Person {
  cluster: Cluster;
  lldap: LocalLldap;
  clock: TestClock;
  /** The value of the label that all resources carry. */
  instance: string;
  /** The operator's own, privileged namespace. */
  operatorNamespace: string;
  /** An ordinary namespace. */
  namespace: string;
  /** What the functions log in to lldap with; a test may change it. */
  credentials: Credentials;
  /** For the jitter of retries: from 0 to 1. */
  random: number;
  /** Posted and not yet delivered. */
  posted: { reconcile: Posted[]; requeue: Posted[]; startup: SweepMode[] };
  /** Makes the broker refuse what is posted. */
  breakBroker(broken: boolean): void;
  /** Asked before each call of a function to the API server; what it throws is the answer. */
  interfere: (by: string, request: KubeRequest) => Promise<void>;
  /** The mark that a resource creates its object with. */
  mark(kind: KindName, name: string, origin: 'created' | 'adopted', namespace?: string): Promise<string>;
  /** The mark that a resource puts on an object that exists, which it records. */
  updatedMark(kind: 'LldapUser' | 'LldapGroup', name: string, origin: 'created' | 'adopted', namespace?: string): Promise<string>;
  /** What every function logged, at level debug. */
  logs: string[];
  /** One event for a resource as the function answers it. */
  deliver(kind: KindName, name: string, occasion?: Delivery): Promise<Answer>;
  /** One event for a resource, answered with what the reconcile found and did. */
  reconcile(kind: KindName, name: string, occasion?: Delivery): Promise<Report>;
  /** One event of a Secret. */
  secretEvent(name: string, namespace?: string): Promise<Answer>;
  /** Delivers posted reconcile events until there are none. */
  deliverEvents(): Promise<void>;
  /** Moves time on to the next retry and delivers what is due then; says whether there was one. */
  nextRetry(): Promise<boolean>;
  startup(mode?: SweepMode, by?: Functions): Promise<Summary>;
  /** Functions that remember nothing, as after a restart. */
  restart(): Promise<void>;
  /** A second process of each function beside the first. */
  another(more?: Partial<Pick<FunctionsOptions, 'lldapTimeoutMs'>>): Functions;
  /** What `work` asked of the API server and of lldap. */
  cost(work: () => Promise<unknown>): Promise<Cost>;
  /** Ends all. @throws AssertionError when a function was refused a call for want of a right, or said a password or token. */
  close(): Promise<void>;
}

export type Delivery = EventHint & { namespace?: string; by?: Functions };

export interface Posted {
  target: EventTarget;
  notBefore?: string;
}

export interface Cost {
  kubeReads: KubeCall[];
  kubeWrites: KubeCall[];
  /** `user alice`, `groups`, … */
  lldapReads: string[];
  /** `createUser alice`, … that lldap carried out. */
  mutations: string[];
  /** `passwordModify alice`, `bind alice`; the operator's own binds are not among them. */
  passwords: string[];
}

/** So much more than a function has that no test meets it, however busy the machine. */
const LLDAP_TIMEOUT_MS = 120_000;

let count = 0;

/**
 * A harness for the tests of one `describe`, started before them and closed after them. After each test, failures that it
 * injected end, and posted events are dropped.
 *
 * @param settings override the ConfigMap's
 */
export function useHarness(settings?: Record<string, string>): Harness {
  let harness: Harness;
  before(async function () {
    this.timeout(CLUSTER_TIMEOUT_MS);
    harness = await startHarness(settings);
  });
  afterEach(async () => {
    harness.interfere = async () => {};
    harness.credentials = harness.lldap.admin;
    harness.random = 0.5;
    harness.breakBroker(false);
    await harness.lldap.heal();
    for (const list of Object.values(harness.posted)) list.length = 0;
  });
  after(() => harness.close());
  return forwardTo(() => harness);
}

/** @param settings override the ConfigMap's */
export async function startHarness(settings: Record<string, string> = {}): Promise<Harness> {
  const cluster = await sharedCluster();
  const lldap = await startLldap({ passwordCost: 'cheap' });
  const namespace = await cluster.createNamespace('tenant');
  const instance = `test-${process.pid}-${++count}`;
  const operatorNamespace = `operator-${instance}`;
  await grantRights(cluster, operatorNamespace);

  const secrets = new Set([lldap.admin.password]);
  const calls: KubeCall[] = [];
  let broken = false;
  const post = (list: unknown[], event: unknown) => {
    if (broken) throw new BrokerError('The broker answered 503 to an event.');
    list.push(event);
  };
  const posted: Harness['posted'] = { reconcile: [], requeue: [], startup: [] };
  const broker: Broker = {
    reconcile: async (target, { notBefore } = {}) => post(posted.reconcile, { target, ...(notBefore && { notBefore }) }),
    requeue: async (target, notBefore) => post(posted.requeue, { target, notBefore }),
    startup: async (mode) => post(posted.startup, mode),
  };
  const clock = new TestClock();
  const options: FunctionsOptions = {
    config: loadConfig({
      LLDAP_INSTANCE: instance,
      LLDAP_URL: lldap.url,
      LLDAP_LDAP_URL: lldap.ldapUrl,
      BROKER_URL: 'http://127.0.0.1:1',
      ...settings,
    }),
    clock,
    broker,
    log: (line) => harness.logs.push(line),
    credentials: () => harness.credentials,
    kubeconfigs: await kubeconfigs(cluster, operatorNamespace, secrets),
    onCall: (call) => calls.push(call),
    interfere: (by, request) => harness.interfere(by, request),
    random: () => harness.random,
    lldapTimeoutMs: LLDAP_TIMEOUT_MS,
  };
  let functions = createFunctions(options);
  const others: Functions[] = [];

  const harness: Harness = {
    ...createPerson(cluster, namespace, instance, secrets),
    cluster,
    lldap,
    clock,
    instance,
    operatorNamespace,
    namespace,
    credentials: lldap.admin,
    random: 0.5,
    posted,
    breakBroker: (value) => {
      broken = value;
    },
    interfere: async () => {},
    async mark(kind, name, origin, ns = namespace) {
      return `v2;${instance};${ns}/${name};${origin};${(await harness.get(kind, name, ns)).metadata.uid}`;
    },
    async updatedMark(kind, name, origin, ns = namespace) {
      return `${await harness.mark(kind, name, origin, ns)};${(await harness.get(kind, name, ns)).status?.uuid}`;
    },
    logs: [],
    deliver(kind, name, { namespace: ns = namespace, by = functions, ...occasion } = { full: true }) {
      return by.handle(FUNCTION_OF[kind], eventFor({ kind, namespace: ns, name }, occasion));
    },
    async reconcile(kind, name, delivery = { full: true }) {
      const answer = await harness.deliver(kind, name, delivery);
      if ('body' in answer) {
        const report = answer.body as Report;
        // Only the status tells more than a reason.
        return report.result === 'reconciled'
          ? { ...report, message: (await harness.ready(kind, name, delivery.namespace)).message }
          : report;
      }
      throw new Error(`no report in the answer ${answer.status}`);
    },
    secretEvent: (name, ns = namespace) => functions.handle('user', { what: 'secret', namespace: ns, name, redelivered: 0 }),
    async deliverEvents() {
      for (let event = posted.reconcile.shift(); event; event = posted.reconcile.shift()) await pass(event);
    },
    async nextRetry() {
      const [next] = posted.requeue.sort((a, b) => String(a.notBefore).localeCompare(String(b.notBefore)));
      if (next?.notBefore === undefined) return false;
      clock.advanceTo(next.notBefore);
      const due = posted.requeue.filter((event) => event.notBefore === next.notBefore);
      posted.requeue = posted.requeue.filter((event) => event.notBefore !== next.notBefore);
      for (const event of due) await pass(event);
      return true;
    },
    async startup(mode = 'sweep', by = functions) {
      const answer = await by.handle('startup', { what: 'startup', mode });
      return 'body' in answer ? (answer.body as Summary) : assert.fail(`no summary in the answer ${answer.status}`);
    },
    async restart() {
      await functions.close();
      functions = createFunctions(options);
    },
    another(more = {}) {
      const one = createFunctions({ ...options, ...more });
      others.push(one);
      return one;
    },
    async cost(work) {
      const from = calls.length;
      await lldap.forget();
      await work();
      return costOf(calls.slice(from), await lldap.asked(), lldap.admin.username);
    },
    async close() {
      for (const one of [functions, ...others]) await one.close();
      await lldap.stop();
      const said = calls.filter(({ path }) => !path.endsWith('/secrets')).map(({ body }) => JSON.stringify(body) ?? '');
      assert.deepEqual(findLeaks([...harness.logs, ...said], secrets), [], 'a password or token was said');
      const refused = calls.filter(({ status }) => status === 403).map(({ by, method, path }) => `${by}: ${method} ${path}`);
      assert.deepEqual(refused, [], 'a function lacks a right');
    },
  };
  const pass = async ({ target: { kind, namespace: ns, name }, notBefore }: Posted): Promise<void> => {
    if (kind !== 'Secret') await harness.deliver(kind, name, { namespace: ns, ...(notBefore ? { notBefore } : { full: true }) });
  };
  await harness.startup();
  return harness;
}

function eventFor(target: Target, { object, full, notBefore }: EventHint): OperatorEvent {
  if (!full && !notBefore) return { what: 'resource', change: 'update', target, object };
  return { what: 'reconcile', target, redelivered: full && notBefore ? 1 : 0, ...(notBefore && { notBefore }) };
}

async function kubeconfigs(cluster: Cluster, namespace: string, secrets: Set<string>): Promise<Record<string, string>> {
  const files: Record<string, string> = {};
  for (const name of FUNCTIONS) {
    const file = await cluster.kubeconfigFor(namespace, `lldap-operator-${name}`);
    const { users } = JSON.parse(await readFile(file, 'utf8')) as { users: [{ user: { token: string } }] };
    secrets.add(users[0].user.token);
    files[name] = file;
  }
  return files;
}

function costOf(calls: readonly KubeCall[], asked: readonly Entry[], login: string): Cost {
  const text = ({ operation, id }: Entry) => `${operation}${id === undefined ? '' : ` ${id}`}`;
  const graphql = asked.filter(({ protocol }) => protocol === 'graphql');
  return {
    kubeReads: calls.filter(({ method }) => method === 'GET'),
    kubeWrites: calls.filter(({ method }) => method !== 'GET'),
    lldapReads: graphql.filter(({ mutation }) => !mutation).map(text),
    mutations: graphql.filter(({ mutation, outcome }) => mutation && outcome === 'ok').map(text),
    passwords: asked
      .filter(({ protocol, operation, id }) => protocol === 'ldap' && operation !== 'search' && !(operation === 'bind' && id === login))
      .map(text),
  };
}
