import assert from 'node:assert/strict';
import { useHarness } from './support/harness.ts';
import { createMembers } from './support/membership.ts';

describe('Deletion of an LldapMembership', () => {
  const h = useHarness();
  const m = createMembers(h);

  it('its deletion takes the user out, whoever had put him in', async () => {
    await m.user('leaves');
    await m.group('leaves');
    await m.byHand(`addUserToGroup(userId: "leaves", groupId: ${(await h.get('LldapGroup', 'leaves')).status?.groupId}) { ok }`);
    await m.member('leaves', 'leaves', 'leaves');
    await m.remove('LldapMembership', 'leaves');
    assert.deepEqual(await m.groupsOf('leaves'), []);
  });

  it('its deletion completes when the membership, the user or the group is gone already', async () => {
    for (const what of ['membership', 'user', 'group'] as const) {
      const name = `gone-${what}`;
      await m.user(name);
      await m.group(name);
      await m.member(name, name, name);
      const id = (await h.get('LldapGroup', name)).status?.groupId;
      if (what === 'membership') await m.byHand(`removeUserFromGroup(userId: "${name}", groupId: ${id}) { ok }`);
      if (what === 'user') await m.byHand(`deleteUser(userId: "${name}") { ok }`);
      if (what === 'group') await m.byHand(`deleteGroup(groupId: ${id}) { ok }`);
      const cost = await h.cost(() => m.remove('LldapMembership', name));
      assert.deepEqual(cost.mutations, []);
    }
  });

  it('its deletion waits while lldap is down, and Retain lets it go with the user still in the group', async () => {
    await m.user('down');
    await m.group('down');
    await m.member('down', 'down', 'down');
    await h.remove('LldapMembership', 'down');
    await h.lldap.fault({ kind: 'status', status: 503 });
    const report = await h.reconcile('LldapMembership', 'down', {});
    assert.deepEqual([report.reason, report.retry?.category], ['LldapUnavailable', 'Unavailable']);
    assert.match(report.message ?? '', /Retain/);
    await h.edit('LldapMembership', 'down', { spec: { deletionPolicy: 'Retain' } });
    const cost = await h.cost(() => h.reconcile('LldapMembership', 'down', {}));
    assert.deepEqual(cost.lldapReads, []);
    assert.equal(await h.exists('LldapMembership', 'down'), false);
    assert.deepEqual(await m.groupsOf('down'), ['down']);
  });

  it('it joined and died before it could record it: its deletion takes the user out all the same', async () => {
    await m.user('forgot');
    await m.group('forgot');
    await m.member('forgot', 'forgot', 'forgot');
    await h.editStatus('LldapMembership', 'forgot', { joined: null });
    await m.remove('LldapMembership', 'forgot');
    assert.deepEqual(await m.groupsOf('forgot'), []);
  });

  it('it followed a name to another group and died before it could record it: its deletion takes the user out all the same', async () => {
    await m.user('followed');
    await m.group('followed-1', 'followed');
    await m.member('followed', 'followed', 'followed');
    const { status } = await h.get('LldapMembership', 'followed');
    await m.rename('followed-1', 'followed before');
    await m.group('followed-2', 'followed');
    await h.deliverEvents();
    await h.editStatus('LldapMembership', 'followed', { joined: status?.joined });
    await m.remove('LldapMembership', 'followed');
    assert.deepEqual(await m.groupsOf('followed'), []);
  });

  it('its resource vanishes while it joins: the user is taken out again, unless another asks for the pair', async () => {
    await m.user('vanishes');
    await m.group('vanishes');
    const vanish = async (name: string) => {
      await h.create('LldapMembership', name, { userName: 'vanishes', groupName: 'vanishes' });
      h.interfere = async (_by, { path }) => {
        if (!path.includes(`/${name}/status`)) return;
        await h.edit('LldapMembership', name, { metadata: { finalizers: null } });
        await h.remove('LldapMembership', name);
      };
      await h.reconcile('LldapMembership', name);
      h.interfere = async () => {};
      return m.groupsOf('vanishes');
    };
    assert.deepEqual(await vanish('vanishes'), []);
    await h.create('LldapMembership', 'stays', { userName: 'vanishes', groupName: 'vanishes' });
    assert.deepEqual(await vanish('vanishes'), ['vanishes']);
  });

  it('two for one pair: the user stays in until the last of them is deleted', async () => {
    await m.user('pair');
    await m.group('pair', 'Pair');
    await m.member('pair-1', 'pair', 'Pair');
    await m.member('pair-2', 'PAIR', 'pair');
    await m.remove('LldapMembership', 'pair-1');
    assert.deepEqual(await m.groupsOf('pair'), ['Pair']);
    await m.remove('LldapMembership', 'pair-2');
    assert.deepEqual(await m.groupsOf('pair'), []);
  });

  it('a second one that was never reconciled keeps the user in, too', async () => {
    await m.user('fresh');
    await m.group('fresh');
    await m.member('fresh-1', 'fresh', 'fresh');
    await h.create('LldapMembership', 'fresh-2', { userName: 'fresh', groupName: 'fresh' });
    await m.remove('LldapMembership', 'fresh-1');
    assert.deepEqual(await m.groupsOf('fresh'), ['fresh']);
  });

  it('one that is created while another leaves the pair is enqueued', async () => {
    await m.user('late');
    await m.group('late');
    await m.member('late-1', 'late', 'late');
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
    await h.deliverEvents();
    assert.deepEqual(await m.groupsOf('late'), ['late']);
  });
});
