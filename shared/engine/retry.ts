import type { Category, Retry } from '../kube/resources.ts';
import { timestamp } from '../platform/clock.ts';

const QUICK_FIRST = [5_000, 10_000, 30_000, 60_000, 300_000];
const SLOW_FIRST = [60_000, 300_000];

/** Milliseconds before each further attempt, the last one repeating; a category without delays is not retried. */
const DELAYS: Record<Category, readonly number[]> = {
  Unavailable: QUICK_FIRST,
  Unauthenticated: SLOW_FIRST,
  NotReady: QUICK_FIRST,
  Taken: QUICK_FIRST,
  Bug: QUICK_FIRST,
  Invalid: [],
};

/** A tenth either way, so that what failed together does not come back together. */
const JITTER = 0.1;

/**
 * The attempt that follows a failure, or undefined when only a person can help.
 *
 * @param previous what the status remembers, if it is of the same generation
 * @param random from 0 to 1
 */
export function nextRetry(input: {
  category: Category;
  previous: Retry | undefined;
  now: number;
  maxMs: number;
  random: number;
}): Required<Retry> | undefined {
  const { category, previous, now, maxMs, random } = input;
  const attempts = previous?.reason === category ? previous.attempts + 1 : 1;
  const delay = delayOf(category, attempts);
  if (delay === undefined) return undefined;
  const jittered = Math.min(delay, maxMs) * (1 + JITTER * (2 * random - 1));
  return { nextTime: timestamp(now + jittered), attempts, reason: category };
}

/** Milliseconds before the retry that follows the given attempt (from 1). */
export function delayOf(category: Category, attempt: number): number | undefined {
  const delays = DELAYS[category];
  return delays[Math.min(attempt, delays.length) - 1];
}
