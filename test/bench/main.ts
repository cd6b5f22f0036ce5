import { mkdir, writeFile } from 'node:fs/promises';
import { availableParallelism, totalmem } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { type Stack, startStack } from '../local/stack.ts';
import { barsOf } from './bars.ts';
import { measureColdStarts } from './cold-start.ts';
import { report } from './report.ts';
import { measureThroughput } from './throughput.ts';

/**
 * `make bench`: starts from zero, then many resources. Exits with 1 if a bar is missed. `N` is how many resources of each kind it makes.
 * `docs/performance.md` says what the figures mean.
 */

const DEFAULT_N = 1_000;
const OUTPUT = join(import.meta.dirname, '../../dist/bench.json');
/** A function that stops takes its figures along. */
const NEVER_MS = 24 * 3_600_000;

const n = Number(process.env.N || DEFAULT_N);
if (!Number.isSafeInteger(n) || n < 10) throw new Error(`N is ${process.env.N}: give a number of resources, 10 or more.`);

const say = (text: string) => process.stdout.write(`${text}\n`);
const started = performance.now();
const stack = await startStack({ jobs: 'on demand', settings: { LOG_LEVEL: 'debug' }, idleMs: NEVER_MS });
let missed: string[];
try {
  const { code, output } = await stack.knative.runJob('lldap-operator-install');
  if (code !== 0) throw new Error(`the install Job failed: ${output}`);
  const about = await describe(stack);
  say(`${n} resources of each kind, ${about.cores} cores, Node.js ${about.node}, Kubernetes ${about.kubernetes}, ${about.lldap}`);
  say('Measuring starts from zero ...');
  const coldStarts = await measureColdStarts(stack);
  say('Measuring throughput, growth and the sweep ...');
  const throughput = await measureThroughput(stack, n);
  const bars = barsOf(coldStarts, throughput);
  say(`\n${report(coldStarts, throughput, bars)}\n`);
  await mkdir(dirname(OUTPUT), { recursive: true });
  await writeFile(OUTPUT, `${JSON.stringify({ n, ...about, coldStarts, ...throughput, bars }, undefined, 2)}\n`);
  say(`${((performance.now() - started) / 1000).toFixed(0)} s in all. Figures for machines: ${relative(process.cwd(), OUTPUT)}`);
  missed = bars.filter(({ isMet }) => !isMet).map(({ what }) => what);
} finally {
  await stack.stop();
}
if (missed.length > 0) {
  process.stderr.write(`${missed.length} bars are missed:\n${missed.map((what) => `  ${what}\n`).join('')}`);
  process.exitCode = 1;
}

async function describe({ cluster, lldap }: Stack) {
  const { body } = await cluster.request('GET', '/version');
  return {
    cores: availableParallelism(),
    memoryGib: Math.round(totalmem() / 2 ** 30),
    node: process.versions.node,
    kubernetes: (body as { gitVersion: string }).gitVersion,
    lldap: lldap.local ? "lldap's double" : 'a real lldap',
  };
}
