import assert from 'node:assert/strict';
import { measureInventory, measureRun } from '../../../../functions/startup/metrics.ts';
import type { Inventory } from '../../../../functions/startup/unsettled.ts';
import type { LldapUserStatus, Retry } from '../../../../shared/kube/resources.ts';
import { condition, group, membership, READY, user } from '../../support/examples.ts';
import { useTelemetry } from '../../support/telemetry.ts';

const NOW = Date.parse('2026-03-01T12:00:00Z');
const RETRY: Retry = { attempts: 1, category: 'NotReady', nextTime: '2026-03-01T12:00:05.000Z' };

/** Since a time of the day. */
const notReady = (reason: string, since: string, retry?: Retry): LldapUserStatus => ({
  conditions: [condition('Ready', 'False', reason, { lastTransitionTime: `2026-03-01T${since}Z` })],
  ...(retry && { retry }),
});

describe('functions/startup/metrics', () => {
  const recorded = useTelemetry();
  const measure = (over: Partial<Inventory>) =>
    measureInventory({ LldapUser: [], LldapGroup: [], LldapMembership: [], LldapAttributeSchema: [], ...over }, 0, NOW);

  it('counts the resources that are not Ready, by kind and reason', () => {
    measure({
      LldapUser: [
        user({ status: notReady('EmailTaken', '11:00:00') }),
        user({ status: notReady('EmailTaken', '11:30:00') }),
        user({ status: notReady('LldapUnavailable', '11:00:00') }),
        user({ status: { observedGeneration: 1, conditions: [READY] } }),
      ],
      LldapGroup: [group({ status: notReady('LldapUnavailable', '11:00:00') })],
      LldapMembership: [membership()],
    });
    assert.deepEqual(recorded.gauges['lldap_operator.resources.not_ready'], [
      { value: 2, attributes: { kind: 'LldapUser', reason: 'EmailTaken' } },
      { value: 1, attributes: { kind: 'LldapUser', reason: 'LldapUnavailable' } },
      { value: 1, attributes: { kind: 'LldapGroup', reason: 'LldapUnavailable' } },
      { value: 1, attributes: { kind: 'LldapMembership', reason: 'Unknown' } },
    ]);
  });

  const oldest: Record<string, [statuses: LldapUserStatus[], seconds: number]> = {
    'the oldest of those that are retried': [
      [notReady('A', '11:59:30', RETRY), notReady('A', '11:58:30', RETRY), notReady('A', '11:59:00', RETRY)],
      90,
    ],
    'none that nobody retries': [[notReady('A', '10:00:00'), notReady('A', '11:59:30', RETRY)], 30],
    'none that is Ready': [[{ conditions: [READY], retry: RETRY }], 0],
    'none whose Ready was never written': [[{ retry: RETRY }, notReady('A', '11:59:00', RETRY)], 60],
    'nothing, which is no wait': [[], 0],
  };
  for (const [name, [statuses, seconds]] of Object.entries(oldest)) {
    it(`measures in seconds how long resources have been retried: ${name}`, () => {
      measure({ LldapUser: statuses.map((status) => user({ status })) });
      assert.deepEqual(recorded.gauges['lldap_operator.retry.oldest'], [{ value: seconds }]);
    });
  }

  const runs: [what: string, run: { ok: boolean; reachable: boolean }, success: number, reachable: number][] = [
    ['without problems', { ok: true, reachable: true }, 1, 1],
    ['that met a problem', { ok: false, reachable: true }, 0, 1],
    ['that lldap did not answer', { ok: false, reachable: false }, 0, 0],
  ];
  for (const [what, run, success, reachable] of runs) {
    it(`says of a run ${what} whether it succeeded and lldap answered, and when one last succeeded`, () => {
      measureRun({ ...run, now: NOW + 499 });
      assert.deepEqual(recorded.gauges, {
        'lldap_operator.sweep.success': [{ value: success }],
        'lldap_operator.lldap.reachable': [{ value: reachable }],
        ...(run.ok && { 'lldap_operator.sweep.last_success': [{ value: NOW / 1000 }] }),
      });
    });
  }
});
