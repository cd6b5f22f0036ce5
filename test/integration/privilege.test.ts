import assert from 'node:assert/strict';
import { BUILT_IN_GROUPS, FINALIZER } from '../../shared/constants.ts';
import type { LldapUserSpec } from '../../shared/kube/resources.ts';
import { useHarness } from './support/harness.ts';

describe('Privilege', () => {
  const h = useHarness({ PRIVILEGED_NAMESPACES: 'platform-team' });
  const user = async (name: string, namespace: string, more: Partial<LldapUserSpec> = {}) => {
    await h.create('LldapUser', name, { username: name, email: `${name}@example.com`, passwordPolicy: 'Ignore', ...more }, { namespace });
    return h.reconcile('LldapUser', name, { namespace, full: true });
  };
  const member = async (name: string, namespace: string, userName: string, groupName: string) => {
    await h.create('LldapMembership', name, { userName, groupName }, { namespace });
    return h.reconcile('LldapMembership', name, { namespace, full: true });
  };
  const groupsOf = async (id: string) => (await h.lldap.users()).find((u) => u.id === id)?.groups;
  const byHand = (query: string) => h.lldap.edit(`mutation { ${query} }`);
  const admins = async () => (await h.lldap.groups()).find(({ displayName }) => displayName === 'lldap_admin');
  const promote = async (id: string) => byHand(`addUserToGroup(userId: "${id}", groupId: ${(await admins())?.id}) { ok }`);

  it('memberships of the built-in groups are Forbidden from ordinary namespaces, in any case, and touch nothing, not even at deletion', async () => {
    await user('tenant', h.namespace);
    for (const [i, name] of BUILT_IN_GROUPS.entries()) {
      const cost = await h.cost(async () => {
        const report = await member(`climb-${i}`, h.namespace, 'tenant', name.toUpperCase());
        assert.deepEqual([report.reason, report.retry], ['Forbidden', undefined]);
        assert.match(report.message ?? '', new RegExp(`spec\\.groupName: only privileged namespaces may add members to ${name}`, 'i'));
        await h.remove('LldapMembership', `climb-${i}`);
        await h.reconcile('LldapMembership', `climb-${i}`, {});
      });
      assert.deepEqual([cost.lldapReads, cost.mutations], [[], []]);
      assert.equal(await h.exists('LldapMembership', `climb-${i}`), false);
    }
    assert.deepEqual(await groupsOf('tenant'), []);
  });

  for (const field of ['joining', 'joined'])
    it(`a tenant who forges status.${field} takes nobody out of a built-in group`, async () => {
      const { id: groupId, uuid: groupUuid } = (await admins()) ?? assert.fail('no lldap_admin');
      const boss = `boss-${field}`;
      await byHand(`createUser(user: {id: "${boss}", email: "${boss}@example.com"}) { id }`);
      await promote(boss);
      await h.create('LldapMembership', boss, { userName: boss, groupName: 'lldap_admin' });
      await h.edit('LldapMembership', boss, { metadata: { finalizers: [FINALIZER] } });
      await h.editStatus('LldapMembership', boss, { [field]: { userUuid: 'of another account', groupId, groupUuid } });
      assert.equal((await h.reconcile('LldapMembership', boss)).reason, 'Forbidden');
      await h.remove('LldapMembership', boss);
      await h.reconcile('LldapMembership', boss);
      assert.deepEqual(await groupsOf(boss), ['lldap_admin']);
    });

  it('from the operator’s namespace they are made and unmade for its own users', async () => {
    for (const [i, name] of BUILT_IN_GROUPS.entries()) {
      await user(`staff-${i}`, h.operatorNamespace);
      assert.equal((await member(`staff-${i}`, h.operatorNamespace, `staff-${i}`, name)).ready, true);
      assert.deepEqual(await groupsOf(`staff-${i}`), [name]);
      await h.remove('LldapMembership', `staff-${i}`, h.operatorNamespace);
      await h.reconcile('LldapMembership', `staff-${i}`, { namespace: h.operatorNamespace });
      assert.deepEqual(await groupsOf(`staff-${i}`), []);
    }
  });

  it('a namespace that the installation names as privileged may do the same', async () => {
    const { code } = await h.cluster.request('POST', '/api/v1/namespaces', { body: { metadata: { name: 'platform-team' } } });
    assert.equal(code, 201);
    await user('platform', 'platform-team');
    assert.equal((await member('platform', 'platform-team', 'platform', 'lldap_admin')).ready, true);
    assert.deepEqual(await groupsOf('platform'), ['lldap_admin']);
  });

  it('a tenant who creates the awaited user is not joined, and the membership says what to do', async () => {
    assert.equal((await member('awaited', h.operatorNamespace, 'awaited', 'lldap_admin')).reason, 'DependencyNotReady');
    await user('awaited', h.namespace);
    await h.deliverEvents();
    const ready = await h.ready('LldapMembership', 'awaited', h.operatorNamespace);
    assert.equal(ready.reason, 'UserNotPrivileged');
    assert.match(ready.message, /lldap_admin, .*awaited.*passwordPolicy: Ignore/);
    assert.deepEqual(await groupsOf('awaited'), []);
    assert.equal((await h.get('LldapMembership', 'awaited', h.operatorNamespace)).status?.retry?.category, 'NotReady');
  });

  it('a tenant who takes his own mark away in lldap is not joined either', async () => {
    await user('unmarked', h.namespace);
    await byHand('updateUser(user: {id: "unmarked", removeAttributes: ["k8s-owner"]}) { ok }');
    assert.equal((await member('unmarked', h.operatorNamespace, 'unmarked', 'lldap_admin')).reason, 'UserNotPrivileged');
    assert.deepEqual(await groupsOf('unmarked'), []);
  });

  it('a mark of another installation does not make a user privileged', async () => {
    const mark = `v1;another;${h.operatorNamespace}/x;created`;
    await byHand(
      `createUser(user: {id: "foreign", email: "foreign@example.com", attributes: [{name: "k8s-owner", value: ["${mark}"]}]}) { id }`,
    );
    assert.equal((await member('foreign', h.operatorNamespace, 'foreign', 'lldap_admin')).reason, 'UserNotPrivileged');
    assert.deepEqual(await groupsOf('foreign'), []);
  });

  it('an account made by hand is joined once a privileged namespace declares it, which wakes the membership', async () => {
    await byHand('createUser(user: {id: "veteran", email: "veteran@example.com"}) { id }');
    assert.equal((await member('veteran', h.operatorNamespace, 'veteran', 'lldap_admin')).reason, 'UserNotPrivileged');
    await user('veteran', h.operatorNamespace);
    await h.deliverEvents();
    assert.equal((await h.ready('LldapMembership', 'veteran', h.operatorNamespace)).status, 'True');
    assert.deepEqual(await groupsOf('veteran'), ['lldap_admin']);
  });

  it("a tenant's Forbidden membership does not keep anybody in when the administrator deletes the real one", async () => {
    await user('alice', h.operatorNamespace);
    await member('real', h.operatorNamespace, 'alice', 'lldap_admin');
    await member('fake', h.namespace, 'alice', 'lldap_admin');
    await h.remove('LldapMembership', 'real', h.operatorNamespace);
    await h.reconcile('LldapMembership', 'real', { namespace: h.operatorNamespace });
    assert.deepEqual(await groupsOf('alice'), []);
  });

  it('a tenant whose user was promoted since can change nothing of it, nor set its password, nor delete it', async () => {
    await h.secret('bob', { password: 'first of bob' });
    await user('bob', h.namespace, { passwordPolicy: 'Manage', passwordSecretRef: { name: 'bob', key: 'password' } });
    await promote('bob');
    assert.equal((await h.reconcile('LldapUser', 'bob')).ready, true, 'nothing differs');
    await h.secret('bob', { password: 'second of bob' });
    const rotation = await h.cost(() => h.reconcile('LldapUser', 'bob'));
    assert.deepEqual([rotation.passwords, rotation.mutations], [[], []]);
    const ready = await h.ready('LldapUser', 'bob');
    assert.equal(ready.reason, 'Forbidden');
    assert.match(ready.message, /bob is a member of lldap_admin.*privileged namespace/);
    assert.equal(await h.lldap.check('bob', 'first of bob'), true);
    await h.edit('LldapUser', 'bob', { spec: { email: 'mine@example.com' } });
    assert.deepEqual((await h.cost(() => h.reconcile('LldapUser', 'bob', {}))).mutations, []);
    await h.edit('LldapUser', 'bob', { spec: { deletionPolicy: 'Delete' } });
    await h.remove('LldapUser', 'bob');
    assert.deepEqual((await h.cost(() => h.reconcile('LldapUser', 'bob', {}))).mutations, []);
    assert.equal(await h.exists('LldapUser', 'bob'), false);
    assert.deepEqual(await groupsOf('bob'), ['lldap_admin']);
  });

  it("a tenant who takes an administrator's name writes nothing", async () => {
    await byHand('createUser(user: {id: "root", email: "root@example.com"}) { id }');
    await promote('root');
    await h.secret('root', { password: 'taken by a tenant' });
    const cost = await h.cost(() =>
      user('root', h.namespace, { passwordPolicy: 'Manage', passwordSecretRef: { name: 'root', key: 'password' } }),
    );
    assert.deepEqual([cost.mutations, cost.passwords], [[], []]);
    assert.equal((await h.ready('LldapUser', 'root')).reason, 'NotOurs');
    assert.equal((await h.get('LldapUser', 'root')).metadata.finalizers, undefined);
  });

  it("the operator's own login stays in lldap_admin, whatever membership names it is deleted", async () => {
    await h.create('LldapMembership', 'login', { userName: 'Admin', groupName: 'lldap_admin' }, { namespace: h.operatorNamespace });
    await h.reconcile('LldapMembership', 'login', { namespace: h.operatorNamespace });
    await h.remove('LldapMembership', 'login', h.operatorNamespace);
    const cost = await h.cost(() => h.reconcile('LldapMembership', 'login', { namespace: h.operatorNamespace }));
    assert.deepEqual(cost.mutations, []);
    assert.ok((await groupsOf('admin'))?.includes('lldap_admin'));
    assert.equal(await h.exists('LldapMembership', 'login', h.operatorNamespace), false);
  });

  it("a tenant's group that a person gave a built-in name is out of the tenant's reach: nobody joins it and nobody leaves", async () => {
    for (const name of ['stays', 'joins']) await user(name, h.namespace);
    await h.create('LldapGroup', 'risen', { displayName: 'risen' });
    await h.reconcile('LldapGroup', 'risen');
    await member('stays', h.namespace, 'stays', 'risen');
    const readonly = (await h.lldap.groups()).find(({ displayName }) => displayName === 'lldap_strict_readonly')?.id;
    const { status } = await h.get('LldapGroup', 'risen');
    await byHand(`updateGroup(group: {id: ${readonly}, displayName: "former"}) { ok }`);
    await byHand(`updateGroup(group: {id: ${status?.groupId}, displayName: "lldap_strict_readonly"}) { ok }`);
    assert.equal((await member('joins', h.namespace, 'joins', 'risen')).reason, 'DependencyNotReady');
    await h.remove('LldapMembership', 'stays');
    await h.reconcile('LldapMembership', 'stays', {});
    assert.deepEqual([await groupsOf('joins'), await groupsOf('stays')], [[], ['lldap_strict_readonly']]);
    await byHand(`updateGroup(group: {id: ${status?.groupId}, displayName: "risen"}) { ok }`);
    await byHand(`updateGroup(group: {id: ${readonly}, displayName: "lldap_strict_readonly"}) { ok }`);
  });

  it('a membership of a built-in group waits for its virtual group, not for any group of that name', async () => {
    await user('patient', h.operatorNamespace);
    await h.remove('LldapGroup', 'lldap-strict-readonly', h.operatorNamespace);
    const report = await member('patient', h.operatorNamespace, 'patient', 'lldap_strict_readonly');
    assert.equal(report.reason, 'DependencyNotReady');
    assert.match(report.message ?? '', /virtual group .*lldap_strict_readonly.*startup/);
    await h.startup();
    await h.deliverEvents();
    assert.deepEqual(await groupsOf('patient'), ['lldap_strict_readonly']);
  });
});
