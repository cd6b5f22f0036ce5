import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLimiter } from '../shared/platform/concurrency.ts';
import { ensureTools } from './local/tools/build.ts';
import type { Results } from './support/reporter.ts';

/**
 * `make test`: all groups of tests, as many at once as there are cores for, and what they say in one piece each. Ends
 * with a line for each failure and `N passed, N failed`, from the groups' own counts. With file patterns as arguments it runs just those.
 */

/** What takes longest goes first. */
const GROUPS: Record<string, string[]> = {
  integration: ['test/integration/**/*.test.ts', 'test/local/{kube,knative}/{cluster,knative,sources}.test.ts'],
  'random schedules': ['test/chaos/chaos.test.ts', 'test/chaos/regressions.test.ts'],
  load: ['test/e2e/load.test.ts'],
  'real processes': ['test/chaos/real-processes.test.ts'],
  'whole path': ['test/e2e/!(load).test.ts'],
  'unit and contract': ['test/unit/**/*.test.ts', 'test/contract/**/*.test.ts', 'test/local/**/!(cluster|knative|sources).test.ts'],
};

const chosen = process.argv.slice(2);
const groups = chosen.length > 0 ? { chosen } : GROUPS;
await ensureTools();
const folder = await mkdtemp(join(tmpdir(), 'lldap-tests-'));
const limited = createLimiter(Math.max(1, Math.floor(cpus().length)));
const started = performance.now();
const results = await Promise.all(Object.entries(groups).map(([name, patterns]) => limited(() => run(name, patterns))));
await rm(folder, { recursive: true });
const sum = (of: 'passes' | 'failures') => results.reduce((total, result) => total + result[of], 0);
process.stdout.write(`\nall groups took ${seconds(started)} s\n`);
for (const line of results.flatMap(({ failed }) => failed)) process.stdout.write(`failed: ${line}\n`);
process.stdout.write(`${sum('passes')} passed, ${sum('failures')} failed\n`);
process.exitCode = sum('failures') > 0 ? 1 : 0;

/** A group that ends without results, or with another code than they would give, has failed once more. */
async function run(name: string, patterns: string[]): Promise<Results> {
  const began = performance.now();
  process.stdout.write(`${name}: started\n`);
  const file = join(folder, `${name.replaceAll(' ', '-')}.json`);
  const mocha = join(import.meta.dirname, '../node_modules/mocha/bin/mocha.js');
  const child = spawn(process.execPath, [mocha, '--exit', '--reporter', join(import.meta.dirname, 'support/reporter.ts'), ...patterns], {
    env: { ...process.env, TEST_RESULTS: file },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const code = await new Promise<number>((resolve) => child.once('close', (exit) => resolve(exit ?? 1)));
  process.stdout.write(`\n──── ${name} ────\n${output.trimEnd()}\n${name}: ended with ${code} after ${seconds(began)} s\n`);
  const results = await readFile(file, 'utf8').then(
    (text) => JSON.parse(text) as Results,
    () => undefined,
  );
  if (results && (results.failures > 0 || code === 0)) return results;
  return { passes: results?.passes ?? 0, failures: 1, failed: [`${name}: ended with ${code}`] };
}

function seconds(since: number): string {
  return ((performance.now() - since) / 1000).toFixed(0);
}
