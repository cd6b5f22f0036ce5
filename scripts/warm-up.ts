import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { API_VERSION, EVENT_TYPE, INSTANCE_LABEL } from '../shared/constants.ts';

/**
 * Fills the compile cache of `dist/`: starts each function and sends it events, so that V8 compiles what a cold start runs. One
 * server stands for the API server, lldap and the broker. Nobody listens for LDAP.
 *
 * Exits with 1 if a function does not start, refuses an event, leaves a resource unready, or does not stop on SIGTERM.
 */

const INSTANCE = 'warm-up';
const UPDATE = 'dev.knative.apiserver.resource.update';
/** Each function, with the type and the kind of its events, and the names of the resources that they are about. */
const FUNCTIONS: Record<string, [type: string, kind: string, ...names: string[]]> = {
  user: [UPDATE, 'LldapUser', 'plain', 'with-password'],
  group: [UPDATE, 'LldapGroup', 'plain'],
  membership: [UPDATE, 'LldapMembership', 'known'],
  'attribute-schema': [UPDATE, 'LldapAttributeSchema', 'plain'],
  startup: [EVENT_TYPE.startup, 'LldapUser', 'plain'],
  requeue: [EVENT_TYPE.requeue, 'LldapUser', 'plain'],
};

const KINDS: Record<string, string> = {
  lldapusers: 'LldapUser',
  lldapgroups: 'LldapGroup',
  lldapmemberships: 'LldapMembership',
  lldapattributeschemas: 'LldapAttributeSchema',
};
const SECRET = Buffer.from('0123456789abcdef0123456789abcdef').toString('base64');
const TOKEN = ['{}', JSON.stringify({ exp: 4e9, iat: 0, groups: ['lldap_admin'] }), '']
  .map((part) => Buffer.from(part).toString('base64url'))
  .join('.');

/** The names of resources that the function has made Ready. */
const ready = new Set<string>();

const folder = await mkdtemp(join(tmpdir(), 'warm-up-'));
const server = createServer(async (request, response) => {
  const [status, body] = answer(request, await text(request));
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
});
try {
  const env = await environment(await listen(server));
  for (const [name, [type, kind, ...names]] of Object.entries(FUNCTIONS)) await warmUp(name, env, type, kind, names);
  // Fails, because the server is no startup function.
  const [code] = await once(run('call-startup', env), 'exit');
  if (code !== 1) throw new Error(`call-startup ended with ${code}`);
} finally {
  server.closeAllConnections();
  server.close();
  await rm(folder, { recursive: true });
}

async function listen(own: Server): Promise<string> {
  own.listen(0, '127.0.0.1');
  await once(own, 'listening');
  return `http://127.0.0.1:${(own.address() as AddressInfo).port}`;
}

async function environment(url: string): Promise<Record<string, string>> {
  await writeFile(join(folder, 'username'), 'admin');
  await writeFile(join(folder, 'password'), 'of no account');
  const named = (kind: string, what: object) => [{ name: 'warm-up', [kind]: what }];
  const kubeconfig = {
    'current-context': 'warm-up',
    contexts: named('context', { cluster: 'warm-up', user: 'warm-up', namespace: 'operator' }),
    clusters: named('cluster', { server: url, 'insecure-skip-tls-verify': true }),
    users: named('user', { token: 'none' }),
  };
  await writeFile(join(folder, 'kubeconfig'), JSON.stringify(kubeconfig));
  return {
    LLDAP_INSTANCE: INSTANCE,
    LLDAP_URL: url,
    LLDAP_LDAP_URL: 'ldap://127.0.0.1:1',
    BROKER_URL: `${url}/broker`,
    PRIVILEGED_NAMESPACES: 'tenant',
    STARTUP_URL: url,
    CREDENTIALS_DIR: folder,
    KUBECONFIG: join(folder, 'kubeconfig'),
    HOME: folder,
    PORT: '0',
    WRITE_COMPILE_CACHE: 'true',
  };
}

function run(name: string, env: Record<string, string>): ChildProcess {
  const command = [join(import.meta.dirname, '../dist/main.cjs'), name];
  return spawn(process.execPath, command, { env, stdio: ['ignore', 'pipe', 'inherit'] });
}

async function warmUp(name: string, env: Record<string, string>, type: string, kind: string, names: string[]): Promise<void> {
  const child = run(name, env);
  const ended = once(child, 'exit');
  try {
    const port = await served(child);
    if (port === undefined) throw new Error(`${name} did not start`);
    await fetch(`http://127.0.0.1:${port}/health/readiness`);
    for (const resource of names) {
      const { status } = await fetch(`http://127.0.0.1:${port}/`, eventFor(type, kind, resource));
      if (status !== 204) throw new Error(`${name} answered ${status}`);
      // A password needs LDAP.
      if (type === UPDATE && resource !== 'with-password' && !ready.has(resource)) throw new Error(`${kind} ${resource} is not Ready`);
    }
  } finally {
    child.kill('SIGTERM');
  }
  const [code] = await ended;
  if (code !== 0) throw new Error(`${name} ended with ${code}`);
  ready.clear();
}

/** Reads the port from the process's log. Returns undefined if the process ends without logging it. */
async function served(child: ChildProcess): Promise<number | undefined> {
  if (!child.stdout) return undefined;
  for await (const line of createInterface({ input: child.stdout })) {
    const { port } = JSON.parse(line);
    if (typeof port !== 'number') continue;
    child.stdout.resume();
    return port;
  }
  return undefined;
}

function eventFor(type: string, kind: string, name: string): RequestInit {
  const attributes = { specversion: '1.0', id: '1', source: '/warm-up', type, kind, namespace: 'tenant', name };
  const headers = Object.fromEntries(Object.entries(attributes).map(([attribute, value]) => [`ce-${attribute}`, value]));
  if (type === EVENT_TYPE.requeue) return { method: 'POST', headers: { ...headers, 'ce-notbefore': '2000-01-01T00:00:00.000Z' } };
  if (type !== UPDATE) return { method: 'POST', headers };
  return { method: 'POST', headers: { ...headers, 'content-type': 'application/json' }, body: JSON.stringify(resourceOf(kind, name)) };
}

/** A resource of any kind: its spec has the fields of all kinds. */
function resourceOf(kind: string, name: string): object {
  return {
    apiVersion: API_VERSION,
    kind,
    metadata: {
      name,
      namespace: 'tenant',
      uid: `uid-of-${name}`,
      resourceVersion: '1',
      generation: 1,
      creationTimestamp: '2000-01-01T00:00:00Z',
      labels: { [INSTANCE_LABEL]: INSTANCE },
    },
    spec: {
      username: name,
      email: `${name}@example.com`,
      ...(name === 'with-password' ? { passwordSecretRef: { name: 'password', key: 'key' } } : { passwordPolicy: 'Ignore' }),
      displayName: name,
      userName: name,
      groupName: name,
      attributeName: name,
      attributeType: 'String',
      target: 'User',
    },
  };
}

function answer({ method, url = '' }: IncomingMessage, body: string): [status: number, body: object] {
  const { pathname } = new URL(url, 'http://localhost');
  if (pathname === '/broker') return [202, {}];
  if (pathname === '/auth/simple/login') return [200, { token: TOKEN, refreshToken: 'none' }];
  if (pathname === '/api/graphql') return [200, graphqlAnswer(JSON.parse(body))];
  if (pathname.includes('/secrets/')) return [200, { metadata: { name: 'secret', namespace: 'tenant' }, data: { key: SECRET } }];
  const [, kind, name] = /\/(lldap\w+)\/([^/]+)/.exec(pathname) ?? [];
  if (kind && name) return [200, { ...resourceOf(KINDS[kind] ?? '', name), ...(method === 'PATCH' && { status: statusIn(name, body) }) }];
  return method === 'GET' ? [200, { items: [], metadata: {} }] : [pathname === '/' ? 503 : 201, JSON.parse(body)];
}

/** The status that a patch writes, if it does. */
function statusIn(name: string, patch: string): unknown {
  const { status } = JSON.parse(patch);
  if (status?.ready) ready.add(name);
  return status;
}

/** lldap with a user and a group that nobody owns, both named `known`. */
function graphqlAnswer({ operationName, variables }: { operationName: string; variables: { userId?: string } }): object {
  if (operationName === 'user' && variables.userId !== 'known') return { data: null, errors: [{ message: 'Entity not found: `plain`' }] };
  const group = { id: 1, uuid: 'uuid', displayName: 'known', attributes: [] };
  const user = { id: 'known', email: 'known@example.com', uuid: 'uuid', attributes: [], groups: [] };
  const results: Record<string, unknown> = {
    apiVersion: '1',
    user,
    users: [user],
    createUser: user,
    group,
    groups: [group],
    createGroupWithDetails: group,
    schema: { userSchema: { attributes: [] }, groupSchema: { attributes: [] } },
  };
  return { data: { result: results[operationName] ?? { ok: true } } };
}
