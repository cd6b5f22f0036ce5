import { API_GROUP, API_VERSION } from '../../shared/constants.ts';
import { type KindName, PLURALS } from '../../shared/kube/resources.ts';
import type { LldapClient } from '../../shared/lldap/api.ts';
import { createLldapClient } from '../../shared/lldap/client.ts';
import { createLimiter } from '../../shared/platform/concurrency.ts';
import { createLog } from '../../shared/telemetry/log.ts';
import type { Stack } from '../local/stack.ts';
import { type Cost, type Counts, Meter } from './meter.ts';
import { Readiness } from './readiness.ts';
import { multiply } from './steady.ts';

/**
 * What a new resource of each kind costs until it is Ready, how that grows with the number of resources that exist, and what a sweep over
 * all of them costs. Before each step, raw calls with the same result are measured: an object in the API server, a mutation in lldap, and
 * a status. The last step runs beside {@link STEADY} resources.
 */

export interface Phase {
  by: 'raw calls' | 'operator' | 'sweep';
  kind?: KindName;
  /** Resources of all kinds that existed before. */
  existing: number;
  /** New ones, or those that a sweep read. */
  resources: number;
  cost: Cost;
}

export interface Throughput {
  phases: Phase[];
  /** Peak memory of each function. */
  peaksMib: Counts;
  seesLldap: boolean;
}

/** lldap's own list of groups takes quadratic time. */
const MAX_GROUPS = 1_000;
export const STEADY = 30_000;
const RAW = 300;
const BESIDE_STEADY = 500;
/** Enough for the functions to have compiled what is hot. */
const WARM = 50;
const AT_ONCE = 8;
const NAMESPACE = 'bench';
const RAW_NAMESPACE = 'bench-raw';

/** One resource of a batch: its own name, and that of the group that it joins. */
type Spec = (name: string, group: string) => object;

export const KINDS: [kind: KindName, spec: Spec][] = [
  ['LldapGroup', (displayName) => ({ displayName })],
  ['LldapUser', (username) => ({ username, email: `${username}@example.com`, passwordPolicy: 'Ignore' })],
  ['LldapMembership', (userName, groupName) => ({ userName, groupName })],
];

interface Batch {
  prefix: string;
  from: number;
  to: number;
}

/** @param n resources of each kind to make; groups at most 1,000 */
export async function measureThroughput(stack: Stack, n: number): Promise<Throughput> {
  const run = await Run.start(stack);
  try {
    await run.measure(n);
    return { phases: run.phases, peaksMib: await run.meter.peaksMib(), seesLldap: run.meter.seesLldap };
  } finally {
    await run.end();
  }
}

class Run {
  readonly phases: Phase[] = [];
  readonly meter: Meter;
  readonly #stack: Stack;
  readonly #client: LldapClient;
  readonly #readiness = new Readiness();
  /** That lldap has by now. */
  readonly #users: Batch[] = [{ prefix: 'bench-cold', from: 0, to: 1 }];
  readonly #stopListening: () => void;
  #existing = 0;

  private constructor(stack: Stack, meter: Meter) {
    const { lldap } = stack;
    this.#stack = stack;
    this.meter = meter;
    this.#client = createLldapClient({
      url: lldap.url,
      credentials: async () => lldap.admin,
      log: createLog('debug', (line) => meter.hear(line)),
      ...(lldap.ca && { ca: lldap.ca }),
    });
    this.#stopListening = stack.knative.listen((happening) => {
      if (happening.what !== 'log') return;
      meter.hear(happening.line);
      this.#readiness.hear(happening.line);
    });
  }

  static async start(stack: Stack): Promise<Run> {
    return new Run(stack, await Meter.start(stack));
  }

  async measure(n: number): Promise<void> {
    for (const name of [NAMESPACE, RAW_NAMESPACE])
      await this.#stack.cluster.request('POST', '/api/v1/namespaces', { body: { metadata: { name } } });
    for (const [kind, spec] of KINDS) await this.#reconcile(kind, spec, { prefix: 'bench-warm', from: 0, to: WARM });
    const sizes = [100, 1_000, 10_000].filter((size) => size < n).concat(n);
    for (const [step, to] of sizes.entries()) await this.#step({ prefix: 'bench-new', from: sizes[step - 1] ?? 0, to });
    await this.#fill();
    this.phases.push(await this.#sweep());
    await this.#step({ prefix: 'bench-late', from: 0, to: Math.min(n, BESIDE_STEADY) });
  }

  /** Leaves a real lldap as it was, but for the operator's attribute. */
  async end(): Promise<void> {
    this.#stopListening();
    // The error that ended the bench, if one did, matters more.
    if (!this.#stack.lldap.local)
      await this.#removeAll().catch((error) =>
        process.stderr.write(`lldap keeps users and groups whose names begin with bench-: ${error}\n`),
      );
    this.#client.close();
  }

  async #step(batch: Batch): Promise<void> {
    for (const [kind, spec] of KINDS) this.phases.push(await this.#raw(kind, spec));
    await this.#removeRaw();
    for (const [kind, spec] of KINDS) {
      const to = kind === 'LldapGroup' ? Math.min(batch.to, MAX_GROUPS) : batch.to;
      if (batch.from >= to) continue;
      const existing = this.#existing;
      const cost = await this.meter.measure(() => this.#reconcile(kind, spec, { ...batch, to }));
      this.phases.push({ by: 'operator', kind, existing, resources: to - batch.from, cost });
    }
  }

  async #reconcile(kind: KindName, spec: Spec, batch: Batch): Promise<void> {
    const { prefix, from, to } = batch;
    if (kind === 'LldapUser') this.#users.push(batch);
    const name = (i: number) => `${prefix}-${i}`;
    await all(from, to, (i) => this.#create(kind, NAMESPACE, name(i), spec(name(i), name(i % MAX_GROUPS)), this.#stack.instance));
    const names = Array.from({ length: to - from }, (_, i) => name(from + i));
    await this.#readiness.wait(kind, names, this.#stack, pathOf(kind, NAMESPACE));
    this.#existing += to - from;
  }

  /** The objects have a label that the operator does not serve. */
  async #raw(kind: KindName, spec: Spec): Promise<Phase> {
    const { cluster } = this.#stack;
    const client = this.#client;
    const name = (i: number) => `bench-raw-${i}`;
    const group = kind === 'LldapMembership' ? await this.#rawGroup() : 0;
    const mutate: Record<string, (name: string) => Promise<unknown>> = {
      LldapGroup: (displayName) => client.createGroup({ displayName }),
      LldapUser: (id) => client.createUser({ id, email: `${id}@example.com` }),
      LldapMembership: (id) => client.addUserToGroup(id, group),
    };
    const cost = await this.meter.measure(() =>
      all(0, RAW, async (i) => {
        await this.#create(kind, RAW_NAMESPACE, name(i), spec(name(i), name(i)), 'bench-raw');
        await mutate[kind]?.(name(i));
        const body = { status: { observedGeneration: 1 } };
        const path = `${pathOf(kind, RAW_NAMESPACE)}/${name(i)}/status`;
        const { code } = await cluster.request('PATCH', path, { body, contentType: 'application/merge-patch+json' });
        if (code !== 200) throw new Error(`the status of ${name(i)} was answered ${code}`);
      }),
    );
    return { by: 'raw calls', kind, existing: this.#existing, resources: RAW, cost };
  }

  async #rawGroup(): Promise<number> {
    const group = (await this.#client.groupNames()).find(({ displayName }) => displayName === 'bench-raw-0');
    if (!group) throw new Error('lldap has no group bench-raw-0');
    return group.id;
  }

  async #removeRaw(): Promise<void> {
    for (const [kind] of KINDS) await this.#stack.cluster.request('DELETE', pathOf(kind, RAW_NAMESPACE));
    await this.#remove('bench-raw-', [{ prefix: 'bench-raw', from: 0, to: RAW }]);
  }

  async #removeAll(): Promise<void> {
    await this.#remove('bench-', [...this.#users, { prefix: 'bench-raw', from: 0, to: RAW }]);
  }

  /** From lldap. */
  async #remove(groups: string, users: readonly Batch[]): Promise<void> {
    const ids = (await this.#client.groupNames()).filter(({ displayName }) => displayName.startsWith(groups)).map(({ id }) => id);
    await all(0, ids.length, (i) => this.#client.deleteGroup(ids[i] ?? 0));
    for (const { prefix, from, to } of users) await all(from, to, (i) => this.#client.deleteUser(`${prefix}-${i}`));
  }

  /** So that there are {@link STEADY} resources, of which few are groups. No source tells of them. */
  async #fill(): Promise<void> {
    const { cluster, knative } = this.#stack;
    const missing = STEADY - this.#existing;
    const each = Math.ceil((missing - MAX_GROUPS) / (KINDS.length - 1));
    await knative.sources.stop();
    for (const [kind] of KINDS) {
      const count = kind === 'LldapGroup' ? MAX_GROUPS : each;
      await multiply(cluster.etcdSocket, `/registry/${API_GROUP}/${PLURALS[kind]}/${NAMESPACE}/bench-new-0`, count, MAX_GROUPS);
      this.#existing += count;
    }
    await knative.sources.start();
  }

  async #sweep(): Promise<Phase> {
    const cost = await this.meter.measure(async () => {
      const { code, output } = await this.#stack.knative.runCronJob('lldap-operator-startup');
      if (code !== 0) throw new Error(`the sweep failed: ${output}`);
    });
    return { by: 'sweep', existing: this.#existing, resources: this.#existing, cost };
  }

  async #create(kind: KindName, namespace: string, name: string, spec: object, instance: string): Promise<void> {
    const metadata = { name, labels: { [`${API_GROUP}/lldap-instance`]: instance } };
    const answer = await this.#stack.cluster.request('POST', pathOf(kind, namespace), {
      body: { apiVersion: API_VERSION, kind, metadata, spec },
    });
    if (answer.code !== 201) throw new Error(`${kind} ${name}: ${JSON.stringify(answer.body)}`);
  }
}

function pathOf(kind: KindName, namespace: string): string {
  return `/apis/${API_VERSION}/namespaces/${namespace}/${PLURALS[kind]}`;
}

async function all(from: number, to: number, work: (i: number) => Promise<unknown>): Promise<void> {
  const limited = createLimiter(AT_ONCE);
  await Promise.all(Array.from({ length: to - from }, (_, i) => limited(() => work(from + i))));
}
