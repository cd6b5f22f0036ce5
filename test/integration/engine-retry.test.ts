import assert from 'node:assert/strict';
import { REQUESTED_AT } from '../../shared/constants.ts';
import type { LldapUser, Retry } from '../../shared/kube/resources.ts';
import { useHarness } from './support/harness.ts';

const SECONDS = 1000;

describe('Retries', () => {
  const h = useHarness();
  const plain = (username: string) => ({ username, email: `${username}@example.com`, passwordPolicy: 'Ignore' as const });
  const retryOf = async (name: string): Promise<Retry | undefined> => (await h.get('LldapUser', name)).status?.retry;
  const delayOf = (retry: Retry | undefined) => Date.parse(retry?.nextTime ?? '') - h.clock.now();
  /** A user that cannot be made, since lldap answers with an error to everything. */
  const failing = async (name: string): Promise<LldapUser> => {
    await h.lldap.fault({ kind: 'status', status: 503 });
    await h.create('LldapUser', name, plain(name));
    await h.reconcile('LldapUser', name, {});
    return h.get('LldapUser', name);
  };

  it('while lldap is down the waits grow from 5 s to 5 min, with one status write for each attempt and one Event in all', async () => {
    await failing('patient');
    const delays: number[] = [];
    const cost = await h.cost(async () => {
      for (let i = 0; i < 7; i++) {
        const retry = await retryOf('patient');
        delays.push(delayOf(retry) / SECONDS);
        assert.deepEqual([retry?.attempts, retry?.category], [i + 1, 'Unavailable']);
        assert.equal(await h.nextRetry(), true);
      }
    });
    assert.deepEqual(delays, [5, 10, 30, 60, 300, 300, 300]);
    assert.equal(cost.kubeWrites.length, 7);
    assert.equal((await h.events('patient')).length, 1);
    const { conditions = [] } = (await h.get('LldapUser', 'patient')).status ?? {};
    assert.deepEqual(
      conditions.map(({ type, status, reason }) => [type, status, reason]),
      [
        ['Ready', 'False', 'LldapUnavailable'],
        ['Reconciling', 'True', 'LldapUnavailable'],
      ],
    );
    await h.lldap.heal();
    await h.nextRetry();
    assert.equal((await h.ready('LldapUser', 'patient')).status, 'True');
    const { retry, conditions: after = [] } = (await h.get('LldapUser', 'patient')).status ?? {};
    assert.equal(retry, undefined);
    assert.equal(
      after.some(({ type }) => type === 'Reconciling'),
      false,
    );
  });

  it('the jitter is a tenth of the delay at most, either way', async () => {
    h.random = 0;
    await failing('early');
    assert.equal(delayOf(await retryOf('early')), 4.5 * SECONDS);
    h.random = 1;
    await failing('late');
    assert.equal(delayOf(await retryOf('late')), 5.5 * SECONDS);
  });

  it('credentials that lldap refuses are tried again after a minute', async () => {
    const right = h.credentials;
    h.credentials = { ...right, password: 'not-the-password-at-all' };
    await h.restart();
    await h.create('LldapUser', 'refused', plain('refused'));
    const report = await h.reconcile('LldapUser', 'refused');
    assert.equal(report.reason, 'LldapUnauthenticated');
    assert.match(report.message ?? '', /lldap-operator-credentials/);
    assert.equal(delayOf(await retryOf('refused')), 60 * SECONDS);
    h.credentials = right;
    await h.nextRetry();
    assert.equal((await h.ready('LldapUser', 'refused')).status, 'True');
  });

  it('an account of the operator that is no administrator of lldap is told what it lacks', async () => {
    await h.lldap.edit('mutation { createUser(user: {id: "humble", email: "humble@example.com"}) { id } }');
    await h.lldap.setPassword('humble', 'humble-password-1');
    const right = h.credentials;
    h.credentials = { username: 'humble', password: 'humble-password-1' };
    await h.restart();
    await h.create('LldapUser', 'unauthorized', plain('unauthorized'));
    const report = await h.reconcile('LldapUser', 'unauthorized');
    assert.equal(report.reason, 'LldapUnauthorized');
    assert.match(report.message ?? '', /lldap_admin/);
    assert.equal(delayOf(await retryOf('unauthorized')), 60 * SECONDS);
    h.credentials = right;
    await h.restart();
  });

  it('while a retry is ahead, other events leave it alone: the echo after a restart, a stale retry, a forged one', async () => {
    const object = await failing('pending');
    const before = await retryOf('pending');
    await h.restart();
    await h.lldap.heal();
    for (const occasion of [{ object }, {}, { notBefore: '2026-03-01T11:00:00.000Z' }, { notBefore: '2099-01-01T00:00:00.000Z' }]) {
      const cost = await h.cost(async () => assert.equal((await h.reconcile('LldapUser', 'pending', occasion)).result, 'waiting'));
      assert.deepEqual([cost.kubeReads.length, cost.kubeWrites.length, cost.lldapReads.length], [1, 0, 0]);
    }
    assert.deepEqual(await retryOf('pending'), before);
    assert.equal(h.posted.requeue.length, 1);
  });

  it('the retry itself goes ahead, even if it comes a little early', async () => {
    const { status } = await failing('live');
    await h.lldap.heal();
    const report = await h.reconcile('LldapUser', 'live', { ...(status?.retry?.nextTime && { notBefore: status.retry.nextTime }) });
    assert.equal(report.ready, true);
  });

  it('once its time has come any event goes ahead', async () => {
    const { status } = await failing('due');
    await h.lldap.heal();
    h.clock.advanceTo(status?.retry?.nextTime ?? '');
    assert.equal((await h.reconcile('LldapUser', 'due', {})).ready, true);
  });

  it('a new generation starts afresh at once, with the first attempt', async () => {
    await failing('edited');
    await h.nextRetry();
    assert.equal((await retryOf('edited'))?.attempts, 2);
    await h.edit('LldapUser', 'edited', { spec: { firstName: 'New' } });
    await h.reconcile('LldapUser', 'edited', {});
    const { status, metadata } = await h.get('LldapUser', 'edited');
    assert.deepEqual([status?.retry?.attempts, status?.observedGeneration], [1, metadata.generation]);
    await h.lldap.heal();
    await h.edit('LldapUser', 'edited', { spec: { firstName: 'Newer' } });
    assert.equal((await h.reconcile('LldapUser', 'edited', {})).ready, true);
  });

  it('a deletion starts at once, too', async () => {
    await failing('unwanted');
    await h.lldap.heal();
    await h.remove('LldapUser', 'unwanted');
    await h.reconcile('LldapUser', 'unwanted', {});
    assert.equal(await h.exists('LldapUser', 'unwanted'), false);
  });

  it('another category starts with its first attempt', async () => {
    await failing('turns');
    await h.nextRetry();
    await h.lldap.heal();
    await h.lldap.edit('mutation { createUser(user: {id: "holder", email: "turns@example.com"}) { id } }');
    await h.nextRetry();
    const retry = await retryOf('turns');
    assert.deepEqual([retry?.attempts, retry?.category], [1, 'Taken']);
  });

  it('a full reconcile that fails in the same way leaves a retry that is ahead as it is', async () => {
    await failing('full');
    const before = await h.get('LldapUser', 'full');
    h.clock.advance(1 * SECONDS);
    assert.equal((await h.reconcile('LldapUser', 'full', { full: true })).reason, 'LldapUnavailable');
    const after = await h.get('LldapUser', 'full');
    assert.equal(after.metadata.resourceVersion, before.metadata.resourceVersion);
    assert.equal(h.posted.requeue.length, 1);
  });

  it('a full reconcile that fails in another way posts its own retry', async () => {
    await failing('fuller');
    await h.lldap.heal();
    await h.lldap.edit('mutation { createUser(user: {id: "holder2", email: "fuller@example.com"}) { id } }');
    await h.reconcile('LldapUser', 'fuller', { full: true });
    assert.equal((await retryOf('fuller'))?.category, 'Taken');
    assert.equal(h.posted.requeue.length, 2);
  });

  it('a requested-at token is handled once, also by a reconcile that fails, and the retry carries on', async () => {
    await failing('token');
    await h.edit('LldapUser', 'token', { metadata: { annotations: { [REQUESTED_AT]: 'first' } } });
    await h.reconcile('LldapUser', 'token', {});
    const { status } = await h.get('LldapUser', 'token');
    assert.equal(status?.lastHandledReconcileAt, 'first');
    assert.ok(status?.retry?.nextTime);
    assert.equal((await h.reconcile('LldapUser', 'token', {})).result, 'waiting');
    await h.lldap.heal();
    await h.nextRetry();
    assert.equal((await h.ready('LldapUser', 'token')).status, 'True');
    assert.equal((await h.get('LldapUser', 'token')).status?.lastHandledReconcileAt, 'first');
  });

  it('a requested-at token makes a steady resource read lldap and correct drift, once', async () => {
    await h.create('LldapUser', 'asked', plain('asked'));
    await h.reconcile('LldapUser', 'asked');
    await h.lldap.edit('mutation { updateUser(user: {id: "asked", email: "drifted@example.com"}) { ok } }');
    await h.edit('LldapUser', 'asked', { metadata: { annotations: { [REQUESTED_AT]: 'a'.repeat(64) } } });
    await h.reconcile('LldapUser', 'asked', {});
    assert.equal((await h.lldap.users()).find(({ id }) => id === 'asked')?.email, 'asked@example.com');
    const cost = await h.cost(async () => h.reconcile('LldapUser', 'asked', { object: await h.get('LldapUser', 'asked') }));
    assert.equal(cost.kubeReads.length, 0);
  });

  it('a token that is too long is handled once, too', async () => {
    await h.create('LldapUser', 'wordy', plain('wordy'), { annotations: { [REQUESTED_AT]: 'x'.repeat(100) } });
    await h.reconcile('LldapUser', 'wordy');
    assert.equal((await h.get('LldapUser', 'wordy')).status?.lastHandledReconcileAt, 'x'.repeat(64));
    const cost = await h.cost(async () => h.reconcile('LldapUser', 'wordy', { object: await h.get('LldapUser', 'wordy') }));
    assert.equal(cost.kubeReads.length, 0);
  });

  it('the broker has accepted the retry before the status names it', async () => {
    await h.lldap.fault({ kind: 'status', status: 503 });
    await h.create('LldapUser', 'order', plain('order'));
    const accepted: number[] = [];
    h.interfere = async (_by, { path }) => {
      if (path.includes('/order/status')) accepted.push(h.posted.requeue.length);
    };
    await h.reconcile('LldapUser', 'order');
    h.interfere = async () => {};
    assert.deepEqual(accepted, [1]);
    assert.equal(h.posted.requeue[0]?.notBefore, (await retryOf('order'))?.nextTime);
  });

  it('a broker that refuses the retry leaves a status without nextTime and the answer 503, and is never taken for an lldap failure', async () => {
    await h.lldap.fault({ kind: 'status', status: 503 });
    await h.create('LldapUser', 'brokerless', plain('brokerless'));
    h.breakBroker(true);
    const answer = await h.deliver('LldapUser', 'brokerless', {});
    assert.equal(answer.status, 503);
    assert.deepEqual(await retryOf('brokerless'), { attempts: 1, category: 'Unavailable' });
    assert.equal((await h.ready('LldapUser', 'brokerless')).reason, 'LldapUnavailable');
    h.breakBroker(false);
    // The broker delivers again.
    assert.equal((await h.deliver('LldapUser', 'brokerless', {})).status, 200);
    assert.ok((await retryOf('brokerless'))?.nextTime);
  });

  it('a broker that refuses everything does not keep a resource from being Ready', async () => {
    h.breakBroker(true);
    await h.create('LldapGroup', 'quiet', { displayName: 'quiet' });
    await h.create('LldapMembership', 'quiet', { userName: 'admin', groupName: 'quiet' });
    await h.editStatus('LldapMembership', 'quiet', { groupKey: 'quiet' });
    assert.equal((await h.deliver('LldapGroup', 'quiet')).status, 200);
    assert.equal((await h.ready('LldapGroup', 'quiet')).status, 'True');
    assert.ok(h.logs.some((line) => line.includes('failed to enqueue dependents')));
  });
});
