import assert from 'node:assert/strict';
import type { Retry } from '../../shared/kube/resources.ts';
import { useHarness } from './support/harness.ts';

const SECONDS = 1000;

describe('Failures', () => {
  const h = useHarness();
  const plain = (username: string) => ({ username, email: `${username}@example.com`, passwordPolicy: 'Ignore' as const });
  const retryOf = async (name: string): Promise<Retry | undefined> => (await h.get('LldapUser', name)).status?.retry;
  const delayOf = (retry: Retry | undefined) => Date.parse(retry?.nextTime ?? '') - h.clock.now();

  it('a reconcile past its deadline starts no further mutation, keeps what it did, and goes on from there', async () => {
    await h.secret('deadline', { password: 'deadline-password' });
    await h.create('LldapUser', 'deadline', {
      ...plain('deadline'),
      passwordPolicy: 'Manage',
      passwordSecretRef: { name: 'deadline', key: 'password' },
    });
    const { monotonic } = h.clock;
    let looks = 0;
    // The start of the reconcile and its first mutation are in time.
    h.clock.monotonic = () => (looks++ < 2 ? 0 : 31 * SECONDS);
    const report = await h.reconcile('LldapUser', 'deadline');
    h.clock.monotonic = monotonic;
    assert.deepEqual([report.reason, report.did], ['DeadlineExceeded', ['created the user']]);
    const { status } = await h.get('LldapUser', 'deadline');
    assert.deepEqual([status?.origin, status?.retry?.category, status?.passwordHash], ['created', 'Unavailable', undefined]);
    const cost = await h.cost(() => h.nextRetry());
    assert.deepEqual([cost.mutations, cost.passwords], [[], ['passwordModify deadline', 'bind deadline']]);
    assert.equal((await h.ready('LldapUser', 'deadline')).status, 'True');
  });

  it('lldap accepts the connection and never answers: the reconcile ends, the status says so, and others go on', async () => {
    await h.lldap.fault({ kind: 'hang', only: { operation: 'user', id: 'stuck' } });
    await h.create('LldapUser', 'stuck', plain('stuck'));
    await h.create('LldapUser', 'free', plain('free'));
    const occasion = { full: true, by: h.another({ lldapTimeoutMs: 10_000 }) };
    const [stuck, free] = await Promise.all([h.reconcile('LldapUser', 'stuck', occasion), h.reconcile('LldapUser', 'free', occasion)]);
    assert.deepEqual([stuck.reason, free.ready], ['LldapUnavailable', true]);
  });

  it('an error in an answer of lldap that nobody knows is never taken for success, is logged, and is tried again', async () => {
    await h.lldap.fault({ kind: 'text', text: 'Something new went wrong', only: { operation: 'createUser' }, times: 1 });
    await h.create('LldapUser', 'strange', plain('strange'));
    const report = await h.reconcile('LldapUser', 'strange');
    assert.deepEqual([report.ready, report.reason, report.retry?.category], [false, 'InternalError', 'Bug']);
    assert.equal(delayOf(report.retry), 5 * SECONDS);
    assert.ok(h.logs.some((line) => line.includes('unexpected error') && line.includes('stack')));
    await h.nextRetry();
    assert.equal((await h.ready('LldapUser', 'strange')).status, 'True');
  });

  it('an error that nobody knows, to whatever was asked, leaves no resource Ready, and goes away by itself', async () => {
    const id = 'fails';
    const create = {
      LldapUser: () => h.create('LldapUser', id, plain(id)),
      LldapGroup: () => h.create('LldapGroup', id, { displayName: id }),
      LldapMembership: () => h.create('LldapMembership', id, { userName: id, groupName: id }),
      LldapAttributeSchema: () => h.create('LldapAttributeSchema', id, { attributeName: id, attributeType: 'String', target: 'User' }),
    };
    for (const [kind, operation, edit] of [
      ['LldapUser', 'createUser'],
      ['LldapUser', 'user'],
      ['LldapUser', 'updateUser', { spec: { firstName: 'Changed' } }],
      ['LldapGroup', 'createGroupWithDetails'],
      ['LldapGroup', 'group'],
      ['LldapGroup', 'updateGroup', { spec: { displayName: id.toUpperCase() } }],
      ['LldapMembership', 'addUserToGroup'],
      ['LldapMembership', 'user'],
      ['LldapAttributeSchema', 'addUserAttribute'],
      ['LldapAttributeSchema', 'schema'],
    ] as const) {
      if (!(await h.exists(kind, id))) await create[kind]();
      if (edit) await h.edit(kind, id, edit);
      await h.lldap.fault({ kind: 'text', text: 'Something new went wrong', only: { operation } });
      const report = await h.reconcile(kind, id);
      assert.deepEqual([report.ready, report.reason, report.did], [false, 'InternalError', []], operation);
      assert.equal((await h.ready(kind, id)).status, 'False', operation);
      await h.lldap.heal();
      await h.nextRetry();
      assert.equal((await h.ready(kind, id)).status, 'True', operation);
    }
  });

  it('what only a person can mend is Stalled and not tried again', async () => {
    await h.create('LldapUser', 'stalled', { ...plain('stalled'), username: 'ADMIN' });
    const report = await h.reconcile('LldapUser', 'stalled');
    assert.deepEqual([report.reason, report.retry], ['Protected', undefined]);
    assert.equal((await h.condition('LldapUser', 'stalled', 'Stalled'))?.status, 'True');
    assert.equal(await h.condition('LldapUser', 'stalled', 'Reconciling'), undefined);
    assert.deepEqual(h.posted.requeue, []);
  });

  it('suspended: Ready is False, the retry is cleared, nothing is done, and the deletion waits', async () => {
    await h.create('LldapUser', 'paused', plain('paused'));
    await h.reconcile('LldapUser', 'paused');
    await h.lldap.fault({ kind: 'status', status: 503 });
    await h.reconcile('LldapUser', 'paused');
    assert.ok(await retryOf('paused'));
    await h.lldap.heal();
    await h.edit('LldapUser', 'paused', { spec: { suspend: true } });
    const cost = await h.cost(() => h.reconcile('LldapUser', 'paused'));
    assert.deepEqual([cost.lldapReads, cost.mutations], [[], []]);
    const { status, metadata } = await h.get('LldapUser', 'paused');
    assert.equal(status?.retry, undefined);
    assert.equal(status?.observedGeneration, metadata.generation);
    assert.equal((await h.ready('LldapUser', 'paused')).reason, 'Suspended');
    await h.remove('LldapUser', 'paused');
    await h.reconcile('LldapUser', 'paused');
    assert.equal(await h.exists('LldapUser', 'paused'), true);
    await h.edit('LldapUser', 'paused', { spec: { suspend: false } });
    await h.reconcile('LldapUser', 'paused');
    assert.equal(await h.exists('LldapUser', 'paused'), false);
  });
});
