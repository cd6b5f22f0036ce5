import assert from 'node:assert/strict';
import { buildStatus, type ConditionDraft, sameStatus } from '../../../shared/engine/conditions.ts';
import type { CommonStatus, Condition, LldapUserStatus, Retry } from '../../../shared/kube/resources.ts';
import { invalid, notReady } from '../../../shared/rules/failure.ts';
import { condition, user } from '../support/examples.ts';

const NOW = Date.parse('2026-03-01T12:00:00.750Z');
const GOOD: ConditionDraft = { status: 'True', reason: 'Reconciled', message: 'All is well.' };
const WAITING = notReady('SecretNotFound', 'The Secret alice does not exist.');
const BAD: ConditionDraft = { status: 'False', reason: 'SecretNotFound', message: WAITING.message };
const RETRY: Retry = { nextTime: '2026-03-01T12:00:05.000Z', attempts: 1, category: 'NotReady' };

interface Example {
  before?: LldapUserStatus;
  generation?: number;
  own?: CommonStatus;
  extra?: Parameters<typeof buildStatus>[0]['extra'];
  ready?: ConditionDraft;
  failure?: Parameters<typeof buildStatus>[0]['failure'];
  retry?: Retry;
  token?: string;
}

function build({ before, generation = 2, own = {}, extra = {}, ready = GOOD, failure, retry, token }: Example): CommonStatus {
  const resource = user({ metadata: { generation }, ...(before && { status: before }) });
  return buildStatus({ resource, own, extra, ready, failure, retry, token, now: NOW });
}

const types = (status: CommonStatus) => status.conditions?.map(({ type }) => type);
const find = (status: CommonStatus, type: string) => status.conditions?.find((c) => c.type === type);

describe('shared/engine/conditions', () => {
  it('says Ready at the generation that was dealt with, in whole seconds, and nothing else', () => {
    assert.deepEqual(build({}), {
      ready: true,
      observedGeneration: 2,
      conditions: [
        {
          type: 'Ready',
          status: 'True',
          reason: 'Reconciled',
          message: 'All is well.',
          lastTransitionTime: '2026-03-01T12:00:00Z',
          observedGeneration: 2,
        },
      ],
    });
  });

  it('says in a field that selectors find whether it is Ready', () => {
    const ready = (own: CommonStatus, draft: ConditionDraft) => build({ own, ready: draft }).ready;
    assert.deepEqual([ready({ ready: false }, GOOD), ready({ ready: true }, BAD)], [true, false]);
  });

  it('a failure with a retry is Reconciling and says when it goes on', () => {
    const status = build({ ready: BAD, failure: WAITING, retry: { ...RETRY, attempts: 3 } });
    assert.deepEqual(types(status), ['Ready', 'Reconciling']);
    assert.equal(find(status, 'Reconciling')?.status, 'True');
    assert.equal(find(status, 'Reconciling')?.reason, 'SecretNotFound');
    assert.equal(find(status, 'Reconciling')?.message, 'Attempt 3 failed. The next one is due at 2026-03-01T12:00:05.000Z.');
    assert.deepEqual(status.retry, { ...RETRY, attempts: 3 });
  });

  it('a retry that the broker did not accept is left to the sweep, and says so', () => {
    const status = build({ ready: BAD, failure: WAITING, retry: { attempts: 1, category: 'NotReady' } });
    assert.equal(
      find(status, 'Reconciling')?.message,
      'Attempt 1 failed. The broker did not accept the next one; the sweep will start it.',
    );
    assert.deepEqual(status.retry, { attempts: 1, category: 'NotReady' });
  });

  it('what only a person can mend is Stalled and not retried', () => {
    const status = build({ ready: BAD, failure: invalid('Forbidden', 'Only a privileged namespace may.') });
    assert.deepEqual(types(status), ['Ready', 'Stalled']);
    assert.deepEqual(
      [find(status, 'Stalled')?.status, find(status, 'Stalled')?.reason, find(status, 'Stalled')?.message],
      ['True', 'Forbidden', 'Only a privileged namespace may.'],
    );
    assert.equal('retry' in status, false);
  });

  it('a success forgets the retry, Reconciling and Stalled of before', () => {
    const before = {
      observedGeneration: 2,
      retry: RETRY,
      conditions: [condition('Ready', 'False'), condition('Reconciling', 'True'), condition('Stalled', 'True')],
    };
    const status = build({ before, own: before });
    assert.deepEqual(types(status), ['Ready']);
    assert.equal('retry' in status, false);
  });

  it('a suspended resource is neither Reconciling nor Stalled', () => {
    const status = build({ ready: { status: 'False', reason: 'Suspended', message: 'spec.suspend is true.' } });
    assert.deepEqual(types(status), ['Ready']);
  });

  describe('the time of a transition', () => {
    const before = { conditions: [condition('Ready', 'False', 'SecretNotFound', { lastTransitionTime: '2026-03-01T09:00:00Z' })] };

    it('stays while the condition only changes its reason or message', () => {
      assert.equal(find(build({ before, ready: { ...BAD, reason: 'EmailTaken' } }), 'Ready')?.lastTransitionTime, '2026-03-01T09:00:00Z');
    });

    it('moves when the condition turns', () => {
      assert.equal(find(build({ before }), 'Ready')?.lastTransitionTime, '2026-03-01T12:00:00Z');
    });
  });

  describe('a condition about dependencies or the password', () => {
    const old = condition('PasswordSynced', 'True', 'PasswordSynced', { observedGeneration: 1 });

    it('says what this reconcile found', () => {
      const status = build({ before: { conditions: [old] }, extra: { PasswordSynced: BAD } });
      assert.deepEqual(find(status, 'PasswordSynced'), {
        type: 'PasswordSynced',
        status: 'False',
        reason: 'SecretNotFound',
        message: 'The Secret alice does not exist.',
        lastTransitionTime: '2026-03-01T12:00:00Z',
        observedGeneration: 2,
      });
    });

    it('stays as it was, for the generation that it was about, when this reconcile did not come to it', () => {
      assert.deepEqual(find(build({ before: { conditions: [old] }, ready: BAD, failure: WAITING }), 'PasswordSynced'), old);
    });

    it('goes when it no longer applies', () => {
      const before = { conditions: [condition('DependenciesReady', 'False', 'DependencyNotReady')] };
      assert.deepEqual(types(build({ before, extra: { DependenciesReady: null } })), ['Ready']);
    });

    it('is not there before anything is known', () => {
      assert.deepEqual(types(build({})), ['Ready']);
    });
  });

  describe('the token of a look that a person asked for', () => {
    it('is repeated once it is handled', () => {
      assert.equal(build({ token: 'now', before: { lastHandledReconcileAt: 'then' } }).lastHandledReconcileAt, 'now');
    });

    it('stays, whatever comes after', () => {
      assert.equal(build({ before: { lastHandledReconcileAt: 'then' } }).lastHandledReconcileAt, 'then');
    });

    it('is not there when nobody asked', () => assert.equal('lastHandledReconcileAt' in build({}), false));
  });

  it('keeps the kind’s own fields, and takes no retry or token from them', () => {
    const own: LldapUserStatus = { uuid: 'u', passwordHash: 'v1:k:h', retry: RETRY, lastHandledReconcileAt: 'draft' };
    const status: LldapUserStatus = build({ own });
    assert.deepEqual(
      [status.uuid, status.passwordHash, status.retry, status.lastHandledReconcileAt],
      ['u', 'v1:k:h', undefined, undefined],
    );
  });

  it('holds nothing of other controllers, whose conditions are their own', () => {
    const before = { conditions: [condition('example.com/Audited', 'True')] };
    assert.deepEqual(types(build({ before })), ['Ready']);
  });

  describe('is written only where it differs', () => {
    const ready = condition('Ready', 'True');
    const other = condition('PasswordSynced', 'True');
    const cases: Record<string, [LldapUserStatus | undefined, LldapUserStatus, same: boolean]> = {
      'not for the same': [
        { observedGeneration: 1, uuid: 'u', conditions: [ready] },
        { uuid: 'u', observedGeneration: 1, conditions: [ready] },
        true,
      ],
      'not for another order of conditions': [{ conditions: [ready, other] }, { conditions: [other, ready] }, true],
      'not for the conditions of other controllers': [
        { conditions: [ready, condition('example.com/Audited', 'True')] },
        { conditions: [ready] },
        true,
      ],
      'for a first status': [undefined, { conditions: [ready] }, false],
      'for another generation': [{ observedGeneration: 1, conditions: [] }, { observedGeneration: 2, conditions: [] }, false],
      'for another message': [{ conditions: [ready] }, { conditions: [{ ...ready, message: 'Otherwise.' }] }, false],
      'for a condition that goes': [{ conditions: [ready, other] }, { conditions: [ready] }, false],
      'for a field that comes': [{ conditions: [] }, { conditions: [], uuid: 'u' }, false],
      'for a field that goes': [{ conditions: [], uuid: 'u' }, { conditions: [] }, false],
      'for another retry': [{ conditions: [], retry: RETRY }, { conditions: [], retry: { ...RETRY, attempts: 2 } }, false],
    };
    for (const [name, [current, next, same]] of Object.entries(cases)) it(name, () => assert.equal(sameStatus(current, next), same));

    it('so an unchanged resource is never written, pass after pass', () => {
      let before = build({ extra: { DependenciesReady: GOOD }, own: { uuid: 'u' } as CommonStatus, token: 'now' });
      for (let pass = 0; pass < 20; pass++) {
        const next = buildStatus({
          resource: user({ metadata: { generation: 2 }, status: before }),
          own: before,
          extra: { DependenciesReady: GOOD },
          ready: GOOD,
          failure: undefined,
          retry: undefined,
          token: undefined,
          now: NOW + pass * 60_000,
        });
        assert.equal(sameStatus(before, next), true);
        before = next;
      }
    });

    it('without the order of the current conditions being touched', () => {
      const conditions: Condition[] = [ready, other];
      sameStatus({ conditions }, { conditions: [other, ready] });
      assert.deepEqual(conditions, [ready, other]);
    });
  });

  describe('a message', () => {
    it('is cut in the status, too', () => {
      const ready = { ...BAD, message: 'y'.repeat(2000) };
      assert.equal(find(build({ ready, failure: WAITING }), 'Ready')?.message, `${'y'.repeat(1023)}…`);
    });
  });
});
