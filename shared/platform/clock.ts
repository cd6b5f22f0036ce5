import { setTimeout } from 'node:timers/promises';

/** Time as the operator sees it; replaced in tests that play schedules. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Milliseconds that only ever grow: for deadlines. */
  monotonic(): number;
  /** Resolves after `ms`, or rejects with the signal's reason. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: (ms, signal) =>
    setTimeout(ms, undefined, { signal }).catch(() => {
      throw signal?.reason;
    }),
};

/** RFC 3339 in UTC with milliseconds, as `notbefore` and `status.retry.nextTime` are written. */
export function timestamp(ms: number): string {
  return new Date(ms).toISOString();
}
