import assert from 'node:assert/strict';
import { createConsentCheck } from '../../../../functions/startup/consent.ts';
import { findLost, type Inventory, isStalled, needsReconcile, sampleFairly } from '../../../../functions/startup/unsettled.ts';
import { REQUESTED_AT, VIRTUAL_LABEL } from '../../../../shared/constants.ts';
import type { LldapGroupStatus, LldapMembershipStatus, LldapUser, LldapUserStatus, Retry } from '../../../../shared/kube/resources.ts';
import { refOf } from '../../../../shared/rules/resource-names.ts';
import { condition, group, membership, OPERATOR_NAMESPACE, policy, READY, schema, user } from '../../support/examples.ts';

const NOW = Date.parse('2026-03-01T12:00:00.000Z');
const steady = { observedGeneration: 1, conditions: [READY] };
const failed = { observedGeneration: 1, conditions: [condition('Ready', 'False', 'LldapUnavailable')] };
const retry = (nextTime: string): Retry => ({ nextTime, attempts: 1, category: 'Unavailable' });
const asked = { annotations: { [REQUESTED_AT]: 'now' } };
const deleted = { deletionTimestamp: '2026-03-01T11:00:00Z' };

describe('functions/startup/unsettled', () => {
  describe('a resource is looked at', () => {
    const cases: Record<string, [Parameters<typeof user>[0], boolean]> = {
      'not when it is in steady state': [{ status: steady }, false],
      'when its first event was lost': [{ metadata: { finalizers: [] } }, true],
      'when the event of a change was lost': [{ metadata: { generation: 2 }, status: steady }, true],
      'when it failed and nothing will try again': [{ status: failed }, true],
      'when a person may have mended it': [
        { status: { ...failed, conditions: [...failed.conditions, condition('Stalled', 'True')] } },
        true,
      ],
      'when its finalizer was removed': [{ metadata: { finalizers: [] }, status: steady }, true],
      'not while its retry is to come': [{ status: { ...failed, retry: retry('2026-03-01T12:01:00.000Z') } }, false],
      'not while its retry is at most two minutes late': [{ status: { ...failed, retry: retry('2026-03-01T11:58:00.000Z') } }, false],
      'when its retry is later than that': [{ status: { ...failed, retry: retry('2026-03-01T11:57:59.999Z') } }, true],
      'when the broker did not accept its retry': [{ status: { ...failed, retry: { attempts: 1, category: 'Unavailable' } } }, true],
      'when its retry is of the generation before': [
        { metadata: { generation: 2 }, status: { ...failed, retry: retry('2026-03-01T12:01:00.000Z') } },
        true,
      ],
      'not without a finalizer while its retry is to come': [
        { metadata: { finalizers: [] }, status: { ...failed, retry: retry('2026-03-01T12:01:00.000Z') } },
        false,
      ],
      'when a person asks': [{ metadata: asked, status: steady }, true],
      'when a person asks, though a retry is to come': [
        { metadata: asked, status: { ...failed, retry: retry('2026-03-01T12:01:00.000Z') } },
        true,
      ],
      'not when that was done': [{ metadata: asked, status: { ...steady, lastHandledReconcileAt: 'now' } }, false],
      'when it is being deleted and waits for us': [{ metadata: deleted, status: steady }, true],
      'not when it is being deleted and waits for others': [
        { metadata: { ...deleted, finalizers: ['example.com/other'] }, status: steady },
        false,
      ],
      'not when it is being deleted and its retry is to come': [
        { metadata: deleted, status: { ...failed, retry: retry('2026-03-01T12:01:00.000Z') } },
        false,
      ],
      'not when it is suspended and says so': [{ spec: { suspend: true }, status: failed }, false],
      'not when it is suspended and says so, though a person asks': [{ spec: { suspend: true }, metadata: asked, status: failed }, false],
      'when it was suspended, and does not say so yet': [{ spec: { suspend: true }, metadata: { generation: 2 }, status: steady }, true],
    };
    for (const [name, [example, looks]] of Object.entries(cases)) it(name, () => assert.equal(needsReconcile(user(example), NOW), looks));
  });

  describe('a resource that only a person can help', () => {
    const status = { ...failed, conditions: [...failed.conditions, condition('Stalled', 'True')] };
    const cases: Record<string, [Parameters<typeof user>[0], boolean]> = {
      'is not counted as lost': [{ status }, true],
      'is, when the event of a change was lost': [{ metadata: { generation: 2 }, status }, false],
      'is, when a person asks': [{ metadata: asked, status }, false],
      'is, when its deletion was lost': [{ metadata: deleted, status }, false],
    };
    for (const [name, [example, stalled]] of Object.entries(cases)) it(name, () => assert.equal(isStalled(user(example)), stalled));
  });

  describe('of more stalled resources than one sweep asks for', () => {
    const of = (namespace: string, count: number) =>
      Array.from({ length: count }, (_, i) => user({ metadata: { namespace, name: `${namespace}${i}`, uid: `${namespace}${i}` } }));
    const counts = (resources: LldapUser[]) =>
      Object.entries(Object.groupBy(resources, ({ metadata }) => metadata.namespace)).map(([name, own = []]) => [name, own.length]);

    it('those of a small namespace are asked for, however many another one has', () => {
      const chosen = sampleFairly([...of('full', 500), ...of('small', 3), ...of('middle', 40)], 20, Math.random);
      const { full = 0, middle = 0, small } = Object.fromEntries(counts(chosen));
      assert.deepEqual([small, full + middle, Math.abs(full - middle)], [3, 17, 1]);
    });

    it('each has its turn in some sweep', () => {
      const all = of('team', 30);
      const seen = new Set<string>();
      for (let sweep = 0; sweep < 1_000; sweep++) for (const { metadata } of sampleFairly(all, 10, Math.random)) seen.add(metadata.name);
      assert.equal(seen.size, all.length);
    });

    it('all are asked for where one sweep can', () => {
      assert.equal(sampleFairly(of('team', 30), 30, Math.random).length, 30);
    });
  });

  const NONE: Inventory = { LldapUser: [], LldapGroup: [], LldapMembership: [], LldapAttributeSchema: [] };
  const lost = (inventory: Partial<Inventory>) =>
    findLost({ ...NONE, ...inventory }, policy(), NOW, createConsentCheck([], undefined, policy())).map((r) => `${r.kind} ${refOf(r)}`);

  it('definitions come first, then users and groups, then memberships, so that each finds what it waits for', () => {
    assert.deepEqual(
      lost({ LldapUser: [user()], LldapGroup: [group()], LldapMembership: [membership()], LldapAttributeSchema: [schema()] }),
      ['LldapAttributeSchema team/shoe-size', 'LldapUser team/alice', 'LldapGroup team/crew', 'LldapMembership team/alice-crew'],
    );
  });

  it('users that wait for the installation’s key are looked at, though a retry is to come: startup makes it', () => {
    const waits = (reason: string) =>
      user({ status: { ...failed, conditions: [condition('Ready', 'False', reason)], retry: retry('2026-03-01T12:01:00.000Z') } });
    assert.deepEqual(lost({ LldapUser: [waits('PasswordKeyMissing')] }), ['LldapUser team/alice']);
    assert.deepEqual(lost({ LldapUser: [waits('SecretNotFound')] }), []);
  });

  it('what is in steady state is left alone, of every kind', () => {
    const joined = { userUuid: 'uuid-alice', groupId: 7, groupUuid: 'uuid-crew' };
    assert.deepEqual(
      lost({
        LldapUser: [user({ status: steady })],
        LldapGroup: [group({ status: steady })],
        LldapMembership: [membership({ status: { ...steady, joined } })],
        LldapAttributeSchema: [schema({ status: steady })],
      }),
      [],
    );
  });

  describe('virtual groups', () => {
    const labels = { [VIRTUAL_LABEL]: 'true' };
    const virtual = (namespace: string) =>
      group({ metadata: { name: 'lldap-admin', namespace, labels }, spec: { displayName: 'lldap_admin' } });
    it('are startup’s own', () => assert.deepEqual(lost({ LldapGroup: [virtual(OPERATOR_NAMESPACE)] }), []));
    it('are not what a tenant makes to look like them', () => {
      assert.deepEqual(lost({ LldapGroup: [virtual('team')] }), ['LldapGroup team/lldap-admin']);
    });

    const joined = membership({
      spec: { groupName: 'lldap_admin' },
      status: { ...steady, joined: { userUuid: 'uuid-alice', groupId: 1, groupUuid: 'uuid-admins' } },
    });
    const stands = { ...virtual(OPERATOR_NAMESPACE), status: { ...steady, groupId: 4, uuid: 'uuid-new' } };
    const pretends = { ...virtual('team'), status: { ...steady, groupId: 9, uuid: 'uuid-other' } };
    const stays = { ...stands, status: { ...steady, groupId: 1, uuid: 'uuid-admins' } };

    it('alone say what a built-in name means', () => {
      assert.deepEqual(lost({ LldapGroup: [stays, pretends], LldapMembership: [joined] }), []);
      assert.deepEqual(lost({ LldapGroup: [stands], LldapMembership: [joined] }), ['LldapMembership team/alice-crew']);
    });
  });

  describe('a steady membership is looked at', () => {
    const aMember = (status: LldapMembershipStatus = {}, more: Parameters<typeof membership>[0] = {}) =>
      membership({ ...more, status: { ...steady, joined: { userUuid: 'uuid-alice', groupId: 7, groupUuid: 'uuid-crew' }, ...status } });
    const aUser = (status: LldapUserStatus = {}) => user({ status: { ...steady, uuid: 'uuid-alice', ...status } });
    const aGroup = (status: LldapGroupStatus = {}, displayName = 'Crew') =>
      group({ spec: { displayName }, status: { ...steady, groupId: 7, uuid: 'uuid-crew', ...status } });
    const cases: Record<string, [Partial<Inventory>, boolean]> = {
      'not while all is as it was': [{ LldapUser: [aUser()], LldapGroup: [aGroup()], LldapMembership: [aMember()] }, false],
      'when its user was made anew': [{ LldapUser: [aUser({ uuid: 'uuid-new' })], LldapMembership: [aMember()] }, true],
      'when its user was made anew, whatever the case of the name': [
        { LldapUser: [aUser({ uuid: 'uuid-new' })], LldapMembership: [aMember({}, { spec: { userName: 'ALICE' } })] },
        true,
      ],
      'when its group was made anew': [{ LldapGroup: [aGroup({ groupId: 8, uuid: 'uuid-new' })], LldapMembership: [aMember()] }, true],
      'when its group has another name': [{ LldapGroup: [aGroup({}, 'Team')], LldapMembership: [aMember()] }, true],
      'not when another user or group was made anew': [
        {
          LldapUser: [user({ spec: { username: 'bob' }, status: { ...steady, uuid: 'uuid-bob' } })],
          LldapGroup: [aGroup({ groupId: 9, uuid: 'uuid-other' }, 'Other')],
          LldapMembership: [aMember()],
        },
        false,
      ],
      'when it records nothing': [{ LldapMembership: [membership({ status: steady })] }, true],
      'not when it is suspended': [
        { LldapUser: [aUser({ uuid: 'uuid-new' })], LldapMembership: [aMember({}, { spec: { suspend: true } })] },
        false,
      ],
      'not when it is being deleted, and waits for others': [
        { LldapUser: [aUser({ uuid: 'uuid-new' })], LldapMembership: [aMember({}, { metadata: { ...deleted, finalizers: [] } })] },
        false,
      ],
    };
    for (const [name, [inventory, looks]] of Object.entries(cases)) {
      it(name, () => assert.deepEqual(lost(inventory), looks ? ['LldapMembership team/alice-crew'] : []));
    }
  });

  describe('two resources that think that one object is theirs', () => {
    const owner = (namespace: string, more: Parameters<typeof user>[0] = {}) =>
      user({ ...more, metadata: { namespace, ...more?.metadata }, status: { ...steady, uuid: 'uuid-alice', ...more?.status } });
    it('are both looked at', () => {
      assert.deepEqual(lost({ LldapUser: [owner('one'), owner('two'), owner('three', { status: { uuid: 'uuid-other' } })] }), [
        'LldapUser one/alice',
        'LldapUser two/alice',
      ]);
    });
    it('may be a user and a group, for which a uuid means another thing', () => {
      assert.deepEqual(
        lost({ LldapUser: [owner('one')], LldapGroup: [group({ status: { ...steady, groupId: 7, uuid: 'uuid-alice' } })] }),
        [],
      );
    });
    it('are none if one of them is not Ready, and so does not think it', () => {
      const waits = owner('two', { status: { ...failed, retry: retry('2026-03-01T12:01:00.000Z') } });
      assert.deepEqual(lost({ LldapUser: [owner('one'), waits] }), []);
    });
    it('are looked at, all but who is suspended and says so', () => {
      const suspended = owner('two', { spec: { suspend: true } });
      assert.deepEqual(lost({ LldapUser: [owner('one'), suspended] }), ['LldapUser one/alice']);
    });
    it('are none where they record nothing', () => {
      assert.deepEqual(lost({ LldapUser: [user({ status: steady }), user({ metadata: { namespace: 'two' }, status: steady })] }), []);
    });
    it('are none if one of them is being deleted', () => {
      assert.deepEqual(lost({ LldapUser: [owner('one'), owner('two', { metadata: { ...deleted, finalizers: [] } })] }), []);
    });
  });
});
