import assert from 'node:assert/strict';
import { useHarness } from './support/harness.ts';
import { createMembers } from './support/membership.ts';

describe('LldapMembership', () => {
  const h = useHarness();
  const m = createMembers(h);

  it('joins a user and a group that no resource declares, whatever the case of their names', async () => {
    await m.byHand('createUser(user: {id: "hand", email: "hand@example.com"}) { id }');
    await m.byHand('createGroup(name: "Hand Made") { id }');
    const privileged = { namespace: h.operatorNamespace };
    const report = await m.member('hand', 'HAND', 'hand made', {}, privileged);
    assert.equal(report.ready, true, report.message);
    assert.deepEqual(await m.groupsOf('hand'), ['Hand Made']);
    const { status } = await h.get('LldapMembership', 'hand', privileged.namespace);
    const found = (await h.lldap.groups()).find(({ displayName }) => displayName === 'Hand Made');
    assert.deepEqual(status?.joined, {
      userUuid: (await h.lldap.users()).find(({ id }) => id === 'hand')?.uuid,
      groupId: found?.id,
      groupUuid: found?.uuid,
      declared: [],
    });
    assert.deepEqual([status?.userKey, status?.groupKey], ['hand', 'hand made']);
  });

  it('a whole tree that is applied at once settles by being enqueued, without a retry', async () => {
    const ref = { userName: 'tree-user', groupName: 'tree-group' };
    await h.create('LldapMembership', 'tree', ref);
    await h.create('LldapUser', 'tree-user', {
      username: 'tree-user',
      email: 'tree@example.com',
      passwordPolicy: 'Ignore',
      attributes: [{ name: 'tree', value: ['x'] }],
    });
    await h.create('LldapGroup', 'tree-group', { displayName: 'Tree-Group' });
    await h.create('LldapAttributeSchema', 'tree', { attributeName: 'tree', attributeType: 'String', target: 'User' });
    for (const [kind, name] of [
      ['LldapMembership', 'tree'],
      ['LldapUser', 'tree-user'],
      ['LldapGroup', 'tree-group'],
      ['LldapAttributeSchema', 'tree'],
    ] as const)
      await h.reconcile(kind, name, {});
    await h.deliverEvents();
    assert.equal((await h.ready('LldapMembership', 'tree')).status, 'True');
    assert.deepEqual(await m.groupsOf('tree-user'), ['Tree-Group']);
    assert.equal((await h.get('LldapMembership', 'tree')).status?.retry, undefined);
  });

  it('waits for a user or group that is not there, names what is missing and the remedy', async () => {
    await m.byHand('createUser(user: {id: "alone", email: "alone@example.com"}) { id }');
    const noGroup = await m.member('no-group', 'alone', 'Nowhere');
    assert.deepEqual([noGroup.reason, noGroup.retry?.category], ['DependencyNotReady', 'NotReady']);
    assert.match(noGroup.message ?? '', /group Nowhere.* correct groupName/);
    const noUser = await m.member('no-user', 'Nobody', 'Nowhere');
    assert.match(noUser.message ?? '', /user Nobody.* correct userName.* group Nowhere.* correct groupName/);
    assert.equal((await h.condition('LldapMembership', 'no-user', 'DependenciesReady'))?.status, 'False');
  });

  it('waits for the resource that declares the name and is not Ready, and names it', async () => {
    await h.create('LldapUser', 'unready', {
      username: 'unready-user',
      email: 'unready@example.com',
      passwordSecretRef: { name: 'not-yet', key: 'password' },
    });
    await h.reconcile('LldapUser', 'unready');
    await m.group('unready-group');
    const report = await m.member('unready', 'unready-user', 'unready-group');
    assert.ok(report.message?.includes(`LldapUser ${h.namespace}/unready`), report.message);
    assert.deepEqual(await m.groupsOf('unready-user'), []);
    await h.secret('not-yet', { password: 'here it is now' });
    await h.secretEvent('not-yet');
    await h.deliverEvents();
    assert.deepEqual(await m.groupsOf('unready-user'), ['unready-group']);
  });

  it('a membership that is there already is taken as it is, though lldap would answer with a database error', async () => {
    await m.user('already');
    await m.group('already');
    const { status } = await h.get('LldapGroup', 'already');
    await m.byHand(`addUserToGroup(userId: "already", groupId: ${status?.groupId}) { ok }`);
    const cost = await h.cost(() => m.member('already', 'already', 'already'));
    assert.deepEqual(cost.mutations, []);
    assert.equal((await h.ready('LldapMembership', 'already')).status, 'True');
  });

  it('somebody else joins the two at the same moment, so that lldap answers with a database error: not an error', async () => {
    await m.user('moment');
    await m.group('moment');
    const { status } = await h.get('LldapGroup', 'moment');
    h.interfere = async (by, { method }) => {
      // The finalizer is written when all has been read, right before the mutation.
      if (by === 'membership' && method === 'PATCH' && (await m.groupsOf('moment'))?.length === 0)
        await m.byHand(`addUserToGroup(userId: "moment", groupId: ${status?.groupId}) { ok }`);
    };
    await h.lldap.forget();
    assert.equal((await m.member('moment', 'moment', 'moment')).ready, true);
    const joins = (await h.lldap.asked()).filter(({ operation }) => operation === 'addUserToGroup');
    assert.deepEqual(
      joins.map(({ outcome }) => outcome === 'ok'),
      [false],
    );
    assert.deepEqual(await m.groupsOf('moment'), ['moment']);
  });

  it('the answer to the joining is lost: the next reconcile finds the user in the group, and only records it', async () => {
    await m.user('unheard');
    await m.group('unheard');
    await h.lldap.fault({ kind: 'drop', only: { operation: 'addUserToGroup' }, times: 1 });
    assert.equal((await m.member('unheard', 'unheard', 'unheard')).reason, 'LldapUnavailable');
    const cost = await h.cost(() => h.nextRetry());
    assert.deepEqual(cost.mutations, []);
    assert.equal((await h.ready('LldapMembership', 'unheard')).status, 'True');
    assert.ok((await h.get('LldapMembership', 'unheard')).status?.joined);
  });

  it('a member that a person removed is put back by a full reconcile, and an added one is left alone', async () => {
    await m.user('put-back');
    await m.group('put-back');
    await m.group('added');
    await m.member('put-back', 'put-back', 'put-back');
    const { status } = await h.get('LldapMembership', 'put-back');
    await m.byHand(`removeUserFromGroup(userId: "put-back", groupId: ${status?.joined?.groupId}) { ok }`);
    await m.byHand(`addUserToGroup(userId: "put-back", groupId: ${(await h.get('LldapGroup', 'added')).status?.groupId}) { ok }`);
    await h.reconcile('LldapMembership', 'put-back', { full: true });
    assert.deepEqual((await m.groupsOf('put-back'))?.sort(), ['added', 'put-back']);
  });

  it("a tenant who declares names that are others' does not hold up their memberships", async () => {
    const namespace = await h.cluster.createNamespace('tenant');
    await m.user('shared');
    await m.group('shared');
    await m.byHand('createGroup(name: "nobodys") { id }');
    assert.equal((await m.user('shared', { namespace })).reason, 'Conflict');
    assert.equal((await m.group('shared', 'shared', { namespace })).reason, 'Conflict');
    assert.equal((await m.group('nobodys', 'nobodys', { namespace })).reason, 'NotOurs');
    assert.equal((await m.member('shared', 'shared', 'shared')).ready, true);
    assert.equal((await m.member('nobodys', 'shared', 'nobodys', {}, { namespace: h.operatorNamespace })).ready, true);
    assert.deepEqual((await m.groupsOf('shared'))?.sort(), ['nobodys', 'shared']);
  });

  it("a tenant who declares others' names and never becomes Ready does not hold up their memberships", async () => {
    const namespace = await h.cluster.createNamespace('tenant');
    await m.byHand('createUser(user: {id: "hand-made", email: "hand-made@example.com"}) { id }');
    await m.byHand('createGroup(name: "hand-made") { id }');
    await m.byHand('createGroup(name: "waits") { id }');
    const spec = { username: 'hand-made', email: 'x@example.com', passwordPolicy: 'Ignore' as const, suspend: true };
    await h.create('LldapUser', 'hand-made', spec, { namespace });
    await h.create('LldapGroup', 'hand-made', { displayName: 'hand-made', suspend: true }, { namespace });
    assert.equal((await h.reconcile('LldapUser', 'hand-made', { namespace })).reason, 'Suspended');
    assert.equal((await h.reconcile('LldapGroup', 'hand-made', { namespace })).reason, 'Suspended');
    await h.create('LldapGroup', 'waits', { displayName: 'waits', attributes: [{ name: 'never', value: ['1'] }] }, { namespace });
    assert.equal((await h.reconcile('LldapGroup', 'waits', { namespace })).reason, 'DependencyNotReady');
    const privileged = { namespace: h.operatorNamespace };
    assert.equal((await m.member('hand-made', 'hand-made', 'hand-made', {}, privileged)).ready, true);
    assert.equal((await m.member('waits', 'hand-made', 'waits', {}, privileged)).ready, true);
    assert.deepEqual((await m.groupsOf('hand-made'))?.sort(), ['hand-made', 'waits']);
    h.posted.reconcile = [];
  });

  it('a user or group of its own that waits is waited for, though lldap has it', async () => {
    await m.user('own');
    await m.group('own');
    await h.edit('LldapUser', 'own', { spec: { attributes: [{ name: 'never', value: ['1'] }] } });
    assert.equal((await h.reconcile('LldapUser', 'own', {})).reason, 'DependencyNotReady');
    const report = await m.member('own', 'own', 'own');
    assert.deepEqual(
      [report.reason, report.message],
      ['DependencyNotReady', `The LldapUser ${h.namespace}/own, which declares the user own, is not Ready. See its status for the reason.`],
    );
    h.posted.reconcile = [];
  });

  it('a steady membership is looked at through the resources alone, and follows what they record', async () => {
    await m.user('steady');
    await m.group('steady');
    await m.member('steady', 'steady', 'steady');
    const cost = await h.cost(async () => assert.equal((await h.reconcile('LldapMembership', 'steady', {})).result, 'unchanged'));
    assert.deepEqual([cost.kubeWrites, cost.lldapReads, cost.mutations], [[], [], []]);
    assert.ok(cost.kubeReads.length <= 4, JSON.stringify(cost.kubeReads));
    await m.byHand(`deleteGroup(groupId: ${(await h.get('LldapGroup', 'steady')).status?.groupId}) { ok }`);
    await h.reconcile('LldapGroup', 'steady');
    h.posted.reconcile = [];
    // The event was lost, and a hint of any kind does as well.
    await h.reconcile('LldapMembership', 'steady', {});
    assert.deepEqual(await m.groupsOf('steady'), ['steady']);
  });
});
