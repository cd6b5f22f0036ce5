import { AsyncResource } from 'node:async_hooks';
import { createLimiter } from '../platform/concurrency.ts';

/** What the events for a key ask of its next pass. */
export interface Hints {
  /** Read lldap and correct drift, whatever the status remembers. */
  full: boolean;
  /** The retries that events stood for. */
  notBefore: ReadonlySet<string>;
}

/** One event's request for a pass. */
export interface Request {
  full?: boolean;
  notBefore?: string;
  /** The resource's version that the event tells of, if the event asks for nothing but a look at it. */
  version?: string;
}

/** `collapsed`: another request sees to it. */
export type Submitted<T> = { result: T } | 'collapsed';

interface Waiting<T> {
  request: Request;
  /** Within the request's trace. */
  run(hints: Hints): Promise<T>;
  resolve(answer: Submitted<T>): void;
  reject(error: unknown): void;
}

interface Entry<T> {
  hints: Hints;
  /** Of the events that ask for nothing in particular; `undefined` for one that tells no version. */
  versions: Set<string | undefined>;
  /** The request that waits for the next pass. */
  waiting?: Waiting<T> | undefined;
  /** Waits for its turn, or is at work. */
  isBusy: boolean;
}

/**
 * One pass at a time for each key, and a bounded number in all, in the manner of client-go's workqueue.
 *
 * 1. One request for a key waits for its next pass and so keeps the process alive: the newest of those that ask for most,
 *    since its event comes again should the process die. The others are answered at once.
 * 2. Requests that come while a pass runs lead to one more pass, at the end of the line: a key whose events keep coming
 *    does not starve the others.
 * 3. What requests asked for is remembered until a pass that took it has ended well, so a pass that fails loses nothing.
 *
 * @param run makes a pass
 * @param unfinished what a pass with this result leaves to the next one
 * @param isOwnWrite whether a version was written by this process: a pass for nothing else is not made
 */
export function createQueue<T>(
  limit: number,
  run: (key: string, hints: Hints) => Promise<T>,
  unfinished: (result: T) => Hints | undefined,
  isOwnWrite: (version: string) => boolean,
) {
  const entries = new Map<string, Entry<T>>();
  const limited = createLimiter(limit);

  function enqueue(key: string, entry: Entry<T>): void {
    entry.isBusy = true;
    void limited(async () => {
      if (entry.waiting) await turn(key, entry, entry.waiting);
    });
  }

  async function turn(key: string, entry: Entry<T>, waiting: Waiting<T>): Promise<void> {
    const { hints } = entry;
    Object.assign(entry, { hints: NO_HINTS, versions: new Set(), waiting: undefined });
    try {
      const result = await waiting.run(hints);
      entry.hints = merge(entry.hints, unfinished(result));
      waiting.resolve({ result });
    } catch (error) {
      entry.hints = merge(entry.hints, hints);
      waiting.reject(error);
    }
    // In the same moment as the end of the pass, or an event between the two would be taken for seen to.
    entry.isBusy = false;
    if (entry.waiting && wantsMore(entry)) return enqueue(key, entry);
    entry.waiting?.resolve('collapsed');
    entry.waiting = undefined;
    entry.versions.clear();
    if (isEmpty(entry.hints)) entries.delete(key);
  }

  function wantsMore({ hints, versions }: Entry<T>): boolean {
    return !isEmpty(hints) || [...versions].some((version) => version === undefined || !isOwnWrite(version));
  }

  return {
    /** Asks for a pass and waits for it, unless another request sees to it. */
    submit(key: string, request: Request): Promise<Submitted<T>> {
      const { full = false, notBefore, version } = request;
      const entry: Entry<T> = entries.get(key) ?? { hints: NO_HINTS, versions: new Set(), isBusy: false };
      entries.set(key, entry);
      const hints: Hints = { full, notBefore: new Set(notBefore ? [notBefore] : []) };
      if (isEmpty(hints)) entry.versions.add(version);
      else entry.hints = merge(entry.hints, hints);
      if (entry.waiting && weightOf(request) < weightOf(entry.waiting.request)) return Promise.resolve('collapsed');
      entry.waiting?.resolve('collapsed');
      return new Promise((resolve, reject) => {
        entry.waiting = { request, run: AsyncResource.bind((all: Hints) => run(key, all)), resolve, reject };
        if (!entry.isBusy) enqueue(key, entry);
      });
    },
    /** Keys that wait, are at work, or of which something is remembered. */
    get size(): number {
      return entries.size;
    },
  };
}

const NO_HINTS: Hints = { full: false, notBefore: new Set() };

function isEmpty({ full, notBefore }: Hints): boolean {
  return !full && notBefore.size === 0;
}

function weightOf({ full, notBefore }: Request): number {
  return full ? 2 : notBefore ? 1 : 0;
}

function merge(a: Hints, b: Hints = NO_HINTS): Hints {
  return { full: a.full || b.full, notBefore: new Set([...a.notBefore, ...b.notBefore]) };
}
