import assert from 'node:assert/strict';
import type { LldapUserStatus } from '../../../../shared/kube/resources.ts';
import { useWorld } from '../../support/world.ts';
import { KIND, membershipScenes, PLACE } from './scenes.ts';

describe('names of memberships', () => {
  const { w } = useWorld();
  const { crew, joinedBy, joined } = membershipScenes(w);

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
      assert.deepEqual(w.events, []);
    });

    it('a user joins a group in lldap that no resource declares', async () => {
      w.account('hand');
      w.byHand((directory) => directory.createGroup({ displayName: 'Hand Made' }));
      w.membership('adm/m', 'hand', 'hand made');
      await w.deliverEvents();
      assert.deepEqual(w.members('Hand Made'), ['hand']);
      assert.deepEqual(w.status(KIND, 'adm/m').joined, joinedBy('hand', 'Hand Made', []));
      assert.equal(w.ready(KIND, 'adm/m', 'DependenciesReady'), 'True FoundInLldap');
      assert.equal(
        w.message(KIND, 'adm/m', 'DependenciesReady'),
        'lldap has the user and the group, and at least one of them belongs to no Ready resource.',
      );
    });

    it('the status says which of the two names resources declared', async () => {
      w.account('hand');
      crew();
      w.membership('team/group-alone', 'hand', 'Crew');
      w.user('team/alice');
      w.byHand((directory) => directory.createGroup({ displayName: 'Hand Made' }));
      w.membership('adm/user-alone', 'alice', 'Hand Made');
      await w.deliverEvents();
      assert.deepEqual(w.status(KIND, 'team/group-alone').joined?.declared, ['Group']);
      assert.deepEqual(w.status(KIND, 'adm/user-alone').joined?.declared, ['User']);
      for (const at of ['team/group-alone', 'adm/user-alone'] as const)
        assert.equal(w.ready(KIND, at, 'DependenciesReady'), 'True FoundInLldap');
    });

    it('a resource counts as declared if its mark is there but its status is not yet', async () => {
      w.fail(/STATUS Lldap(User|Group)/, 'refused', 100);
      w.user('team/alice');
      crew();
      await w.deliverEvents();
      w.membership(PLACE, 'alice', 'Crew');
      await w.deliverEvents();
      assert.deepEqual(w.status(KIND, PLACE).joined, joinedBy('alice', 'Crew', ['User', 'Group']));
      assert.equal(w.ready(KIND, PLACE, 'DependenciesReady'), 'True DependenciesReady');
    });

    it('a mark is ignored if it names another installation, a resource of another name, or none that exists', async () => {
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

    it('a resource that may not change its user does not count as declared', async () => {
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
    it('a missing user and a missing group are reported together, each with the remedy', async () => {
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

    it('the second failed attempt emits an Event, later ones none', async () => {
      w.membership(PLACE, 'nobody', 'Crew');
      await w.pass(6);
      assert.deepEqual(w.events, [`Warning DependencyNotReady ${PLACE}`]);
      await w.pass(60);
      assert.equal(w.events.length, 1);
    });

    it("a membership waits for the user's resource to become Ready, names it, and joins as soon as it is", async () => {
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

    it("a membership waits for a group's resource that has created nothing yet", async () => {
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

    it('a membership waits for a resource whose status was lost but whose mark is there', async () => {
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

    it('a membership waits for a resource whose mark was removed but whose status records the user', async () => {
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
      w.membership('adm/m', 'alice', 'Crew');
      await w.deliverEvents();
      assert.deepEqual(w.members('Crew'), ['alice']);
      assert.deepEqual(w.status(KIND, 'adm/m').joined?.declared, []);
    });

    it('a membership does not wait for a resource that can never own the name', async () => {
      w.unwatched(() => w.user('team/alice'));
      unready('team/alice', 'LldapUser', 'NotOurs');
      crew();
      w.membership(PLACE, 'alice', 'Crew');
      await w.deliverEvents();
      assert.match(w.message(KIND, PLACE), /^lldap has no user alice\. /);
    });

    it('a membership does not join a user that is being deleted', async () => {
      await joined();
      w.unwatched(() => w.delete('LldapUser', 'team/alice'));
      w.membership('team/m2', 'alice', 'Crew');
      await w.deliverEvents();
      assert.equal(
        w.message(KIND, 'team/m2'),
        'The LldapUser team/alice, which declares the user alice, is not Ready. See its status for the reason.',
      );
    });

    it('a dependency that appears during the status write is noticed at once', async () => {
      w.account('alice');
      w.before(/STATUS LldapMembership/, () => w.byHand((directory) => directory.createGroup({ displayName: 'Crew' })));
      w.membership('adm/m', 'alice', 'Crew');
      await w.deliverEvents();
      assert.deepEqual(w.members('Crew'), ['alice']);
      assert.equal(w.ready(KIND, 'adm/m'), 'True');
    });
  });
});
