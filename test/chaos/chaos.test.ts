import assert from 'node:assert/strict';
import { Worker } from 'node:worker_threads';
import { MIXES } from './profiles.ts';
import { WITHOUT_SWEEP } from './run-schedule.ts';
import type { Outcome, Share } from './worker.ts';

/**
 * Random schedules against the real engine, see `invariants.ts` and `final-checks.ts` for the promises. `SCHEDULES` is how many (10,000 by
 * default). The same ones each time, so that a change is what makes them fail, unless `SEED` names others: `make chaos`
 * looks for new ones.
 */

const SCHEDULES = Number(process.env.SCHEDULES ?? 10_000);
const SEED = Number(process.env.SEED ?? 1);
const WORKERS = 2;

describe('random schedules', () => {
  it(`${SCHEDULES} schedules of seed ${SEED} keep every promise`, async function () {
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
