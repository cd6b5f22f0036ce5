import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Mix } from './generate.ts';
import type { Played } from './worker.ts';

/** `SCHEDULES` for another number of them, `SEED` to repeat a run. */
const SCHEDULES = Number(process.env.SCHEDULES ?? 10_000);
const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000_000);
const WORKERS = Math.max(1, cpus().length);
/** A core plays one in some 30 ms; this is patience, not a bar. */
const PATIENCE_MS = 60_000 + SCHEDULES * 500;

const MIXES: Record<string, Mix> = {
  'one process of each function, and everything that may fail': {
    processes: 1,
    minutesApart: 0,
    weights: { passing: 10, asking: 10, failing: 5, telling: 1 },
  },
  'up to three processes with clocks apart, restored backups and people who edit lldap by hand': {
    processes: 3,
    minutesApart: 3,
    weights: { passing: 10, asking: 10, failing: 5, telling: 1, touching: 2, restoring: 1 },
  },
};

describe('random schedules', () => {
  const total: Played = { schedules: 0, faults: {} };

  for (const [sentence, mix] of Object.entries(MIXES)) {
    it(`${sentence}: every promise is kept`, async function () {
      this.timeout(PATIENCE_MS);
      const runs = Math.ceil(SCHEDULES / Object.keys(MIXES).length / WORKERS);
      const results = await Promise.all(Array.from({ length: WORKERS }, (_, i) => work(mix, runs, SEED + i)));
      for (const { schedules, faults } of results) {
        total.schedules += schedules;
        for (const [what, times] of Object.entries(faults)) total.faults[what] = (total.faults[what] ?? 0) + times;
      }
      const broken = results.find((result) => result.broken)?.broken;
      assert.equal(broken, undefined, `SEED=${SEED}: ${broken?.promise}\n${JSON.stringify(broken?.schedule)}`);
    });
  }

  after(() => {
    const faults = Object.entries(total.faults).sort(([a], [b]) => a.localeCompare(b));
    const sum = faults.reduce((all, [, times]) => all + times, 0);
    console.log(
      `      ${total.schedules} schedules (SEED=${SEED}), ${sum} disturbances; nothing lost or doubled unless a test above says so`,
    );
    for (const [what, times] of faults) console.log(`      ${String(times).padStart(8)}  ${what}`);
  });
});

async function work(mix: Mix, runs: number, seed: number): Promise<Played> {
  const args = [join(import.meta.dirname, 'worker.ts'), JSON.stringify(mix), String(runs), String(seed)];
  const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 64 * 1024 * 1024 });
  return JSON.parse(stdout) as Played;
}
