import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { inspect } from 'node:util';
import { LldapError } from '../../../shared/lldap/api.ts';
import { createLldapClient, createLldapClientOver, type LldapClientOptions } from '../../../shared/lldap/client.ts';
import { createHttp } from '../../../shared/platform/http.ts';
import { createLog } from '../../../shared/telemetry/log.ts';
import { type Entry, type LocalLldap, startLldap } from '../../local/lldap/start.ts';
import { FakeClock } from '../../support/fake-clock.ts';

describe('the session with lldap', () => {
  let lldap: LocalLldap;
  let log: string[];
  const closing: (() => void)[] = [];

  beforeEach(async () => {
    log = [];
    lldap = await startLldap({ passwordCost: 'cheap' });
  });
  afterEach(async () => {
    for (const close of closing.splice(0)) close();
    await lldap.stop();
  });

  const connect = (options: Partial<LldapClientOptions> = {}) => {
    const client = createLldapClient({
      url: lldap.url,
      credentials: async () => lldap.admin,
      log: createLog('debug', (line) => log.push(line)),
      timeoutMs: 60_000,
      ...options,
    });
    closing.push(client.close);
    return client;
  };
  /** Waits for an answer only so long, with a connection and a token that are there already: getting them may take its time. */
  const connectHastily = async () => {
    const client = connect({ timeoutMs: 300 });
    const isThere = () =>
      client.user('admin').then(
        () => true,
        () => false,
      );
    while (!(await isThere())) await new Promise((resolve) => setTimeout(resolve, 20));
    return client;
  };
  const count = async (operation: string, protocol: Entry['protocol'] = 'http') =>
    (await lldap.asked()).filter((entry) => entry.operation === operation && entry.protocol === protocol).length;
  const failure = async (promise: Promise<unknown>): Promise<LldapError> => {
    const outcome = await promise.then(
      (value) => `answered ${inspect(value)}`,
      (error: unknown) => error,
    );
    assert.ok(outcome instanceof LldapError, inspect(outcome));
    return outcome;
  };
  /** What anybody can do to our account without authentication. */
  const logOut = () => fetch(`${lldap.url}/auth/logout`, { headers: { 'refresh-token': `nonsense+${lldap.admin.username}` } });

  it('makes one login for fifty calls at once, over no more connections than allowed', async () => {
    const client = connect({ maxConcurrentRequests: 4 });
    await Promise.all(Array.from({ length: 50 }, () => client.user('admin')));
    assert.deepEqual([await count('login'), await count('refresh'), await count('user', 'graphql')], [1, 0, 50]);
    assert.ok((await lldap.sockets()).http <= 4);
  });

  it('renews the token once, by a refresh, for fifty calls whose token was logged out, and makes each call once more', async () => {
    const client = connect();
    await client.user('admin');
    await logOut();
    await lldap.forget();
    const users = await Promise.all(Array.from({ length: 50 }, () => client.user('admin')));
    assert.ok(users.every((user) => user?.id === 'admin'));
    assert.deepEqual([await count('login'), await count('refresh'), await count('user', 'graphql')], [0, 1, 50]);
  });

  it('renews a token before it expires, unasked', async () => {
    const jwt = (name: string, life: number) =>
      `x.${Buffer.from(JSON.stringify({ iat: 1000, exp: 1000 + life, groups: ['lldap_admin'], name })).toString('base64url')}.x`;
    const seen: string[] = [];
    const server = createServer((request, response) => {
      const tokens = {
        '/auth/simple/login': { token: jwt('first', 1), refreshToken: 'r' },
        '/auth/refresh': { token: jwt('second', 86_400) },
      };
      const token = request.headers.authorization?.slice('Bearer '.length);
      seen.push(token === undefined ? String(request.url) : JSON.parse(atob(String(token.split('.')[1]))).name);
      response.end(JSON.stringify(tokens[request.url as keyof typeof tokens] ?? { data: { result: [] } }));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    closing.push(() => server.close());
    const client = connect({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
    await client.groups();
    await new Promise((resolve) => setTimeout(resolve, 1000));
    await client.groups();
    await client.groups();
    assert.deepEqual(seen, ['/auth/simple/login', 'first', '/auth/refresh', 'second', 'second']);
  });

  it('logs in when the refresh token is not known any more', async () => {
    const before = await lldap.snapshot();
    const client = connect();
    await client.user('admin');
    await logOut();
    const now = await lldap.snapshot();
    await lldap.restore({ ...now, refreshTokens: before.refreshTokens });
    await lldap.forget();
    assert.equal((await client.user('admin'))?.id, 'admin');
    assert.deepEqual([await count('login'), await count('refresh')], [1, 1]);
  });

  it('says unauthenticated after exactly one login with wrong credentials, which it does not repeat at once', async () => {
    const http = createHttp({ baseURL: lldap.url, timeoutMs: 60_000, keepAliveMs: 4000 });
    closing.push(http.close);
    const clock = new FakeClock();
    const credentials = async () => ({ username: 'admin', password: 'wrong' });
    const client = createLldapClientOver(http, { credentials, log: createLog('error'), clock });
    const errors = await Promise.all(Array.from({ length: 50 }, () => failure(client.user('admin'))));
    assert.ok(errors.every(({ kind }) => kind === 'unauthenticated'));
    await clock.advance(4_999);
    assert.equal((await failure(client.user('admin'))).kind, 'unauthenticated');
    assert.deepEqual([await count('login'), await count('user', 'graphql')], [1, 0]);
    await clock.advance(1);
    assert.equal((await failure(client.user('admin'))).kind, 'unauthenticated');
    assert.equal(await count('login'), 2);
  });

  it('reads the credentials anew for each login: right ones serve at once after wrong ones', async () => {
    let password = 'wrong';
    const client = connect({ credentials: async () => ({ username: 'admin', password }) });
    assert.equal((await failure(client.user('admin'))).kind, 'unauthenticated');
    password = lldap.admin.password;
    assert.equal((await client.user('admin'))?.id, 'admin');
    assert.equal(await count('login'), 2);
  });

  it('says unauthenticated, and why, when there are no credentials', async () => {
    const client = connect({
      credentials: async () => {
        throw new Error('the Secret has no key "password"');
      },
    });
    const error = await failure(client.user('admin'));
    assert.deepEqual([error.kind, error.message], ['unauthenticated', 'the Secret has no key "password"']);
  });

  it('says unauthenticated when a fresh token is refused too, and logs in for the next call', async () => {
    const client = connect();
    await client.user('admin');
    await lldap.forget();
    await lldap.fault({ kind: 'status', status: 401, only: { operation: 'user' }, times: 2 });
    assert.equal((await failure(client.user('admin'))).kind, 'unauthenticated');
    assert.equal((await client.user('admin'))?.id, 'admin');
    assert.deepEqual([await count('refresh'), await count('login')], [1, 1]);
  });

  it('takes a new token when it lacks rights that the account has got meanwhile', async () => {
    await lldap.edit('mutation { createUser(user: { id: "operator", email: "o@example.com" }) { id } }');
    await lldap.setPassword('operator', 'operator-password');
    const client = connect({ credentials: async () => ({ username: 'operator', password: 'operator-password' }) });
    assert.equal((await failure(client.groups())).kind, 'unauthorized');
    await lldap.edit('mutation { addUserToGroup(userId: "operator", groupId: 1) { ok } }');
    assert.equal((await client.groups()).length, 3);
    assert.equal(await count('login'), 1);
  });

  it('checks by a login of its own, and finds that the account is no administrator', async () => {
    const client = connect();
    await client.check();
    await client.check();
    assert.equal(await count('login'), 2);
    await lldap.edit('mutation { createUser(user: { id: "tenant", email: "t@example.com" }) { id } }');
    await lldap.setPassword('tenant', 'tenant-password');
    const tenant = connect({ credentials: async () => ({ username: 'tenant', password: 'tenant-password' }) });
    assert.equal((await failure(tenant.check())).kind, 'unauthorized');
    await lldap.stop();
    assert.equal((await failure(client.check())).kind, 'unavailable');
  });

  it('never logs out', async () => {
    const client = connect();
    await client.user('admin');
    client.close();
    assert.equal(await count('logout'), 0);
  });

  it('is good again after lldap was restarted or away', async () => {
    const client = connect();
    await client.user('admin');
    await lldap.stop();
    const update = () => failure(client.updateUser('admin', { displayName: 'x' }));
    // The first may still be written to a connection whose end is on its way.
    assert.equal((await update()).kind, 'unavailable');
    assert.equal((await update()).kind, 'unavailable');
    await lldap.start();
    assert.equal((await client.user('admin'))?.id, 'admin');
  });

  it('says why a mutation failed whose answer did not come', async () => {
    const patient = connect();
    await patient.user('admin');
    for (const [fault, kind] of [
      [{ kind: 'drop' }, 'unavailable'],
      [{ kind: 'hang' }, 'unavailable'],
      [{ kind: 'status', status: 502 }, 'unavailable'],
      [{ kind: 'brokenJson' }, 'unavailable'],
      [{ kind: 'status', status: 408 }, 'unavailable'],
      [{ kind: 'text', text: 'Attribute x is not defined in the schema' }, 'undefinedAttribute'],
    ] as const) {
      const client = fault.kind === 'hang' ? await connectHastily() : patient;
      await lldap.fault({ ...fault, times: 1 });
      const error = await failure(client.updateUser('admin', { displayName: 'x' }));
      assert.equal(error.kind, kind, JSON.stringify(fault));
    }
  });

  it('takes an answer of another shape for no answer', async () => {
    const client = connect();
    await client.user('admin');
    await lldap.fault({ kind: 'status', status: 200 });
    const error = await failure(client.groups());
    assert.equal(error.kind, 'unavailable');
    assert.match(error.message, /something else than lldap's API/);
  });

  it("does not follow lldap's address to a login page, and says to use the Service in the cluster", async () => {
    const asked: string[] = [];
    const proxy = createServer((request, response) => {
      asked.push(String(request.url));
      response.writeHead(302, { location: '/outpost/login?hush-value' }).end();
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    closing.push(() => proxy.close());
    const client = connect({ url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` });
    const error = await failure(client.user('admin'));
    assert.equal(error.kind, 'unavailable');
    assert.equal(
      error.message,
      "lldap's address redirects (HTTP 302), as a login page in front of lldap does: use the address of lldap's own Service in the cluster",
    );
    assert.deepEqual(asked, ['/auth/simple/login']);
  });

  it('keeps password and tokens out of its errors and its log, whatever lldap says', async () => {
    const password = lldap.admin.password;
    const patient = connect();
    await patient.user('admin');
    const hasty = await connectHastily();
    const { refreshTokens } = await lldap.snapshot();
    const secrets = [password, 'hush-value', 'eyJ', ...refreshTokens.keys()];
    const said: string[] = [];
    const fail = async (promise: Promise<unknown>) => {
      const error = await failure(promise);
      said.push(error.message, inspect(error, { depth: 10, showHidden: true }), JSON.stringify(error), String(error.stack));
    };
    const change = (client = patient) =>
      client.updateUser('admin', { displayName: 'hush-value', insertAttributes: [{ name: 'first_name', value: ['hush-value'] }] });
    for (const fault of [
      { kind: 'text', text: 'I do not like {request}' },
      { kind: 'text', text: 'I do not like hush-value' },
      { kind: 'status', status: 500 },
      { kind: 'status', status: 401 },
      { kind: 'brokenJson' },
      { kind: 'drop' },
      { kind: 'hang' },
    ] as const) {
      await lldap.fault(fault);
      await fail(change(fault.kind === 'hang' ? hasty : patient));
      await lldap.heal();
    }
    // One whose refresh was never refused, or it would log in instead.
    const other = connect();
    await other.user('admin');
    await logOut();
    await lldap.fault({ kind: 'status', status: 500, only: { operation: 'refresh' } });
    await fail(change(other));
    await lldap.fault({ kind: 'drop', only: { operation: 'login' } });
    await fail(connect().user('admin'));
    await fail(connect({ credentials: async () => ({ username: 'admin', password: `${password}-wrong` }) }).user('admin'));
    const text = [...said, ...log].join('\n');
    for (const secret of secrets) assert.ok(!text.includes(secret), `the output holds ${secret}`);
    assert.ok(log.length > 5);
  });
});
