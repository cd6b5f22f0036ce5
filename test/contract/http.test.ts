import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { createLldapClient } from '../../shared/lldap/client.ts';
import { type HttpAnswer, HttpError } from '../../shared/platform/http.ts';
import { createLog } from '../../shared/telemetry/log.ts';
import { newUser, tokenIn, useTarget } from './target.ts';

describe('lldap over HTTP', () => {
  const target = useTarget();
  const get = (url: string, headers: Record<string, string> = {}) => target.http.request({ method: 'GET', url, headers });
  const refresh = (token: string) => get('/auth/refresh', { 'refresh-token': token });

  it('says that it is healthy to a GET', async () => {
    const { status, text } = await get('/health');
    assert.deepEqual([status, text], [200, '']);
    assert.equal((await get('/settings')).status, 200);
  });

  it('gives a token and a refresh token to who logs in, whatever the case of the name', async () => {
    const { username, password } = target.admin;
    for (const name of [username, username.toUpperCase()]) {
      const { status, text } = await target.login(name, password);
      assert.equal(status, 200);
      const answer = JSON.parse(text);
      assert.ok(answer.refreshToken.endsWith(`+${username.toLowerCase()}`));
      const claims = JSON.parse(Buffer.from(answer.token.split('.')[1], 'base64url').toString());
      assert.equal(claims.exp, claims.iat + 86_400);
      assert.equal(claims.user, username.toLowerCase());
      assert.ok(claims.groups.includes('lldap_admin'));
    }
  });

  it('refuses a wrong password, an unknown user and one without a password alike', async () => {
    const withoutPassword = await newUser(target);
    for (const name of [target.admin.username, target.unique(), withoutPassword]) {
      const { status, text } = await target.login(name, 'not-the-password');
      assert.equal(status, 401);
      assert.match(text, /^`?Authentication error for user/);
    }
  });

  it('answers 400 to a login that it does not understand', async () => {
    const login = (body: string, headers: Record<string, string>) =>
      target.http.request({ method: 'POST', url: '/auth/simple/login', headers, body });
    const json = { 'Content-Type': 'application/json' };
    for (const [body, headers] of [
      ['{"username":"x"}', json],
      ['no json', json],
      ['{"username":"x","password":"y"}', { 'Content-Type': 'text/plain' }],
    ] as const) {
      assert.equal((await login(body, headers)).status, 400, body);
    }
  });

  it('reads 2 MiB of a login and 16 MiB of a GraphQL request, and ends the connection on more', async () => {
    const { token } = JSON.parse((await target.login(target.admin.username, target.admin.password)).text);
    const post = async (url: string, empty: string, size: number) => {
      const body = empty.replace('""', JSON.stringify('x'.repeat(size - empty.length)));
      const headers = { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` };
      const answer = await target.http.request({ method: 'POST', url, headers, body }).catch((error: unknown) => error);
      // Whether its answer, 413, is there before the connection breaks is left to chance.
      return answer instanceof HttpError ? 413 : (answer as HttpAnswer).status;
    };
    for (const [url, body, most, status] of [
      ['/auth/simple/login', '{"username":"x","password":""}', 2 ** 21, 401],
      ['/api/graphql', '{"query":"{ apiVersion }","variables":{"x":""}}', 2 ** 24, 200],
    ] as const)
      assert.deepEqual([await post(url, body, most), await post(url, body, most + 1)], [status, 413], url);
  });

  it('gives a token, and no new refresh token, for a refresh token', async () => {
    const { refreshToken } = JSON.parse((await target.login(target.admin.username, target.admin.password)).text);
    const answer = await refresh(refreshToken);
    assert.equal(answer.status, 200);
    assert.deepEqual(Object.keys(JSON.parse(answer.text)), ['token']);
    const { data } = await target.graphql('{ apiVersion }', {}, tokenIn(answer.text));
    assert.deepEqual(data, { apiVersion: '1.0' });
  });

  it('answers 401 to a refresh without or with a wrong token', async () => {
    assert.equal((await get('/auth/refresh')).status, 401);
    assert.equal((await refresh(`nonsense+${target.admin.username}`)).status, 401);
  });

  it('ends all tokens of a user whom anybody logs out, and leaves his refresh tokens', async () => {
    const id = await newUser(target, { password: 'password of the user' });
    const { token, refreshToken } = JSON.parse((await target.login(id, 'password of the user')).text);
    const ask = (its: string) => target.graphql('query ($id: String!) { user(userId: $id) { id } }', { id }, its);
    assert.equal((await ask(token)).status, 200);
    assert.equal((await get('/auth/logout', { 'refresh-token': `nonsense+${id}` })).status, 200);
    const answer = await ask(token);
    assert.deepEqual([answer.status, answer.text], [401, 'JWT was logged out']);
    const renewed = await refresh(refreshToken);
    assert.equal((await ask(tokenIn(renewed.text))).status, 200);
  });

  it('ends the refresh tokens, and not the tokens, of a user who is deleted', async () => {
    const id = await newUser(target, { password: 'password of the user' });
    const { token, refreshToken } = JSON.parse((await target.login(id, 'password of the user')).text);
    await target.client.deleteUser(id);
    assert.equal((await target.graphql('{ apiVersion }', {}, token)).status, 200);
    assert.equal((await refresh(refreshToken)).status, 401);
  });

  it('answers 401 to GraphQL without a token or with one that is none', async () => {
    const ask = (headers: Record<string, string>) =>
      target.http.request({
        method: 'POST',
        url: '/api/graphql',
        headers: { 'Content-Type': 'application/json', ...headers },
        body: '{"query":"{ apiVersion }"}',
      });
    const without = await ask({});
    assert.deepEqual([without.status, without.text], [401, '']);
    const garbage = await ask({ Authorization: 'Bearer garbage' });
    assert.deepEqual([garbage.status, garbage.text], [401, 'Invalid JWT']);
  });

  it('ends the tokens of our account without more harm than a new token, though it closes connections unannounced', async () => {
    const id = await newUser(target, { password: 'password of the user' });
    const admins = (await target.client.groups()).find(({ displayName }) => displayName === 'lldap_admin');
    await target.client.addUserToGroup(id, admins?.id ?? 0);
    const credentials = async () => ({ username: id, password: 'password of the user' });
    const client = createLldapClient({ url: target.url, credentials, log: createLog('error'), timeoutMs: 60_000 });
    for (let i = 0; i < 3; i++) {
      await client.user(id);
      assert.equal((await get('/auth/logout', { 'refresh-token': `nonsense+${id}` })).status, 200);
      await Promise.all(Array.from({ length: 20 }, () => client.updateUser(id, { displayName: 'x' })));
    }
    client.close();
  });

  it('closes an idle connection after some 4.7 s, without having said so', async () => {
    const { hostname, port } = new URL(target.url);
    const socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    const started = performance.now();
    socket.write(`GET /health HTTP/1.1\r\nHost: ${hostname}\r\n\r\n`);
    const [answer] = await once(socket, 'data');
    assert.doesNotMatch(String(answer), /^keep-alive:/im);
    await once(socket, 'close');
    // Our own connections are given up after 4 s.
    assert.ok(performance.now() - started > 4500);
  });
});
