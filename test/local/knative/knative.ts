/**
 * Knative for one machine: a test double. It reads the rendered manifests and does what they say, the way the real one
 * was measured to: sources, an asynchronous broker, trigger filters, delivery, functions that scale from zero and back.
 * What a manifest says and the double does not do is an error, so that nothing is believed to be tested that isn't.
 *
 * What the real one does and this one does not stands at the head of `broker.ts`, `identities.ts`, `serving.ts` and `sources.ts`.
 */
import { rbacKnowsAll } from '../kube/access.ts';
import type { Cluster } from '../kube/cluster.ts';
import { Addresses, INGRESS_HOST } from './addresses.ts';
import { Ingress } from './broker.ts';
import type { Source } from './eventing.ts';
import { Faults } from './faults.ts';
import { Identities, Tokens } from './identities.ts';
import { type JobResult, LocalJob } from './jobs.ts';
import { readManifests } from './manifests.ts';
import type { Host, Objects } from './sandbox.ts';
import { LocalService, type ProcessInfo } from './serving.ts';
import { LocalSource } from './sources.ts';
import { type Happening, Story } from './story.ts';

export interface KnativeOptions {
  cluster: Cluster;
  /** YAML, as `kubectl kustomize` renders it. */
  manifests: string;
  /** The command on this machine that stands for the image with these arguments. */
  command(args: string[]): string[];
  /** Whether Eventing's feature `authentication-oidc` is enabled. */
  oidc?: boolean;
  /** How long a function without requests stays; 3 s unless said otherwise. */
  idleMs?: number;
  /** Whether Jobs run once at the start and CronJobs on their schedule, or only on demand. */
  jobs?: 'run' | 'on demand';
  /** What stands here for addresses of the cluster that are not Knative's, such as lldap's. */
  addresses?: Record<string, string>;
  onEvent?(happening: Happening): void;
}

export interface LocalKnative {
  /** Of the only Broker. */
  readonly brokerUrl: string;
  readonly faults: Faults;
  /** What no run may contain: replies, bodies that break the broker, functions that don't end. `stop` throws if there is any. */
  readonly violations: string[];
  /** Stops and starts as a dispatcher does that dies: what was in flight is lost. */
  readonly broker: { stop(): Promise<void>; start(): Promise<void> };
  /** Changes made while a source is stopped are never told. All sources, or one. */
  readonly sources: { stop(name?: string): Promise<void>; start(name?: string): Promise<void> };
  /** The stable address that stands for the Service's cluster-local URL. */
  serviceUrl(service: string): string;
  processes(service?: string): ProcessInfo[];
  kill(service: string, signal: NodeJS.Signals): Promise<void>;
  rollout(service: string): Promise<void>;
  runJob(name: string): Promise<JobResult>;
  runCronJob(name: string): Promise<JobResult>;
  /** @returns what ends the listening */
  listen(listener: (happening: Happening) => void): () => void;
  /** @throws Error when there were violations */
  stop(): Promise<void>;
}

const IDLE_MS = 3_000;

/** Applies the ordinary objects to the API server and starts everything else. Ready, and all rights in effect, when this returns. */
export async function startKnative({
  cluster,
  manifests: rendered,
  command,
  oidc = false,
  idleMs = IDLE_MS,
  jobs = 'run',
  addresses: others,
  onEvent,
}: KnativeOptions): Promise<LocalKnative> {
  const manifests = readManifests(rendered);
  const addresses = new Addresses(others);
  const story = new Story();
  if (onEvent) story.listen(onEvent);
  const faults = new Faults();
  const { brokers, triggers, eventPolicies } = manifests;
  if (eventPolicies.length > 0 && !oidc) throw new Error("Eventing's webhook refuses EventPolicies: authentication-oidc is not enabled");
  const tokens = new Tokens(cluster);
  const identities = oidc ? new Identities(cluster, tokens, eventPolicies) : undefined;
  const host: Host = { objects: objectsOf(cluster, tokens), addresses, story, command };
  const way = (model: Source) => identities?.wayOf(model, addresses) ?? addresses;
  const parts = {
    ingress: new Ingress({ brokers, triggers, addresses, faults, story, ...(identities && { identities }) }),
    services: manifests.functions.map((model) => new LocalService(model, host, idleMs)),
    sources: manifests.sources.map((model) => new LocalSource(model, cluster, { addresses: way(model), story, faults })),
    jobs: manifests.jobs.map((model) => new LocalJob(model, host)),
    cronJobs: manifests.cronJobs.map((model) => new LocalJob(model, host)),
  };
  if (manifests.plain) {
    await cluster.apply(manifests.plain);
    await rbacKnowsAll(cluster);
  }
  await identities?.make(manifests);
  const knative = new Parts(parts, story, faults, brokerAddress(manifests.brokers), addresses);
  try {
    await parts.ingress.start();
    await Promise.all(parts.services.map((service) => service.start()));
    await Promise.all([...parts.services.map((service) => service.warm()), ...parts.sources.map((source) => source.start())]);
  } catch (error) {
    await knative.stop();
    throw error;
  }
  if (jobs === 'run') {
    for (const job of parts.jobs) job.runInBackground();
    for (const job of parts.cronJobs) job.schedule();
  }
  return knative;
}

interface LocalParts {
  ingress: Ingress;
  services: LocalService[];
  sources: LocalSource[];
  jobs: LocalJob[];
  cronJobs: LocalJob[];
}

class Parts implements LocalKnative {
  readonly faults: Faults;
  readonly broker: LocalKnative['broker'];
  readonly sources: LocalKnative['sources'];
  readonly #parts: LocalParts;
  readonly #story: Story;
  readonly #brokerAddress: string;
  readonly #addresses: Addresses;

  constructor(parts: LocalParts, story: Story, faults: Faults, brokerAddress: string, addresses: Addresses) {
    this.#parts = parts;
    this.#story = story;
    this.#brokerAddress = brokerAddress;
    this.#addresses = addresses;
    this.faults = faults;
    this.broker = { stop: () => parts.ingress.stop(), start: () => parts.ingress.start() };
    const each = async (name: string | undefined, act: (source: LocalSource) => Promise<void>) => {
      const chosen = name === undefined ? parts.sources : [named(parts.sources, name)];
      await Promise.all(chosen.map(act));
    };
    this.sources = { stop: (name) => each(name, (source) => source.stop()), start: (name) => each(name, (source) => source.start()) };
  }

  get brokerUrl(): string {
    return this.#addresses.local(this.#brokerAddress);
  }

  get violations(): string[] {
    return this.#story.violations;
  }

  serviceUrl(service: string): string {
    return named(this.#parts.services, service).url;
  }

  processes(service?: string): ProcessInfo[] {
    const services = service === undefined ? this.#parts.services : [named(this.#parts.services, service)];
    return services.flatMap((each) => each.processes());
  }

  async kill(service: string, signal: NodeJS.Signals): Promise<void> {
    return named(this.#parts.services, service).kill(signal);
  }

  async rollout(service: string): Promise<void> {
    return named(this.#parts.services, service).rollout();
  }

  async runJob(name: string): Promise<JobResult> {
    return named(this.#parts.jobs, name).run();
  }

  async runCronJob(name: string): Promise<JobResult> {
    return named(this.#parts.cronJobs, name).run();
  }

  listen(listener: (happening: Happening) => void): () => void {
    return this.#story.listen(listener);
  }

  /** The broker goes last: functions may still post what their end makes them post. */
  async stop(): Promise<void> {
    const { ingress, services, sources, jobs, cronJobs } = this.#parts;
    await Promise.all(sources.map((source) => source.stop()));
    await Promise.all([...jobs, ...cronJobs].map((job) => job.stop()));
    await Promise.all(services.map((service) => service.stop()));
    await ingress.stop();
    const { violations } = this.#story;
    if (violations.length > 0) throw new Error(`the local Knative saw what must not be:\n${violations.join('\n')}`);
  }
}

function named<T extends { name: string }>(all: T[], name: string): T {
  const found = all.find((each) => each.name === name);
  if (!found) throw new Error(`the manifests have no ${name}; there are: ${all.map((each) => each.name).join(', ')}`);
  return found;
}

function brokerAddress(brokers: { namespace: string; name: string }[]): string {
  const [broker, second] = brokers;
  if (!broker || second) throw new Error(`the manifests have ${brokers.length} brokers, not one`);
  return `http://${INGRESS_HOST}/${broker.namespace}/${broker.name}`;
}

/** Read as the kubelet does: with its own rights, not with the function's. */
function objectsOf(cluster: Cluster, tokens: Tokens): Objects {
  const read = async (namespace: string, plural: string, name: string): Promise<Record<string, string> | undefined> => {
    const { code, body } = await cluster.request('GET', `/api/v1/namespaces/${namespace}/${plural}/${name}`);
    if (code === 404) return undefined;
    if (code !== 200) throw new Error(`the API server answered ${code}`);
    return (body as { data?: Record<string, string> }).data ?? {};
  };
  return {
    configMap: (namespace, name) => read(namespace, 'configmaps', name),
    secret: async (namespace, name) => {
      const data = await read(namespace, 'secrets', name);
      return data && Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64')]));
    },
    kubeconfigFor: (namespace, serviceAccount) => cluster.kubeconfigFor(namespace, serviceAccount),
    tokenFor: (namespace, serviceAccount, audience) => tokens.of(namespace, serviceAccount, audience),
  };
}
