import assert from 'node:assert/strict';
import type { LldapUserStatus } from '../../../../shared/kube/resources.ts';
import { createWorld, type TestWorld } from '../../support/world.ts';

const PLACE = 'team/m';
const KIND = 'LldapMembership';

describe('memberships, from the resource to lldap', () => {
  let w: TestWorld;

  beforeEach(() => {
    w = createWorld();
  });

  const crew = () => w.apply('LldapGroup', 'team/crew', { displayName: 'Crew' });
  const joinedBy = (userName: string, groupName: string, declared: string[]) => {
    const { id, uuid } = w.groupOf(groupName);
    return { userUuid: w.accountOf(userName).uuid, groupId: id, groupUuid: uuid, declared };
  };
  /** A membership of `alice` in `Crew`, in steady state, whose user and group are resources. */
  async function joined(): Promise<void> {
    w.user('team/alice');
    crew();
    w.membership(PLACE, 'alice', 'Crew');
    await w.deliverEvents();
    assert.deepEqual(w.members('Crew'), ['alice']);
    w.forget();
  }
  /** An administrator by a membership of a privileged namespace. */
  async function promoted(): Promise<void> {
    w.user('adm/root');
    w.membership('adm/m', 'root', 'lldap_admin');
    await w.deliverEvents();
    assert.equal(w.ready(KIND, 'adm/m'), 'True');
    w.forget();
  }

  describe('what names mean', () => {
    it('a user joins a group, whatever the case of their names, and the status says what was joined', async () => {
      w.user('team/alice');
      crew();
      w.membership(PLACE, 'ALICE', 'CREW');
      await w.deliverEvents();
      assert.deepEqual(w.members('Crew'), ['alice']);
      const { userKey, groupKey, joined, joining } = w.status(KIND, PLACE);
      assert.deepEqual([userKey, groupKey, joining], ['alice', 'crew', undefined]);
      assert.deepEqual(joined, joinedBy('alice', 'Crew', ['User', 'Group']));
      assert.equal(w.ready(KIND, PLACE), 'True');
      assert.equal(w.ready(KIND, PLACE, 'DependenciesReady'), 'True DependenciesReady');
      assert.ok(w.did.includes('added the user to the group'));
      assert.ok(w.events.includes(`Normal Reconciled ${PLACE}`));
    });

    it('a user and a group that no resource declares are joined as lldap has them', async () => {
      w.account('hand');
      w.byHand((directory) => directory.createGroup({ displayName: 'Hand Made' }));
      w.membership(PLACE, 'hand', 'hand made');
      await w.deliverEvents();
      assert.deepEqual(w.members('Hand Made'), ['hand']);
      assert.deepEqual(w.status(KIND, PLACE).joined, joinedBy('hand', 'Hand Made', []));
      assert.equal(w.ready(KIND, PLACE, 'DependenciesReady'), 'True FoundInLldap');
      assert.equal(
        w.message(KIND, PLACE, 'DependenciesReady'),
        'lldap has the user and the group, and at least one of them belongs to no Ready resource.',
      );
    });

    it('the status says which of the two names resources declared', async () => {
      w.account('hand');
      crew();
      w.membership('team/group-alone', 'hand', 'Crew');
      w.user('team/alice');
      w.byHand((directory) => directory.createGroup({ displayName: 'Hand Made' }));
      w.membership('team/user-alone', 'alice', 'Hand Made');
      await w.deliverEvents();
      assert.deepEqual(w.status(KIND, 'team/group-alone').joined?.declared, ['Group']);
      assert.deepEqual(w.status(KIND, 'team/user-alone').joined?.declared, ['User']);
      for (const at of ['team/group-alone', 'team/user-alone'] as const)
        assert.equal(w.ready(KIND, at, 'DependenciesReady'), 'True FoundInLldap');
    });

    it('a resource that could not record yet that it made the user or the group declares the name', async () => {
      w.fail(/STATUS Lldap(User|Group)/, 'refused', 100);
      w.user('team/alice');
      crew();
      await w.deliverEvents();
      w.membership(PLACE, 'alice', 'Crew');
      await w.deliverEvents();
      assert.deepEqual(w.status(KIND, PLACE).joined, joinedBy('alice', 'Crew', ['User', 'Group']));
      assert.equal(w.ready(KIND, PLACE, 'DependenciesReady'), 'True DependenciesReady');
    });

    it('a mark counts for nothing if it names another installation, another name, or nothing that exists', async () => {
      w.unwatched(() => {
        w.user('team/alice');
        w.user('team/bob', { username: 'robert' });
        w.apply('LldapGroup', 'team/crew', { displayName: 'Another' });
      });
      const marks = { alice: 'v2;other;team/alice;created;u', bob: 'v2;main;team/bob;created;u', carol: 'v2;main;team/gone;created;u' };
      w.byHand((directory) => {
        directory.createGroup({ displayName: 'Crew', attributes: [{ name: 'k8s-owner', value: ['v2;main;team/crew;created;u'] }] });
        for (const [id, mark] of Object.entries(marks))
          directory.createUser({ id, email: `${id}@example.com`, attributes: [{ name: 'k8s-owner', value: [mark] }] });
      });
      for (const id of Object.keys(marks)) w.membership(`team/m-${id}`, id, 'Crew');
      await w.deliverEvents();
      assert.deepEqual(w.members('Crew'), ['alice', 'bob', 'carol']);
      for (const id of Object.keys(marks)) assert.deepEqual(w.status(KIND, `team/m-${id}`).joined?.declared, [], id);
    });

    it('a resource that may not act on its user declares nothing, although the mark names it', async () => {
      await joined();
      w.byHand((directory) => directory.addMember('alice', 1));
      w.edit('LldapUser', 'team/alice', { displayName: 'A' });
      await w.deliverEvents();
      assert.equal(w.ready('LldapUser', 'team/alice'), 'False Forbidden');
      await w.reconcile(KIND, PLACE);
      assert.equal(w.ready(KIND, PLACE), 'True');
      assert.deepEqual(w.status(KIND, PLACE).joined?.declared, ['Group']);
    });
  });

  describe('waiting', () => {
    it('what is missing in lldap is named at once, the user first, each with the remedy', async () => {
      w.membership(PLACE, 'Nobody', 'Nowhere');
      await w.deliverEvents();
      assert.equal(w.ready(KIND, PLACE), 'False DependencyNotReady');
      const message =
        'lldap has no user Nobody. Create an LldapUser for it, or replace this membership by one with the correct userName.' +
        ' lldap has no group Nowhere. Create an LldapGroup for it, or replace this membership by one with the correct groupName.';
      assert.equal(w.message(KIND, PLACE), message);
      assert.equal(w.ready(KIND, PLACE, 'DependenciesReady'), 'False DependencyNotReady');
      assert.equal(w.message(KIND, PLACE, 'DependenciesReady'), message);
      assert.deepEqual([w.status(KIND, PLACE).retry?.attempts, w.status(KIND, PLACE).retry?.category], [1, 'NotReady']);
      assert.deepEqual(w.posted, [`requeue ${KIND} ${PLACE}`]);
      assert.deepEqual(w.events, []);
    });

    it('a second attempt in vain is worth an Event, later ones are not', async () => {
      w.membership(PLACE, 'nobody', 'Crew');
      await w.pass(6);
      assert.deepEqual(w.events, [`Warning DependencyNotReady ${PLACE}`]);
      await w.pass(60);
      assert.equal(w.events.length, 1);
    });

    it('a resource that declares the name and is not Ready is waited for and named, and wakes the membership', async () => {
      w.user('team/alice', { passwordPolicy: 'Manage', passwordSecretRef: { name: 's', key: 'password' } });
      crew();
      await w.deliverEvents();
      assert.ok(w.hasAccount('alice'));
      w.membership(PLACE, 'alice', 'Crew');
      await w.deliverEvents();
      assert.equal(
        w.message(KIND, PLACE),
        'The LldapUser team/alice, which declares the user alice, is not Ready. See its status for the reason.',
      );
      w.secret('team/s', 'password-1');
      await w.deliverEvents();
      assert.deepEqual(w.members('Crew'), ['alice']);
      assert.ok(w.posted.includes(`reconcile ${KIND} ${PLACE}`));
      assert.equal(w.status(KIND, PLACE).retry, undefined);
    });

    it('so is a group, and one whose object is not there yet', async () => {
      w.apply('LldapGroup', 'team/crew', { displayName: 'Crew', attributes: [{ name: 'none', value: ['1'] }] });
      await w.deliverEvents();
      w.account('alice');
      w.membership(PLACE, 'alice', 'crew');
      await w.deliverEvents();
      assert.equal(
        w.message(KIND, PLACE),
        'The LldapGroup team/crew, which declares the group crew, is not Ready. See its status for the reason.',
      );
    });

    const unready = (at: 'team/alice' | 'team/crew', kind: 'LldapUser' | 'LldapGroup', reason: string) => {
      const conditions = [{ type: 'Ready', status: 'False' as const, reason, message: reason, lastTransitionTime: '2026-03-01T12:00:00Z' }];
      const nameKey = at.slice('team/'.length);
      w.unwatched(() => w.kube.changeStatus(w.get(kind, at), { nameKey, observedGeneration: 1, conditions } as LldapUserStatus));
    };

    it('a resource whose mark the user or group has is waited for, although its status was lost', async () => {
      await joined();
      w.membership('team/m2', 'alice', 'Crew');
      for (const [kind, at, name] of [
        ['LldapUser', 'team/alice', 'user alice'],
        ['LldapGroup', 'team/crew', 'group Crew'],
      ] as const) {
        unready(at, kind, 'LldapUnavailable');
        assert.equal((await w.reconcile(KIND, PLACE)).reason, 'DependencyNotReady');
        assert.equal(w.message(KIND, PLACE), `The ${kind} ${at}, which declares the ${name}, is not Ready. See its status for the reason.`);
        await w.reconcile(kind, at);
      }
    });

    it('so is one that records the user, although the mark was removed', async () => {
      await joined();
      w.membership('team/m2', 'alice', 'Crew');
      w.byHand((directory) => directory.updateUser({ id: 'alice', removeAttributes: ['k8s-owner'] }));
      const { uuid = '' } = w.status('LldapUser', 'team/alice');
      unready('team/alice', 'LldapUser', 'LldapUnavailable');
      w.unwatched(() => w.forge('LldapUser', 'team/alice', { uuid }));
      await w.reconcile(KIND, 'team/m2');
      assert.match(w.message(KIND, 'team/m2'), /^The LldapUser team\/alice, which declares the user alice, is not Ready\./);
    });

    it("a resource that declares another's name and never becomes Ready blocks nobody", async () => {
      w.unwatched(() => {
        w.user('team/alice', { displayName: 'lldap_admin' });
        crew();
      });
      unready('team/alice', 'LldapUser', 'LldapUnavailable');
      unready('team/crew', 'LldapGroup', 'LldapUnavailable');
      w.byHand((directory) => {
        const value = ['v2;other;team/alice;created;u'];
        directory.createUser({ id: 'alice', email: 'alice@example.com', attributes: [{ name: 'k8s-owner', value }] });
        directory.createGroup({ displayName: 'Crew' });
      });
      w.membership(PLACE, 'alice', 'Crew');
      await w.deliverEvents();
      assert.deepEqual(w.members('Crew'), ['alice']);
      assert.deepEqual(w.status(KIND, PLACE).joined?.declared, []);
    });

    it('a resource that will never get the name is not waited for', async () => {
      w.unwatched(() => w.user('team/alice'));
      unready('team/alice', 'LldapUser', 'NotOurs');
      crew();
      w.membership(PLACE, 'alice', 'Crew');
      await w.deliverEvents();
      assert.match(w.message(KIND, PLACE), /^lldap has no user alice\. /);
    });

    it('a resource that is being deleted is not joined any more', async () => {
      await joined();
      w.unwatched(() => w.delete('LldapUser', 'team/alice'));
      w.membership('team/m2', 'alice', 'Crew');
      await w.deliverEvents();
      assert.equal(
        w.message(KIND, 'team/m2'),
        'The LldapUser team/alice, which declares the user alice, is not Ready. See its status for the reason.',
      );
    });

    it('a dependency that becomes Ready while the membership records that it waits is not missed', async () => {
      w.account('alice');
      w.before(/STATUS LldapMembership/, () => w.byHand((directory) => directory.createGroup({ displayName: 'Crew' })));
      w.membership(PLACE, 'alice', 'Crew');
      await w.deliverEvents();
      assert.deepEqual(w.members('Crew'), ['alice']);
      assert.equal(w.ready(KIND, PLACE), 'True');
    });
  });

  describe('what somebody changed in lldap', () => {
    it('a user that was deleted there is made again by its resource and joined again', async () => {
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

    it('so is a group', async () => {
      await joined();
      w.byHand((directory) => directory.deleteGroup(w.groupOf('Crew').id));
      await w.reconcile(KIND, PLACE);
      assert.deepEqual(w.posted, ['reconcile LldapGroup team/crew', `requeue ${KIND} ${PLACE}`]);
      assert.match(w.message(KIND, PLACE), /^lldap no longer has the object of the LldapGroup team\/crew\./);
      await w.deliverEvents();
      assert.deepEqual(w.members('Crew'), ['alice']);
    });

    it('but not a built-in group, which only lldap makes', async () => {
      await promoted();
      w.byHand((directory) => directory.deleteGroup(2));
      w.membership('adm/m2', 'root', 'lldap_password_manager');
      await w.deliverEvents();
      assert.deepEqual(w.posted, [`requeue ${KIND} adm/m2`]);
      assert.match(w.message(KIND, 'adm/m2'), /^lldap has no group lldap_password_manager\. /);
    });

    it('a member that a person removed is put back by a full reconcile, and members of others stay', async () => {
      await joined();
      w.account('guest', 'Crew');
      w.byHand((directory) => directory.removeMember('alice', w.groupOf('Crew').id));
      const report = await w.reconcile(KIND, PLACE);
      assert.deepEqual([report.result, report.did], ['reconciled', ['added the user to the group']]);
      assert.deepEqual(w.members('Crew'), ['alice', 'guest']);
      assert.deepEqual(w.writes, ['lldap addUserToGroup alice 4']);
    });

    it('a member that is there already is taken as it is', async () => {
      w.byHand((directory) => directory.createGroup({ displayName: 'Crew' }));
      w.account('alice', 'Crew');
      w.membership(PLACE, 'alice', 'Crew');
      await w.deliverEvents();
      assert.equal(w.ready(KIND, PLACE), 'True');
      assert.deepEqual(w.status(KIND, PLACE).joined, joinedBy('alice', 'Crew', []));
      assert.deepEqual(w.writes, [`kube FINALIZER ${KIND} ${PLACE}`, `kube STATUS ${KIND} ${PLACE}`]);
    });
  });

  describe('in steady state', () => {
    it('nothing is written by a full reconcile, nor is lldap asked by a retry that comes late', async () => {
      await joined();
      assert.equal((await w.reconcile(KIND, PLACE)).result, 'reconciled');
      assert.deepEqual(w.writes, []);
      assert.deepEqual(w.asked, ['lldap user alice', 'lldap group 4']);
      assert.deepEqual(w.posted, []);
      w.forget();
      assert.equal((await w.reconcile(KIND, PLACE, { notBefore: '2026-03-01T11:00:00.000Z' })).result, 'unchanged');
      assert.deepEqual(w.asked, []);
    });

    it('a status that lost what was joined is completed', async () => {
      await joined();
      w.unwatched(() => w.forge(KIND, PLACE, { joined: undefined as never }));
      assert.equal((await w.reconcile(KIND, PLACE, { notBefore: '2026-03-01T11:00:00.000Z' })).result, 'reconciled');
      assert.deepEqual(w.status(KIND, PLACE).joined, joinedBy('alice', 'Crew', ['User', 'Group']));
    });

    it('it follows what the resources record: another user, another group', async () => {
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
    async function renamed(): Promise<void> {
      await joined();
      w.edit('LldapGroup', 'team/crew', { displayName: 'Team' });
      await w.deliverEvents();
      w.forget();
    }

    it('keeps its members, and memberships of the old name wait for a group of that name', async () => {
      await renamed();
      assert.deepEqual(w.members('Team'), ['alice']);
      assert.match(w.message(KIND, PLACE), /^lldap has no group Crew\. /);
    });

    it('the user follows the name to another group', async () => {
      await renamed();
      w.apply('LldapGroup', 'team/next', { displayName: 'Crew' });
      await w.deliverEvents();
      assert.deepEqual([w.members('Team'), w.members('Crew')], [[], ['alice']]);
      assert.deepEqual(w.status(KIND, PLACE).joined, joinedBy('alice', 'Crew', ['User', 'Group']));
      const moves = w.calls.filter((call) => /UserToGroup|UserFromGroup/.test(call));
      assert.deepEqual(moves, ['lldap removeUserFromGroup alice 4', 'lldap addUserToGroup alice 5']);
    });

    it('the user stays in both if another membership declares the former', async () => {
      await renamed();
      w.unwatched(() => w.membership('other/m', 'Alice', 'TEAM'));
      w.apply('LldapGroup', 'team/next', { displayName: 'Crew' });
      await w.deliverEvents();
      assert.deepEqual([w.members('Team'), w.members('Crew')], [['alice'], ['alice']]);
    });

    it('a group that a person renamed in lldap is not meant by its old name', async () => {
      await joined();
      w.byHand((directory) => {
        directory.updateGroup({ id: w.groupOf('Crew').id, displayName: 'Team' });
        directory.createGroup({ displayName: 'Crew' });
      });
      await w.reconcile(KIND, PLACE);
      assert.deepEqual([w.members('Team'), w.members('Crew')], [[], ['alice']]);
    });

    it('nobody leaves a group that only looks like the former: another account, another id or another uuid', async () => {
      await renamed();
      const joinedThen = w.status(KIND, PLACE).joined ?? assert.fail();
      w.byHand((directory) => directory.createGroup({ displayName: 'Crew' }));
      for (const lie of [{ userUuid: 'x' }, { groupId: 1 }, { groupUuid: 'x' }]) {
        w.unwatched(() => w.forge(KIND, PLACE, { joined: { ...joinedThen, ...lie } }));
        await w.reconcile(KIND, PLACE);
        assert.deepEqual([w.members('Team'), w.members('Crew')], [['alice'], ['alice']], JSON.stringify(lie));
        w.byHand((directory) => directory.removeMember('alice', w.groupOf('Crew').id));
      }
    });
  });

  describe('deletion', () => {
    it('takes the user out of the group, and out of no other', async () => {
      await joined();
      w.byHand((directory) => directory.addMember('alice', directory.createGroup({ displayName: 'Other' }).id));
      w.delete(KIND, PLACE);
      await w.deliverEvents();
      assert.ok(!w.has(KIND, PLACE));
      assert.deepEqual([w.members('Crew'), w.members('Other')], [[], ['alice']]);
      assert.deepEqual(w.did, ['removed the user from the group']);
      assert.deepEqual(w.writes, ['lldap removeUserFromGroup alice 4', `kube FINALIZER ${KIND} ${PLACE}`]);
    });

    it('leaves the user in with Retain, and asks lldap nothing', async () => {
      await joined();
      w.unwatched(() => w.edit(KIND, PLACE, { deletionPolicy: 'Retain' }));
      w.delete(KIND, PLACE);
      await w.deliverEvents();
      assert.ok(!w.has(KIND, PLACE));
      assert.deepEqual(w.members('Crew'), ['alice']);
      assert.deepEqual(w.asked, []);
    });

    it('leaves the user in while another membership declares the pair', async () => {
      await joined();
      w.membership('other/m', 'Alice', 'crew');
      await w.deliverEvents();
      w.delete(KIND, PLACE);
      await w.deliverEvents();
      assert.ok(!w.has(KIND, PLACE));
      assert.deepEqual(w.members('Crew'), ['alice']);
      assert.deepEqual(
        w.did.filter((step) => step.startsWith('removed')),
        [],
      );
      w.delete(KIND, 'other/m');
      await w.deliverEvents();
      assert.deepEqual(w.members('Crew'), []);
    });

    it('completes when the user or the membership is gone already', async () => {
      await joined();
      w.byHand((directory) => directory.deleteUser('alice'));
      w.delete(KIND, PLACE);
      await w.deliverEvents();
      assert.ok(!w.has(KIND, PLACE));
      assert.deepEqual(w.writes, [`kube FINALIZER ${KIND} ${PLACE}`]);
    });

    it('takes the user out although the process died before it recorded that it joined', async () => {
      w.byHand((directory) => directory.createGroup({ displayName: 'Other' }));
      await joined();
      w.byHand((directory) => directory.addMember('alice', w.groupOf('Other').id));
      w.unwatched(() => w.forge(KIND, PLACE, { joined: undefined as never }));
      w.delete(KIND, PLACE);
      await w.deliverEvents();
      assert.deepEqual([w.members('Crew'), w.members('Other')], [[], ['alice']]);
    });

    it('takes the user out of the group that was joined, whatever its name is now', async () => {
      await joined();
      w.unwatched(() => w.byHand((directory) => directory.updateGroup({ id: 4, displayName: 'Team' })));
      w.delete(KIND, PLACE);
      await w.deliverEvents();
      assert.deepEqual(w.members('Team'), []);
    });

    it('wakes a membership of the pair that was created meanwhile', async () => {
      await joined();
      w.before(/removeUserFromGroup/, () => w.membership('other/m', 'alice', 'Crew'));
      w.delete(KIND, PLACE);
      await w.deliverEvents();
      assert.ok(w.posted.includes(`reconcile ${KIND} other/m`));
      assert.deepEqual(w.members('Crew'), ['alice']);
    });

    it('a resource that vanishes while it joins leaves nobody in the group', async () => {
      w.user('team/alice');
      crew();
      await w.deliverEvents();
      w.before(/STATUS LldapMembership/, () => w.kube.drop(w.get(KIND, PLACE)));
      w.membership(PLACE, 'alice', 'Crew');
      await w.deliverEvents();
      assert.deepEqual(w.members('Crew'), []);
    });

    it('but it takes nobody out whom it did not put in: an account that replaced the one that joined', async () => {
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

  describe('built-in groups', () => {
    it('are forbidden to ordinary namespaces, at deletion too, and lldap is asked nothing', async () => {
      w.account('alice', 'lldap_admin');
      w.membership(PLACE, 'alice', 'LLDAP_Admin');
      await w.deliverEvents();
      assert.equal(w.ready(KIND, PLACE), 'False Forbidden');
      assert.equal(w.ready(KIND, PLACE, 'Stalled'), 'True Forbidden');
      w.delete(KIND, PLACE);
      await w.deliverEvents();
      assert.ok(!w.has(KIND, PLACE));
      assert.deepEqual(w.members('lldap_admin'), ['admin', 'alice']);
      assert.deepEqual(w.asked, []);
    });

    it('a privileged namespace joins and removes its own users; each join is written ahead and looked at afterwards', async () => {
      w.user('adm/root');
      await w.deliverEvents();
      w.forget();
      w.membership('adm/m', 'root', 'lldap_admin');
      w.before(/addUserToGroup/, () => {
        const { joining, joined, observedGeneration } = w.status(KIND, 'adm/m');
        assert.deepEqual([joining, joined, observedGeneration], [joinedBy('root', 'lldap_admin', ['User', 'Group']), undefined, undefined]);
      });
      await w.deliverEvents();
      assert.deepEqual(w.members('lldap_admin'), ['admin', 'root']);
      const { joined, joining } = w.status(KIND, 'adm/m');
      assert.deepEqual([joined, joining], [joinedBy('root', 'lldap_admin', ['User', 'Group']), undefined]);
      const steps = w.calls.slice(w.calls.indexOf('kube STATUS LldapMembership adm/m')).filter((call) => !/GET|LIST|EVENT/.test(call));
      assert.deepEqual(steps.slice(0, 4), [
        'kube STATUS LldapMembership adm/m',
        'lldap addUserToGroup root 1',
        'lldap user root',
        'kube STATUS LldapMembership adm/m',
      ]);
      w.delete(KIND, 'adm/m');
      await w.deliverEvents();
      assert.deepEqual(w.members('lldap_admin'), ['admin']);
    });

    it('a join of any other group is written once', async () => {
      await joined();
      w.membership('team/m2', 'alice', 'Crew');
      w.byHand((directory) => directory.removeMember('alice', 4));
      await w.deliverEvents();
      assert.deepEqual(w.writes, [
        'kube FINALIZER LldapMembership team/m2',
        'lldap addUserToGroup alice 4',
        'kube STATUS LldapMembership team/m2',
      ]);
    });

    it('a user that no resource, or an ordinary namespace, owns does not join, and the message says what to do', async () => {
      w.account('hand');
      w.user('team/alice');
      w.membership('adm/hand', 'hand', 'lldap_admin');
      w.membership('adm/alice', 'alice', 'lldap_admin');
      await w.deliverEvents();
      assert.deepEqual(w.members('lldap_admin'), ['admin']);
      assert.equal(w.ready(KIND, 'adm/hand'), 'False UserNotPrivileged');
      assert.match(w.message(KIND, 'adm/hand'), /no resource owns hand\. Declare an LldapUser for it in a privileged namespace/);
      assert.match(
        w.message(KIND, 'adm/alice'),
        /alice belongs to team\/alice\. If that LldapUser exists, set deletionPolicy: Retain on it/,
      );
    });

    it('a membership waits for the virtual group, and says who makes it', async () => {
      w.user('adm/root');
      await w.deliverEvents();
      const virtual = w.get('LldapGroup', 'op/lldap-admin');
      w.unwatched(() => w.kube.drop(virtual));
      w.membership('adm/m', 'root', 'lldap_admin');
      await w.deliverEvents();
      assert.equal(w.message(KIND, 'adm/m'), 'The virtual group for lldap_admin does not exist yet. The startup function creates it.');
      w.unwatched(() => w.kube.put('add', { ...virtual, status: { nameKey: 'lldap_admin' } } as typeof virtual));
      await w.reconcile(KIND, 'adm/m');
      assert.equal(
        w.message(KIND, 'adm/m'),
        'The LldapGroup op/lldap-admin, which declares the group lldap_admin, is not Ready. See its status for the reason.',
      );
      w.unwatched(() => w.kube.put('update', virtual));
      await w.reconcile(KIND, 'adm/m');
      assert.deepEqual(w.members('lldap_admin'), ['admin', 'root']);
    });

    it('no other resource of that name is the virtual group', async () => {
      w.user('adm/root');
      await w.deliverEvents();
      w.unwatched(() => w.kube.drop(w.get('LldapGroup', 'op/lldap-admin')));
      w.apply('LldapGroup', 'adm/fake', { displayName: 'lldap_admin' });
      w.membership('adm/m', 'root', 'lldap_admin');
      await w.deliverEvents();
      assert.match(w.message(KIND, 'adm/m'), /^The virtual group for lldap_admin does not exist yet/);
    });

    const replacements: [who: string, mark: string | undefined][] = [
      ['a tenant', 'v2;main;team/root;created;u'],
      ['a person', undefined],
      ['another privileged resource', 'v2;main;adm/other;created;u'],
    ];
    for (const [who, mark] of replacements)
      it(`an account that ${who} created anew during the join is taken out again`, async () => {
        w.user('adm/root');
        await w.deliverEvents();
        w.before(/addUserToGroup/, () =>
          w.byHand((directory) => {
            directory.deleteUser('root');
            const attributes = mark === undefined ? [] : [{ name: 'k8s-owner', value: [mark] }];
            directory.createUser({ id: 'root', email: 'root@example.com', attributes });
          }),
        );
        w.membership('adm/m', 'root', 'lldap_admin');
        await w.deliverEvents();
        assert.deepEqual(w.members('lldap_admin'), ['admin']);
        const { joined, joining } = w.status(KIND, 'adm/m');
        assert.deepEqual([w.ready(KIND, 'adm/m'), joined, joining], ['False UserNotPrivileged', undefined, undefined]);
      });

    it('an account whose mark was removed during the join is taken out again', async () => {
      w.user('adm/root');
      await w.deliverEvents();
      w.before(/addUserToGroup/, () => w.byHand((directory) => directory.updateUser({ id: 'root', removeAttributes: ['k8s-owner'] })));
      w.membership('adm/m', 'root', 'lldap_admin');
      await w.deliverEvents();
      assert.deepEqual(w.members('lldap_admin'), ['admin']);
      assert.equal(w.ready(KIND, 'adm/m'), 'False UserNotPrivileged');
    });

    it('an account that vanished during the join is told of by lldap alone', async () => {
      w.user('adm/root');
      await w.deliverEvents();
      w.before(/addUserToGroup/, () => w.byHand((directory) => directory.deleteUser('root')));
      w.membership('adm/m', 'root', 'lldap_admin');
      await w.deliverEvents();
      assert.notEqual(w.ready(KIND, 'adm/m'), 'True');
      assert.ok(w.status(KIND, 'adm/m').joining);
    });
  });

  describe('a join of a built-in group that was never confirmed', () => {
    /** The process died after it had asked lldap; `mark` is that of the account which it reached. */
    async function unconfirmed(mark: string | undefined, lie: { groupId?: number; groupUuid?: string } = {}, over = {}): Promise<void> {
      const { id, uuid } = w.groupOf('lldap_admin');
      w.byHand((directory) => {
        const attributes = mark === undefined ? [] : [{ name: 'k8s-owner', value: [mark] }];
        directory.createUser({ id: 'root', email: 'root@example.com', attributes });
        directory.addMember('root', id);
      });
      w.unwatched(() => {
        w.membership('adm/m', 'root', 'lldap_admin', over);
        w.forge(KIND, 'adm/m', {
          userKey: 'root',
          groupKey: 'lldap_admin',
          joining: { userUuid: 'before', groupId: id, groupUuid: uuid, ...lie },
        });
      });
      await w.reconcile(KIND, 'adm/m');
    }

    it('takes an account out that it should not have reached, before everything else', async () => {
      await unconfirmed('v2;main;team/root;created;u');
      assert.deepEqual(w.members('lldap_admin'), ['admin']);
      assert.deepEqual(w.did, ['removed the user from the group']);
      assert.ok(w.status(KIND, 'adm/m').joining, 'the request may still arrive');
      assert.equal(w.ready(KIND, 'adm/m'), 'False UserNotPrivileged');
    });

    it('also if the membership is suspended', async () => {
      await unconfirmed(undefined, {}, { suspend: true });
      assert.deepEqual(w.members('lldap_admin'), ['admin']);
      assert.equal(w.ready(KIND, 'adm/m'), 'False Suspended');
    });

    it('leaves an account in that a privileged namespace owns, and records that it joined', async () => {
      await unconfirmed('v2;main;adm/root;created;u');
      assert.deepEqual(w.members('lldap_admin'), ['admin', 'root']);
      const { joined, joining } = w.status(KIND, 'adm/m');
      assert.deepEqual([joined, joining], [joinedBy('root', 'lldap_admin', ['Group']), undefined]);
      assert.deepEqual(w.did, []);
    });

    for (const lie of [{ groupId: 2 }, { groupUuid: 'x' }])
      it(`takes nobody out of a group that is not the one which it asked for, but ${JSON.stringify(lie)}`, async () => {
        await unconfirmed('v2;main;team/root;created;u', lie);
        assert.deepEqual(w.members('lldap_admin'), ['admin', 'root']);
      });

    it("never takes the operator's own login out of lldap_admin", async () => {
      const { id, uuid } = w.groupOf('lldap_admin');
      w.unwatched(() => {
        w.membership('adm/m', 'admin', 'lldap_admin');
        w.forge(KIND, 'adm/m', { joining: { userUuid: 'before', groupId: id, groupUuid: uuid } });
      });
      await w.reconcile(KIND, 'adm/m');
      assert.deepEqual(w.members('lldap_admin'), ['admin']);
      assert.deepEqual(
        w.asked.filter((call) => call.includes('removeUser')),
        [],
      );
    });

    it('starts nothing after its deadline', async () => {
      w.before(/lldap user root/, () => {
        w.scheduler.now += 30_001;
      });
      await unconfirmed('v2;main;team/root;created;u');
      assert.equal(w.ready(KIND, 'adm/m'), 'False DeadlineExceeded');
      assert.deepEqual(w.members('lldap_admin'), ['admin', 'root']);
    });
  });

  describe('a join of a built-in group that was confirmed', () => {
    /** Another account has taken the place of the one that joined. */
    async function replaced(mark: string | undefined): Promise<void> {
      await promoted();
      w.unwatched(() => {
        w.kube.drop(w.get('LldapUser', 'adm/root'));
        w.byHand((directory) => {
          directory.deleteUser('root');
          const attributes = mark === undefined ? [] : [{ name: 'k8s-owner', value: [mark] }];
          directory.createUser({ id: 'root', email: 'root@example.com', attributes });
          directory.addMember('root', 1);
        });
      });
    }

    it("takes a tenant's account out that came to the name since, by a full reconcile", async () => {
      await replaced('v2;main;team/root;created;u');
      await w.reconcile(KIND, 'adm/m');
      assert.deepEqual(w.members('lldap_admin'), ['admin']);
      assert.equal(w.ready(KIND, 'adm/m'), 'False UserNotPrivileged');
    });

    it('does the same while the membership is not Ready', async () => {
      await replaced('v2;main;team/root;created;u');
      w.byHand((directory) => directory.removeMember('root', 1));
      await w.reconcile(KIND, 'adm/m');
      w.byHand((directory) => directory.addMember('root', 1));
      const next = w.status(KIND, 'adm/m').retry?.nextTime ?? '';
      await w.reconcile(KIND, 'adm/m', { notBefore: next });
      assert.deepEqual(w.members('lldap_admin'), ['admin']);
    });

    it('asks lldap nothing while it is Ready and nobody asks for a full reconcile', async () => {
      await promoted();
      await w.reconcile(KIND, 'adm/m', { notBefore: '2026-03-01T11:00:00.000Z' });
      assert.deepEqual(w.asked, []);
    });

    it('leaves an account in that a person created and put there, and says that nobody owns it', async () => {
      await replaced(undefined);
      await w.reconcile(KIND, 'adm/m');
      assert.deepEqual(w.members('lldap_admin'), ['admin', 'root']);
      assert.equal(w.ready(KIND, 'adm/m'), 'False UserNotPrivileged');
    });

    it('leaves the account in that joined, although an ordinary namespace owns it by now', async () => {
      await promoted();
      w.byHand((directory) =>
        directory.updateUser({ id: 'root', insertAttributes: [{ name: 'k8s-owner', value: ['v2;main;team/root;created;u'] }] }),
      );
      await w.reconcile(KIND, 'adm/m');
      assert.deepEqual(w.members('lldap_admin'), ['admin', 'root']);
      assert.equal(w.ready(KIND, 'adm/m'), 'False UserNotPrivileged');
    });
  });
});
