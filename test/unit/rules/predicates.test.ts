import assert from 'node:assert/strict';
import { FINALIZER, REQUESTED_AT } from '../../../shared/constants.ts';
import type { Condition, Retry } from '../../../shared/kube/resources.ts';
import { currentRetry, hasFinalizer, isSteady, notReadyReason, unhandledToken, waitsForRetry } from '../../../shared/rules/predicates.ts';
import { condition, READY, user } from '../support/examples.ts';

const NOW = Date.parse('2026-03-01T12:00:00.000Z');
const steady = { metadata: { generation: 3 }, status: { observedGeneration: 3, conditions: [READY] } };
const requested = (token: string) => ({ generation: 3, annotations: { [REQUESTED_AT]: token } });

describe('shared/rules/predicates', () => {
  describe('nothing is left to do', () => {
    const cases: Record<string, [Parameters<typeof user>[0], boolean]> = {
      'where the last reconcile was successful and saw this generation': [steady, true],
      'not before the first reconcile': [{ metadata: { generation: 3 } }, false],
      'not after the spec has changed': [{ ...steady, metadata: { generation: 4 } }, false],
      'not where Ready is False': [
        { ...steady, status: { observedGeneration: 3, conditions: [condition('Ready', 'False', 'EmailTaken')] } },
        false,
      ],
      'not where Ready is Unknown': [{ ...steady, status: { observedGeneration: 3, conditions: [condition('Ready', 'Unknown')] } }, false],
      'not where there are no conditions': [{ ...steady, status: { observedGeneration: 3 } }, false],
      'not without our finalizer': [{ ...steady, metadata: { generation: 3, finalizers: [] } }, false],
      'not with only the finalizer of another': [{ ...steady, metadata: { generation: 3, finalizers: ['example.com/other'] } }, false],
      'with our finalizer among others': [{ ...steady, metadata: { generation: 3, finalizers: ['example.com/other', FINALIZER] } }, true],
      'not while being deleted': [{ ...steady, metadata: { generation: 3, deletionTimestamp: '2026-03-01T12:00:00Z' } }, false],
      'not while a person asks for a look': [{ ...steady, metadata: requested('now') }, false],
      'once that look is over': [
        { metadata: requested('now'), status: { observedGeneration: 3, conditions: [READY], lastHandledReconcileAt: 'now' } },
        true,
      ],
    };
    for (const [name, [example, is]] of Object.entries(cases)) it(name, () => assert.equal(isSteady(user(example)), is));
  });

  it('a resource without finalizers has none of ours', () => {
    const { finalizers: _none, ...metadata } = user().metadata;
    assert.equal(hasFinalizer({ ...user(), metadata }), false);
  });

  describe('a person asks for a look', () => {
    const cases: Record<string, [annotation: string | undefined, handled: string | undefined, token: string | undefined]> = {
      'by a token that no reconcile has handled': ['now', undefined, 'now'],
      'by a token other than the one that was handled': ['again', 'now', 'again'],
      'not by the token that was handled': ['now', 'now', undefined],
      'not by an empty token': ['', undefined, undefined],
      'not without an annotation': [undefined, 'now', undefined],
      'by a token of any length, of which 64 characters count': ['x'.repeat(100), undefined, 'x'.repeat(64)],
      'by whole characters only': [`${'x'.repeat(63)}😀`, undefined, 'x'.repeat(63)],
      'not by a long token that was handled': ['x'.repeat(100), 'x'.repeat(64), undefined],
    };
    for (const [name, [annotation, handled, token]] of Object.entries(cases)) {
      it(name, () => {
        const metadata = annotation === undefined ? {} : { annotations: { [REQUESTED_AT]: annotation } };
        const status = handled === undefined ? {} : { lastHandledReconcileAt: handled };
        assert.equal(unhandledToken(user({ metadata, status })), token);
      });
    }
  });

  describe('a retry that is due later is waited for', () => {
    const next = '2026-03-01T12:05:00.000Z';
    const retry: Retry = { nextTime: next, attempts: 2, category: 'Unavailable' };
    const none = { full: false, notBefore: new Set<string>() };
    const cases: Record<string, [Retry | undefined, observed: number, typeof none, waits: boolean]> = {
      'by the echo of a status write': [retry, 1, none, true],
      'by the event of a retry that another has replaced': [
        retry,
        1,
        { full: false, notBefore: new Set(['2026-03-01T12:05:00.001Z']) },
        true,
      ],
      'not by its own event, which may come early': [retry, 1, { full: false, notBefore: new Set(['other', next]) }, false],
      'not by a full reconcile': [retry, 1, { full: true, notBefore: new Set<string>() }, false],
      'not by a new generation': [retry, 0, none, false],
      'not when its time has come': [{ ...retry, nextTime: '2026-03-01T12:00:00.000Z' }, 1, none, false],
      'not when its event was never taken': [{ attempts: 2, category: 'Unavailable' }, 1, none, false],
      'not when there is none': [undefined, 1, none, false],
      'not when its time is no time': [{ ...retry, nextTime: 'tomorrow' }, 1, none, false],
    };
    for (const [name, [pending, observedGeneration, hints, waits]] of Object.entries(cases)) {
      it(name, () => {
        const resource = user({ status: { observedGeneration, ...(pending && { retry: pending }) } });
        assert.equal(waitsForRetry(resource, hints, NOW), waits);
      });
    }

    it('only as long as it speaks of this generation', () => {
      assert.deepEqual(currentRetry(user({ status: { observedGeneration: 1, retry } })), retry);
      assert.equal(currentRetry(user({ status: { observedGeneration: 0, retry } })), undefined);
      assert.equal(currentRetry(user()), undefined);
    });
  });

  it('the reason for which a resource is not Ready is known only where it is not', () => {
    const reason = (...conditions: Condition[]) => notReadyReason(user({ status: { conditions } }));
    assert.equal(reason(condition('Ready', 'False', 'Conflict')), 'Conflict');
    assert.equal(reason(condition('Ready', 'True', 'Reconciled')), undefined);
    assert.equal(reason(condition('Ready', 'Unknown', 'Conflict')), undefined);
    assert.equal(reason(condition('PasswordSynced', 'False', 'SecretNotFound')), undefined);
    assert.equal(notReadyReason(user()), undefined);
  });
});
