import assert from 'node:assert/strict';
import { Worker } from 'node:worker_threads';
import type { Mix } from './generate.ts';
import { WITHOUT_SWEEP } from './play.ts';
import type { Outcome, Share } from './worker.ts';

/**
 * Random schedules against the real engine, see `model.ts` for what is promised. `SCHEDULES` is how many (10,000 by
 * default). The same ones each time, so that a change is what makes them fail, unless `SEED` names others: `make chaos`
 * looks for new ones.
 */

const SCHEDULES = Number(process.env.SCHEDULES ?? 10_000);
const SEED = Number(process.env.SEED ?? 1);
const WORKERS = 2;

/** Percent of the schedules, by what they are made of. */
const MIXES: Record<string, { percent: number; mix: Mix }> = {
  'people and races': { percent: 15, mix: { processes: 3, minutesApart: 0, weights: { passing: 5, asking: 5 } } },
  faults: { percent: 35, mix: { processes: 3, minutesApart: 0, weights: { passing: 5, asking: 5, failing: 3 } } },
  'faults, clocks apart, forged events': {
    percent: 15,
    mix: { processes: 3, minutesApart: 2, weights: { passing: 5, asking: 5, failing: 3, telling: 1 } },
  },
  'hands in lldap, restores': {
    percent: 15,
    mix: { processes: 2, minutesApart: 0, weights: { passing: 6, asking: 6, touching: 3, restoring: 1 } },
  },
  everything: {
    percent: 15,
    mix: { processes: 3, minutesApart: 2, weights: { passing: 10, asking: 10, failing: 4, telling: 1, touching: 2, restoring: 1 } },
  },
  'late writes of processes that died': { percent: 5, mix: { processes: 2, minutesApart: 0, weights: { passing: 5, asking: 5, late: 1 } } },
};

describe('random schedules', () => {
  it(`${SCHEDULES} schedules keep every promise`, async function () {
    this.timeout(0);
    const outcomes = await Promise.all(Array.from({ length: WORKERS }, (_, i) => playShare(i)));
    for (const { found } of outcomes) {
      if (found) assert.fail(`Seed ${SEED}, "${found.mix}":\n${found.schedule}\n\n${found.sentence}`);
    }
    const counts: Record<string, number> = {};
    for (const outcome of outcomes)
      for (const [fault, times] of Object.entries(outcome.counts)) counts[fault] = (counts[fault] ?? 0) + times;
    const played = outcomes.reduce((sum, { schedules }) => sum + schedules, 0);
    assert.ok(played >= SCHEDULES, `${played} were played`);
    const { [WITHOUT_SWEEP]: settled = 0, ...injected } = counts;
    const faults = Object.entries(injected)
      .sort(([a], [b]) => a.localeCompare(b))
      .map(([fault, times]) => `${fault} ${times}`);
    process.stdout.write(
      `      ${played} schedules, seed ${SEED}: nothing lost, nothing doubled, ${settled} settled without a sweep. Faults: ${faults.join('; ')}.\n`,
    );
  });
});

async function playShare(number: number): Promise<Outcome> {
  const share: Share = {
    seed: SEED + number,
    mixes: Object.entries(MIXES).map(([name, { percent, mix }]) => ({
      name,
      mix,
      schedules: Math.ceil((SCHEDULES * percent) / 100 / WORKERS),
    })),
  };
  const worker = new Worker(new URL('./worker.ts', import.meta.url), { workerData: share });
  return await new Promise<Outcome>((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
    worker.once('exit', (code) => reject(new Error(`a worker ended with ${code} and said nothing`)));
  });
}
