import { AsyncResource } from 'node:async_hooks';
import { createLimiter } from '../platform/concurrency.ts';

/** What the events for a key demand of its next reconcile. */
export interface Demand {
  /** Read lldap and correct drift, whatever the status says. */
  full: boolean;
  /** The times of the retries that events carried. */
  notBefore: ReadonlySet<string>;
}

/** One event's request for a reconcile. */
export interface Request {
  full?: boolean;
  notBefore?: string;
  /** The resource's version in the event, if the event demands nothing in particular. */
  version?: string;
}

/** `collapsed`: the reconcile of another request covers this one. */
export type Submitted<T> = { result: T } | 'collapsed';

interface Waiting<T> {
  request: Request;
  /** Runs within the request's trace. */
  run(demand: Demand): Promise<T>;
  resolve(answer: Submitted<T>): void;
  reject(error: unknown): void;
}

interface Entry<T> {
  demand: CollectedDemand;
  /** Versions in events without a demand; `undefined` for an event that names none, or for more than are kept. */
  versions: Set<string | undefined>;
  /** The request that waits for the next reconcile. */
  waiting?: Waiting<T> | undefined;
  /** Queued or running. */
  isBusy: boolean;
}

/**
 * One reconcile at a time for each key and a bounded number in all, like client-go's workqueue.
 *
 * 1. One request for a key waits for its next reconcile, which keeps the process alive: the newest of those that demand
 *    most, since the broker delivers its event again should the process die. The others are answered at once.
 * 2. Requests that come during a reconcile lead to one more, at the tail of the queue: a key whose events keep coming
 *    does not starve the others.
 * 3. A demand is kept until a reconcile that took it has ended well, so a reconcile that fails loses nothing.
 * 4. A key keeps at most 64 times and versions, since anybody may send events. More times demand a full reconcile, which
 *    includes the retry that is due; more versions, a reconcile.
 *
 * @param run reconciles a key
 * @param unfinished what a reconcile with this result leaves to the next one
 * @param isOwnWrite whether this process wrote a version: alone, it causes no reconcile
 */
export function createQueue<T>(
  limit: number,
  run: (key: string, demand: Demand) => Promise<T>,
  unfinished: (result: T) => Demand | undefined,
  isOwnWrite: (version: string) => boolean,
) {
  const entries = new Map<string, Entry<T>>();
  const limited = createLimiter(limit);

  function enqueue(key: string, entry: Entry<T>): void {
    entry.isBusy = true;
    void limited(async () => {
      if (entry.waiting) await runNext(key, entry, entry.waiting);
    });
  }

  async function runNext(key: string, entry: Entry<T>, waiting: Waiting<T>): Promise<void> {
    const { demand } = entry;
    Object.assign(entry, { demand: noDemand(), versions: new Set(), waiting: undefined });
    try {
      const result = await waiting.run(demand);
      collect(entry.demand, unfinished(result));
      waiting.resolve({ result });
    } catch (error) {
      collect(entry.demand, demand);
      waiting.reject(error);
    }
    // In the same turn of the event loop as the end of the reconcile, so that no event falls between the two.
    entry.isBusy = false;
    if (entry.waiting && needsAnother(entry)) return enqueue(key, entry);
    entry.waiting?.resolve('collapsed');
    entry.waiting = undefined;
    entry.versions.clear();
    if (isNoop(entry.demand)) entries.delete(key);
  }

  function needsAnother({ demand, versions }: Entry<T>): boolean {
    return !isNoop(demand) || [...versions].some((version) => version === undefined || !isOwnWrite(version));
  }

  return {
    /** Requests a reconcile and waits for it, unless that of another request covers this one. */
    submit(key: string, request: Request): Promise<Submitted<T>> {
      const { full = false, notBefore, version } = request;
      const entry: Entry<T> = entries.get(key) ?? { demand: noDemand(), versions: new Set(), isBusy: false };
      entries.set(key, entry);
      if (full || notBefore) collect(entry.demand, { full, notBefore: notBefore ? [notBefore] : [] });
      else entry.versions.add(entry.versions.size < MAX_KEPT_EVENTS ? version : undefined);
      if (entry.waiting && weightOf(request) < weightOf(entry.waiting.request)) return Promise.resolve('collapsed');
      entry.waiting?.resolve('collapsed');
      return new Promise((resolve, reject) => {
        entry.waiting = { request, run: AsyncResource.bind((all: Demand) => run(key, all)), resolve, reject };
        if (!entry.isBusy) enqueue(key, entry);
      });
    },
    /** Keys that are queued, running, or have a demand left. */
    get size(): number {
      return entries.size;
    },
  };
}

/** Times or versions of one key. */
const MAX_KEPT_EVENTS = 64;

interface CollectedDemand extends Demand {
  notBefore: Set<string>;
}

function noDemand(): CollectedDemand {
  return { full: false, notBefore: new Set() };
}

function isNoop({ full, notBefore }: Demand): boolean {
  return !full && notBefore.size === 0;
}

function weightOf({ full, notBefore }: Request): number {
  return full ? 2 : notBefore ? 1 : 0;
}

/** Adds in place: a copy for each of thousands of events would hold up everybody. */
function collect(into: CollectedDemand, added?: { full: boolean; notBefore: Iterable<string> }): void {
  into.full ||= added?.full ?? false;
  for (const time of added?.notBefore ?? []) {
    if (into.notBefore.size < MAX_KEPT_EVENTS) into.notBefore.add(time);
    else into.full = true;
  }
}
