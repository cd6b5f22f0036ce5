import assert from 'node:assert/strict';
import { CLUSTER_TIMEOUT_MS } from '../local/kube/shared.ts';
import { type Harness, startHarness } from './harness.ts';
import { createMembers, type Members } from './membership-support.ts';

describe('Memberships whose names mean something else', () => {
  let h: Harness;
  let m: Members;

  before(async function () {
    this.timeout(CLUSTER_TIMEOUT_MS);
    h = await startHarness();
    m = createMembers(h);
  });
  afterEach(async () => {
    h.interfere = async () => {};
    await h.lldap.heal();
    h.posted.requeue = [];
    h.posted.reconcile = [];
  });
  after(() => h.close());

  it('a group is renamed: its members stay; then the membership that names the old name is deleted: the user is out', async () => {
    await m.user('moved');
    await m.group('moved', 'before');
    await m.member('moved', 'moved', 'before');
    await m.rename('moved', 'after');
    assert.deepEqual(await m.groupsOf('moved'), ['after']);
    assert.equal((await h.ready('LldapMembership', 'moved')).reason, 'DependencyNotReady');
    await m.remove('LldapMembership', 'moved');
    assert.deepEqual(await m.groupsOf('moved'), []);
  });

  it('a group is renamed onto a name that a second membership declares: the user stays in when the first is deleted', async () => {
    await m.user('onto');
    await m.group('onto', 'onto-old');
    await m.member('onto-1', 'onto', 'onto-old');
    await m.member('onto-2', 'onto', 'onto-new');
    assert.equal((await h.ready('LldapMembership', 'onto-2')).status, 'False');
    await m.rename('onto', 'onto-new');
    assert.equal((await h.ready('LldapMembership', 'onto-2')).status, 'True');
    await m.remove('LldapMembership', 'onto-1');
    assert.deepEqual(await m.groupsOf('onto'), ['onto-new']);
  });

  it('a group is renamed and another takes its name: the user follows the name', async () => {
    await m.user('follows');
    await m.group('follows-1', 'the name');
    await m.member('follows', 'follows', 'the name');
    await m.rename('follows-1', 'another name');
    await m.group('follows-2', 'the name');
    await h.settle();
    const { status } = await h.get('LldapGroup', 'follows-2');
    assert.equal((await h.get('LldapMembership', 'follows')).status?.joined?.groupId, status?.groupId);
    const members = (await h.lldap.groups()).filter((g) => g.members.includes('follows')).map((g) => g.id);
    assert.deepEqual(members, [status?.groupId]);
  });

  it('a group whose new name was taken at first leaves nobody behind under its old name', async () => {
    await m.user('stuck');
    await m.group('holder', 'wanted');
    await m.group('stuck', 'unwanted');
    await m.member('stuck', 'stuck', 'unwanted');
    await h.edit('LldapGroup', 'stuck', { spec: { displayName: 'wanted' } });
    assert.equal((await h.reconcile('LldapGroup', 'stuck', {})).reason, 'NameTaken');
    await m.rename('holder', 'free');
    assert.equal((await h.ready('LldapGroup', 'stuck')).status, 'True');
    assert.equal((await h.ready('LldapMembership', 'stuck')).reason, 'DependencyNotReady');
  });

  it('a user is deleted and created again: the Ready membership is joined again', async () => {
    await m.user('phoenix');
    await m.group('phoenix');
    await m.member('phoenix', 'phoenix', 'phoenix');
    await m.remove('LldapUser', 'phoenix');
    await h.settle();
    assert.equal((await h.ready('LldapMembership', 'phoenix')).reason, 'DependencyNotReady');
    await m.user('phoenix');
    await h.settle();
    assert.equal((await h.ready('LldapMembership', 'phoenix')).status, 'True');
    assert.deepEqual(await m.groupsOf('phoenix'), ['phoenix']);
  });

  it('a user or group that was lost in lldap and is made again gets its memberships back', async () => {
    await m.user('lost');
    await m.group('lost');
    await m.member('lost', 'lost', 'lost');
    await m.byHand('deleteUser(userId: "lost") { ok }');
    await h.reconcile('LldapUser', 'lost');
    await h.settle();
    assert.deepEqual(await m.groupsOf('lost'), ['lost']);
    await m.byHand(`deleteGroup(groupId: ${(await h.get('LldapGroup', 'lost')).status?.groupId}) { ok }`);
    await h.reconcile('LldapGroup', 'lost');
    await h.settle();
    assert.deepEqual(await m.groupsOf('lost'), ['lost']);
  });
});
