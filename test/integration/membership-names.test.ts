import assert from 'node:assert/strict';
import { useHarness } from './support/harness.ts';
import { createMembers } from './support/membership.ts';

describe('Memberships whose names mean something else', () => {
  const h = useHarness();
  const m = createMembers(h);

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
    await h.deliverEvents();
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
    await h.deliverEvents();
    assert.equal((await h.ready('LldapMembership', 'phoenix')).reason, 'DependencyNotReady');
    await m.user('phoenix');
    await h.deliverEvents();
    assert.equal((await h.ready('LldapMembership', 'phoenix')).status, 'True');
    assert.deepEqual(await m.groupsOf('phoenix'), ['phoenix']);
  });

  it('a user or group that was lost in lldap and is made again gets its memberships back', async () => {
    await m.user('lost');
    await m.group('lost');
    await m.member('lost', 'lost', 'lost');
    await m.byHand('deleteUser(userId: "lost") { ok }');
    await h.reconcile('LldapUser', 'lost');
    await h.deliverEvents();
    assert.deepEqual(await m.groupsOf('lost'), ['lost']);
    await m.byHand(`deleteGroup(groupId: ${(await h.get('LldapGroup', 'lost')).status?.groupId}) { ok }`);
    await h.reconcile('LldapGroup', 'lost');
    await h.deliverEvents();
    assert.deepEqual(await m.groupsOf('lost'), ['lost']);
  });

  it('a group was lost in lldap and a person made one of its name, which its resource does not know yet: that one is joined', async () => {
    await m.user('finds');
    await m.group('finds');
    await m.byHand(`deleteGroup(groupId: ${(await h.get('LldapGroup', 'finds')).status?.groupId}) { ok }`);
    await m.byHand('createGroup(name: "other") { id }');
    await m.byHand('createGroup(name: "finds") { id }');
    const privileged = { namespace: h.operatorNamespace };
    const report = await m.member('finds', 'finds', 'finds', {}, privileged);
    assert.equal(report.ready, true, report.message);
    assert.deepEqual(await m.groupsOf('finds'), ['finds']);
    const cost = await h.cost(() => h.reconcile('LldapMembership', 'finds', { full: true, ...privileged }));
    assert.deepEqual([cost.mutations, cost.kubeWrites], [[], []]);
  });

  it('a group that a person renamed in lldap is not meant by its name until its resource gives it back', async () => {
    await m.user('by-hand');
    await m.group('by-hand');
    await m.member('by-hand', 'by-hand', 'by-hand');
    await m.byHand(`updateGroup(group: {id: ${(await h.get('LldapGroup', 'by-hand')).status?.groupId}, displayName: "astray"}) { ok }`);
    assert.equal((await h.reconcile('LldapMembership', 'by-hand')).reason, 'DependencyNotReady');
    assert.deepEqual(await m.groupsOf('by-hand'), ['astray']);
    await h.reconcile('LldapGroup', 'by-hand');
    await h.deliverEvents();
    assert.equal((await h.ready('LldapMembership', 'by-hand')).status, 'True');
    assert.deepEqual(await m.groupsOf('by-hand'), ['by-hand']);
  });

  describe('is looked at once, and then left alone by every sweep,', () => {
    const sweeps = async (name: string) => {
      await h.startup();
      await h.deliverEvents();
      await h.startup();
      return h.posted.reconcile.some(({ target }) => target.kind === 'LldapMembership' && target.name === name);
    };

    it('a membership whose user was promoted, so that its resource may not change it any more', async () => {
      await m.user('promoted');
      await m.group('promoted');
      await m.member('promoted', 'promoted', 'promoted');
      await m.byHand('addUserToGroup(userId: "promoted", groupId: 2) { ok }');
      await h.edit('LldapUser', 'promoted', { spec: { firstName: 'New' } });
      assert.equal((await h.reconcile('LldapUser', 'promoted', {})).reason, 'Forbidden');
      assert.equal(await sweeps('promoted'), false);
      assert.equal((await h.condition('LldapMembership', 'promoted', 'DependenciesReady'))?.reason, 'FoundInLldap');
    });

    it("a membership of a group that cannot be renamed, since the name is another's", async () => {
      await m.user('renamed');
      await m.group('renamed', 'first name');
      await m.group('has-it', 'second name');
      await m.member('renamed', 'renamed', 'first name');
      await h.edit('LldapGroup', 'renamed', { spec: { displayName: 'second name' } });
      assert.equal((await h.reconcile('LldapGroup', 'renamed', {})).reason, 'NameTaken');
      assert.equal(await sweeps('renamed'), false);
      assert.deepEqual(await m.groupsOf('renamed'), ['first name']);
    });

    it('a membership whose user is kept by one resource that was deleted, and another of that name is for somebody else', async () => {
      await h.create('LldapUser', 'kept', { username: 'kept', email: 'k@example.com', passwordPolicy: 'Ignore', deletionPolicy: 'Retain' });
      await h.reconcile('LldapUser', 'kept');
      await m.group('kept');
      await m.member('kept', 'kept', 'kept');
      await m.remove('LldapUser', 'kept');
      await h.create('LldapUser', 'kept', { username: 'somebody-else', email: 'e@example.com', passwordPolicy: 'Ignore' });
      await h.reconcile('LldapUser', 'kept');
      assert.equal(await sweeps('kept'), false);
      assert.deepEqual(await m.groupsOf('kept'), ['kept']);
    });
  });
});
