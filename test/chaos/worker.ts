import fc from 'fast-check';
import { type Mix, scheduleOf } from './generate.ts';
import { play } from './play.ts';
import type { Schedule } from './schedule.ts';

/** A process that plays schedules, told by its arguments: a mix as JSON, how many, and the seed. Its result is JSON. */
export interface Played {
  schedules: number;
  /** Faults and other disturbances, by what they were. */
  faults: Record<string, number>;
  /** The smallest schedule that was found to break a promise, and which. */
  broken?: { promise: string; schedule: Schedule };
}

const [mix, runs, seed] = process.argv.slice(2);
const faults = new Map<string, number>();
let schedules = 0;
const { failed, counterexample, errorInstance } = await fc.check(
  fc.asyncProperty(scheduleOf(JSON.parse(mix ?? '') as Mix), async (schedule) => {
    schedules++;
    const world = await play(schedule);
    for (const [what, times] of world.counts) faults.set(what, (faults.get(what) ?? 0) + times);
  }),
  { numRuns: Number(runs), seed: Number(seed) },
);
const schedule = counterexample?.[0];
const promise = errorInstance instanceof Error ? (errorInstance.stack ?? errorInstance.message) : String(errorInstance);
const played: Played = { schedules, faults: Object.fromEntries(faults), ...(failed && schedule && { broken: { promise, schedule } }) };
process.stdout.write(`${JSON.stringify(played)}\n`);
