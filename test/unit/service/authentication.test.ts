import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import type { KubeRequest } from '../../../shared/kube/connection.ts';
import { KubeError } from '../../../shared/kube/errors.ts';
import { createAuthentication, Refusal } from '../../../shared/service/authentication.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const AUDIENCE = 'lldap-operator';
const CALLER = 'system:serviceaccount:op:caller';
const HINT = `Send "Authorization: Bearer" with a token of a ServiceAccount in op for the audience ${AUDIENCE}.`;

type Status = { authenticated?: boolean; audiences?: string[]; user?: { username?: string }; error?: string };

/** Over an API server whose answers a test gives; `asked` are the tokens that it was asked about. */
function bench(
  answer: (token: string) => Status | Promise<Status> = () => ({ authenticated: true, audiences: [AUDIENCE], user: { username: CALLER } }),
) {
  const clock = new FakeClock();
  const asked: string[] = [];
  const connection = {
    namespace: async () => 'op',
    request: async ({ body, ...request }: KubeRequest) => {
      const { spec, ...object } = body as { spec: { token: string; audiences: string[] } };
      assert.deepEqual(request, { method: 'POST', path: '/apis/authentication.k8s.io/v1/tokenreviews' });
      assert.deepEqual(object, { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview' });
      assert.deepEqual(spec.audiences, [AUDIENCE]);
      asked.push(spec.token);
      return { status: await answer(spec.token) };
    },
    close: () => undefined,
  };
  const authenticate = createAuthentication(connection, AUDIENCE, clock);
  /** A token as the API server makes them, as far as its claims matter. */
  const token = (name: string, lifeMs = 3_600_000) => {
    const claims = { aud: [AUDIENCE], exp: Math.floor((clock.now() + lifeMs) / 1000), jti: name };
    return `header.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.signature`;
  };
  const outcome = (authorization?: string) =>
    authenticate(authorization).then(
      () => 'served',
      (error: unknown) => {
        assert.ok(error instanceof Refusal, String(error));
        return `${error.status} ${error.message}`;
      },
    );
  return { clock, asked, token, outcome };
}

describe('shared/service/authentication', () => {
  it('asks the API server about a token once, for as long as the token is good', async () => {
    const { clock, asked, token, outcome } = bench();
    const authorization = `Bearer ${token('a')}`;
    for (let i = 0; i < 3; i++) assert.equal(await outcome(authorization), 'served');
    await clock.advance(3_599_000);
    assert.equal(await outcome(authorization), 'served');
    assert.equal(asked.length, 1);
    await clock.advance(1_000);
    assert.equal(await outcome(authorization), 'served');
    assert.equal(asked.length, 2);
  });

  it('asks once for a thousand events that come at once with one token', async () => {
    const { asked, token, outcome } = bench();
    const outcomes = await Promise.all(Array.from({ length: 1_000 }, () => outcome(`Bearer ${token('a')}`)));
    assert.deepEqual([new Set(outcomes), asked.length], [new Set(['served']), 1]);
  });

  it('remembers a thousand tokens at most, the newest', async () => {
    const { asked, token, outcome } = bench();
    for (let i = 0; i <= 1_000; i++) await outcome(`Bearer ${token(`token-${i}`)}`);
    await outcome(`Bearer ${token('token-1')}`);
    assert.equal(asked.length, 1_001);
    await outcome(`Bearer ${token('token-0')}`);
    assert.equal(asked.length, 1_002);
  });

  it('remembers an accepted token, however many tokens strangers show meanwhile', async () => {
    const reviewed = Promise.withResolvers<void>();
    const { asked, token, outcome } = bench(async (shown) => {
      if (shown.startsWith('junk')) await reviewed.promise;
      return { authenticated: !shown.startsWith('junk'), audiences: [AUDIENCE], user: { username: CALLER } };
    });
    const authorization = `Bearer ${token('a')}`;
    assert.equal(await outcome(authorization), 'served');
    const strangers = Array.from({ length: 1_001 }, (_, i) => outcome(`Bearer junk-${i}`));
    await turn();
    assert.equal(await outcome(authorization), 'served');
    reviewed.resolve();
    assert.deepEqual(new Set(await Promise.all(strangers)), new Set([`401 ${HINT}`]));
    assert.equal(await outcome(authorization), 'served');
    assert.equal(asked.length, 1_002);
  });

  it('asks once about a token that many strangers show at once, and again later', async () => {
    const { asked, outcome } = bench(() => ({ authenticated: false }));
    for (const reviews of [1, 2]) {
      await Promise.all(Array.from({ length: 100 }, () => outcome('Bearer junk')));
      assert.equal(asked.length, reviews);
    }
  });

  it('takes the word Bearer in any case', async () => {
    const { token, outcome } = bench();
    assert.equal(await outcome(`bearer ${token('a')}`), 'served');
  });

  const nothing: Record<string, string | undefined> = {
    'no header': undefined,
    'an empty header': '',
    'no token': 'Bearer ',
    'another scheme': 'Basic YWRtaW46YWRtaW4=',
    'two words': 'Bearer one two',
    'another scheme before it': 'Basic Bearer one',
  };
  for (const [name, authorization] of Object.entries(nothing)) {
    it(`refuses ${name} without a call, and says what to send`, async () => {
      const { asked, outcome } = bench();
      assert.deepEqual([await outcome(authorization), asked], [`401 ${HINT}`, []]);
    });
  }

  const refused: Record<string, Status> = {
    'that the API server does not accept': { error: 'invalid bearer token' },
    'of another namespace': { authenticated: true, audiences: [AUDIENCE], user: { username: 'system:serviceaccount:opponent:caller' } },
    'of a namespace whose name begins alike': {
      authenticated: true,
      audiences: [AUDIENCE],
      user: { username: 'system:serviceaccount:op2:caller' },
    },
    'of a person': { authenticated: true, audiences: [AUDIENCE], user: { username: 'admin' } },
    'for another audience': { authenticated: true, audiences: ['them'], user: { username: CALLER } },
    'of nobody': { authenticated: true, audiences: [AUDIENCE] },
    'of somebody without a name': { authenticated: true, audiences: [AUDIENCE], user: {} },
    'from an API server that knows no audiences': { authenticated: true, user: { username: CALLER } },
  };
  for (const [name, status] of Object.entries(refused)) {
    it(`refuses a token ${name}, and asks about it each time`, async () => {
      const { asked, token, outcome } = bench(() => status);
      for (let i = 0; i < 2; i++) assert.equal(await outcome(`Bearer ${token('a')}`), `401 ${HINT}`);
      assert.equal(asked.length, 2);
    });
  }

  for (const [status, text] of [
    [0, 'no answer'],
    [403, '403'],
    [500, '500'],
  ] as const) {
    it(`has the broker deliver again when the API server answers ${text}, and then asks once more`, async () => {
      let fails = true;
      const { token, outcome } = bench(() => {
        if (fails) throw new KubeError(status, 'hush');
        return { authenticated: true, audiences: [AUDIENCE], user: { username: CALLER } };
      });
      const authorization = `Bearer ${token('a')}`;
      const both = await Promise.all([outcome(authorization), outcome(authorization)]);
      assert.deepEqual(new Set(both), new Set([`503 The API server did not check the token (${text}); deliver the event again.`]));
      fails = false;
      assert.equal(await outcome(authorization), 'served');
    });
  }

  it('does not remember a token that says no end', async () => {
    const { asked, outcome } = bench();
    for (let i = 0; i < 2; i++) assert.equal(await outcome('Bearer opaque'), 'served');
    assert.equal(asked.length, 2);
  });
});
