import assert from 'node:assert/strict';
import { CLUSTER_TIMEOUT_MS } from '../local/kube/shared.ts';
import { type Harness, startHarness } from './harness.ts';

describe('An installation that serves its own namespace only', () => {
  let h: Harness;
  const group = (name: string, namespace: string) => h.create('LldapGroup', name, { displayName: name }, { namespace });

  before(async function () {
    this.timeout(CLUSTER_TIMEOUT_MS);
    h = await startHarness({ NAMESPACES: 'own' });
  });
  after(() => h.close());

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
    await h.settle();
    assert.equal((await h.ready('LldapGroup', 'own', h.operatorNamespace)).status, 'True');
  });

  it('leaves a resource elsewhere alone, whatever an event says, without a call', async () => {
    const cost = await h.cost(async () => assert.equal((await h.reconcile('LldapGroup', 'elsewhere')).result, 'ignored'));
    assert.deepEqual([cost.kubeReads, cost.kubeWrites, cost.mutations], [[], [], []]);
  });

  it('waits for no resource elsewhere that declares a name, nor is held up by one', async () => {
    await h.lldap.edit('mutation { createUser(user: {id: "hand", email: "hand@example.com"}) { id } }');
    await h.create('LldapUser', 'hand', { username: 'hand', email: 'x@example.com', passwordPolicy: 'Ignore' });
    await h.editStatus('LldapUser', 'hand', { nameKey: 'hand' });
    await h.create('LldapMembership', 'hand', { userName: 'hand', groupName: 'own' }, { namespace: h.operatorNamespace });
    assert.equal((await h.reconcile('LldapMembership', 'hand', { namespace: h.operatorNamespace, full: true })).ready, true);
  });
});
