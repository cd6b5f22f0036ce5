import assert from 'node:assert/strict';
import { useWorld } from '../../support/world.ts';
import { KIND, membershipScenes, PLACE } from './scenes.ts';

describe('memberships of built-in groups', () => {
  const { w } = useWorld();
  const { joinedBy, joined, promoted } = membershipScenes(w);

  describe('built-in groups', () => {
    it('are forbidden to ordinary namespaces, also at deletion, without a call to lldap', async () => {
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

    it('admit users of privileged namespaces; each join is written ahead and verified', async () => {
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

    it('a join of any other group costs one status write', async () => {
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

    it('refuse a user that no resource or an ordinary namespace owns, and say what to do', async () => {
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

    it('a membership waits for the virtual group, and says which function creates it', async () => {
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

    it('no other resource with the name counts as the virtual group', async () => {
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
      it(`remove an account that ${who} created during the join`, async () => {
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

    it('remove an account whose mark was removed during the join', async () => {
      w.user('adm/root');
      await w.deliverEvents();
      w.before(/addUserToGroup/, () => w.byHand((directory) => directory.updateUser({ id: 'root', removeAttributes: ['k8s-owner'] })));
      w.membership('adm/m', 'root', 'lldap_admin');
      await w.deliverEvents();
      assert.deepEqual(w.members('lldap_admin'), ['admin']);
      assert.equal(w.ready(KIND, 'adm/m'), 'False UserNotPrivileged');
    });

    it('a membership is not Ready if the account vanishes during the join', async () => {
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

    it('removes an account that the join must not have reached', async () => {
      await unconfirmed('v2;main;team/root;created;u');
      assert.deepEqual(w.members('lldap_admin'), ['admin']);
      assert.deepEqual(w.did, ['removed the user from the group']);
      assert.ok(w.status(KIND, 'adm/m').joining, 'the request may still arrive');
      assert.equal(w.ready(KIND, 'adm/m'), 'False UserNotPrivileged');
    });

    it('removes such an account while the membership is suspended', async () => {
      await unconfirmed(undefined, {}, { suspend: true });
      assert.deepEqual(w.members('lldap_admin'), ['admin']);
      assert.equal(w.ready(KIND, 'adm/m'), 'False Suspended');
    });

    it('keeps an account that a privileged namespace owns, and records the join', async () => {
      await unconfirmed('v2;main;adm/root;created;u');
      assert.deepEqual(w.members('lldap_admin'), ['admin', 'root']);
      const { joined, joining } = w.status(KIND, 'adm/m');
      assert.deepEqual([joined, joining], [joinedBy('root', 'lldap_admin', ['Group']), undefined]);
      assert.deepEqual(w.did, []);
    });

    for (const lie of [{ groupId: 2 }, { groupUuid: 'x' }])
      it(`removes nobody from another group: ${JSON.stringify(lie)}`, async () => {
        await unconfirmed('v2;main;team/root;created;u', lie);
        assert.deepEqual(w.members('lldap_admin'), ['admin', 'root']);
      });

    it("never removes the operator's own login from lldap_admin", async () => {
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

    it('removes nobody after the deadline', async () => {
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

    it("a full reconcile removes a tenant's account that has the name now", async () => {
      await replaced('v2;main;team/root;created;u');
      await w.reconcile(KIND, 'adm/m');
      assert.deepEqual(w.members('lldap_admin'), ['admin']);
      assert.equal(w.ready(KIND, 'adm/m'), 'False UserNotPrivileged');
    });

    it('a retry removes such an account while the membership is not Ready', async () => {
      await replaced('v2;main;team/root;created;u');
      w.byHand((directory) => directory.removeMember('root', 1));
      await w.reconcile(KIND, 'adm/m');
      w.byHand((directory) => directory.addMember('root', 1));
      const next = w.status(KIND, 'adm/m').retry?.nextTime ?? '';
      await w.reconcile(KIND, 'adm/m', { notBefore: next });
      assert.deepEqual(w.members('lldap_admin'), ['admin']);
    });

    it('a late retry of a Ready membership does not call lldap', async () => {
      await promoted();
      await w.reconcile(KIND, 'adm/m', { notBefore: '2026-03-01T11:00:00.000Z' });
      assert.deepEqual(w.asked, []);
    });

    it('keeps an account that somebody created and added by hand, and reports that no resource owns it', async () => {
      await replaced(undefined);
      await w.reconcile(KIND, 'adm/m');
      assert.deepEqual(w.members('lldap_admin'), ['admin', 'root']);
      assert.equal(w.ready(KIND, 'adm/m'), 'False UserNotPrivileged');
    });

    it('keeps the account that joined, although an ordinary namespace owns it now', async () => {
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
