import assert from 'node:assert/strict';
import { LldapError } from '../../../shared/lldap/api.ts';
import { ask, type Credentials, createSession } from '../../../shared/lldap/session.ts';
import { type HttpAnswer, HttpError, type HttpRequest } from '../../../shared/platform/http.ts';
import { createLog } from '../../../shared/telemetry/log.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const ADMIN: Credentials = { username: 'admin', password: 'admin-password' };
const LOGIN = 'POST /auth/simple/login';
const REFRESH = 'GET /auth/refresh';

/** As lldap makes them. */
const jwt = (name: string, groups = ['lldap_admin'], seconds = 1000) =>
  `header.${Buffer.from(JSON.stringify({ iat: 5000, exp: 5000 + seconds, groups, name })).toString('base64url')}.signature`;
const answer = (body: unknown, status = 200): HttpAnswer => ({ status, text: JSON.stringify(body) });
const login = (token: string) => answer({ token, refreshToken: `refresh ${token}` });

/** Over an lldap that gives these answers, one after another. */
function bench(...answers: (HttpAnswer | Error)[]) {
  const requests: HttpRequest[] = [];
  const clock = new FakeClock();
  const current = { credentials: async () => ADMIN };
  const http = {
    request: async (request: HttpRequest) => {
      requests.push(request);
      const next = answers.shift() ?? assert.fail(`unexpected: ${request.method} ${request.url}`);
      if (next instanceof Error) throw next;
      return next;
    },
    close: () => undefined,
  };
  const session = createSession({ http, credentials: () => current.credentials(), log: createLog('error'), clock });
  return { session, clock, current, requests, asked: () => requests.splice(0).map(({ method, url }) => `${method} ${url}`) };
}

async function failure(promise: Promise<unknown>): Promise<[kind: string, message: string]> {
  const error = await promise.catch((thrown: unknown) => thrown);
  assert.ok(error instanceof LldapError, String(error));
  return [error.kind, error.message];
}

describe("the session's tokens", () => {
  const A = jwt('a');
  const B = jwt('b');
  const REFUSED = ['unauthenticated', 'lldap refuses the credentials of the operator'];

  it('come from a login, and from then on from refreshes', async () => {
    const { session, requests } = bench(login(A), answer({ token: B }));
    assert.deepEqual([await session.token(), await session.renew(A)], [A, B]);
    assert.deepEqual(requests, [
      { method: 'POST', url: '/auth/simple/login', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(ADMIN) },
      { method: 'GET', url: '/auth/refresh', headers: { 'refresh-token': `refresh ${A}` } },
    ]);
  });

  it('are renewed when nine tenths of their life are over', async () => {
    const { session, clock, asked } = bench(login(A), answer({ token: B }));
    await session.token();
    await clock.advance(899_999);
    assert.deepEqual([await session.token(), asked()], [A, [LOGIN]]);
    await clock.advance(1);
    assert.deepEqual([await session.token(), asked()], [B, [REFRESH]]);
  });

  for (const opaque of ['opaque', 'a.b.c']) {
    it(`that say nothing of themselves are used until lldap refuses them, and not taken for those of a stranger: ${opaque}`, async () => {
      const { session, clock, asked } = bench(login(opaque), login(opaque));
      assert.deepEqual(await session.login(), []);
      await clock.advance(10 * 365 * 86_400_000);
      assert.deepEqual([await session.token(), asked()], [opaque, [LOGIN]]);
      assert.equal(session.lacksRights(opaque), false);
    });
  }

  it('come from a login for a caller whose token nobody knows', async () => {
    const { session, asked } = bench(login(A));
    assert.deepEqual([await session.renew('unknown'), asked()], [A, [LOGIN]]);
  });

  it('are not renewed for who was refused with an older one', async () => {
    const { session, asked } = bench(login(A), answer({ token: B }));
    await session.token();
    await session.renew(A);
    asked();
    assert.deepEqual([await session.renew(A), asked()], [B, []]);
  });

  it('come from a login, not a refresh, after lldap refused one that was fresh', async () => {
    const { session, asked } = bench(login(A), login(B));
    session.forget('none yet');
    await session.token();
    session.forget('another');
    assert.deepEqual([await session.token(), asked()], [A, [LOGIN]]);
    session.forget(A);
    assert.deepEqual([await session.token(), asked()], [B, [LOGIN]]);
  });

  it('tell whether the account was an administrator, as long as they are those in use', async () => {
    const tenant = jwt('tenant', ['people']);
    const { session } = bench(login(tenant), answer({ token: A }));
    assert.equal(session.lacksRights(tenant), false);
    await session.token();
    assert.deepEqual([session.lacksRights(tenant), session.lacksRights(A)], [true, false]);
    await session.renew(tenant);
    assert.deepEqual([session.lacksRights(tenant), session.lacksRights(A)], [false, false]);
  });

  it('of a login of its own say in which groups lldap sees the account', async () => {
    const { session } = bench(login(jwt('a', ['people', 'lldap_admin'])));
    assert.deepEqual(await session.login(), ['people', 'lldap_admin']);
  });

  describe('when a login fails', () => {
    it('are asked for again at once if lldap was only unwell', async () => {
      const { session, asked } = bench(answer({}, 500), login(A));
      assert.deepEqual(await failure(session.token()), ['unavailable', "lldap's address answers HTTP 500"]);
      assert.deepEqual([await session.token(), asked()], [A, [LOGIN, LOGIN]]);
    });

    it('are not asked for again with refused credentials for five seconds, but at once with others', async () => {
      const { session, clock, current, asked } = bench(answer({}, 401), answer({}, 401), answer({}, 401), login(A));
      assert.deepEqual([await failure(session.token()), await failure(session.token()), asked()], [REFUSED, REFUSED, [LOGIN]]);
      for (const other of [
        { username: 'admin', password: 'other' },
        { username: 'other', password: 'other' },
      ]) {
        current.credentials = async () => other;
        assert.deepEqual([await failure(session.token()), asked()], [REFUSED, [LOGIN]]);
      }
      await clock.advance(5_000);
      assert.deepEqual([await session.token(), asked()], [A, [LOGIN]]);
    });

    it('are asked for by a check in any case, which clears the refusal', async () => {
      const { session, asked } = bench(answer({}, 401), login(A));
      assert.deepEqual(await failure(session.token()), REFUSED);
      assert.deepEqual([await session.login(), asked()], [['lldap_admin'], [LOGIN, LOGIN]]);
    });
  });

  describe('when something else than lldap answers', () => {
    it('to a login, say so', async () => {
      const { session } = bench(answer({ token: 1 }));
      const message = "lldap's address answers something else than lldap's API: no token came back from the login";
      assert.deepEqual(await failure(session.token()), ['unavailable', message]);
    });

    it('to a refresh, say so', async () => {
      const { session } = bench(login(A), answer({}));
      await session.token();
      const message = "lldap's address answers something else than lldap's API: no token came back from the refresh";
      assert.deepEqual(await failure(session.renew(A)), ['unavailable', message]);
    });
  });

  it('come from the next refresh after one that lldap was too unwell for, and from a login after one that it refused', async () => {
    const { session, asked } = bench(login(A), answer({}, 500), answer({}, 401), login(B));
    await session.token();
    asked();
    assert.deepEqual([await failure(session.renew(A)), asked()], [['unavailable', "lldap's address answers HTTP 500"], [REFRESH]]);
    assert.deepEqual([await session.renew(A), asked()], [B, [REFRESH, LOGIN]]);
  });

  const unreadable: Record<string, [thrown: unknown, told: [kind: string, message: string]]> = {
    'with the reason, if that is known': [
      new LldapError('unavailable', 'LLDAP_URL is no address'),
      ['unavailable', 'LLDAP_URL is no address'],
    ],
    'with the error': [new Error('no key "password"'), ['unauthenticated', 'no key "password"']],
    'without one': ['nothing', ['unauthenticated', 'the credentials cannot be read']],
  };
  for (const [how, [thrown, told]] of Object.entries(unreadable)) {
    it(`say that the credentials cannot be read, ${how}`, async () => {
      const { session, current, asked } = bench();
      current.credentials = () => Promise.reject(thrown);
      assert.deepEqual([await failure(session.token()), asked()], [told, []]);
    });
  }

  it('say why lldap did not answer, and hide no error of the operator', async () => {
    const { session } = bench(new HttpError('refused', 'no connection (ECONNREFUSED)'));
    assert.deepEqual(await failure(session.token()), ['unavailable', 'lldap does not answer: no connection (ECONNREFUSED)']);
    const broken = { request: () => Promise.reject(new TypeError('a bug')), close: () => undefined };
    await assert.rejects(ask(broken, { method: 'GET', url: '/' }), { name: 'TypeError', message: 'a bug' });
  });
});
