import assert from 'node:assert/strict';
import { useWorld } from '../../support/world.ts';

const KIND = 'LldapGroup';
const PLACE = 'team/crew';
const MEMBERSHIP = 'LldapMembership';
const LATE = { notBefore: '2026-03-01T11:00:00.000Z' };
const FORGOTTEN = undefined as never;

describe('groups, from the resource to lldap', () => {
  const { w } = useWorld();

  /** A group in steady state. */
  async function made(displayName = 'Crew', at: `${string}/${string}` = PLACE): Promise<void> {
    w.apply(KIND, at, { displayName });
    await w.deliverEvents();
    assert.equal(w.ready(KIND, at), 'True', w.message(KIND, at));
    w.forget();
  }
  async function withMember(at: `${string}/${string}`, groupName: string): Promise<void> {
    if (!w.hasAccount('alice')) w.account('alice');
    w.membership(at, 'alice', groupName);
    await w.deliverEvents();
    w.forget();
  }
  const markOf = (displayName: string) => w.markOf(w.groupOf(displayName));

  describe('the group', () => {
    it('is created with its mark in one call, without a list of all groups, and recorded in the status', async () => {
      const { metadata } = w.apply(KIND, PLACE, { displayName: 'Crew' });
      await w.deliverEvents();
      const { id, uuid } = w.groupOf('Crew');
      assert.equal(markOf('Crew'), `v2;main;team/crew;created;${metadata.uid}`);
      const status = w.status(KIND, PLACE);
      assert.deepEqual([status.nameKey, status.groupId, status.uuid, status.origin], ['crew', id, uuid, 'created']);
      assert.equal(w.ready(KIND, PLACE, 'DependenciesReady'), 'unset');
      assert.deepEqual(w.asked, ['lldap createGroupWithDetails Crew']);
      assert.deepEqual([w.did, w.events], [['created the group'], []]);
    });

    it('is only read in steady state: a full reconcile makes one call to lldap and enqueues nothing', async () => {
      await made();
      await withMember('team/m', 'Crew');
      assert.equal((await w.reconcile(KIND, PLACE)).result, 'reconciled');
      assert.deepEqual(w.calls, [`kube GET ${KIND} ${PLACE}`, 'lldap group 4']);
      w.forget();
      assert.equal((await w.reconcile(KIND, PLACE, LATE)).result, 'unchanged');
      assert.deepEqual(w.calls, [`kube GET ${KIND} ${PLACE}`]);
    });

    it('gets its name back if somebody renames it, and is created again if somebody deletes it', async () => {
      await made();
      w.byHand((directory) => directory.updateGroup({ id: 4, displayName: 'Theirs' }));
      assert.deepEqual((await w.reconcile(KIND, PLACE)).did, ['updated the group']);
      await withMember('team/m', 'Crew');
      await withMember('team/waits', 'none');
      w.byHand((directory) => directory.deleteGroup(w.groupOf('Crew').id));
      assert.deepEqual((await w.reconcile(KIND, PLACE)).did, ['created the group']);
      assert.deepEqual(w.posted, [`reconcile ${MEMBERSHIP} team/m`]);
      await w.deliverEvents();
      assert.deepEqual(w.members('Crew'), ['alice']);
      assert.deepEqual([w.status(KIND, PLACE).groupId, w.status(KIND, PLACE).uuid], [w.groupOf('Crew').id, w.groupOf('Crew').uuid]);
    });

    it('is not confused with a group that got its id from a restored lldap', async () => {
      await made();
      w.byHand((directory) => {
        directory.deleteGroup(4);
        directory.state.nextGroupId = 4;
        directory.createGroup({ displayName: 'Another' });
      });
      await w.reconcile(KIND, PLACE);
      assert.deepEqual([w.hasGroup('Another'), w.hasGroup('Crew')], [true, true]);
      assert.equal(w.status(KIND, PLACE).groupId, 5);
    });

    it('is found by its mark if the answer to its creation was lost, even after a rename of the resource', async () => {
      w.fail(/createGroup/, 'unanswered');
      w.apply(KIND, PLACE, { displayName: 'Crew' });
      await w.deliverEvents();
      assert.equal(w.ready(KIND, PLACE), 'False LldapUnavailable');
      w.edit(KIND, PLACE, { displayName: 'Team' });
      await w.deliverEvents();
      assert.deepEqual([w.hasGroup('Crew'), w.hasGroup('Team'), w.ready(KIND, PLACE)], [false, true, 'True']);
      assert.equal(w.status(KIND, PLACE).origin, 'created');
    });

    it('is adopted only by privileged namespaces if it exists already', async () => {
      w.byHand((directory) => directory.createGroup({ displayName: 'crew' }));
      const { uuid } = w.groupOf('crew');
      w.apply(KIND, PLACE, { displayName: 'Crew' });
      await w.deliverEvents();
      assert.equal(w.ready(KIND, PLACE, 'Stalled'), 'True NotOurs');
      assert.equal(markOf('crew'), undefined);
      const { metadata } = w.apply(KIND, 'adm/crew', { displayName: 'Crew' });
      await w.deliverEvents();
      assert.equal(markOf('Crew'), `v2;main;adm/crew;adopted;${metadata.uid};${uuid}`);
      assert.deepEqual([w.status(KIND, 'adm/crew').origin, w.status(KIND, 'adm/crew').groupId], ['adopted', 4]);
    });

    it('a second resource of the name reports Conflict, and takes over when the first is deleted', async () => {
      await made();
      w.apply(KIND, 'team/second', { displayName: 'CREW' });
      await w.deliverEvents();
      assert.equal(w.ready(KIND, 'team/second'), 'False Conflict');
      assert.match(w.message(KIND, 'team/second'), /belongs to the LldapGroup team\/crew\./);
      w.delete(KIND, PLACE);
      await w.deliverEvents();
      assert.equal(w.ready(KIND, 'team/second'), 'True');
      assert.ok(w.posted.filter((event) => event === `reconcile ${KIND} team/second`).length >= 2);
    });

    it('gets the attributes in the spec once they are defined', async () => {
      w.apply(KIND, PLACE, { displayName: 'Crew', attributes: [{ name: 'floor', value: ['3'] }] });
      await w.deliverEvents();
      const message = 'lldap has no attribute floor for groups. Create an LldapAttributeSchema for it, or correct spec.attributes.';
      assert.deepEqual([w.message(KIND, PLACE), w.ready(KIND, PLACE, 'DependenciesReady')], [message, 'False DependencyNotReady']);
      w.apply('LldapAttributeSchema', 'team/floor', { attributeName: 'floor', attributeType: 'Integer', target: 'Group' });
      await w.deliverEvents();
      assert.deepEqual([w.ready(KIND, PLACE), w.ready(KIND, PLACE, 'DependenciesReady')], ['True', 'True DependenciesReady']);
      assert.deepEqual(w.groupOf('Crew').attributes.get('floor'), ['3']);
      w.edit(KIND, PLACE, { attributes: [] });
      await w.deliverEvents();
      assert.equal(w.ready(KIND, PLACE, 'DependenciesReady'), 'unset');
    });
  });

  describe('a new name', () => {
    it('renames the group, which keeps its id and members, and enqueues the resources that use the old or the new name', async () => {
      await made();
      await withMember('team/old', 'Crew');
      await withMember('team/new', 'Team');
      await withMember('team/other', 'none');
      w.apply(KIND, 'team/second', { displayName: 'Crew' });
      await w.deliverEvents();
      w.forget();
      w.edit(KIND, PLACE, { displayName: 'Team' });
      await w.deliverEvents();
      assert.deepEqual([w.groupOf('Team').id, w.members('Team')], [4, ['alice']]);
      assert.deepEqual(w.did.slice(0, 1), ['updated the group']);
      const woken = [`reconcile ${MEMBERSHIP} team/new`, `reconcile ${MEMBERSHIP} team/old`, `reconcile ${KIND} team/second`];
      assert.deepEqual(w.posted.slice(0, 3), woken);
      assert.ok(!w.posted.includes(`reconcile ${MEMBERSHIP} team/other`));
      assert.equal(w.ready(KIND, 'team/second'), 'True');
    });

    it('reports NameTaken with the holder and the remedy if another group has it', async () => {
      await made();
      await made('Team', 'team/team');
      w.byHand((directory) => directory.createGroup({ displayName: 'Hand' }));
      w.edit(KIND, PLACE, { displayName: 'team' });
      await w.deliverEvents();
      assert.equal(w.ready(KIND, PLACE), 'False NameTaken');
      assert.match(
        w.message(KIND, PLACE),
        /^spec\.displayName: another group in lldap has the name team \(LldapGroup team\/team\)\. Use another name, or rename that group\./,
      );
      w.edit(KIND, PLACE, { displayName: 'Hand' });
      await w.deliverEvents();
      assert.match(w.message(KIND, PLACE), /has the name Hand \(managed by no resource\)/);
      assert.equal(w.groupOf('Crew').id, 4);
    });

    it('enqueues the users of the last name in lldap and of a name that the group never got', async () => {
      await made();
      await made('Team', 'team/team');
      await withMember('team/old', 'Crew');
      await withMember('team/vain', 'Team');
      w.apply(KIND, 'team/second', { displayName: 'team' });
      w.edit(KIND, PLACE, { displayName: 'Team' });
      await w.deliverEvents();
      assert.equal(w.ready(KIND, PLACE), 'False NameTaken');
      w.forget();
      w.edit(KIND, PLACE, { displayName: 'Free' });
      await w.deliverEvents();
      for (const event of [`${MEMBERSHIP} team/old`, `${MEMBERSHIP} team/vain`, `${KIND} team/second`])
        assert.ok(w.posted.includes(`reconcile ${event}`), event);
    });

    it('that differs only in case enqueues nothing', async () => {
      await made();
      await withMember('team/m', 'Crew');
      w.edit(KIND, PLACE, { displayName: 'CREW' });
      await w.deliverEvents();
      assert.ok(w.hasGroup('CREW'));
      assert.deepEqual(w.posted, []);
    });

    it('is set by the next retry after its holder was renamed', async () => {
      await made();
      await made('Team', 'team/team');
      w.edit(KIND, PLACE, { displayName: 'Team' });
      w.edit(KIND, 'team/team', { displayName: 'Third' });
      await w.pass(6);
      assert.deepEqual([w.groupOf('Team').id, w.groupOf('Third').id], [4, 5]);
      assert.deepEqual([w.ready(KIND, PLACE), w.ready(KIND, 'team/team')], ['True', 'True']);
    });
  });

  describe('a group that becomes Ready', () => {
    it('enqueues the memberships that wait for it, and no others', async () => {
      await made();
      await withMember('team/m', 'Crew');
      w.edit(KIND, PLACE, { attributes: [{ name: 'none', value: ['1'] }] });
      await w.deliverEvents();
      w.membership('team/waits', 'nobody', 'Crew');
      await w.deliverEvents();
      w.forget();
      w.edit(KIND, PLACE, { attributes: [] });
      await w.deliverEvents();
      assert.deepEqual(w.posted, [`reconcile ${MEMBERSHIP} team/waits`]);
    });
  });

  describe('deletion', () => {
    it('deletes a group that the operator created, and enqueues its memberships', async () => {
      await made();
      await withMember('team/m', 'Crew');
      w.delete(KIND, PLACE);
      await w.deliverEvents();
      assert.deepEqual([w.has(KIND, PLACE), w.hasGroup('Crew')], [false, false]);
      assert.deepEqual(w.did.slice(0, 1), ['deleted the group']);
      assert.deepEqual(w.posted.slice(0, 1), [`reconcile ${MEMBERSHIP} team/m`]);
      assert.equal(w.ready(MEMBERSHIP, 'team/m'), 'False DependencyNotReady');
    });

    it('deletes the group after a failed rename, and enqueues the resource that waits for its name', async () => {
      await made();
      await made('Team', 'team/team');
      w.apply(KIND, 'team/second', { displayName: 'Crew' });
      w.edit(KIND, PLACE, { displayName: 'Team' });
      await w.deliverEvents();
      w.forget();
      w.delete(KIND, PLACE);
      await w.pass(6);
      assert.deepEqual([w.has(KIND, PLACE), w.ready(KIND, 'team/second')], [false, 'True']);
      assert.notEqual(w.groupOf('Crew').id, 4);
    });

    for (const [end, isAnswered] of [
      ['', true],
      [', although lldap’s answer to the deletion is lost', false],
    ] as const) {
      it(`tells the members by the name in lldap, which a failed rename kept${end}`, async () => {
        await made();
        w.fail(/lldap updateGroup/, 'refused', 9);
        w.edit(KIND, PLACE, { displayName: 'Team' });
        await w.deliverEvents();
        await withMember('team/m', 'Crew');
        assert.deepEqual([w.ready(MEMBERSHIP, 'team/m'), w.members('Crew')], ['True', ['alice']]);
        if (!isAnswered) w.fail(/lldap deleteGroup/, 'unanswered');
        w.delete(KIND, PLACE);
        await w.pass(6);
        assert.deepEqual([w.has(KIND, PLACE), w.hasGroup('Crew')], [false, false]);
        assert.equal(w.ready(MEMBERSHIP, 'team/m'), 'False DependencyNotReady');
      });
    }

    it('keeps an adopted group, and one with deletionPolicy Retain', async () => {
      w.byHand((directory) => directory.createGroup({ displayName: 'Crew' }));
      await made('Crew', 'adm/crew');
      w.apply(KIND, 'team/kept', { displayName: 'Kept', deletionPolicy: 'Retain' });
      await w.deliverEvents();
      w.delete(KIND, 'adm/crew');
      w.delete(KIND, 'team/kept');
      await w.deliverEvents();
      assert.deepEqual([w.has(KIND, 'adm/crew'), w.has(KIND, 'team/kept')], [false, false]);
      assert.deepEqual([w.hasGroup('Crew'), w.hasGroup('Kept')], [true, true]);
    });

    it('finds the group by its mark if the process died before the status write', async () => {
      await made();
      w.unwatched(() => w.forge(KIND, PLACE, { groupId: FORGOTTEN, uuid: FORGOTTEN, origin: FORGOTTEN }));
      w.byHand((directory) => directory.updateGroup({ id: 4, displayName: 'Renamed' }));
      w.delete(KIND, PLACE);
      await w.deliverEvents();
      assert.deepEqual([w.has(KIND, PLACE), w.hasGroup('Renamed')], [false, false]);
    });

    it('completes if the group is gone already', async () => {
      await made();
      w.byHand((directory) => directory.deleteGroup(4));
      w.delete(KIND, PLACE);
      await w.deliverEvents();
      assert.ok(!w.has(KIND, PLACE));
    });

    it('rolls back the creation if the resource vanishes meanwhile, but deletes no other group of that name', async () => {
      w.before(/STATUS LldapGroup/, () => w.kube.drop(w.get(KIND, PLACE)));
      w.apply(KIND, PLACE, { displayName: 'Crew' });
      await w.deliverEvents();
      assert.ok(!w.hasGroup('Crew'));
      w.before(/STATUS LldapGroup/, () => {
        const { uid } = w.get(KIND, PLACE).metadata;
        w.byHand((directory) => {
          directory.deleteGroup(w.groupOf('Crew').id);
          directory.createGroup({ displayName: 'Crew', attributes: [{ name: 'k8s-owner', value: [`v2;main;team/crew;created;${uid}`] }] });
        });
        w.kube.drop(w.get(KIND, PLACE));
      });
      w.apply(KIND, PLACE, { displayName: 'Crew' });
      await w.deliverEvents();
      assert.ok(w.hasGroup('Crew'));
    });
  });

  describe('built-in groups', () => {
    it('are owned by no resource, not even in a privileged namespace, and never deleted', async () => {
      w.apply(KIND, 'adm/x', { displayName: 'LLDAP_Admin', deletionPolicy: 'Delete' });
      await w.deliverEvents();
      assert.equal(w.ready(KIND, 'adm/x', 'Stalled'), 'True Protected');
      assert.match(w.message(KIND, 'adm/x'), /^The group LLDAP_Admin is built into lldap, and no resource may own it\./);
      w.delete(KIND, 'adm/x');
      await w.deliverEvents();
      assert.deepEqual([w.has(KIND, 'adm/x'), w.hasGroup('lldap_admin')], [false, true]);
    });

    it('a resource renamed to a built-in name keeps its group, and its deletion deletes that group', async () => {
      await made();
      w.edit(KIND, PLACE, { displayName: 'lldap_admin' });
      await w.deliverEvents();
      assert.deepEqual([w.ready(KIND, PLACE), w.hasGroup('Crew')], ['False Protected', true]);
      w.delete(KIND, PLACE);
      await w.deliverEvents();
      assert.deepEqual([w.has(KIND, PLACE), w.hasGroup('Crew'), w.hasGroup('lldap_admin')], [false, false, true]);
    });

    it('the group function ignores virtual groups', async () => {
      const report = await w.reconcile(KIND, 'op/lldap-admin');
      assert.equal(report.result, 'ignored');
      assert.deepEqual(w.asked, []);
      w.kube.create(KIND, 'team', 'fake', { ...w.get(KIND, 'op/lldap-admin').metadata.labels }, { displayName: 'lldap_admin' });
      await w.deliverEvents();
      assert.equal(w.ready(KIND, 'team/fake'), 'False Protected');
    });
  });
});
