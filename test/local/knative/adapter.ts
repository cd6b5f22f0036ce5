import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Addresses } from './addresses.ts';
import { timestamp } from './cloudevent.ts';
import type { Source, SourceResource } from './eventing.ts';
import { isRecord } from './fields.ts';
import type { SourceCluster } from './sources.ts';
import type { Story } from './story.ts';
import { type Change, type KubernetesObject, Watch } from './watch.ts';

export interface AdapterOptions {
  model: Source;
  cluster: SourceCluster;
  addresses: Addresses;
  story: Story;
  /** Of the source's own ServiceAccount. */
  token: string;
  /** What it watches; all of them, with one watch per kind, where none are given. */
  namespaces?: string[];
}

const RETRIED = [404, 413, 425, 429, 502, 503, 504];
const GAPS_MS = [100, 200, 400, 800, 1600];
const RESTARTS_AFTER_MS = 500;

/** One pod of an ApiServerSource: what it watches, it sends, one event after the other for each watch. */
export class Adapter {
  readonly #options: AdapterOptions;
  readonly #end = new AbortController();
  readonly #watches: Watch[] = [];
  readonly #sending = new Set<Promise<void>>();

  constructor(options: AdapterOptions) {
    this.#options = options;
  }

  /** Resolves when every resource is watched. Waits for an API group that does not exist yet, as one that crash-loops does. */
  async start(): Promise<void> {
    const { model, cluster, token } = this.#options;
    for (const resource of model.resources) {
      if (!(await this.#exists(resource))) continue;
      for (const path of this.#paths(resource)) {
        const watch = new Watch({
          access: { url: cluster.url, ca: cluster.ca, token },
          path,
          labelSelector: resource.labelSelector,
          onChange: this.#sender(resource),
          warn: (message) => this.#warn(message),
        });
        this.#watches.push(watch);
      }
    }
    await Promise.all(this.#watches.map((watch) => watch.start()));
  }

  /** Sees nothing more. Resolves when everything that it saw has been sent. */
  async retire(): Promise<void> {
    for (const watch of this.#watches.splice(0)) watch.stop();
    await Promise.all(this.#sending);
  }

  /** What changes from now on is never told, nor is what still waits to be sent. */
  stop(): void {
    this.#end.abort();
    for (const watch of this.#watches.splice(0)) watch.stop();
  }

  /** A kind that is missing in an existing group is skipped for good; a group that is missing is waited for. */
  async #exists({ apiVersion, kind }: SourceResource): Promise<boolean> {
    for (let told = false; ; told = true) {
      const { code, body } = await this.#options.cluster.request('GET', apiPath(apiVersion));
      if (code === 200 && isRecord(body) && Array.isArray(body.resources)) {
        const found = body.resources.some((each: unknown) => isRecord(each) && each.name === pluralOf(kind));
        if (!found) this.#warn(`there is no ${pluralOf(kind)} in ${apiVersion}: skipped`);
        return found;
      }
      if (!told) this.#warn(`waits for ${apiVersion}`);
      await sleep(RESTARTS_AFTER_MS, undefined, { signal: this.#end.signal });
    }
  }

  #paths({ apiVersion, kind }: SourceResource): string[] {
    const { namespaces } = this.#options;
    if (!namespaces) return [`${apiPath(apiVersion)}/${pluralOf(kind)}`];
    return namespaces.map((namespace) => `${apiPath(apiVersion)}/namespaces/${namespace}/${pluralOf(kind)}`);
  }

  /** The next event is sent when the one before was answered, however long that takes. */
  #sender(resource: SourceResource): (change: Change, object: KubernetesObject) => void {
    let last: Promise<void> = Promise.resolve();
    const { signal } = this.#end;
    return (change, object) => {
      this.#sending.delete(last);
      last = last
        .then(() => this.#send(change, object, resource, signal))
        .catch((error: unknown) => {
          const { story, model } = this.#options;
          if (!signal.aborted) story.tell({ what: 'violation', message: `source ${model.name}: ${error}` });
        });
      this.#sending.add(last);
    };
  }

  async #send(change: Change, object: KubernetesObject, resource: SourceResource, signal: AbortSignal): Promise<void> {
    const { model, cluster, addresses, story } = this.#options;
    const { name, namespace = '' } = object.metadata;
    const { apiVersion, kind } = resource;
    const id = randomUUID();
    const type = `dev.knative.apiserver.${model.mode === 'Resource' ? 'resource' : 'ref'}.${change}`;
    const headers = {
      'ce-specversion': '1.0',
      'ce-id': id,
      'ce-type': type,
      'ce-source': cluster.url,
      'ce-subject': `/apis/${apiVersion}/namespaces/${namespace}/${pluralOf(kind)}/${name}`,
      'ce-time': timestamp(),
      'ce-kind': kind,
      'ce-apiversion': apiVersion,
      'ce-name': name,
      'ce-namespace': namespace,
      'content-type': 'application/json',
      'kn-namespace': model.namespace,
    };
    const body = Buffer.from(JSON.stringify(model.mode === 'Resource' ? object : { kind, namespace, name, apiVersion }));
    for (let tries = 1; ; tries += 1) {
      const status = await addresses.send('POST', model.sink, headers, body, { signal }).then((answer) => answer.status, unreachable);
      signal.throwIfAborted();
      const gap = status === 0 || RETRIED.includes(status) ? GAPS_MS[tries - 1] : undefined;
      if (gap === undefined)
        return story.tell({ what: 'sent', source: model.name, event: { id, type, kind, namespace, name }, status, tries });
      await sleep(gap, undefined, { signal });
    }
  }

  #warn(message: string): void {
    this.#options.story.tell({ what: 'warning', from: this.#options.model.name, message });
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
