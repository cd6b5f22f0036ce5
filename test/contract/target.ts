import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { inspect } from 'node:util';
import { Client } from 'ldapts';
import { type LldapClient, LldapError, type LldapPasswords } from '../../shared/lldap/api.ts';
import { createLldapClient } from '../../shared/lldap/client.ts';
import { createLldapPasswords } from '../../shared/lldap/passwords.ts';
import { createHttp, type Http, type HttpAnswer } from '../../shared/platform/http.ts';
import { createLog } from '../../shared/telemetry/log.ts';
import { startLldap } from '../local/lldap/start.ts';

/**
 * The lldap that the contract is held against: a real one, where `LLDAP_URL`, `LLDAP_LDAP_URL`, `LLDAP_ADMIN_USERNAME`
 * and `LLDAP_ADMIN_PASSWORD` name it (`LLDAP_LDAPS_URL` and `LLDAP_CA`, PEM, for LDAPS too), else the stand-in.
 */
export interface Target {
  url: string;
  ldapUrl: string;
  ldapsUrl: string | undefined;
  ca: string | undefined;
  admin: { username: string; password: string };
  /** Ours, to see how it takes what lldap says. */
  client: LldapClient;
  passwords: LldapPasswords;
  http: Http;
  /** One GraphQL request, as the administrator unless a token is given. */
  graphql(query: string, variables?: Record<string, unknown>, token?: string): Promise<GraphqlReply>;
  login(username: string, password: string): Promise<HttpAnswer>;
  /** A connection of its own, not bound; closed after the test. */
  ldap(): Client;
  baseDn(): Promise<string>;
  /** A name that nobody has. */
  unique(): string;
  /** Carried out after the test, last first. */
  later(cleanup: () => Promise<unknown>): void;
}

export interface GraphqlReply {
  status: number;
  text: string;
  /** The answer's `data`. */
  data: unknown;
  /** The first error's text, or none. */
  error: string;
}

/** To be called in a `describe`: the target of its tests, or a stand-in in any case, which is there from the first `before` on. */
export function useTarget({ standIn = false } = {}): Target {
  const target = {} as Target;
  const cleanups: (() => Promise<unknown>)[] = [];
  let close: () => Promise<void>;

  before(async () => {
    const { end, ...made } = await open(cleanups, standIn ? undefined : process.env.LLDAP_URL);
    Object.assign(target, made);
    close = end;
  });
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });
  after(async () => await close());
  return target;
}

async function open(cleanups: (() => Promise<unknown>)[], url: string | undefined): Promise<Target & { end: () => Promise<void> }> {
  const { close, ...address } = url === undefined ? await startLldap({ passwordCost: 'cheap' }) : named(process.env, url);
  const credentials = async () => address.admin;
  const log = createLog('error');
  const tls = address.ca === undefined ? {} : { ca: address.ca };
  const http = createHttp({ baseURL: address.url, timeoutMs: 60_000, keepAliveMs: 4000 });
  const client = createLldapClient({ url: address.url, credentials, log, timeoutMs: 60_000 });
  const passwords = createLldapPasswords({ url: address.ldapsUrl ?? address.ldapUrl, ...tls, credentials, log, timeoutMs: 60_000 });

  const login = (username: string, password: string) =>
    http.request({
      method: 'POST',
      url: '/auth/simple/login',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ username, password }),
    });
  let adminToken: Promise<string> | undefined;
  const ldap = () => {
    const made = new Client({ url: address.ldapUrl, timeout: 60_000, connectTimeout: 60_000 });
    cleanups.push(() => made.unbind());
    return made;
  };
  return {
    ...address,
    client,
    passwords,
    http,
    login,
    ldap,
    async graphql(query, variables = {}, token) {
      adminToken ??= login(address.admin.username, address.admin.password).then(({ text }) => tokenIn(text));
      const { status, text } = await http.request({
        method: 'POST',
        url: '/api/graphql',
        headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token ?? (await adminToken)}` },
        body: JSON.stringify({ query, variables }),
      });
      const answer = text.startsWith('{') ? JSON.parse(text) : {};
      return { status, text, data: answer.data, error: answer.errors?.[0]?.message ?? '' };
    },
    async baseDn() {
      const { searchEntries } = await ldap().search('', { scope: 'base', filter: '(objectClass=*)' });
      return String(searchEntries[0]?.defaultNamingContext);
    },
    unique: () => `contract-${randomBytes(6).toString('hex')}`,
    later: (cleanup) => cleanups.push(cleanup),
    async end() {
      client.close();
      http.close();
      await passwords.close();
      await close();
    },
  };
}

function named(env: NodeJS.ProcessEnv, url: string) {
  const { LLDAP_LDAP_URL, LLDAP_LDAPS_URL, LLDAP_CA, LLDAP_ADMIN_USERNAME = 'admin', LLDAP_ADMIN_PASSWORD } = env;
  if (LLDAP_LDAP_URL === undefined || LLDAP_ADMIN_PASSWORD === undefined) {
    throw new Error('with LLDAP_URL, set LLDAP_LDAP_URL and LLDAP_ADMIN_PASSWORD too');
  }
  return {
    url,
    ldapUrl: LLDAP_LDAP_URL,
    ldapsUrl: LLDAP_LDAPS_URL,
    ca: LLDAP_CA,
    admin: { username: LLDAP_ADMIN_USERNAME, password: LLDAP_ADMIN_PASSWORD },
    close: async () => undefined,
  };
}

export function tokenIn(text: string): string {
  const { token } = JSON.parse(text);
  assert.equal(typeof token, 'string');
  return token;
}

/** That our client makes this of what lldap says. */
export async function rejects(promise: Promise<unknown>, kind: LldapError['kind'], attribute?: string): Promise<LldapError> {
  const outcome = await promise.then(
    (value) => `answered ${inspect(value)}`,
    (error: unknown) => error,
  );
  assert.ok(outcome instanceof LldapError, inspect(outcome));
  assert.deepEqual([outcome.kind, outcome.attribute], [kind, attribute], outcome.message);
  return outcome;
}

/** A user that goes after the test. */
export async function newUser(target: Target, more: { email?: string; password?: string } = {}): Promise<string> {
  const id = target.unique();
  await target.client.createUser({ id, email: more.email ?? `${id}@example.com` });
  target.later(() => target.client.deleteUser(id));
  if (more.password !== undefined) await target.passwords.set(id, more.password);
  return id;
}

/** A group that goes after the test. */
export async function newGroup(target: Target, displayName = target.unique()) {
  const group = await target.client.createGroup({ displayName });
  target.later(() => target.client.deleteGroup(group.id));
  return group;
}

/** An attribute's definition that goes after the test. */
export async function newAttribute(
  target: Target,
  of: 'User' | 'Group',
  definition: Partial<Parameters<LldapClient['addAttribute']>[1]> = {},
): Promise<string> {
  const name = definition.name ?? target.unique();
  await target.client.addAttribute(of, { type: 'String', isList: false, isVisible: false, isEditable: false, ...definition, name });
  target.later(() => target.client.deleteAttribute(of, name));
  return name;
}

/** The values of one attribute; absent is undefined. */
export function valuesOf(object: { attributes: { name: string; value: string[] }[] } | undefined, name: string): string[] | undefined {
  return object?.attributes.find((attribute) => attribute.name === name)?.value;
}
