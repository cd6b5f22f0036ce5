import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { build } from 'esbuild';
import { API_GROUP, API_VERSION, EVENT_TYPE, FINALIZER } from '../../shared/constants.ts';
import { portForChild } from '../local/ports.ts';
import { type Stack, startStack } from '../local/stack.ts';

/**
 * `make bench`: what a function costs from its start until it has answered its first event, side by side with a
 * server of express alone, in turn, as medians and ratios. CPU is user and system time of the whole process; RSS its peak.
 */

const ROUNDS = Number(process.env.ROUNDS ?? 9);
const BARS = { cpu: 2, rss: 1.4 };
const ROOT = join(import.meta.dirname, '../..');

interface Cost {
  cpuMs: number;
  rssMb: number;
}

interface Subject {
  name: string;
  command: string[];
  env: Record<string, string>;
  event: { headers: Record<string, string>; body: string };
}

const folder = await mkdtemp(join(tmpdir(), 'lldap-bench-'));
let stack: Stack | undefined;
try {
  stack = await startStack({ jobs: 'on demand', lldap: {} });
  await stack.knative.runJob('lldap-operator-install');
  const subjects = await makeSubjects(stack);
  const costs = new Map<string, Cost[]>(subjects.map(({ name }) => [name, []]));
  for (let round = 0; round <= ROUNDS; round++) {
    for (const subject of subjects) {
      const cost = await measure(subject);
      // The first round fills the compile cache, as the image does.
      if (round > 0) costs.get(subject.name)?.push(cost);
    }
  }
  report(costs);
} finally {
  await stack?.stop();
  await rm(folder, { recursive: true });
}

async function makeSubjects({ cluster, lldap, instance }: Stack): Promise<Subject[]> {
  const express = await bundleExpress();
  const labels = { [`${API_GROUP}/lldap-instance`]: instance };
  const object = {
    apiVersion: API_VERSION,
    kind: 'LldapUser',
    metadata: { name: 'bench', namespace: 'default', labels },
    spec: { username: 'bench', email: 'bench@example.com', passwordPolicy: 'Ignore' },
  };
  const answer = await cluster.request('POST', `/apis/${API_VERSION}/namespaces/default/lldapusers`, { body: object });
  const created = answer.body as { metadata: { generation: number } };
  const settled = {
    ...created,
    metadata: { ...created.metadata, finalizers: [FINALIZER] },
    status: { observedGeneration: created.metadata.generation, conditions: [{ type: 'Ready', status: 'True', reason: 'Reconciled' }] },
  };
  await writeFile(join(folder, 'username'), lldap.admin.username);
  await writeFile(join(folder, 'password'), lldap.admin.password);
  const env = {
    LLDAP_INSTANCE: instance,
    LLDAP_URL: lldap.url,
    LLDAP_LDAP_URL: lldap.ldapUrl,
    BROKER_URL: `${lldap.url}/no-broker`,
    CREDENTIALS_DIR: folder,
    KUBECONFIG: await cluster.kubeconfigFor('lldap-operator', 'lldap-operator-user'),
  };
  const command = [join(ROOT, 'dist/main.mjs'), 'user'];
  const update = sourceEvent(settled);
  return [
    { name: 'express alone', command: [express], env: {}, event: update },
    { name: 'user: a steady user’s event', command, env, event: update },
    { name: 'user: a full reconcile', command, env, event: { headers: { ...update.headers, 'ce-type': EVENT_TYPE.reconcile }, body: '' } },
  ];
}

function sourceEvent(object: unknown): Subject['event'] {
  const headers = {
    'content-type': 'application/json',
    'ce-specversion': '1.0',
    'ce-id': 'bench',
    'ce-source': 'bench',
    'ce-type': 'dev.knative.apiserver.resource.update',
    'ce-kind': 'LldapUser',
    'ce-namespace': 'default',
    'ce-name': 'bench',
  };
  return { headers, body: JSON.stringify(object) };
}

/** What a function of nothing but express would be: the same server, the same body, the same bundler and cache. */
async function bundleExpress(): Promise<string> {
  const source = `
    import { enableCompileCache } from 'node:module';
    enableCompileCache(import.meta.dirname + '/.cache');
    const { default: express } = await import('express');
    const app = express();
    app.get('/health/readiness', (_, response) => response.status(200).end());
    app.post('/', express.raw({ type: () => true, limit: '2mb' }), (request, response) => { JSON.parse(request.body); response.status(204).end(); });
    app.listen(process.env.PORT);`;
  const outdir = join(folder, 'express');
  await build({
    stdin: { contents: source, resolveDir: ROOT, sourcefile: 'express-alone.ts' },
    outdir,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    platform: 'node',
    target: 'node24',
    format: 'esm',
    minify: true,
    keepNames: true,
    banner: { js: "import { createRequire as bundleRequire } from 'node:module'; const require = bundleRequire(import.meta.url);" },
    logLevel: 'warning',
  });
  return join(outdir, 'stdin.mjs');
}

async function measure({ command, env, event }: Subject): Promise<Cost> {
  const port = await portForChild();
  const child = spawn(process.execPath, command, {
    env: { ...env, PATH: process.env.PATH, PORT: String(port) },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  try {
    await untilReady(child, port);
    const answer = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', ...event });
    if (answer.status !== 204) throw new Error(`the first event was answered ${answer.status}: ${await answer.text()}`);
    return await costOf(child.pid ?? 0);
  } finally {
    child.kill('SIGTERM');
    await once(child, 'exit');
  }
}

async function untilReady(child: ChildProcess, port: number): Promise<void> {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`ended with ${child.exitCode} before it was ready`);
    const ready = await fetch(`http://127.0.0.1:${port}/health/readiness`).then(
      (answer) => answer.ok,
      () => false,
    );
    if (ready) return;
    await sleep(20);
  }
}

/** From /proc: CPU in clock ticks of 10 ms, peak RSS in kB. */
async function costOf(pid: number): Promise<Cost> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const cpuMs = (Number(fields[11]) + Number(fields[12])) * 10;
  const peak = /VmHWM:\s+(\d+) kB/.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1];
  return { cpuMs, rssMb: Number(peak) / 1024 };
}

function report(costs: Map<string, Cost[]>): void {
  const medians = [...costs].map(([name, list]) => ({
    name,
    cpu: median(list.map((c) => c.cpuMs)),
    rss: median(list.map((c) => c.rssMb)),
  }));
  const [base] = medians;
  if (!base) return;
  process.stdout.write(
    `\nFrom the start to the answer of the first event, medians of ${ROUNDS} (the bars: CPU ≤ ${BARS.cpu} ×, RSS ≤ ${BARS.rss} ×)\n\n`,
  );
  for (const { name, cpu, rss } of medians) {
    const ratios = `${(cpu / base.cpu).toFixed(2)} ×  ${(rss / base.rss).toFixed(2)} ×`;
    process.stdout.write(`${name.padEnd(34)} CPU ${String(cpu).padStart(4)} ms  RSS ${rss.toFixed(0).padStart(4)} MB   ${ratios}\n`);
  }
}

function median(values: number[]): number {
  const sorted = values.sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
