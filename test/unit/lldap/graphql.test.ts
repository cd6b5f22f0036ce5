import assert from 'node:assert/strict';
import { LldapError } from '../../../shared/lldap/api.ts';
import { createCall } from '../../../shared/lldap/graphql.ts';
import { OPERATIONS } from '../../../shared/lldap/operations.ts';
import type { Session } from '../../../shared/lldap/session.ts';
import type { Http } from '../../../shared/platform/http.ts';
import { createLog } from '../../../shared/telemetry/log.ts';

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
  const call = createCall({ http, session, log: createLog('error', () => undefined) });
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
