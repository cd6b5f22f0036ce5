/**
 * A stand-in for ApiServerSource and its adapter, as measured: edge-only, one event at a time per watched resource, no
 * sink timeout, a few codes retried, all others dropped. It uses the source's own ServiceAccount, so that RBAC is real.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { isAllowed, rbacKnowsAll } from '../kube/access.ts';
import type { Addresses } from './addresses.ts';
import { timestamp } from './cloudevent.ts';
import type { Source, SourceResource } from './eventing.ts';
import { isRecord } from './fields.ts';
import { send } from './http.ts';
import type { Story } from './story.ts';
import { type Change, type KubernetesObject, Watch } from './watch.ts';

/** What the source's controller and adapter need of a cluster. */
export interface SourceCluster {
  url: string;
  ca: string;
  tokenFor(namespace: string, serviceAccount: string): Promise<string>;
  request(method: string, path: string, options?: { body?: unknown }): Promise<{ code: number; body: unknown }>;
}

const RETRIED = [404, 413, 425, 429, 502, 503, 504];
const GAPS_MS = [100, 200, 400, 800, 1600];
const RESTARTS_AFTER_MS = 500;

export class LocalSource {
  readonly name: string;
  readonly #model: Source;
  readonly #cluster: SourceCluster;
  readonly #addresses: Addresses;
  readonly #story: Story;
  #watches: Watch[] = [];
  #end = new AbortController();

  constructor(model: Source, cluster: SourceCluster, addresses: Addresses, story: Story) {
    this.name = model.name;
    this.#model = model;
    this.#cluster = cluster;
    this.#addresses = addresses;
    this.#story = story;
  }

  /**
   * Resolves when every resource is watched. Waits for an API group that does not exist yet, as the crash-looping adapter does.
   * @throws Error naming the right that the ServiceAccount lacks, as the source's condition does
   */
  async start(): Promise<void> {
    this.#end = new AbortController();
    const { namespace, serviceAccount, resources } = this.#model;
    for (const resource of resources) await this.#checkRights(resource);
    const token = await this.#cluster.tokenFor(namespace, serviceAccount);
    for (const resource of resources) {
      if (!(await this.#exists(resource))) continue;
      const watch = new Watch({
        access: { url: this.#cluster.url, ca: this.#cluster.ca, token },
        path: this.#path(resource),
        labelSelector: resource.labelSelector,
        onChange: this.#sender(resource),
        warn: (message) => this.#warn(message),
      });
      this.#watches.push(watch);
    }
    await Promise.all(this.#watches.map((watch) => watch.start()));
  }

  /** What changes from now on is never told, nor is what still waits to be sent. */
  async stop(): Promise<void> {
    this.#end.abort();
    for (const watch of this.#watches.splice(0)) watch.stop();
  }

  async #checkRights(resource: SourceResource): Promise<void> {
    const { namespace, serviceAccount, allNamespaces } = this.#model;
    const [group, resourceName] = [groupOf(resource.apiVersion), pluralOf(resource.kind)];
    for (const verb of ['get', 'list', 'watch']) {
      const resourceAttributes = { group, resource: resourceName, verb, ...(!allNamespaces && { namespace }) };
      const user = `system:serviceaccount:${namespace}:${serviceAccount}`;
      if (await isAllowed(this.#cluster, user, resourceAttributes)) continue;
      await rbacKnowsAll(this.#cluster);
      if (!(await isAllowed(this.#cluster, user, resourceAttributes)))
        throw new Error(`source ${this.name}: ServiceAccount ${namespace}/${serviceAccount} may not ${verb} ${resourceName}.${group}`);
    }
  }

  /** A kind that is missing in an existing group is skipped for good; a group that is missing is waited for. */
  async #exists({ apiVersion, kind }: SourceResource): Promise<boolean> {
    for (let told = false; ; told = true) {
      const { code, body } = await this.#cluster.request('GET', apiPath(apiVersion));
      if (code === 200 && isRecord(body) && Array.isArray(body.resources)) {
        const found = body.resources.some((each: unknown) => isRecord(each) && each.name === pluralOf(kind));
        if (!found) this.#warn(`there is no ${pluralOf(kind)} in ${apiVersion}: skipped`);
        return found;
      }
      if (!told) this.#warn(`waits for ${apiVersion}`);
      await sleep(RESTARTS_AFTER_MS, undefined, { signal: this.#end.signal });
    }
  }

  #path({ apiVersion, kind }: SourceResource): string {
    const { allNamespaces, namespace } = this.#model;
    return `${apiPath(apiVersion)}${allNamespaces ? '' : `/namespaces/${namespace}`}/${pluralOf(kind)}`;
  }

  /** The next event is sent when the one before was answered, however long that takes. */
  #sender(resource: SourceResource): (change: Change, object: KubernetesObject) => void {
    let last: Promise<void> = Promise.resolve();
    const { signal } = this.#end;
    return (change, object) => {
      last = last
        .then(() => this.#send(change, object, resource, signal))
        .catch((error: unknown) => {
          if (!signal.aborted) this.#story.tell({ what: 'violation', message: `source ${this.name}: ${error}` });
        });
    };
  }

  async #send(change: Change, object: KubernetesObject, resource: SourceResource, signal: AbortSignal): Promise<void> {
    const { mode, namespace: ownNamespace, sink } = this.#model;
    const { name, namespace = '' } = object.metadata;
    const { apiVersion, kind } = resource;
    const id = randomUUID();
    const type = `dev.knative.apiserver.${mode === 'Resource' ? 'resource' : 'ref'}.${change}`;
    const headers = {
      'ce-specversion': '1.0',
      'ce-id': id,
      'ce-type': type,
      'ce-source': this.#cluster.url,
      'ce-subject': `/apis/${apiVersion}/namespaces/${namespace}/${pluralOf(kind)}/${name}`,
      'ce-time': timestamp(),
      'ce-kind': kind,
      'ce-apiversion': apiVersion,
      'ce-name': name,
      'ce-namespace': namespace,
      'content-type': 'application/json',
      'kn-namespace': ownNamespace,
    };
    const body = Buffer.from(JSON.stringify(mode === 'Resource' ? object : { kind, namespace, name, apiVersion }));
    for (let tries = 1; ; tries += 1) {
      const status = await send('POST', this.#addresses.local(sink), headers, body, signal).then((answer) => answer.status, unreachable);
      signal.throwIfAborted();
      const gap = status === 0 || RETRIED.includes(status) ? GAPS_MS[tries - 1] : undefined;
      if (gap === undefined)
        return this.#story.tell({ what: 'sent', source: this.name, event: { id, type, kind, namespace, name }, status, tries });
      await sleep(gap, undefined, { signal });
    }
  }

  #warn(message: string): void {
    this.#story.tell({ what: 'warning', from: this.name, message });
  }
}

function unreachable(error: unknown): number {
  if (!(error instanceof Error && 'code' in error)) throw error;
  return 0;
}

/** The adapter guesses the plural from the kind: `y` to `ies`, `s` to `es`, else `s`. */
export function pluralOf(kind: string): string {
  const lower = kind.toLowerCase();
  if (lower.endsWith('y')) return `${lower.slice(0, -1)}ies`;
  return lower.endsWith('s') ? `${lower}es` : `${lower}s`;
}

function apiPath(apiVersion: string): string {
  return apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
}

function groupOf(apiVersion: string): string {
  return apiVersion.includes('/') ? apiVersion.replace(/\/.*/, '') : '';
}
