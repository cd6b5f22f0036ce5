import assert from 'node:assert/strict';
import { INSTANCE_LABEL, REQUESTED_AT } from '../../shared/constants.ts';
import { KubeError } from '../../shared/kube/errors.ts';
import type { Answer } from '../../shared/service/server.ts';
import { type Harness, useHarness } from './support/harness.ts';

/** Holds up the reads of one resource until it is opened; tells when the first one has come. */
function holdUp(h: Harness, name: string) {
  const come = Promise.withResolvers<void>();
  const open = Promise.withResolvers<void>();
  let reads = 0;
  h.interfere = async (_by, { method, path }) => {
    if (method !== 'GET' || !path.endsWith(`/${name}`)) return;
    reads++;
    come.resolve();
    await open.promise;
  };
  return { come: come.promise, open: () => open.resolve(), reads: () => reads };
}

describe('Events', () => {
  const h = useHarness({ MAX_CONCURRENT_RECONCILES: '2' });
  const plain = (username: string) => ({ username, email: `${username}@example.com`, passwordPolicy: 'Ignore' as const });
  const steady = async (name: string) => {
    await h.create('LldapUser', name, plain(name));
    await h.reconcile('LldapUser', name);
  };

  it('the event of an own write takes no call, though the resource is not Ready', async () => {
    await h.create('LldapMembership', 'waits', { userName: 'nobody', groupName: 'nothing' });
    await h.reconcile('LldapMembership', 'waits');
    const object = await h.get('LldapMembership', 'waits');
    const cost = await h.cost(async () => assert.equal((await h.reconcile('LldapMembership', 'waits', { object })).result, 'unchanged'));
    assert.deepEqual([cost.kubeReads, cost.kubeWrites], [[], []]);
  });

  it('an event of an own write that carries an unhandled token is no event of an own write', async () => {
    await steady('asks');
    const object = await h.edit('LldapUser', 'asks', { metadata: { annotations: { [REQUESTED_AT]: 'now' } } });
    assert.equal((await h.reconcile('LldapUser', 'asks', { object })).result, 'reconciled');
    assert.equal((await h.get('LldapUser', 'asks')).status?.lastHandledReconcileAt, 'now');
  });

  it('an event whose data is no resource is not believed, and the resource is read', async () => {
    await h.create('LldapUser', 'odd', plain('odd'));
    for (const object of [null, 'text', [], {}, { metadata: {} }, { metadata: { uid: 1 } }]) {
      const cost = await h.cost(() => h.reconcile('LldapUser', 'odd', { object }));
      assert.equal(cost.kubeReads[0]?.path.endsWith('/odd'), true, JSON.stringify(object));
    }
    assert.equal((await h.ready('LldapUser', 'odd')).status, 'True');
  });

  it('a resource that is gone, and one of another instance, are left alone', async () => {
    assert.equal((await h.reconcile('LldapUser', 'never-was')).result, 'gone');
    await h.create('LldapUser', 'other', plain('other'), { labels: { [INSTANCE_LABEL]: 'another' } });
    const cost = await h.cost(async () => assert.equal((await h.reconcile('LldapUser', 'other')).result, 'ignored'));
    assert.deepEqual([cost.kubeWrites, cost.lldapReads, cost.mutations], [[], [], []]);
    assert.equal((await h.get('LldapUser', 'other')).metadata.finalizers, undefined);
  });

  it('events for a resource that is at work lead to one more reconcile, and all but one of them are answered at once', async () => {
    await h.create('LldapUser', 'busy', plain('busy'));
    const held = holdUp(h, 'busy');
    const first = h.reconcile('LldapUser', 'busy', {});
    await held.come;
    const [last, ...others] = [1, 2, 3, 4, 5].map(() => h.reconcile('LldapUser', 'busy', {})).reverse();
    const answered = await Promise.all(others);
    assert.deepEqual(new Set(answered.map(({ result }) => result)), new Set(['collapsed']));
    held.open();
    assert.equal((await first).result, 'reconciled');
    assert.equal((await last)?.result, 'unchanged');
    assert.equal(held.reads(), 2);
  });

  it('an event of an own write that comes while the reconcile that wrote it is at work leads to no further reconcile', async () => {
    await h.create('LldapUser', 'echo', plain('echo'));
    let reads = 0;
    const echoes: Promise<Answer>[] = [];
    h.interfere = async (_by, { method, path }) => {
      if (method === 'GET' && path.endsWith('/echo')) reads++;
      // Waiting memberships are looked for after both writes, whose echoes the source has sent by then.
      if (!path.includes('/lldapmemberships?')) return;
      echoes.push(h.deliver('LldapUser', 'echo', { object: await h.get('LldapUser', 'echo') }));
    };
    await h.reconcile('LldapUser', 'echo', {});
    assert.deepEqual(
      (await Promise.all(echoes)).map(({ status }) => status),
      [200],
    );
    assert.equal(reads, 1);
  });

  it('a resource that waits for its turn takes one reconcile for all its events', async () => {
    for (const name of ['one', 'two', 'three']) await h.create('LldapUser', name, plain(name));
    const open = Promise.withResolvers<void>();
    const reads: Record<string, number> = {};
    h.interfere = async (_by, { method, path }) => {
      const name = /lldapusers\/(\w+)$/.exec(path)?.[1];
      if (method !== 'GET' || !name) return;
      reads[name] = (reads[name] ?? 0) + 1;
      await open.promise;
    };
    const first = [h.reconcile('LldapUser', 'one', {}), h.reconcile('LldapUser', 'two', {})];
    const [last, ...others] = [1, 2, 3, 4].map(() => h.reconcile('LldapUser', 'three', {})).reverse();
    assert.deepEqual(
      (await Promise.all(others)).map(({ result }) => result),
      ['collapsed', 'collapsed', 'collapsed'],
    );
    assert.equal(reads.three, undefined, 'two reconciles at once were allowed');
    open.resolve();
    await Promise.all([...first, last]);
    assert.deepEqual(reads, { one: 1, two: 1, three: 1 });
  });

  it('a full reconcile that came while a reconcile was at work is full', async () => {
    await steady('drifts');
    const held = holdUp(h, 'drifts');
    const first = h.reconcile('LldapUser', 'drifts', {});
    await held.come;
    await h.lldap.edit('mutation { updateUser(user: {id: "drifts", email: "changed@example.com"}) { ok } }');
    const full = h.reconcile('LldapUser', 'drifts', { full: true });
    held.open();
    await Promise.all([first, full]);
    assert.equal((await h.lldap.users()).find(({ id }) => id === 'drifts')?.email, 'drifts@example.com');
  });

  it('what was asked of a reconcile that could not write its status is asked of the next', async () => {
    await steady('forgets');
    await h.lldap.edit('mutation { updateUser(user: {id: "forgets", email: "gone@example.com"}) { ok } }');
    h.interfere = async () => {
      throw new KubeError(0, 'the API server is away');
    };
    assert.equal((await h.deliver('LldapUser', 'forgets', { full: true })).status, 503);
    h.interfere = async () => {};
    await h.reconcile('LldapUser', 'forgets', {});
    assert.equal((await h.lldap.users()).find(({ id }) => id === 'forgets')?.email, 'forgets@example.com');
  });

  it('a resource that takes long holds up no other', async () => {
    await h.create('LldapUser', 'slow', plain('slow'));
    await h.create('LldapUser', 'quick', plain('quick'));
    const held = holdUp(h, 'slow');
    const slow = h.reconcile('LldapUser', 'slow');
    await held.come;
    assert.equal((await h.reconcile('LldapUser', 'quick')).ready, true);
    held.open();
    assert.equal((await slow).ready, true);
  });

  it('only an update comes, never the creation: the user is made all the same', async () => {
    await h.create('LldapUser', 'late', plain('late'));
    const object = await h.edit('LldapUser', 'late', { spec: { firstName: 'Late' } });
    await h.reconcile('LldapUser', 'late', { object });
    assert.equal((await h.ready('LldapUser', 'late')).status, 'True');
  });

  it('the event of a deletion and a late one of an older version bring nothing back', async () => {
    await steady('ended');
    const target = { kind: 'LldapUser', namespace: h.namespace, name: 'ended' } as const;
    const old = await h.get('LldapUser', 'ended');
    await h.remove('LldapUser', 'ended');
    assert.equal((await h.reconcile('LldapUser', 'ended', {})).result, 'deleted');
    const functions = h.another();
    const unsettled = { ...old, status: {} };
    const cost = await h.cost(async () => {
      for (const [change, object] of [
        ['delete', old],
        ['update', old],
        ['update', unsettled],
        ['add', unsettled],
      ] as const)
        assert.ok((await functions.handle('user', { what: 'resource', change, target, object })).status < 300);
    });
    assert.deepEqual([cost.kubeWrites, cost.lldapReads, cost.mutations], [[], [], []]);
    assert.equal(
      (await h.lldap.users()).some(({ id }) => id === 'ended'),
      false,
    );
  });
});
