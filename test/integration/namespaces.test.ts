import assert from 'node:assert/strict';
import { useHarness } from './support/harness.ts';

describe('An installation that serves its own namespace only', () => {
  const h = useHarness({ NAMESPACES: 'own' });
  const group = (name: string, namespace: string) => h.create('LldapGroup', name, { displayName: name }, { namespace });

  it('sweeps its own resources and reads nothing of others', async () => {
    await group('own', h.operatorNamespace);
    await group('elsewhere', h.namespace);
    const cost = await h.cost(() => h.startup('full'));
    assert.deepEqual(
      h.posted.reconcile.map(({ target }) => target.name),
      ['own'],
    );
    assert.deepEqual(
      cost.kubeReads.filter(({ path }) => !path.includes(`/namespaces/${h.operatorNamespace}/`)).map(({ path }) => path),
      [],
    );
    await h.deliverEvents();
    assert.equal((await h.ready('LldapGroup', 'own', h.operatorNamespace)).status, 'True');
  });

  it('leaves a resource elsewhere alone, whatever an event says, without a call', async () => {
    const cost = await h.cost(async () => assert.equal((await h.reconcile('LldapGroup', 'elsewhere')).result, 'ignored'));
    assert.deepEqual([cost.kubeReads, cost.kubeWrites, cost.mutations], [[], [], []]);
  });

  it('leaves the event of a Secret elsewhere alone, without a call, and answers it once', async () => {
    const cost = await h.cost(async () => assert.deepEqual(await h.secretEvent('password'), { status: 204 }));
    assert.deepEqual([cost.kubeReads, h.posted.reconcile], [[], []]);
  });

  it('waits for no resource elsewhere that declares a name, nor is held up by one', async () => {
    await h.lldap.edit('mutation { createUser(user: {id: "hand", email: "hand@example.com"}) { id } }');
    await h.create('LldapUser', 'hand', { username: 'hand', email: 'x@example.com', passwordPolicy: 'Ignore' });
    await h.editStatus('LldapUser', 'hand', { nameKey: 'hand' });
    await h.create('LldapMembership', 'hand', { userName: 'hand', groupName: 'own' }, { namespace: h.operatorNamespace });
    assert.equal((await h.reconcile('LldapMembership', 'hand', { namespace: h.operatorNamespace, full: true })).ready, true);
  });

  it('whoever may create resources in it is privileged: adopts accounts, and makes administrators', async () => {
    const namespace = h.operatorNamespace;
    await h.lldap.edit('mutation { createUser(user: {id: "ann", email: "ann@example.com"}) { id } }');
    await h.create('LldapUser', 'ann', { username: 'ann', email: 'ann@example.com', passwordPolicy: 'Ignore' }, { namespace });
    assert.equal((await h.reconcile('LldapUser', 'ann', { namespace, full: true })).ready, true);
    await h.create('LldapMembership', 'ann', { userName: 'ann', groupName: 'lldap_admin' }, { namespace });
    assert.equal((await h.reconcile('LldapMembership', 'ann', { namespace, full: true })).ready, true);
    assert.deepEqual((await h.lldap.users()).find(({ id }) => id === 'ann')?.groups, ['lldap_admin']);
  });
});
