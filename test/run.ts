import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLimiter } from '../shared/concurrency.ts';
import { ensureTools } from './local/tools/build.ts';

/**
 * `make test`: all groups of tests, as many at once as there are cores for, and what they say in one piece each. Ends
 * with `N passed, N failed`, from the groups' own counts. With file patterns as arguments it runs just those.
 */

/** What takes longest goes first. */
const GROUPS: Record<string, string[]> = {
  'random schedules': ['test/chaos/chaos.test.ts', 'test/chaos/found.test.ts'],
  load: ['test/e2e/load.test.ts'],
  'real processes': ['test/chaos/real-processes.test.ts'],
  integration: ['test/integration/**/*.test.ts'],
  'whole path': ['test/e2e/!(load).test.ts'],
  'unit and contract': ['test/unit/**/*.test.ts', 'test/contract/**/*.test.ts'],
};

interface Counts {
  passes: number;
  failures: number;
}

const chosen = process.argv.slice(2);
const groups = chosen.length > 0 ? { chosen } : GROUPS;
await ensureTools();
const folder = await mkdtemp(join(tmpdir(), 'lldap-tests-'));
const limited = createLimiter(Math.max(1, Math.floor(cpus().length)));
const started = performance.now();
const counts = await Promise.all(Object.entries(groups).map(([name, patterns]) => limited(() => run(name, patterns))));
await rm(folder, { recursive: true });
const sum = (of: keyof Counts) => counts.reduce((total, count) => total + count[of], 0);
process.stdout.write(`\nall groups took ${seconds(started)} s\n${sum('passes')} passed, ${sum('failures')} failed\n`);
process.exitCode = sum('failures') > 0 ? 1 : 0;

/** A group that ends without counts, or with another code than they would give, has failed once more. */
async function run(name: string, patterns: string[]): Promise<Counts> {
  const began = performance.now();
  process.stdout.write(`${name}: started\n`);
  const file = join(folder, `${name.replaceAll(' ', '-')}.json`);
  const mocha = join(import.meta.dirname, '../node_modules/mocha/bin/mocha.js');
  const child = spawn(process.execPath, [mocha, '--exit', '--reporter', join(import.meta.dirname, 'reporter.ts'), ...patterns], {
    env: { ...process.env, TEST_COUNTS: file },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const code = await new Promise<number>((resolve) => child.once('close', (exit) => resolve(exit ?? 1)));
  const counted = await readFile(file, 'utf8').then(
    (text) => JSON.parse(text) as Counts,
    () => ({ passes: 0, failures: 1 }),
  );
  const failures = counted.failures === 0 && code !== 0 ? 1 : counted.failures;
  process.stdout.write(`\n──── ${name} ────\n${output.trimEnd()}\n${name}: ended with ${code} after ${seconds(began)} s\n`);
  return { passes: counted.passes, failures };
}

function seconds(since: number): string {
  return ((performance.now() - since) / 1000).toFixed(0);
}
