import assert from 'node:assert/strict';
import type { LldapMembershipSpec } from '../../shared/kube/resources.ts';
import { CLUSTER_TIMEOUT_MS } from '../local/kube/shared.ts';
import { type Harness, startHarness } from './harness.ts';
import type { CreateOptions } from './person.ts';

describe('LldapMembership', () => {
  let h: Harness;
  const user = async (name: string, options: CreateOptions = {}) => {
    await h.create('LldapUser', name, { username: name, email: `${name}@example.com`, passwordPolicy: 'Ignore' }, options);
    return h.reconcile('LldapUser', name, { full: true, ...(options.namespace && { namespace: options.namespace }) });
  };
  const group = async (name: string, displayName = name, options: CreateOptions = {}) => {
    await h.create('LldapGroup', name, { displayName }, options);
    return h.reconcile('LldapGroup', name, { full: true, ...(options.namespace && { namespace: options.namespace }) });
  };
  const member = async (name: string, userName: string, groupName: string, more: Partial<LldapMembershipSpec> = {}) => {
    await h.create('LldapMembership', name, { userName, groupName, ...more });
    return h.reconcile('LldapMembership', name);
  };
  const remove = async (kind: 'LldapUser' | 'LldapGroup' | 'LldapMembership', name: string) => {
    await h.remove(kind, name);
    const report = await h.reconcile(kind, name, {});
    assert.equal(report.result, 'deleted', JSON.stringify(report));
  };
  const rename = async (name: string, displayName: string) => {
    await h.edit('LldapGroup', name, { spec: { displayName } });
    await h.reconcile('LldapGroup', name, {});
    await h.settle();
  };
  const groupsOf = async (id: string) => (await h.lldap.users()).find((u) => u.id === id)?.groups;
  const byHand = (query: string) => h.lldap.edit(`mutation { ${query} }`);

  before(async function () {
    this.timeout(CLUSTER_TIMEOUT_MS);
    h = await startHarness();
  });
  afterEach(async () => {
    await h.lldap.heal();
    h.posted.requeue = [];
    h.posted.reconcile = [];
  });
  after(() => h.close());

  it('joins a user and a group that no resource declares, whatever the case of their names', async () => {
    await byHand('createUser(user: {id: "hand", email: "hand@example.com"}) { id }');
    await byHand('createGroup(name: "Hand Made") { id }');
    const report = await member('hand', 'HAND', 'hand made');
    assert.equal(report.ready, true, report.message);
    assert.deepEqual(await groupsOf('hand'), ['Hand Made']);
    const { status } = await h.get('LldapMembership', 'hand');
    const found = (await h.lldap.groups()).find(({ displayName }) => displayName === 'Hand Made');
    assert.deepEqual(status?.joined, {
      userUuid: (await h.lldap.users()).find(({ id }) => id === 'hand')?.uuid,
      groupId: found?.id,
      groupUuid: found?.uuid,
    });
    assert.deepEqual([status?.userKey, status?.groupKey], ['hand', 'hand made']);
  });

  it('a whole tree that is applied at once settles by being woken, without a retry', async () => {
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
    await h.settle();
    assert.equal((await h.ready('LldapMembership', 'tree')).status, 'True');
    assert.deepEqual(await groupsOf('tree-user'), ['Tree-Group']);
    assert.equal((await h.get('LldapMembership', 'tree')).status?.retry, undefined);
  });

  it('waits for a user or group that is not there, names what is missing and the remedy', async () => {
    await byHand('createUser(user: {id: "alone", email: "alone@example.com"}) { id }');
    const noGroup = await member('no-group', 'alone', 'Nowhere');
    assert.deepEqual([noGroup.reason, noGroup.retry?.reason], ['DependencyNotReady', 'NotReady']);
    assert.match(noGroup.message ?? '', /group Nowhere.* spec\.groupName/);
    const noUser = await member('no-user', 'Nobody', 'Nowhere');
    assert.match(noUser.message ?? '', /user Nobody.* spec\.userName/);
    assert.equal((await h.condition('LldapMembership', 'no-user', 'DependenciesReady'))?.status, 'False');
  });

  it('waits for the resource that declares the name and is not Ready, and names it', async () => {
    await h.create('LldapUser', 'unready', {
      username: 'unready-user',
      email: 'unready@example.com',
      passwordSecretRef: { name: 'not-yet', key: 'password' },
    });
    await h.reconcile('LldapUser', 'unready');
    await group('unready-group');
    const report = await member('unready', 'unready-user', 'unready-group');
    assert.ok(report.message?.includes(`LldapUser ${h.namespace}/unready`), report.message);
    assert.deepEqual(await groupsOf('unready-user'), []);
    await h.secret('not-yet', { password: 'here it is now' });
    await h.secretEvent('not-yet');
    await h.settle();
    assert.deepEqual(await groupsOf('unready-user'), ['unready-group']);
  });

  it('a membership that is there already is taken as it is, though lldap would answer with a database error', async () => {
    await user('already');
    await group('already');
    const { status } = await h.get('LldapGroup', 'already');
    await byHand(`addUserToGroup(userId: "already", groupId: ${status?.groupId}) { ok }`);
    const cost = await h.cost(() => member('already', 'already', 'already'));
    assert.deepEqual(cost.mutations, []);
    assert.equal((await h.ready('LldapMembership', 'already')).status, 'True');
  });

  it('somebody else joins the two at the same moment: not an error', async () => {
    await user('moment');
    await group('moment');
    await h.lldap.fault({ kind: 'drop', only: { operation: 'addUserToGroup' }, times: 1 });
    assert.equal((await member('moment', 'moment', 'moment')).reason, 'LldapUnavailable');
    const cost = await h.cost(() => h.nextRetry());
    assert.deepEqual(cost.mutations, []);
    assert.equal((await h.ready('LldapMembership', 'moment')).status, 'True');
  });

  it('a member that a person removed is put back by a full reconcile, and an added one is left alone', async () => {
    await user('put-back');
    await group('put-back');
    await group('added');
    await member('put-back', 'put-back', 'put-back');
    const { status } = await h.get('LldapMembership', 'put-back');
    await byHand(`removeUserFromGroup(userId: "put-back", groupId: ${status?.joined?.groupId}) { ok }`);
    await byHand(`addUserToGroup(userId: "put-back", groupId: ${(await h.get('LldapGroup', 'added')).status?.groupId}) { ok }`);
    await h.reconcile('LldapMembership', 'put-back', { full: true });
    assert.deepEqual((await groupsOf('put-back'))?.sort(), ['added', 'put-back']);
  });

  it('its deletion takes the user out, whoever had put him in', async () => {
    await user('leaves');
    await group('leaves');
    await byHand(`addUserToGroup(userId: "leaves", groupId: ${(await h.get('LldapGroup', 'leaves')).status?.groupId}) { ok }`);
    await member('leaves', 'leaves', 'leaves');
    await remove('LldapMembership', 'leaves');
    assert.deepEqual(await groupsOf('leaves'), []);
  });

  it('its deletion completes when the membership, the user or the group is gone already', async () => {
    for (const what of ['membership', 'user', 'group'] as const) {
      const name = `gone-${what}`;
      await user(name);
      await group(name);
      await member(name, name, name);
      const id = (await h.get('LldapGroup', name)).status?.groupId;
      if (what === 'membership') await byHand(`removeUserFromGroup(userId: "${name}", groupId: ${id}) { ok }`);
      if (what === 'user') await byHand(`deleteUser(userId: "${name}") { ok }`);
      if (what === 'group') await byHand(`deleteGroup(groupId: ${id}) { ok }`);
      const cost = await h.cost(() => remove('LldapMembership', name));
      assert.deepEqual(cost.mutations, []);
    }
  });

  it('its deletion waits while lldap is down, and Retain lets it go with the user still in the group', async () => {
    await user('down');
    await group('down');
    await member('down', 'down', 'down');
    await h.remove('LldapMembership', 'down');
    await h.lldap.fault({ kind: 'status', status: 503 });
    const report = await h.reconcile('LldapMembership', 'down', {});
    assert.deepEqual([report.reason, report.retry?.reason], ['LldapUnavailable', 'Unavailable']);
    assert.match(report.message ?? '', /Retain/);
    await h.edit('LldapMembership', 'down', { spec: { deletionPolicy: 'Retain' } });
    const cost = await h.cost(() => h.reconcile('LldapMembership', 'down', {}));
    assert.deepEqual(cost.lldapReads, []);
    assert.equal(await h.exists('LldapMembership', 'down'), false);
    assert.deepEqual(await groupsOf('down'), ['down']);
  });

  it('it joined and died before it could record it: its deletion takes the user out all the same', async () => {
    await user('forgot');
    await group('forgot');
    await member('forgot', 'forgot', 'forgot');
    await h.editStatus('LldapMembership', 'forgot', { joined: null });
    await remove('LldapMembership', 'forgot');
    assert.deepEqual(await groupsOf('forgot'), []);
  });

  it('it followed a name to another group and died before it could record it: its deletion takes the user out all the same', async () => {
    await user('followed');
    await group('followed-1', 'followed');
    await member('followed', 'followed', 'followed');
    const { status } = await h.get('LldapMembership', 'followed');
    await rename('followed-1', 'followed before');
    await group('followed-2', 'followed');
    await h.settle();
    await h.editStatus('LldapMembership', 'followed', { joined: status?.joined });
    await remove('LldapMembership', 'followed');
    assert.deepEqual(await groupsOf('followed'), []);
  });

  it('its resource vanishes while it joins: the user is taken out again, unless another asks for the pair', async () => {
    await user('vanishes');
    await group('vanishes');
    const vanish = async (name: string) => {
      await h.create('LldapMembership', name, { userName: 'vanishes', groupName: 'vanishes' });
      h.interfere = async (_by, { path }) => {
        if (!path.includes(`/${name}/status`)) return;
        await h.edit('LldapMembership', name, { metadata: { finalizers: null } });
        await h.remove('LldapMembership', name);
      };
      await h.reconcile('LldapMembership', name);
      h.interfere = async () => {};
      return groupsOf('vanishes');
    };
    assert.deepEqual(await vanish('vanishes'), []);
    await h.create('LldapMembership', 'stays', { userName: 'vanishes', groupName: 'vanishes' });
    assert.deepEqual(await vanish('vanishes'), ['vanishes']);
  });

  it('two for one pair: the user stays in until the last of them is deleted', async () => {
    await user('pair');
    await group('pair', 'Pair');
    await member('pair-1', 'pair', 'Pair');
    await member('pair-2', 'PAIR', 'pair');
    await remove('LldapMembership', 'pair-1');
    assert.deepEqual(await groupsOf('pair'), ['Pair']);
    await remove('LldapMembership', 'pair-2');
    assert.deepEqual(await groupsOf('pair'), []);
  });

  it('a second one that was never reconciled keeps the user in, too', async () => {
    await user('fresh');
    await group('fresh');
    await member('fresh-1', 'fresh', 'fresh');
    await h.create('LldapMembership', 'fresh-2', { userName: 'fresh', groupName: 'fresh' });
    await remove('LldapMembership', 'fresh-1');
    assert.deepEqual(await groupsOf('fresh'), ['fresh']);
  });

  it('one that is created while another leaves the pair is woken', async () => {
    await user('late');
    await group('late');
    await member('late-1', 'late', 'late');
    await h.remove('LldapMembership', 'late-1');
    let once = true;
    h.interfere = async (by, { method, path }) => {
      if (by !== 'membership' || method !== 'GET' || !path.includes('lldapmemberships?') || !once) return;
      if (!(await h.lldap.asked()).some(({ operation }) => operation === 'removeUserFromGroup')) return;
      once = false;
      await h.create('LldapMembership', 'late-2', { userName: 'late', groupName: 'late' });
    };
    await h.lldap.forget();
    await h.reconcile('LldapMembership', 'late-1', {});
    h.interfere = async () => {};
    await h.settle();
    assert.deepEqual(await groupsOf('late'), ['late']);
  });

  it('a group is renamed: its members stay; then the membership that names the old name is deleted: the user is out', async () => {
    await user('moved');
    await group('moved', 'before');
    await member('moved', 'moved', 'before');
    await rename('moved', 'after');
    assert.deepEqual(await groupsOf('moved'), ['after']);
    assert.equal((await h.ready('LldapMembership', 'moved')).reason, 'DependencyNotReady');
    await remove('LldapMembership', 'moved');
    assert.deepEqual(await groupsOf('moved'), []);
  });

  it('a group is renamed onto a name that a second membership declares: the user stays in when the first is deleted', async () => {
    await user('onto');
    await group('onto', 'onto-old');
    await member('onto-1', 'onto', 'onto-old');
    await member('onto-2', 'onto', 'onto-new');
    assert.equal((await h.ready('LldapMembership', 'onto-2')).status, 'False');
    await rename('onto', 'onto-new');
    assert.equal((await h.ready('LldapMembership', 'onto-2')).status, 'True');
    await remove('LldapMembership', 'onto-1');
    assert.deepEqual(await groupsOf('onto'), ['onto-new']);
  });

  it('a group is renamed and another takes its name: the user follows the name', async () => {
    await user('follows');
    await group('follows-1', 'the name');
    await member('follows', 'follows', 'the name');
    await rename('follows-1', 'another name');
    await group('follows-2', 'the name');
    await h.settle();
    const { status } = await h.get('LldapGroup', 'follows-2');
    assert.equal((await h.get('LldapMembership', 'follows')).status?.joined?.groupId, status?.groupId);
    const members = (await h.lldap.groups()).filter((g) => g.members.includes('follows')).map((g) => g.id);
    assert.deepEqual(members, [status?.groupId]);
  });

  it('a group whose new name was taken at first leaves nobody behind under its old name', async () => {
    await user('stuck');
    await group('holder', 'wanted');
    await group('stuck', 'unwanted');
    await member('stuck', 'stuck', 'unwanted');
    await h.edit('LldapGroup', 'stuck', { spec: { displayName: 'wanted' } });
    assert.equal((await h.reconcile('LldapGroup', 'stuck', {})).reason, 'NameTaken');
    await rename('holder', 'free');
    assert.equal((await h.ready('LldapGroup', 'stuck')).status, 'True');
    assert.equal((await h.ready('LldapMembership', 'stuck')).reason, 'DependencyNotReady');
  });

  it('a user is deleted and created again: the Ready membership is joined again', async () => {
    await user('phoenix');
    await group('phoenix');
    await member('phoenix', 'phoenix', 'phoenix');
    await remove('LldapUser', 'phoenix');
    await h.settle();
    assert.equal((await h.ready('LldapMembership', 'phoenix')).reason, 'DependencyNotReady');
    await user('phoenix');
    await h.settle();
    assert.equal((await h.ready('LldapMembership', 'phoenix')).status, 'True');
    assert.deepEqual(await groupsOf('phoenix'), ['phoenix']);
  });

  it('a user or group that was lost in lldap and is made again gets its memberships back', async () => {
    await user('lost');
    await group('lost');
    await member('lost', 'lost', 'lost');
    await byHand('deleteUser(userId: "lost") { ok }');
    await h.reconcile('LldapUser', 'lost');
    await h.settle();
    assert.deepEqual(await groupsOf('lost'), ['lost']);
    await byHand(`deleteGroup(groupId: ${(await h.get('LldapGroup', 'lost')).status?.groupId}) { ok }`);
    await h.reconcile('LldapGroup', 'lost');
    await h.settle();
    assert.deepEqual(await groupsOf('lost'), ['lost']);
  });

  it("a tenant who declares names that are others' does not hold up their memberships", async () => {
    const namespace = await h.cluster.createNamespace('tenant');
    await user('shared');
    await group('shared');
    await byHand('createGroup(name: "nobodys") { id }');
    assert.equal((await user('shared', { namespace })).reason, 'Conflict');
    assert.equal((await group('shared', 'shared', { namespace })).reason, 'Conflict');
    assert.equal((await group('nobodys', 'nobodys', { namespace })).reason, 'NotOurs');
    assert.equal((await member('shared', 'shared', 'shared')).ready, true);
    assert.equal((await member('nobodys', 'shared', 'nobodys')).ready, true);
    assert.deepEqual((await groupsOf('shared'))?.sort(), ['nobodys', 'shared']);
  });

  it('a settled membership is looked at through the resources alone, and follows what they record', async () => {
    await user('settled');
    await group('settled');
    await member('settled', 'settled', 'settled');
    const cost = await h.cost(async () => assert.equal((await h.reconcile('LldapMembership', 'settled', {})).result, 'unchanged'));
    assert.deepEqual([cost.kubeWrites, cost.lldapReads, cost.mutations], [[], [], []]);
    assert.ok(cost.kubeReads.length <= 4, JSON.stringify(cost.kubeReads));
    await byHand(`deleteGroup(groupId: ${(await h.get('LldapGroup', 'settled')).status?.groupId}) { ok }`);
    await h.reconcile('LldapGroup', 'settled');
    h.posted.reconcile = [];
    // The wake-up was lost, and a hint of any kind does as well.
    await h.reconcile('LldapMembership', 'settled', {});
    assert.deepEqual(await groupsOf('settled'), ['settled']);
  });
});
