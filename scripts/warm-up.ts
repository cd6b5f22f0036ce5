import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/**
 * Fills the compile cache of `dist/` for the image, whose file system is read-only. Starts each function and sends it one
 * event, which it handles as far as it can without lldap, a cluster and a broker. That loads the code of a cold start.
 *
 * Exits with 1 if a function does not start, or does not stop on SIGTERM.
 */

/** Each function, with the type and the kind of an event for it. */
const FUNCTIONS: Record<string, [operation: string, kind: string]> = {
  user: ['reconcile', 'LldapUser'],
  group: ['reconcile', 'LldapGroup'],
  membership: ['reconcile', 'LldapMembership'],
  'attribute-schema': ['reconcile', 'LldapAttributeSchema'],
  startup: ['startup', 'LldapUser'],
  requeue: ['requeue', 'LldapUser'],
};
/** An address without a listener. */
const NOWHERE = '127.0.0.1:1';

const folder = await mkdtemp(join(tmpdir(), 'warm-up-'));
try {
  const env = await environment();
  for (const [name, [operation, kind]] of Object.entries(FUNCTIONS)) await warmUp(name, env, eventFor(operation, kind));
  // Fails as expected, because there is no startup to call.
  const [code] = await once(run('call-startup', { STARTUP_URL: `http://${NOWHERE}` }), 'exit');
  if (code !== 1) throw new Error(`call-startup ended with ${code}`);
} finally {
  await rm(folder, { recursive: true });
}

async function environment(): Promise<Record<string, string>> {
  await writeFile(join(folder, 'username'), 'nobody');
  await writeFile(join(folder, 'password'), 'of no account');
  const named = (kind: string, what: object) => [{ name: 'nowhere', [kind]: what }];
  const kubeconfig = {
    'current-context': 'nowhere',
    contexts: named('context', { cluster: 'nowhere', user: 'nowhere', namespace: 'nowhere' }),
    clusters: named('cluster', { server: `https://${NOWHERE}` }),
    users: named('user', { token: 'none' }),
  };
  await writeFile(join(folder, 'kubeconfig'), JSON.stringify(kubeconfig));
  return {
    LLDAP_INSTANCE: 'nowhere',
    LLDAP_URL: `http://${NOWHERE}`,
    LLDAP_LDAP_URL: `ldap://${NOWHERE}`,
    BROKER_URL: `http://${NOWHERE}`,
    CREDENTIALS_DIR: folder,
    KUBECONFIG: join(folder, 'kubeconfig'),
    PORT: '0',
  };
}

function run(name: string, env: Record<string, string>): ChildProcess {
  const command = [join(import.meta.dirname, '../dist/main.mjs'), name];
  return spawn(process.execPath, command, { env: { ...env, HOME: folder }, stdio: ['ignore', 'pipe', 'ignore'] });
}

/** Node writes the cache at the end of the process. */
async function warmUp(name: string, env: Record<string, string>, headers: Record<string, string>): Promise<void> {
  const child = run(name, env);
  const ended = once(child, 'exit');
  const port = await served(child);
  if (port === undefined) throw new Error(`${name} did not start`);
  await fetch(`http://127.0.0.1:${port}/health/readiness`);
  await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers });
  child.kill('SIGTERM');
  const [code] = await ended;
  if (code !== 0) throw new Error(`${name} ended with ${code}`);
}

/** Reads the port from the process's log. Returns undefined if the process ends without logging it. */
async function served(child: ChildProcess): Promise<number | undefined> {
  if (!child.stdout) return undefined;
  for await (const line of createInterface({ input: child.stdout })) {
    const { port } = JSON.parse(line);
    if (typeof port === 'number') return port;
  }
  return undefined;
}

function eventFor(operation: string, kind: string): Record<string, string> {
  return {
    'ce-specversion': '1.0',
    'ce-id': '1',
    'ce-source': '/warm-up',
    'ce-type': `com.lukidoescode.lldap-operator.${operation}`,
    'ce-kind': kind,
    'ce-namespace': 'nowhere',
    'ce-name': 'nobody',
    'ce-notbefore': '2000-01-01T00:00:00.000Z',
  };
}
