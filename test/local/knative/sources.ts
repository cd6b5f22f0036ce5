/**
 * A stand-in for ApiServerSource, as measured: edge-only, one event at a time per watch, no sink timeout, a few codes
 * retried, all others dropped. It uses the source's own ServiceAccount, so that RBAC is real.
 *
 * With a `namespaceSelector`, an empty one too, the adapter is replaced whenever a namespace that it selects is created or
 * deleted: the real controller writes all their names into the adapter's environment. Here the old adapter stays until the new
 * one watches, and sends what it saw. The real one may be ended earlier, since the new one counts as ready before it watches:
 * `Faults.handover` does that, and the opposite, a long time in which both watch.
 */
import { isAllowed, rbacKnowsAll } from '../kube/access.ts';
import { Adapter, pluralOf } from './adapter.ts';
import type { Addresses } from './addresses.ts';
import type { Source } from './eventing.ts';
import type { Faults } from './faults.ts';
import { isRecord } from './fields.ts';
import type { Story } from './story.ts';
import { Watch } from './watch.ts';

/** What the source's controller and adapter need of a cluster. */
export interface SourceCluster {
  url: string;
  ca: string;
  adminToken: string;
  tokenFor(namespace: string, serviceAccount: string): Promise<string>;
  request(method: string, path: string, options?: { body?: unknown }): Promise<{ code: number; body: unknown }>;
}

/** What a source needs of the rest of the local Knative. */
export interface SourceHost {
  addresses: Addresses;
  story: Story;
  faults: Faults;
}

export class LocalSource {
  readonly name: string;
  readonly #model: Source;
  readonly #cluster: SourceCluster;
  readonly #host: SourceHost;
  /** One, and another while the first is being replaced. */
  readonly #adapters = new Set<Adapter>();
  #namespaces: Watch | undefined;
  #isReplacementDue = false;
  #replacements: Promise<void> = Promise.resolve();
  #end = new AbortController();

  constructor(model: Source, cluster: SourceCluster, host: SourceHost) {
    this.name = model.name;
    this.#model = model;
    this.#cluster = cluster;
    this.#host = host;
  }

  /**
   * Resolves when every resource is watched.
   * @throws Error naming the right that the ServiceAccount lacks, as the source's condition does
   */
  async start(): Promise<void> {
    this.#end = new AbortController();
    await this.#watchNamespaces();
    await this.#checkRights();
    const adapter = await this.#newAdapter();
    this.#adapters.add(adapter);
    await adapter.start();
  }

  /** What changes from now on is never told, nor is what still waits to be sent. */
  async stop(): Promise<void> {
    this.#end.abort();
    this.#namespaces?.stop();
    for (const adapter of this.#adapters) adapter.stop();
    await this.#replacements;
    this.#adapters.clear();
  }

  async #checkRights(): Promise<void> {
    const namespaces = (await this.#watchedNamespaces()) ?? [''];
    for (const { apiVersion, kind } of this.#model.resources) {
      const group = apiVersion.includes('/') ? apiVersion.replace(/\/.*/, '') : '';
      for (const namespace of namespaces)
        for (const verb of ['get', 'list', 'watch'])
          await this.#checkRight({ group, resource: pluralOf(kind), verb, ...(namespace && { namespace }) });
    }
  }

  async #checkRight(right: { group: string; resource: string; verb: string }): Promise<void> {
    const { namespace, serviceAccount } = this.#model;
    const may = () => isAllowed(this.#cluster, `system:serviceaccount:${namespace}:${serviceAccount}`, right);
    if (await may()) return;
    await rbacKnowsAll(this.#cluster);
    if (await may()) return;
    const { verb, resource, group } = right;
    throw new Error(`source ${this.name}: ServiceAccount ${namespace}/${serviceAccount} may not ${verb} ${resource}.${group}`);
  }

  async #newAdapter(): Promise<Adapter> {
    const { namespace, serviceAccount } = this.#model;
    const token = await this.#cluster.tokenFor(namespace, serviceAccount);
    const namespaces = await this.#watchedNamespaces();
    return new Adapter({ model: this.#model, cluster: this.#cluster, ...this.#host, token, ...(namespaces && { namespaces }) });
  }

  /** @returns nothing where all are watched, whatever there are */
  async #watchedNamespaces(): Promise<string[] | undefined> {
    const { namespace, namespaceSelector } = this.#model;
    if (namespaceSelector === undefined) return [namespace];
    if (namespaceSelector === '') return undefined;
    const query = new URLSearchParams({ labelSelector: namespaceSelector });
    const { code, body } = await this.#cluster.request('GET', `/api/v1/namespaces?${query}`);
    if (code !== 200 || !isRecord(body) || !Array.isArray(body.items)) throw new Error(`the namespaces cannot be listed: ${code}`);
    return (body.items as { metadata: { name: string } }[]).map(({ metadata }) => metadata.name);
  }

  async #watchNamespaces(): Promise<void> {
    const { namespaceSelector: labelSelector } = this.#model;
    if (labelSelector === undefined) return;
    const { url, ca, adminToken: token } = this.#cluster;
    this.#namespaces = new Watch({
      access: { url, ca, token },
      path: '/api/v1/namespaces',
      labelSelector,
      onChange: (change) => {
        if (change !== 'update') this.#replaceSoon();
      },
      warn: (message) => this.#warn(message),
    });
    await this.#namespaces.start();
  }

  /** Namespaces that come or go before a replacement begins share it. */
  #replaceSoon(): void {
    if (this.#isReplacementDue) return;
    this.#isReplacementDue = true;
    this.#replacements = this.#replacements
      .then(() => {
        this.#isReplacementDue = false;
        return this.#replace();
      })
      .catch((error: unknown) => {
        if (!this.#end.signal.aborted) this.#warn(`the adapter stays as it is: ${error}`);
      });
  }

  async #replace(): Promise<void> {
    const { signal } = this.#end;
    const [old] = this.#adapters;
    const next = await this.#newAdapter();
    signal.throwIfAborted();
    this.#adapters.add(next);

    const fault = this.#host.faults.atHandover(signal);
    if (fault?.watching === 'neither') {
      old?.stop();
      this.#tell('neither');
      await fault.over;
    }
    await next.start();
    if (fault?.watching !== 'neither') this.#tell('both');
    if (fault?.watching === 'both') await fault.over;
    await old?.retire();
    if (old) this.#adapters.delete(old);
    if (!signal.aborted) this.#tell('new');
  }

  #tell(watching: 'neither' | 'both' | 'new'): void {
    this.#host.story.tell({ what: 'handover', source: this.name, watching });
  }

  #warn(message: string): void {
    this.#host.story.tell({ what: 'warning', from: this.name, message });
  }
}
