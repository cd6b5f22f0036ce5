import type { Category, Retry } from '../kube/resources.ts';
import { timestamp } from '../platform/clock.ts';

const QUICK_DELAYS_MS = [5_000, 10_000, 30_000, 60_000, 300_000];
const SLOW_DELAYS_MS = [60_000, 300_000];

/** The delay before each further attempt, the last one repeating. A category without delays is not retried. */
const DELAYS_MS: Record<Category, readonly number[]> = {
  Unavailable: QUICK_DELAYS_MS,
  Unauthenticated: SLOW_DELAYS_MS,
  NotReady: QUICK_DELAYS_MS,
  Taken: QUICK_DELAYS_MS,
  Bug: QUICK_DELAYS_MS,
  Invalid: [],
};

/** Delays vary by this fraction either way, so that resources that failed together are not retried together. */
const JITTER_FRACTION = 0.1;

/**
 * The retry that follows a failure, or undefined when only a person can help.
 *
 * @param input.previous the status's retry, if it is of the same generation
 * @param input.now milliseconds since the epoch
 * @param input.random from 0 to 1
 */
export function nextRetry(input: {
  category: Category;
  previous: Retry | undefined;
  now: number;
  maxMs: number;
  random: number;
}): Required<Retry> | undefined {
  const { category, previous, now, maxMs, random } = input;
  const attempts = previous?.category === category ? previous.attempts + 1 : 1;
  const delay = delayOf(category, attempts);
  if (delay === undefined) return undefined;
  const jittered = Math.min(delay, maxMs) * (1 + JITTER_FRACTION * (2 * random - 1));
  return { nextTime: timestamp(now + jittered), attempts, category };
}

/** Milliseconds before the retry that follows the given attempt (from 1). */
export function delayOf(category: Category, attempt: number): number | undefined {
  const delays = DELAYS_MS[category];
  return delays[Math.min(attempt, delays.length) - 1];
}
