import assert from 'node:assert/strict';
import { LldapError } from '../../../shared/lldap/api.ts';
import { createCall } from '../../../shared/lldap/graphql.ts';
import { OPERATIONS } from '../../../shared/lldap/operations.ts';
import type { Session } from '../../../shared/lldap/session.ts';
import { systemClock } from '../../../shared/platform/clock.ts';
import type { Http, HttpRequest } from '../../../shared/platform/http.ts';
import { createLog } from '../../../shared/telemetry/log.ts';
import { useTelemetry } from '../support/telemetry.ts';

const session: Session = {
  token: async () => 'token',
  renew: async () => 'token',
  login: async () => [],
  lacksRights: () => false,
  forget: () => undefined,
};

/** What becomes of a mutation that is answered with 200 and this body. */
async function outcome(body: unknown): Promise<string> {
  const http: Http = { request: async () => ({ status: 200, headers: {}, text: JSON.stringify(body) }), close: () => undefined };
  const call = createCall({ http, session, log: createLog('error', () => undefined), clock: systemClock });
  try {
    return JSON.stringify(await call(OPERATIONS.deleteUser, { userId: 'bob' }));
  } catch (error) {
    assert.ok(error instanceof LldapError, String(error));
    return error.kind;
  }
}

describe('an answer of lldap with the status 200', () => {
  const done = { data: { result: { ok: true } } };

  it('is a success by its result', async () => assert.equal(await outcome(done), '{"ok":true}'));

  const failures: Record<string, [errors: unknown, kind: string]> = {
    'an error that is known': [[{ message: 'Entity not found: `No such user`' }], 'notFound'],
    'an error that nobody knows': [[{ message: 'Something new' }], 'unforeseen'],
    'an error beside one without a message': [[{ message: 'Something new' }, {}], 'unavailable'],
    'an error without a message': [[{}], 'unavailable'],
    'errors that are no list': ['Something new', 'unavailable'],
  };
  for (const [name, [errors, kind]] of Object.entries(failures)) {
    it(`is never one with ${name}, whatever result stands beside it`, async () => {
      assert.equal(await outcome({ ...done, errors }), kind);
      assert.equal(await outcome({ data: null, errors }), kind);
    });
  }
});

describe('a call of lldap', () => {
  const recorded = useTelemetry();
  const done = { status: 200, text: '{"data":{"result":{"ok":true}}}' };
  const failed = (message: string) => ({ status: 200, text: JSON.stringify({ errors: [{ message }] }) });

  /** Over an lldap that gives these answers; the tokens are counted. */
  function bench(...answers: ({ status: number; text: string } | Error)[]) {
    const requests: HttpRequest[] = [];
    const forgotten: string[] = [];
    const lines: string[] = [];
    const withoutRights = new Set<string>();
    let token = 0;
    const http: Http = {
      request: async (request) => {
        requests.push(request);
        const next = answers.shift() ?? assert.fail('unexpected');
        if (next instanceof Error) throw next;
        return { ...next, headers: {} };
      },
      close: () => undefined,
    };
    const counted: Session = {
      ...session,
      token: async () => `token ${token}`,
      renew: async (stale) => {
        assert.equal(stale, `token ${token}`);
        return `token ${++token}`;
      },
      lacksRights: (jwt) => withoutRights.has(jwt),
      forget: (refused) => forgotten.push(refused),
    };
    const call = createCall({ http, session: counted, log: createLog('debug', (line) => lines.push(line)), clock: systemClock });
    const tokens = () => requests.map(({ headers }) => headers?.Authorization);
    return { call, requests, tokens, forgotten, withoutRights, lines };
  }
  const deletion = [OPERATIONS.deleteUser, { userId: 'bob' }] as const;

  it('is one request with the operation and its variables', async () => {
    const { call, requests } = bench(done);
    assert.deepEqual(await call(...deletion), { ok: true });
    const [{ body, ...request } = assert.fail('no request')] = requests;
    const headers = { Authorization: 'Bearer token 0', 'Content-Type': 'application/json' };
    assert.deepEqual(request, { method: 'POST', url: '/api/graphql', headers, maxBytes: 4 * 1024 * 1024 });
    const { query, ...rest } = JSON.parse(body ?? '');
    assert.deepEqual(rest, { operationName: 'deleteUser', variables: { userId: 'bob' } });
    assert.match(query, /^mutation deleteUser\(\$userId: String!\) /);
  });

  const renewals: Record<string, { status: number; text: string }> = {
    'does not accept the token': { status: 401, text: '' },
    'finds that the account lacks the rights': failed('Unauthorized user deletion'),
  };
  for (const [what, refusal] of Object.entries(renewals)) {
    it(`is made once more with a new token if lldap ${what}`, async () => {
      const { call, tokens, forgotten } = bench(refusal, done);
      assert.deepEqual(await call(...deletion), { ok: true });
      assert.deepEqual([tokens(), forgotten], [['Bearer token 0', 'Bearer token 1'], []]);
    });
  }

  it('is not made a third time, and a fresh token that is not accepted is forgotten', async () => {
    const { call, tokens, forgotten } = bench({ status: 401, text: '' }, { status: 401, text: '' });
    await assert.rejects(call(...deletion), { kind: 'unauthenticated' });
    assert.deepEqual([tokens(), forgotten], [['Bearer token 0', 'Bearer token 1'], ['token 1']]);
  });

  it('keeps a fresh token with which lldap refuses the call alone', async () => {
    const { call, forgotten } = bench({ status: 401, text: '' }, failed('Unauthorized user deletion'));
    await assert.rejects(call(...deletion), { kind: 'unauthorized' });
    assert.deepEqual(forgotten, []);
  });

  it('is not made once more after another failure', async () => {
    const { call, tokens } = bench(failed('Entity not found: `bob`'));
    await assert.rejects(call(...deletion), { kind: 'notFound' });
    assert.equal(tokens().length, 1);
  });

  it('is never made with a token that lacks the rights, since lldap hides from it what is there', async () => {
    const { call, tokens, withoutRights } = bench(done);
    withoutRights.add('token 0').add('token 1');
    await assert.rejects(call(...deletion), { kind: 'unauthorized', message: "the operator's account is not in lldap_admin" });
    assert.deepEqual(tokens(), []);
    withoutRights.clear();
    assert.deepEqual([await call(...deletion), tokens()], [{ ok: true }, ['Bearer token 1']]);
  });

  it('says of which operation there is no result in the answer', async () => {
    const { call } = bench({ status: 200, text: '{"data":{}}' });
    const message = "lldap's address answers something else than lldap's API: deleteUser brought no result";
    await assert.rejects(call(...deletion), { kind: 'unavailable', message });
  });

  it('brings back nothing of its variables or token in an error that nobody knows, whatever is in them', async () => {
    const { call } = bench(failed('no 42, no secret-one, no secret-two, no token 0, no null'));
    const user = { id: null, age: 42, attributes: [{ name: 'a', value: ['secret-one'] }], email: 'secret-two' };
    const message = 'lldap answered with an error: no 42, no …, no …, no …, no null';
    await assert.rejects(call(OPERATIONS.createUser, { user }), { kind: 'unforeseen', message });
  });

  const outcomes: Record<string, [answer: { status: number; text: string } | Error, outcome: string]> = {
    'a success': [done, 'ok'],
    'a failure': [failed('Entity not found: `bob`'), 'notFound'],
    'a bug': [new TypeError('unforeseen'), 'bug'],
  };
  for (const [what, [answer, outcome]] of Object.entries(outcomes)) {
    it(`is counted and logged as ${what}`, async () => {
      const { call, lines } = bench(answer);
      await call(...deletion).catch(() => undefined);
      assert.deepEqual(recorded.counts, [['lldap_operator.lldap.calls', { operation: 'deleteUser', outcome }]]);
      const { ms, ...line } = JSON.parse(lines.join(''));
      assert.deepEqual([line.level, line.operation, line.outcome], ['debug', 'deleteUser', outcome]);
      assert.ok(Number.isInteger(ms) && ms >= 0 && ms < performance.now());
    });
  }

  it('has a span of its name, which says whether it writes', async () => {
    const { call } = bench(done, { status: 200, text: '{"data":{"result":[]}}' });
    await call(...deletion);
    await call(OPERATIONS.groups);
    const span = (name: string, type: string) => ({
      name,
      kind: 'client',
      attributes: { 'graphql.operation.name': name, 'graphql.operation.type': type, 'peer.service': 'lldap' },
    });
    assert.deepEqual(recorded.spans, [span('deleteUser', 'mutation'), span('groups', 'query')]);
  });
});
