import { setTimeout } from 'node:timers/promises';

/** The operator's clock, which tests replace. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Milliseconds of a clock that never goes back, for deadlines. */
  monotonic(): number;
  /** Resolves after `ms`, or rejects with the signal's reason. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  // `performance` would load `node:perf_hooks`, at the first event of a cold start.
  monotonic: () => 1000 * process.uptime(),
  sleep: (ms, signal) =>
    setTimeout(ms, undefined, { signal }).catch(() => {
      throw signal?.reason;
    }),
};

/** RFC 3339 in UTC with milliseconds, the format of `notbefore` and `status.retry.nextTime`. */
export function timestamp(ms: number): string {
  return new Date(ms).toISOString();
}
