import assert from 'node:assert/strict';
import type { AllowedNamespaces } from '../../../../shared/kube/resources.ts';
import { createWorld, useWorld } from '../../support/world.ts';
import { KIND, membershipScenes } from './scenes.ts';

const BLUE = 'blue/m';

describe('the consent of a group', () => {
  const { w, startWith } = useWorld();
  const { crew } = membershipScenes(w);
  const allow = (namespaces: AllowedNamespaces | undefined) =>
    w.apply('LldapGroup', 'team/crew', { displayName: 'Crew', ...(namespaces && { allowedMemberships: { namespaces } }) });
  const byLabel = (matchLabels: Record<string, string>): AllowedNamespaces => ({ from: 'Selector', selector: { matchLabels } });
  const label = (namespace: string, labels: Record<string, string>) => {
    w.kube.namespaceLabels = new Map(w.kube.namespaceLabels).set(namespace, labels);
  };

  /** A membership of another namespace that joined by consent. */
  async function admitted(namespaces: AllowedNamespaces = { from: 'All' }): Promise<void> {
    w.user('team/alice');
    allow(namespaces);
    w.membership(BLUE, 'alice', 'Crew');
    await w.deliverEvents();
    assert.deepEqual(w.members('Crew'), ['alice']);
    w.forget();
  }

  /** One that an earlier version let join, whose group says nothing. */
  async function joinedLongAgo(): Promise<void> {
    await admitted();
    w.unwatched(() => allow(undefined));
    w.forget();
  }

  describe('without spec.allowedMemberships', () => {
    it('memberships of other namespaces wait, and are told how to be admitted', async () => {
      w.user('team/alice');
      crew();
      w.membership(BLUE, 'alice', 'Crew');
      await w.deliverEvents();
      assert.deepEqual(w.members('Crew'), []);
      assert.deepEqual([w.ready(KIND, BLUE), w.ready(KIND, BLUE, 'Stalled')], ['False Forbidden', 'True Forbidden']);
      assert.equal(
        w.message(KIND, BLUE),
        'The group Crew belongs to the LldapGroup team/crew, which has no spec.allowedMemberships and so allows only its own namespace. A user that has joined before stays. Ask for spec.allowedMemberships there to select the namespace blue, or create this resource in team.',
      );
    });

    it('those of the own namespace and of privileged namespaces join', async () => {
      w.user('team/alice');
      w.user('team/bob');
      crew();
      w.membership('team/m', 'alice', 'Crew');
      w.membership('adm/m', 'bob', 'Crew');
      await w.deliverEvents();
      assert.deepEqual(w.members('Crew'), ['alice', 'bob']);
    });

    it('who has joined before stays, and lldap is left alone', async () => {
      await joinedLongAgo();
      await w.startup();
      await w.deliverEvents();
      assert.equal(w.ready(KIND, BLUE), 'False Forbidden');
      assert.deepEqual(w.members('Crew'), ['alice']);
      assert.deepEqual(
        w.writes.filter((call) => call.startsWith('lldap')),
        [],
      );
    });

    it('who has joined before and was removed in lldap does not join again', async () => {
      await joinedLongAgo();
      w.byHand((directory) => directory.removeMember('alice', w.groupOf('Crew').id));
      await w.reconcile(KIND, BLUE);
      assert.deepEqual(w.members('Crew'), []);
    });
  });

  describe('a membership that is not admitted', () => {
    it('is told the same whether the user exists or not', async () => {
      w.user('team/alice');
      crew();
      for (const [name, userName] of [
        ['blue/real', 'alice'],
        ['blue/unreal', 'nobody'],
      ] as const)
        w.membership(name, userName, 'Crew');
      await w.deliverEvents();
      assert.equal(w.message(KIND, 'blue/real'), w.message(KIND, 'blue/unreal'));
      assert.equal(w.ready(KIND, 'blue/unreal', 'DependenciesReady'), 'unset');
      assert.ok(!w.asked.includes('lldap user nobody'));
    });

    it('does not remove a member by its deletion', async () => {
      crew();
      await w.deliverEvents();
      w.account('alice', 'Crew');
      w.membership(BLUE, 'alice', 'Crew');
      await w.deliverEvents();
      assert.equal(w.status(KIND, BLUE).joined, undefined);
      w.delete(KIND, BLUE);
      await w.deliverEvents();
      assert.ok(!w.has(KIND, BLUE));
      assert.deepEqual(w.members('Crew'), ['alice']);
    });

    it('does not even with the finalizer that it may give itself', async () => {
      crew();
      await w.deliverEvents();
      w.account('alice', 'Crew');
      w.membership(BLUE, 'alice', 'Crew');
      await w.deliverEvents();
      w.kube.changeMetadata(w.get(KIND, BLUE), { finalizers: w.get('LldapGroup', 'team/crew').metadata.finalizers ?? [] });
      w.delete(KIND, BLUE);
      await w.deliverEvents();
      assert.ok(!w.has(KIND, BLUE));
      assert.deepEqual(w.members('Crew'), ['alice']);
    });

    it('keeps nobody in the group', async () => {
      await joinedLongAgo();
      w.membership('team/m', 'alice', 'Crew');
      await w.deliverEvents();
      w.delete(KIND, 'team/m');
      await w.deliverEvents();
      assert.deepEqual(w.members('Crew'), []);
    });

    it('joins as soon as it is admitted', async () => {
      w.user('team/alice');
      crew();
      w.membership(BLUE, 'alice', 'Crew');
      await w.deliverEvents();
      allow(byLabel({ 'kubernetes.io/metadata.name': 'blue' }));
      await w.deliverEvents();
      assert.deepEqual([w.members('Crew'), w.ready(KIND, BLUE)], [['alice'], 'True']);
      assert.equal(w.condition(KIND, BLUE, 'Stalled'), undefined);
    });
  });

  describe('by labels', () => {
    const selectors: [what: string, selector: AllowedNamespaces['selector'], admits: boolean][] = [
      ['an equal label', { matchLabels: { team: 'blue' } }, true],
      ['another value', { matchLabels: { team: 'red' } }, false],
      ['a label of two that it lacks', { matchLabels: { team: 'blue', tier: 'gold' } }, false],
      ['a value among others', { matchExpressions: [{ key: 'team', operator: 'In', values: ['red', 'blue'] }] }, true],
      ['no value among others', { matchExpressions: [{ key: 'team', operator: 'In', values: ['red'] }] }, false],
      ['a label that it lacks, with In', { matchExpressions: [{ key: 'tier', operator: 'In', values: [''] }] }, false],
      ['a value that is excluded', { matchExpressions: [{ key: 'team', operator: 'NotIn', values: ['blue'] }] }, false],
      ['a label that it lacks, with NotIn', { matchExpressions: [{ key: 'tier', operator: 'NotIn', values: ['gold'] }] }, true],
      ['a label that exists', { matchExpressions: [{ key: 'team', operator: 'Exists' }] }, true],
      ['a label that must not exist', { matchExpressions: [{ key: 'team', operator: 'DoesNotExist' }] }, false],
      ['the name of a property that every object has', { matchExpressions: [{ key: 'toString', operator: 'Exists' }] }, false],
      ['both kinds of conditions', { matchLabels: { team: 'blue' }, matchExpressions: [{ key: 'team', operator: 'DoesNotExist' }] }, false],
    ];
    for (const [what, selector, admits] of selectors)
      it(`${admits ? 'admits' : 'does not admit'} a namespace with ${what}`, async () => {
        label('blue', { team: 'blue' });
        w.user('team/alice');
        allow({ from: 'Selector', ...(selector && { selector }) });
        w.membership(BLUE, 'alice', 'Crew');
        await w.deliverEvents();
        assert.deepEqual(w.members('Crew'), admits ? ['alice'] : []);
      });

    it('a sweep notices that a namespace has lost its label, or got it', async () => {
      label('blue', { team: 'blue' });
      await admitted(byLabel({ team: 'blue' }));
      label('blue', {});
      await w.startup();
      await w.deliverEvents();
      assert.deepEqual([w.members('Crew'), w.ready(KIND, BLUE)], [[], 'False Forbidden']);
      label('blue', { team: 'blue' });
      await w.startup();
      await w.deliverEvents();
      assert.deepEqual([w.members('Crew'), w.ready(KIND, BLUE)], [['alice'], 'True']);
    });

    it('a sweep that cannot read the labels removes nobody, and says so', async () => {
      await admitted(byLabel({ 'kubernetes.io/metadata.name': 'blue' }));
      w.fail(/LIST Namespace/, 'odd', 100);
      const { problems, posted } = await w.startup();
      await w.deliverEvents();
      assert.deepEqual(problems, ['odd (check the right to list namespaces)']);
      assert.equal(posted.lost, 0);
      assert.deepEqual(w.members('Crew'), ['alice']);
    });
  });

  describe('that is withdrawn', () => {
    it('removes the members at once, and only those of other namespaces', async () => {
      await admitted();
      w.user('team/bob');
      w.membership('team/m', 'bob', 'Crew');
      w.user('adm/root');
      w.membership('adm/m', 'root', 'Crew');
      await w.deliverEvents();
      w.forget();
      allow({ from: 'Same' });
      await w.deliverEvents();
      assert.deepEqual(w.members('Crew'), ['bob', 'root']);
      assert.deepEqual([w.ready(KIND, BLUE), w.status(KIND, BLUE).joined], ['False Forbidden', undefined]);
      assert.equal(
        w.message(KIND, BLUE),
        'The group Crew belongs to the LldapGroup team/crew, whose spec.allowedMemberships does not select this namespace. Ask for spec.allowedMemberships there to select the namespace blue, or create this resource in team.',
      );
      assert.deepEqual(
        w.did.filter((step) => step.includes('from the group')),
        ['removed the user from the group'],
      );
      assert.deepEqual(
        w.posted.filter((event) => !event.includes(BLUE)),
        [],
      );
    });

    it('removes a member although the membership is suspended', async () => {
      await admitted();
      w.edit(KIND, BLUE, { suspend: true });
      await w.deliverEvents();
      allow({ from: 'Same' });
      await w.deliverEvents();
      assert.deepEqual([w.members('Crew'), w.ready(KIND, BLUE)], [[], 'False Suspended']);
    });

    it('removes a member although the group itself fails, and although the user’s resource is not Ready', async () => {
      await admitted();
      w.unwatched(() => w.forge('LldapUser', 'team/alice', { conditions: [] }));
      w.apply('LldapGroup', 'team/crew', {
        displayName: 'Crew',
        attributes: [{ name: 'undefined', value: ['x'] }],
        allowedMemberships: { namespaces: { from: 'Same' } },
      });
      await w.deliverEvents();
      assert.equal(w.ready('LldapGroup', 'team/crew'), 'False DependencyNotReady');
      assert.deepEqual(w.members('Crew'), []);
    });

    it('removes a member by the next sweep if the event is lost', async () => {
      await admitted();
      w.unwatched(() => allow({ from: 'Same' }));
      await w.startup();
      await w.deliverEvents();
      assert.deepEqual(w.members('Crew'), []);
    });

    it('removes a suspended member by the next sweep if the event is lost', async () => {
      await admitted();
      w.edit(KIND, BLUE, { suspend: true });
      await w.deliverEvents();
      w.unwatched(() => allow({ from: 'Same' }));
      await w.startup();
      await w.deliverEvents();
      assert.deepEqual(w.members('Crew'), []);
    });

    it('removes a member that joined while it was withdrawn', async () => {
      w.user('team/alice');
      allow({ from: 'All' });
      await w.deliverEvents();
      w.before(/addUserToGroup/, () => allow({ from: 'Same' }));
      w.membership(BLUE, 'alice', 'Crew');
      await w.deliverEvents();
      assert.deepEqual([w.members('Crew'), w.ready(KIND, BLUE)], [[], 'False Forbidden']);
    });

    it('keeps out a membership that was about to join and that the group could not find yet', async () => {
      w.user('team/alice');
      allow({ from: 'All' });
      await w.deliverEvents();
      w.before(/STATUS LldapMembership/, () => w.unwatched(() => allow({ from: 'Same' })));
      w.membership(BLUE, 'alice', 'Crew');
      await w.deliverEvents();
      assert.deepEqual([w.members('Crew'), w.ready(KIND, BLUE), w.status(KIND, BLUE).joining], [[], 'False Forbidden', undefined]);
      assert.ok(!w.did.includes('added the user to the group'));
    });

    it('also one whose user is in the group already', async () => {
      allow({ from: 'All' });
      await w.deliverEvents();
      w.account('alice', 'Crew');
      w.before(/STATUS LldapMembership/, () => w.unwatched(() => allow({ from: 'Same' })));
      w.membership(BLUE, 'alice', 'Crew');
      await w.deliverEvents();
      assert.deepEqual([w.members('Crew'), w.ready(KIND, BLUE), w.status(KIND, BLUE).joined], [['alice'], 'False Forbidden', undefined]);
    });

    it('removes a member whose join was never recorded', async () => {
      w.user('team/alice');
      allow({ from: 'All' });
      await w.deliverEvents();
      w.before(/addUserToGroup/, () => {
        w.unwatched(() => allow({ from: 'Same' }));
        w.fail(/STATUS LldapMembership/, 'refused', 3);
      });
      w.membership(BLUE, 'alice', 'Crew');
      await w.deliverEvents();
      w.heal();
      await w.startup();
      await w.deliverEvents();
      assert.deepEqual([w.members('Crew'), w.status(KIND, BLUE).joining], [[], undefined]);
    });

    it('also at the deletion of a membership whose join was never recorded', async () => {
      w.user('team/alice');
      allow({ from: 'All' });
      await w.deliverEvents();
      w.before(/addUserToGroup/, () => {
        w.unwatched(() => allow({ from: 'Same' }));
        w.fail(/STATUS LldapMembership/, 'refused', 3);
        w.unwatched(() => w.delete(KIND, BLUE));
      });
      w.membership(BLUE, 'alice', 'Crew');
      await w.deliverEvents();
      w.heal();
      await w.startup();
      await w.deliverEvents();
      assert.ok(!w.has(KIND, BLUE));
      assert.deepEqual(w.members('Crew'), []);
    });

    it('removes a member of a group that was renamed, while the join of its successor is not confirmed', async () => {
      await admitted();
      const { joined } = w.status(KIND, BLUE);
      w.unwatched(() => {
        w.apply('LldapGroup', 'team/crew', { displayName: 'Old crew', allowedMemberships: { namespaces: { from: 'Same' } } });
        w.byHand((directory) => directory.updateGroup({ id: w.groupOf('Crew').id, displayName: 'Old crew' }));
        w.byHand((directory) => directory.createGroup({ displayName: 'Crew' }));
        const { id, uuid } = w.groupOf('Crew');
        w.forge(KIND, BLUE, { joining: { userUuid: joined?.userUuid ?? '', groupId: id, groupUuid: uuid } });
      });
      await w.reconcile(KIND, BLUE);
      assert.deepEqual(w.members('Old crew'), []);
    });

    it('leaves a member that another admitted membership declares', async () => {
      await admitted();
      w.membership('team/m', 'alice', 'Crew');
      await w.deliverEvents();
      allow({ from: 'Same' });
      await w.deliverEvents();
      assert.deepEqual([w.members('Crew'), w.ready(KIND, BLUE), w.ready(KIND, 'team/m')], [['alice'], 'False Forbidden', 'True']);
    });

    it('leaves members while lldap cannot tell whose the group is', async () => {
      await admitted();
      w.fail(/lldap group /, 'refused', 1);
      allow({ from: 'Same' });
      w.fail(/lldap group /, 'refused', 100);
      await w.deliverEvents();
      assert.deepEqual([w.members('Crew'), w.ready(KIND, BLUE)], [['alice'], 'False LldapUnavailable']);
    });

    it('costs no event where nothing changes for a membership', async () => {
      await admitted();
      w.edit('LldapGroup', 'team/crew', { allowedMemberships: { namespaces: byLabel({ 'kubernetes.io/metadata.name': 'blue' }) } });
      await w.deliverEvents();
      assert.deepEqual(w.posted, []);
    });
  });

  describe('a sweep', () => {
    it('counts what an owner forbids, and asks for none of it again', async () => {
      w.user('team/alice');
      crew();
      w.membership(BLUE, 'alice', 'Crew');
      await w.deliverEvents();
      await joinedLongAgo();
      await w.startup();
      await w.deliverEvents();
      w.forget();
      const { forbidden, posted } = await w.startup();
      assert.deepEqual([forbidden, posted.lost, posted.stalled], [1, 0, 0]);
    });

    it('still asks for what is forbidden to ordinary namespaces for ever, in case that was changed', async () => {
      w.membership(BLUE, 'alice', 'lldap_admin');
      await w.deliverEvents();
      const { forbidden, posted } = await w.startup();
      assert.deepEqual([forbidden, posted.stalled], [0, 1]);
    });
  });

  describe('deletionPolicy: Retain', () => {
    for (const [at, stays] of [
      ['team/m', true],
      ['adm/m', true],
      [BLUE, false],
    ] as const)
      it(`${stays ? 'keeps' : 'does not keep'} the user when a membership in ${at.split('/')[0]} is deleted`, async () => {
        await admitted();
        if (at !== BLUE) {
          w.delete(KIND, BLUE);
          await w.deliverEvents();
          w.membership(at, 'alice', 'Crew');
          await w.deliverEvents();
        }
        w.edit(KIND, at, { deletionPolicy: 'Retain' });
        w.delete(KIND, at);
        await w.deliverEvents();
        assert.ok(!w.has(KIND, at));
        assert.deepEqual(w.members('Crew'), stays ? ['alice'] : []);
      });
  });

  describe('a group without an owner', () => {
    it('that exists only in lldap is joined by no ordinary namespace', async () => {
      w.byHand((directory) => directory.createGroup({ displayName: 'Crew' }));
      w.user('team/alice');
      w.membership('team/m', 'alice', 'Crew');
      await w.deliverEvents();
      assert.deepEqual([w.members('Crew'), w.ready(KIND, 'team/m')], [[], 'False NotOurs']);
      assert.equal(
        w.message(KIND, 'team/m'),
        'The group Crew exists in lldap and no resource owns it, so only privileged namespaces may add members to it. Declare it as an LldapGroup in a privileged namespace that allows this namespace, or create this resource in a privileged namespace.',
      );
    });

    it('joins when a privileged namespace adopts it and admits', async () => {
      w.byHand((directory) => directory.createGroup({ displayName: 'Crew' }));
      w.user('team/alice');
      w.membership('team/m', 'alice', 'Crew');
      await w.deliverEvents();
      w.apply('LldapGroup', 'adm/crew', { displayName: 'Crew', allowedMemberships: { namespaces: { from: 'All' } } });
      await w.deliverEvents();
      assert.deepEqual(w.members('Crew'), ['alice']);
    });

    it('is joined by every namespace that may adopt it', async () => {
      startWith(createWorld({ ADOPTION: 'all' }));
      w.byHand((directory) => directory.createGroup({ displayName: 'Crew' }));
      w.user('team/alice');
      w.membership('team/m', 'alice', 'Crew');
      await w.deliverEvents();
      assert.deepEqual(w.members('Crew'), ['alice']);
    });

    it('of another installation is joined by none, not even by a privileged namespace', async () => {
      const value = ['v2;second;team/crew;created;u'];
      w.byHand((directory) => directory.createGroup({ displayName: 'Crew', attributes: [{ name: 'k8s-owner', value }] }));
      w.user('team/alice');
      w.membership('adm/m', 'alice', 'Crew');
      await w.deliverEvents();
      assert.deepEqual([w.members('Crew'), w.ready(KIND, 'adm/m')], [[], 'False NotOurs']);
    });

    it('that a deleted resource left keeps its members, and only the namespace in the mark adds some', async () => {
      await admitted();
      w.edit('LldapGroup', 'team/crew', { deletionPolicy: 'Retain' });
      w.delete('LldapGroup', 'team/crew');
      await w.deliverEvents();
      assert.ok(!w.has('LldapGroup', 'team/crew'));
      w.user('team/bob');
      w.membership('team/m', 'bob', 'Crew');
      w.membership('blue/m2', 'bob', 'Crew');
      await w.deliverEvents();
      assert.deepEqual(w.members('Crew'), ['alice', 'bob']);
      assert.equal(w.ready(KIND, 'blue/m2'), 'False DependencyNotReady');
      assert.equal(
        w.message(KIND, 'blue/m2'),
        'An LldapGroup of the namespace team has left the group Crew in lldap, or only observes it. Until an LldapGroup manages it again, only memberships in team and in privileged namespaces may join it.',
      );
    });

    it('is decided about by the next owner', async () => {
      await admitted();
      w.edit('LldapGroup', 'team/crew', { deletionPolicy: 'Retain' });
      w.delete('LldapGroup', 'team/crew');
      await w.deliverEvents();
      w.apply('LldapGroup', 'adm/crew', { displayName: 'Crew' });
      await w.deliverEvents();
      assert.deepEqual([w.members('Crew'), w.ready(KIND, BLUE)], [['alice'], 'False Forbidden']);
      w.edit('LldapGroup', 'adm/crew', { allowedMemberships: { namespaces: { from: 'Same' } } });
      await w.deliverEvents();
      assert.deepEqual(w.members('Crew'), []);
    });
  });
});
