import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { build } from 'esbuild';
import { BUNDLE, PART } from '../../scripts/bundle-options.ts';
import { API_VERSION, EVENT_TYPE, FINALIZER, INSTANCE_LABEL } from '../../shared/constants.ts';
import { SERVICE_ACCOUNT } from '../../shared/kube/connection.ts';
import { theGuard } from '../local/guard.ts';
import type { Cluster } from '../local/kube/cluster.ts';
import { portForChild } from '../local/ports.ts';
import type { Stack } from '../local/stack.ts';
import { exactCpuMsOf, peakMibOf } from './processes.ts';

/**
 * What a function costs from its start until it has answered its first event, side by side with a server of express alone, in turn. CPU
 * is user and system time of the whole process; RSS its peak; wall what a caller waits who knows at once that it is ready.
 */

export const ROUNDS = 9;
const ROOT = join(import.meta.dirname, '../..');
const READY_WITHIN_MS = 30_000;
const PROBE_MS = 5;
const NAME = 'bench-cold-0';
/** Not the stack's, whose functions would reconcile the resource first. */
const INSTANCE = 'bench-cold';

export interface ColdStart {
  name: 'express alone' | 'settled event' | 'full reconcile' | 'changed resource';
  cpuMs: number;
  rssMib: number;
  wallMs: number;
}

interface Subject {
  name: ColdStart['name'];
  command: string[];
  env: Record<string, string>;
  event(): Promise<SourceEvent>;
}

interface SourceEvent {
  headers: Record<string, string>;
  body: string;
}

/** @returns the least of all rounds, since what else runs on the machine can only add; the first is express alone */
export async function measureColdStarts(stack: Stack): Promise<ColdStart[]> {
  const folder = await mkdtemp(join(tmpdir(), 'lldap-bench-'));
  try {
    const subjects = await makeSubjects(stack, folder);
    const rounds: ColdStart[] = [];
    for (let round = 0; round <= ROUNDS; round++) {
      for (const subject of subjects) {
        // The first round fills the compile cache, as the image's build does.
        const cost = await measure(round > 0 ? subject : { ...subject, env: { ...subject.env, WRITE_COMPILE_CACHE: 'true' } });
        if (round > 0) rounds.push(cost);
      }
    }
    return subjects.map(({ name }) => {
      const own = rounds.filter((round) => round.name === name);
      const least = (figure: Exclude<keyof ColdStart, 'name'>) => Math.min(...own.map((round) => round[figure]));
      return { name, cpuMs: least('cpuMs'), rssMib: least('rssMib'), wallMs: least('wallMs') };
    });
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function makeSubjects({ cluster, lldap }: Stack, folder: string): Promise<Subject[]> {
  const express = await bundleExpress(folder);
  const labels = { [INSTANCE_LABEL]: INSTANCE };
  const object = {
    apiVersion: API_VERSION,
    kind: 'LldapUser',
    metadata: { name: NAME, namespace: 'default', labels },
    spec: { username: NAME, email: `${NAME}@example.com`, passwordPolicy: 'Ignore' },
  };
  const path = `/apis/${API_VERSION}/namespaces/default/lldapusers`;
  const answer = await cluster.request('POST', path, { body: object });
  const created = answer.body as { metadata: { generation: number } };
  const settled = {
    ...created,
    metadata: { ...created.metadata, finalizers: [FINALIZER] },
    status: { observedGeneration: created.metadata.generation, conditions: [{ type: 'Ready', status: 'True', reason: 'Reconciled' }] },
  };
  await writeFile(join(folder, 'username'), lldap.admin.username);
  await writeFile(join(folder, 'password'), lldap.admin.password);
  const env = {
    LLDAP_INSTANCE: INSTANCE,
    LLDAP_URL: lldap.url,
    LLDAP_LDAP_URL: lldap.ldapUrl,
    LLDAP_CA: lldap.ca ?? '',
    BROKER_URL: `${lldap.url}/no-broker`,
    CREDENTIALS_DIR: folder,
    ...(await mountServiceAccount(cluster, folder)),
  };
  const command = [await copyBundle(folder), 'user'];
  const update = sourceEvent(settled);
  const full = { headers: { ...update.headers, 'ce-type': EVENT_TYPE.reconcile }, body: '' };
  let changes = 0;
  const change = async () => {
    const body = { spec: { displayName: `Changed ${++changes} times` } };
    const changed = await cluster.request('PATCH', `${path}/${NAME}`, { body, contentType: 'application/merge-patch+json' });
    return sourceEvent(changed.body);
  };
  return [
    { name: 'express alone', command: [express, 'user'], env: {}, event: async () => update },
    { name: 'settled event', command, env, event: async () => update },
    { name: 'full reconcile', command, env, event: async () => full },
    { name: 'changed resource', command, env, event: change },
  ];
}

function sourceEvent(object: unknown): SourceEvent {
  const headers = {
    'content-type': 'application/json',
    'ce-specversion': '1.0',
    'ce-id': 'bench',
    'ce-source': 'bench',
    'ce-type': 'dev.knative.apiserver.resource.update',
    'ce-kind': 'LldapUser',
    'ce-namespace': 'default',
    'ce-name': NAME,
  };
  return { headers, body: JSON.stringify(object) };
}

/** What a pod has. @returns the variables that name the API server */
async function mountServiceAccount(cluster: Cluster, folder: string): Promise<Record<string, string>> {
  const files = {
    token: await cluster.tokenFor('lldap-operator', 'lldap-operator-user'),
    'ca.crt': cluster.ca,
    namespace: 'lldap-operator',
  };
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content);
  const { hostname, port } = new URL(cluster.url);
  return { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port };
}

/** The bundle, with the path at which a pod finds its ServiceAccount replaced by the folder's. */
async function copyBundle(folder: string): Promise<string> {
  const copy = join(folder, 'dist');
  await cp(join(ROOT, 'dist'), copy, { recursive: true, filter: (path) => !path.endsWith('.cache') });
  const functions = join(copy, 'parts/functions.cjs');
  const code = await readFile(functions, 'utf8');
  if (!code.includes(SERVICE_ACCOUNT)) throw new Error('the bundle does not name the path of the ServiceAccount');
  await writeFile(functions, code.replaceAll(SERVICE_ACCOUNT, folder));
  return join(copy, 'main.cjs');
}

async function bundleExpress(folder: string): Promise<string> {
  const outdir = join(folder, 'express');
  await build({ ...BUNDLE, entryPoints: [join(ROOT, 'functions/main.ts')], outdir });
  await build({ ...PART, entryPoints: { functions: join(import.meta.dirname, 'express-alone.ts') }, outdir: join(outdir, 'parts') });
  return join(outdir, 'main.cjs');
}

async function measure({ name, command, env, event }: Subject): Promise<ColdStart> {
  const port = await portForChild();
  const { headers, body } = await event();
  const started = performance.now();
  const child = spawn(process.execPath, command, {
    env: { ...env, PATH: process.env.PATH, PORT: String(port) },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  theGuard().watch(child);
  try {
    await untilReady(child, port);
    const answer = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body });
    const wallMs = performance.now() - started;
    if (answer.status !== 204) throw new Error(`${name}: the first event was answered ${answer.status}: ${await answer.text()}`);
    const pid = child.pid ?? 0;
    return { name, cpuMs: await exactCpuMsOf(pid), rssMib: await peakMibOf(pid), wallMs };
  } finally {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGTERM');
      await once(child, 'exit');
    }
  }
}

async function untilReady(child: ChildProcess, port: number): Promise<void> {
  const deadline = Date.now() + READY_WITHIN_MS;
  while (Date.now() < deadline) {
    if (child.exitCode !== null) throw new Error(`ended with ${child.exitCode} before it was ready`);
    const ready = await fetch(`http://127.0.0.1:${port}/health/readiness`).then(
      (answer) => answer.ok,
      () => false,
    );
    if (ready) return;
    await sleep(PROBE_MS);
  }
  throw new Error(`was not ready within ${READY_WITHIN_MS / 1000} s`);
}
