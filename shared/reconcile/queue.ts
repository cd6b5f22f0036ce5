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
  /** Asked before a further pass that only events without other wishes want: is it needless by now? */
  needless?: () => boolean;
  /** Aborted when the event's sender has gone. */
  signal: AbortSignal;
}

export type Submitted<T> = { result: T } | 'collapsed';

interface Entry<T> {
  /** What events asked for since the last pass that ended well began. */
  hints: Hints;
  /** The events since the last pass began that asked for nothing in particular: is a pass for each needless by now? */
  plain: (() => boolean)[];
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

  /** The passes of one request that holds the key, until nothing more is wanted. */
  function hold(key: string, entry: Entry<T>): Promise<T> {
    return limited(async () => {
      try {
        for (;;) {
          const { result, done } = await pass(key, entry);
          if (!done || !wantsMore(entry)) return result;
        }
      } finally {
        // In the same moment as the decision to end, or an event between the two would be taken for seen to.
        delete entry.held;
        entry.plain = [];
        if (isEmpty(entry.hints)) entries.delete(key);
      }
    });
  }

  async function pass(key: string, entry: Entry<T>): Promise<{ result: T; done: boolean }> {
    const { hints } = entry;
    Object.assign(entry, { hints: noHints(), plain: [] });
    let done = false;
    try {
      const result = await run(key, hints, entry.signal);
      done = !retryLater(result);
      return { result, done };
    } finally {
      if (!done) add(entry.hints, hints);
    }
  }

  return {
    /** Asks for a pass and waits for it, unless another request will see to it. */
    async submit(key: string, request: Request): Promise<Submitted<T>> {
      const entry: Entry<T> = entries.get(key) ?? { hints: noHints(), plain: [], signal: request.signal };
      entries.set(key, entry);
      const hints: Hints = { full: request.full ?? false, notBefore: new Set(request.notBefore ? [request.notBefore] : []) };
      if (isEmpty(hints)) entry.plain.push(request.needless ?? (() => false));
      else add(entry.hints, hints);
      if (entry.held && !entry.signal.aborted) return 'collapsed';
      entry.signal = request.signal;
      entry.held ??= hold(key, entry);
      return { result: await entry.held };
    },
    /** Keys that wait, are at work, or of which something is remembered. */
    get size(): number {
      return entries.size;
    },
  };
}

function noHints(): Hints {
  return { full: false, notBefore: new Set() };
}

function isEmpty({ full, notBefore }: Hints): boolean {
  return !full && notBefore.size === 0;
}

function add(to: Hints, more: Hints): void {
  to.full ||= more.full;
  for (const time of more.notBefore) to.notBefore.add(time);
}

function wantsMore({ hints, plain }: Pick<Entry<unknown>, 'hints' | 'plain'>): boolean {
  return !isEmpty(hints) || !plain.every((isNeedless) => isNeedless());
}
