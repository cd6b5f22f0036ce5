import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

export const DIST = join(import.meta.dirname, '../../../dist');
/** Nobody listens there. */
export const NOWHERE = '127.0.0.1:1';

export interface Started {
  child: ChildProcess;
  port: number;
}

export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** The bundle as the image starts it, for tests in one `describe`. All that it is told to talk to is down. */
export interface Bundle {
  /** For a test's own files; gone afterwards. */
  directory(): string;
  run(args: string[], settings?: Record<string, string>): ChildProcess;
  end(child: ChildProcess): Promise<Ended>;
  /** Starts a function, until it says that it serves. */
  start(name: string, settings?: Record<string, string>): Promise<Started>;
  /** SIGTERM; answers the exit code. */
  stop(started: Started): Promise<number | null>;
  /** A server of the test's own; answers its address. */
  serve(listener: RequestListener): Promise<string>;
}

/** To be called in a `describe`. */
export function useBundle(): Bundle {
  let directory: string;
  let env: Record<string, string>;
  const cleanups: (() => void)[] = [];

  before(async () => {
    assert.ok(existsSync(join(DIST, 'main.cjs')), 'build it first: make build');
    directory = await mkdtemp(join(tmpdir(), 'bundle-'));
    await writeFile(join(directory, 'username'), 'admin');
    await writeFile(join(directory, 'password'), 'hush');
    await writeFile(join(directory, 'kubeconfig'), kubeconfig());
    env = {
      LLDAP_INSTANCE: 'main',
      LLDAP_URL: `http://${NOWHERE}`,
      LLDAP_LDAP_URL: `ldap://${NOWHERE}`,
      BROKER_URL: `http://${NOWHERE}/lldap-operator/lldap-operator`,
      CREDENTIALS_DIR: directory,
      KUBECONFIG: join(directory, 'kubeconfig'),
      HOME: directory,
      LOG_LEVEL: 'debug',
      PORT: '0',
    };
  });
  afterEach(() => {
    for (const cleanup of cleanups.splice(0)) cleanup();
  });
  after(() => rm(directory, { recursive: true }));

  function run(args: string[], settings: Record<string, string> = {}): ChildProcess {
    const child = spawn(process.execPath, [join(DIST, 'main.cjs'), ...args], { env: { ...env, ...settings }, stdio: 'pipe' });
    cleanups.push(() => child.kill('SIGKILL'));
    return child;
  }

  return {
    directory: () => directory,
    run,
    async end(child) {
      const ended: Ended = { code: null, stdout: '', stderr: '' };
      for (const stream of ['stdout', 'stderr'] as const)
        child[stream]?.on('data', (chunk) => {
          ended[stream] += chunk;
        });
      [ended.code] = await once(child, 'close');
      return ended;
    },
    async start(name, settings) {
      const child = run([name], settings);
      let stderr = '';
      child.stderr?.on('data', (chunk) => {
        stderr += chunk;
      });
      assert.ok(child.stdout);
      for await (const line of createInterface({ input: child.stdout })) {
        const { message, port } = JSON.parse(line) as { message: string; port: number };
        if (message !== 'serving') continue;
        child.stdout.resume();
        return { child, port };
      }
      return assert.fail(`${name} did not start: ${stderr}`);
    },
    async stop({ child }) {
      child.kill('SIGTERM');
      const [code] = await once(child, 'close');
      return code;
    },
    async serve(listener) {
      const server = createServer(listener).listen(0, '127.0.0.1');
      cleanups.push(() => {
        server.closeAllConnections();
        server.close();
      });
      await once(server, 'listening');
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    },
  };
}

/** An API server that nobody listens for. */
function kubeconfig(): string {
  const named = (kind: string, what: object) => [{ name: 'here', [kind]: what }];
  return JSON.stringify({
    'current-context': 'here',
    contexts: named('context', { cluster: 'here', user: 'here', namespace: 'lldap-operator' }),
    clusters: named('cluster', { server: `https://${NOWHERE}` }),
    users: named('user', { token: 'hush' }),
  });
}

export function event(type: string, extensions: Record<string, string> = {}): RequestInit {
  const attributes = { specversion: '1.0', id: '1', source: '/test', type: `com.lukidoescode.lldap-operator.${type}`, ...extensions };
  return { method: 'POST', headers: Object.fromEntries(Object.entries(attributes).map(([name, value]) => [`ce-${name}`, value])) };
}

export function about(kind: string): Record<string, string> {
  return { kind, namespace: 'team', name: 'alice' };
}

export async function post(port: number, init: RequestInit): Promise<[status: number, body: string]> {
  const answer = await fetch(`http://127.0.0.1:${port}/`, init);
  return [answer.status, await answer.text()];
}
