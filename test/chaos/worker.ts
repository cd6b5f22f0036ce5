import { parentPort, workerData } from 'node:worker_threads';
import fc from 'fast-check';
import { type Mix, scheduleOf } from './generate.ts';
import { play } from './run-schedule.ts';

/** Plays its share of the schedules, mix by mix, and tells how it went. */

export interface Share {
  seed: number;
  mixes: { name: string; mix: Mix; schedules: number }[];
}

export interface Outcome {
  schedules: number;
  /** Faults by their kind. */
  counts: Record<string, number>;
  /** The first schedule that broke a promise, cut down. */
  found?: { mix: string; schedule: string; sentence: string };
}

async function playAll({ seed, mixes }: Share): Promise<Outcome> {
  const counts: Record<string, number> = {};
  let schedules = 0;
  for (const { name, mix, schedules: numRuns } of mixes) {
    const property = fc.asyncProperty(scheduleOf(mix), async (schedule) => {
      const { counts: met } = await play(schedule);
      schedules++;
      for (const [fault, times] of met) counts[fault] = (counts[fault] ?? 0) + times;
    });
    const { failed, counterexample, errorInstance } = await fc.check(property, { numRuns, seed });
    if (!failed) continue;
    const sentence = errorInstance instanceof Error ? (errorInstance.stack ?? errorInstance.message) : String(errorInstance);
    return { schedules, counts, found: { mix: name, schedule: shown(counterexample?.[0]), sentence } };
  }
  return { schedules, counts };
}

/** One step a line. */
function shown(schedule: { steps: unknown[] } | undefined): string {
  if (!schedule) return 'none';
  const { steps, ...settings } = schedule;
  return [JSON.stringify(settings), ...steps.map((step) => `  ${JSON.stringify(step)},`)].join('\n');
}

parentPort?.postMessage(await playAll(workerData as Share));
