import { createLimiter } from '../concurrency.ts';

/** What the events for a key asked of its next pass. */
export interface Hints {
  /** Read lldap and correct drift, whatever the status remembers. */
  full: boolean;
  /** The retries that events stood for. */
  notBefore: Set<string>;
}

/** One event's request for a pass. */
export interface Request {
  full?: boolean;
  notBefore?: string;
  /** Asked again before a further pass that only such events want: is it needless by now? */
  needless?: () => boolean;
  /** Aborted when the event's sender has gone. */
  signal: AbortSignal;
}

export type Submitted<T> = { result: T } | 'collapsed';

interface Entry<T> {
  wanted: Request[];
  /** Of the request that holds the key. */
  signal: AbortSignal;
  /** Its passes, while there are any. */
  held?: Promise<T>;
}

/**
 * One pass at a time for each key, and a bounded number in all.
 *
 * 1. While a key waits or runs, further events are answered at once: the request that holds the key keeps the
 *    process alive. If that request's sender has gone, the next event takes its place.
 * 2. Events that come while a pass runs collapse into one more pass, before the holding request is answered.
 * 3. What events asked for is remembered until a pass that took it has ended well, so a pass that fails loses nothing.
 *
 * @param run makes a pass; `retryLater` says of its result that what was asked is still to be done
 */
export function createQueue<T>(
  limit: number,
  run: (key: string, hints: Hints, signal: AbortSignal) => Promise<T>,
  retryLater: (result: T) => boolean,
) {
  const entries = new Map<string, Entry<T>>();
  const limited = createLimiter(limit);

  async function hold(key: string, entry: Entry<T>): Promise<T> {
    return limited(async () => {
      for (;;) {
        const taken = entry.wanted;
        entry.wanted = [];
        let done = false;
        try {
          const result = await run(key, merge(taken), entry.signal);
          done = !retryLater(result);
          if (!done || entry.wanted.every((request) => request.needless?.() ?? false)) return result;
        } finally {
          if (!done) entry.wanted.unshift(...taken);
        }
      }
    }).finally(() => {
      delete entry.held;
      const done = entry.wanted.every((request) => request.needless?.() ?? false);
      if (done) entries.delete(key);
    });
  }

  return {
    /** Asks for a pass and waits for it, unless another request will see to it. */
    async submit(key: string, request: Request): Promise<Submitted<T>> {
      const entry: Entry<T> = entries.get(key) ?? { wanted: [], signal: request.signal };
      entries.set(key, entry);
      entry.wanted.push(request);
      if (entry.held && !entry.signal.aborted) return 'collapsed';
      entry.signal = request.signal;
      entry.held ??= hold(key, entry);
      return { result: await entry.held };
    },
    /** Keys at work or waiting, for tests and metrics. */
    get size(): number {
      return entries.size;
    },
  };
}

function merge(requests: readonly Request[]): Hints {
  return {
    full: requests.some((r) => r.full),
    notBefore: new Set(requests.flatMap((r) => r.notBefore ?? [])),
  };
}
