import type { IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { isRecord } from './fields.ts';

/** How an adapter reaches the API server. */
export interface ApiAccess {
  url: string;
  ca: string;
  token: string;
}

export type Change = 'add' | 'update' | 'delete';
export type KubernetesObject = Record<string, unknown> & { metadata: { name: string; namespace?: string; resourceVersion: string } };

export interface WatchOptions {
  access: ApiAccess;
  /** Of the collection. */
  path: string;
  labelSelector: string;
  onChange(change: Change, object: KubernetesObject): void;
  warn(message: string): void;
}

const CHANGES: Record<string, Change> = { ADDED: 'add', MODIFIED: 'update', DELETED: 'delete' };
const SHORTEST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 3_000;

/** Watching cannot go on from the last version: the list is read anew, and whatever changed in between is never told. */
class Relist extends Error {}

/**
 * One list and watch, edge-triggered as ApiServerSource is: objects that exist at the start say nothing. A connection
 * that breaks is picked up at the last version, and nothing is lost; after "too old" or any refusal (an API server that
 * restarts answers 403 at first) comes a silent re-list.
 */
export class Watch {
  readonly #options: WatchOptions;
  readonly #agent: Agent;
  readonly #end = new AbortController();
  #version: string | undefined;

  constructor(options: WatchOptions) {
    this.#options = options;
    this.#agent = new Agent({ ca: options.access.ca });
  }

  /** Watches until `stop`. Resolves when the first watch is open, or never will be. */
  start(): Promise<void> {
    return new Promise((opened, failed) => {
      this.#run(opened).then(opened, failed);
    });
  }

  stop(): void {
    this.#end.abort();
    this.#agent.destroy();
  }

  async #run(opened: () => void): Promise<void> {
    let wait = SHORTEST_WAIT_MS;
    while (!this.#end.signal.aborted) {
      try {
        this.#version ??= await this.#list();
        await this.#watch(this.#version, () => {
          wait = SHORTEST_WAIT_MS;
          opened();
        });
      } catch (error) {
        if (this.#end.signal.aborted) return;
        if (error instanceof Relist) this.#version = undefined;
        this.#options.warn(`${this.#options.path}: ${error instanceof Error ? error.message : error}`);
        await sleep(wait);
        wait = Math.min(wait * 2, LONGEST_WAIT_MS);
      }
    }
  }

  /** @returns the version of the list; its objects are of no interest */
  async #list(): Promise<string> {
    const response = await this.#get({});
    let text = '';
    for await (const chunk of response.setEncoding('utf8')) text += chunk;
    if (response.statusCode !== 200) throw new Relist(`list answered ${response.statusCode}`);
    const list: { metadata: { resourceVersion: string } } = JSON.parse(text);
    return list.metadata.resourceVersion;
  }

  async #watch(version: string, opened: () => void): Promise<void> {
    const response = await this.#get({ watch: 'true', resourceVersion: version, allowWatchBookmarks: 'true' });
    if (response.statusCode !== 200) {
      response.destroy();
      throw new Relist(`watch answered ${response.statusCode}`);
    }
    opened();
    let partial = '';
    for await (const chunk of response.setEncoding('utf8')) {
      const lines = `${partial}${chunk}`.split('\n');
      partial = lines.pop() ?? '';
      for (const line of lines) this.#event(JSON.parse(line));
    }
  }

  #event({ type, object }: { type: string; object: unknown }): void {
    if (type === 'ERROR') throw new Relist(isRecord(object) ? String(object.message) : 'error');
    if (!isObject(object)) throw new Relist(`a ${type} event without an object`);
    this.#version = object.metadata.resourceVersion;
    const change = CHANGES[type];
    if (change) this.#options.onChange(change, object);
  }

  #get(parameters: Record<string, string>): Promise<IncomingMessage> {
    const { access, path, labelSelector } = this.#options;
    const query = new URLSearchParams({ ...parameters, ...(labelSelector && { labelSelector }) });
    const headers = { authorization: `Bearer ${access.token}`, accept: 'application/json' };
    return new Promise((resolve, reject) => {
      const outgoing = request(`${access.url}${path}?${query}`, { headers, agent: this.#agent, signal: this.#end.signal }, resolve);
      outgoing.on('error', reject).end();
    });
  }
}

function isObject(value: unknown): value is KubernetesObject {
  return isRecord(value) && isRecord(value.metadata) && typeof value.metadata.resourceVersion === 'string';
}
