import assert from 'node:assert/strict';
import type { KubeCall } from './support/functions.ts';
import { useHarness } from './support/harness.ts';
import { grantedRights, rightsOf } from './support/rights.ts';

const NOBODY = { matchLabels: { 'kubernetes.io/metadata.name': 'nobody' } };

describe("The functions' rights", () => {
  const h = useHarness();
  const used = new Set<string>();
  const run = async (work: () => Promise<unknown>) => {
    const { kubeReads, kubeWrites } = await h.cost(work);
    for (const call of [...kubeReads, ...kubeWrites]) for (const right of rightsOf(call)) used.add(right);
  };

  it('are told from a call', () => {
    const call = (method: KubeCall['method'], path: string, contentType = 'application/json') =>
      rightsOf({ by: 'user', status: 200, method, path, contentType });
    const apply = 'application/apply-patch+yaml';
    assert.deepEqual(call('GET', '/apis/g/v1/lldapusers?limit=500'), ['user: list lldapusers']);
    assert.deepEqual(call('GET', '/apis/g/v1/namespaces/n/lldapusers?limit=500'), ['user: list lldapusers']);
    assert.deepEqual(call('GET', '/apis/g/v1/namespaces/n/lldapusers/x'), ['user: get lldapusers']);
    assert.deepEqual(call('GET', '/api/v1/namespaces/n'), ['user: get namespaces']);
    assert.deepEqual(call('GET', '/api/v1/namespaces?limit=500'), ['user: list namespaces']);
    assert.deepEqual(call('PATCH', '/apis/g/v1/namespaces/n/lldapusers/x/status?force=true', apply), ['user: patch lldapusers/status']);
    assert.deepEqual(call('PATCH', '/apis/g/v1/namespaces/n/lldapusers/x', apply), ['user: patch lldapusers', 'user: create lldapusers']);
    assert.deepEqual(call('POST', '/apis/events.k8s.io/v1/namespaces/n/events'), ['user: create events']);
  });

  it('are all used in the course of things, and none is missing', async () => {
    await run(async () => {
      await h.cluster.request('DELETE', `/api/v1/namespaces/${h.operatorNamespace}/secrets/lldap-operator-password-key`);
      await h.remove('LldapGroup', 'lldap-admin', h.operatorNamespace);
      await h.startup('full');
      for (const target of ['User', 'Group'] as const)
        await h.create('LldapAttributeSchema', target.toLowerCase(), { attributeName: 'one', attributeType: 'String', target });
      const attributes = [{ name: 'one', value: ['1'] }];
      await h.secret('one', { password: 'password of one' });
      await h.create('LldapUser', 'one', {
        username: 'one',
        email: 'one@example.com',
        passwordSecretRef: { name: 'one', key: 'password' },
        attributes,
      });
      await h.create('LldapGroup', 'one', { displayName: 'one', attributes });
      await h.create('LldapMembership', 'one', { userName: 'one', groupName: 'one' });
      await h.create('LldapMembership', 'admin', { userName: 'one', groupName: 'lldap_admin' }, { namespace: h.operatorNamespace });
      await h.startup();
      await h.deliverEvents();
      await h.deliverEvents();
      await h.secretEvent('one');
      // Others that declare the same, then the owners go.
      const other = await h.cluster.createNamespace('tenant');
      await h.create('LldapUser', 'two', { username: 'one', email: 'two@example.com', passwordPolicy: 'Ignore' }, { namespace: other });
      await h.create('LldapGroup', 'two', { displayName: 'one' }, { namespace: other });
      await h.startup();
      await h.deliverEvents();
      for (const kind of ['LldapMembership', 'LldapUser', 'LldapGroup'] as const) {
        await h.remove(kind, 'one');
        await h.reconcile(kind, 'one', {});
      }
      await h.deliverEvents();
      for (const name of ['user', 'group']) {
        await h.remove('LldapAttributeSchema', name);
        await h.reconcile('LldapAttributeSchema', name, {});
      }
      // A user that its resource has left in lldap: whose it is, its mark tells.
      const kept = { username: 'kept', email: 'kept@example.com', passwordPolicy: 'Ignore', deletionPolicy: 'Retain' } as const;
      await h.create('LldapUser', 'kept', kept);
      await h.reconcile('LldapUser', 'kept');
      await h.remove('LldapUser', 'kept');
      await h.reconcile('LldapUser', 'kept');
      await h.create('LldapGroup', 'kept', { displayName: 'kept' });
      await h.reconcile('LldapGroup', 'kept');
      await h.create('LldapMembership', 'kept', { userName: 'kept', groupName: 'kept' });
      await h.reconcile('LldapMembership', 'kept');
      // A group that admits namespaces by their labels.
      await h.edit('LldapGroup', 'kept', { spec: { allowedMemberships: { namespaces: { from: 'Selector', selector: NOBODY } } } });
      await h.create('LldapMembership', 'others', { userName: 'kept', groupName: 'kept' }, { namespace: other });
      await h.reconcile('LldapMembership', 'others', { namespace: other });
      await h.reconcile('LldapGroup', 'kept', {});
      await h.startup();
      // What is refused leaves an Event.
      await h.create('LldapMembership', 'refused', { userName: 'kept', groupName: 'lldap_admin' });
      await h.reconcile('LldapMembership', 'refused');
      for (const attributeType of ['String', 'Integer'] as const) {
        const name = `refused-${attributeType.toLowerCase()}`;
        await h.create('LldapAttributeSchema', name, { attributeName: 'refused', attributeType, target: 'User' });
        await h.reconcile('LldapAttributeSchema', name);
      }
      // What only a failure calls for.
      await h.lldap.fault({ kind: 'status', status: 503 });
      await h.startup();
    });
    for (const [kind, name] of [
      ['LldapMembership', 'one'],
      ['LldapUser', 'one'],
      ['LldapGroup', 'one'],
      ['LldapAttributeSchema', 'user'],
    ] as const)
      assert.equal(await h.exists(kind, name), false);
    const granted = await grantedRights();
    assert.deepEqual(
      [...used].filter((right) => !granted.has(right)),
      [],
      'missing',
    );
    assert.deepEqual([...granted].filter((right) => !used.has(right)).sort(), [], 'unused');
  });
});
