import assert from 'node:assert/strict';
import { useWorld } from '../../support/world.ts';
import { KIND, membershipScenes, PLACE } from './scenes.ts';

describe('memberships that exist', () => {
  const { w } = useWorld();
  const { crew, joinedBy, joined, promoted } = membershipScenes(w);

  describe('what somebody changed in lldap', () => {
    it('a deleted user is created again by its resource, then joins again', async () => {
      await joined();
      w.byHand((directory) => directory.deleteUser('alice'));
      const report = await w.reconcile(KIND, PLACE);
      assert.equal(report.reason, 'DependencyNotReady');
      assert.deepEqual(w.posted, ['reconcile LldapUser team/alice', `requeue ${KIND} ${PLACE}`]);
      assert.equal(
        w.message(KIND, PLACE),
        'lldap no longer has the object of the LldapUser team/alice. The operator has asked that resource to create it again.',
      );
      await w.deliverEvents();
      assert.deepEqual(w.members('Crew'), ['alice']);
      assert.deepEqual(w.status(KIND, PLACE).joined, joinedBy('alice', 'Crew', ['User', 'Group']));
    });

    it('a deleted group is created again by its resource, then joined again', async () => {
      await joined();
      w.byHand((directory) => directory.deleteGroup(w.groupOf('Crew').id));
      await w.reconcile(KIND, PLACE);
      assert.deepEqual(w.posted, ['reconcile LldapGroup team/crew', `requeue ${KIND} ${PLACE}`]);
      assert.match(w.message(KIND, PLACE), /^lldap no longer has the object of the LldapGroup team\/crew\./);
      await w.deliverEvents();
      assert.deepEqual(w.members('Crew'), ['alice']);
    });

    it('a deleted built-in group is not requested from its virtual group', async () => {
      await promoted();
      w.byHand((directory) => directory.deleteGroup(2));
      w.membership('adm/m2', 'root', 'lldap_password_manager');
      await w.deliverEvents();
      assert.deepEqual(w.posted, [`requeue ${KIND} adm/m2`]);
      assert.match(w.message(KIND, 'adm/m2'), /^lldap has no group lldap_password_manager\. /);
    });

    it('a full reconcile adds a removed member again, and leaves other members alone', async () => {
      await joined();
      w.account('guest', 'Crew');
      w.byHand((directory) => directory.removeMember('alice', w.groupOf('Crew').id));
      const report = await w.reconcile(KIND, PLACE);
      assert.deepEqual([report.result, report.did], ['reconciled', ['added the user to the group']]);
      assert.deepEqual(w.members('Crew'), ['alice', 'guest']);
      assert.deepEqual(w.writes, ['lldap addUserToGroup alice 4']);
    });

    it('an existing member is recorded without a write to lldap', async () => {
      w.byHand((directory) => directory.createGroup({ displayName: 'Crew' }));
      w.account('alice', 'Crew');
      w.membership('adm/m', 'alice', 'Crew');
      await w.deliverEvents();
      assert.equal(w.ready(KIND, 'adm/m'), 'True');
      assert.deepEqual(w.status(KIND, 'adm/m').joined, joinedBy('alice', 'Crew', []));
      assert.deepEqual(w.writes, [`kube FINALIZER ${KIND} adm/m`, `kube STATUS ${KIND} adm/m`]);
    });
  });

  describe('in steady state', () => {
    it('a full reconcile writes nothing, and a late retry does not even call lldap', async () => {
      await joined();
      assert.equal((await w.reconcile(KIND, PLACE)).result, 'reconciled');
      assert.deepEqual(w.writes, []);
      assert.deepEqual(w.asked, ['lldap group 4', 'lldap user alice']);
      assert.deepEqual(w.posted, []);
      w.forget();
      assert.equal((await w.reconcile(KIND, PLACE, { notBefore: '2026-03-01T11:00:00.000Z' })).result, 'unchanged');
      assert.deepEqual(w.asked, []);
    });

    it('a status without the join is completed', async () => {
      await joined();
      w.unwatched(() => w.forge(KIND, PLACE, { joined: undefined as never }));
      assert.equal((await w.reconcile(KIND, PLACE, { notBefore: '2026-03-01T11:00:00.000Z' })).result, 'reconciled');
      assert.deepEqual(w.status(KIND, PLACE).joined, joinedBy('alice', 'Crew', ['User', 'Group']));
    });

    it('a late retry notices a user or group that was replaced', async () => {
      await joined();
      for (const [kind, at] of [
        ['LldapUser', 'team/alice'],
        ['LldapGroup', 'team/crew'],
      ] as const) {
        const { uuid } = w.status(kind, at);
        w.unwatched(() => w.forge(kind, at, { uuid: 'another' }));
        assert.equal((await w.reconcile(KIND, PLACE, { notBefore: '2026-03-01T11:00:00.000Z' })).result, 'reconciled', kind);
        w.unwatched(() => w.forge(kind, at, { uuid: uuid ?? '' }));
      }
    });
  });

  describe('a group that is renamed', () => {
    async function renamed(at?: `${string}/${string}`): Promise<void> {
      await joined(at);
      w.edit('LldapGroup', 'team/crew', { displayName: 'Team' });
      await w.deliverEvents();
      w.forget();
    }

    it('keeps its members, and memberships of the old name wait for a group of that name', async () => {
      await renamed();
      assert.deepEqual(w.members('Team'), ['alice']);
      assert.match(w.message(KIND, PLACE), /^lldap has no group Crew\. /);
    });

    it('the user moves when another group takes the old name', async () => {
      await renamed();
      w.apply('LldapGroup', 'team/next', { displayName: 'Crew' });
      await w.deliverEvents();
      assert.deepEqual([w.members('Team'), w.members('Crew')], [[], ['alice']]);
      assert.deepEqual(w.status(KIND, PLACE).joined, joinedBy('alice', 'Crew', ['User', 'Group']));
      const moves = w.calls.filter((call) => /UserToGroup|UserFromGroup/.test(call));
      assert.deepEqual(moves, ['lldap removeUserFromGroup alice 4', 'lldap addUserToGroup alice 5']);
    });

    it('the user stays in both groups if another membership declares the first', async () => {
      await renamed();
      w.unwatched(() => w.membership('team/m2', 'Alice', 'TEAM'));
      w.apply('LldapGroup', 'team/next', { displayName: 'Crew' });
      await w.deliverEvents();
      assert.deepEqual([w.members('Team'), w.members('Crew')], [['alice'], ['alice']]);
    });

    it('a group that somebody renamed in lldap loses the user to the group with the name', async () => {
      await joined('adm/m');
      w.byHand((directory) => {
        directory.updateGroup({ id: w.groupOf('Crew').id, displayName: 'Team' });
        directory.createGroup({ displayName: 'Crew' });
      });
      await w.reconcile(KIND, 'adm/m');
      assert.deepEqual([w.members('Team'), w.members('Crew')], [[], ['alice']]);
    });

    it('the user leaves no group that differs from the recorded one in account, id or uuid', async () => {
      await renamed('adm/m');
      const joinedThen = w.status(KIND, 'adm/m').joined ?? assert.fail();
      w.byHand((directory) => directory.createGroup({ displayName: 'Crew' }));
      for (const lie of [{ userUuid: 'x' }, { groupId: 1 }, { groupUuid: 'x' }]) {
        w.unwatched(() => w.forge(KIND, 'adm/m', { joined: { ...joinedThen, ...lie } }));
        await w.reconcile(KIND, 'adm/m');
        assert.deepEqual([w.members('Team'), w.members('Crew')], [['alice'], ['alice']], JSON.stringify(lie));
        w.byHand((directory) => directory.removeMember('alice', w.groupOf('Crew').id));
      }
    });
  });

  describe('deletion', () => {
    it('removes the user from this group only', async () => {
      await joined();
      w.byHand((directory) => directory.addMember('alice', directory.createGroup({ displayName: 'Other' }).id));
      w.delete(KIND, PLACE);
      await w.deliverEvents();
      assert.ok(!w.has(KIND, PLACE));
      assert.deepEqual([w.members('Crew'), w.members('Other')], [[], ['alice']]);
      assert.deepEqual(w.did, ['removed the user from the group']);
      assert.deepEqual(w.writes, ['lldap removeUserFromGroup alice 4', `kube FINALIZER ${KIND} ${PLACE}`]);
    });

    it('Retain keeps the user in the group, without a call to lldap', async () => {
      await joined();
      w.unwatched(() => w.edit(KIND, PLACE, { deletionPolicy: 'Retain' }));
      w.delete(KIND, PLACE);
      await w.deliverEvents();
      assert.ok(!w.has(KIND, PLACE));
      assert.deepEqual(w.members('Crew'), ['alice']);
      assert.deepEqual(w.asked, []);
    });

    it('keeps the user in the group while another membership declares the pair', async () => {
      await joined();
      w.membership('team/m2', 'Alice', 'crew');
      await w.deliverEvents();
      w.delete(KIND, PLACE);
      await w.deliverEvents();
      assert.ok(!w.has(KIND, PLACE));
      assert.deepEqual(w.members('Crew'), ['alice']);
      assert.deepEqual(
        w.did.filter((step) => step.startsWith('removed')),
        [],
      );
      w.delete(KIND, 'team/m2');
      await w.deliverEvents();
      assert.deepEqual(w.members('Crew'), []);
    });

    it('completes if the user is gone already', async () => {
      await joined();
      w.byHand((directory) => directory.deleteUser('alice'));
      w.delete(KIND, PLACE);
      await w.deliverEvents();
      assert.ok(!w.has(KIND, PLACE));
      assert.deepEqual(w.writes, [`kube FINALIZER ${KIND} ${PLACE}`]);
    });

    it('removes the user if the process died before it recorded the join', async () => {
      w.byHand((directory) => directory.createGroup({ displayName: 'Other' }));
      await joined();
      w.byHand((directory) => directory.addMember('alice', w.groupOf('Other').id));
      w.unwatched(() => w.forge(KIND, PLACE, { joined: undefined as never }));
      w.delete(KIND, PLACE);
      await w.deliverEvents();
      assert.deepEqual([w.members('Crew'), w.members('Other')], [[], ['alice']]);
    });

    it('removes the user from the joined group after somebody renamed it', async () => {
      await joined();
      w.unwatched(() => w.byHand((directory) => directory.updateGroup({ id: 4, displayName: 'Team' })));
      w.delete(KIND, PLACE);
      await w.deliverEvents();
      assert.deepEqual(w.members('Team'), []);
    });

    it('enqueues a membership of the pair that was created meanwhile', async () => {
      await joined();
      w.before(/removeUserFromGroup/, () => w.membership('team/m2', 'alice', 'Crew'));
      w.delete(KIND, PLACE);
      await w.deliverEvents();
      assert.ok(w.posted.includes(`reconcile ${KIND} team/m2`));
      assert.deepEqual(w.members('Crew'), ['alice']);
    });

    it('rolls back the join if the resource vanishes meanwhile', async () => {
      w.user('team/alice');
      crew();
      await w.deliverEvents();
      w.before(/STATUS LldapMembership/, () => w.kube.drop(w.get(KIND, PLACE)));
      w.membership(PLACE, 'alice', 'Crew');
      await w.deliverEvents();
      assert.deepEqual(w.members('Crew'), []);
    });

    it('the rollback leaves an account alone that replaced the one that joined', async () => {
      w.account('alice');
      w.byHand((directory) => directory.createGroup({ displayName: 'Crew' }));
      w.before(/STATUS LldapMembership/, () => {
        w.byHand((directory) => directory.deleteUser('alice'));
        w.account('alice', 'Crew');
        w.kube.drop(w.get(KIND, PLACE));
      });
      w.membership(PLACE, 'alice', 'Crew');
      await w.deliverEvents();
      assert.deepEqual(w.members('Crew'), ['alice']);
    });
  });
});
