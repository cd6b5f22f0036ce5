import assert from 'node:assert/strict';
import type { KindName, ResourceOf } from '../../../shared/kube/resources.ts';
import { createWorld, useWorld } from '../support/world.ts';

describe('managementPolicy: Observe', () => {
  const { w, startWith } = useWorld();
  const OBSERVE = { managementPolicy: 'Observe' as const };
  const USER = { username: 'alice', email: 'alice@example.com', passwordPolicy: 'Ignore' as const };
  const KINDS: { [K in KindName]: ResourceOf[K]['spec'] } = {
    LldapUser: USER,
    LldapGroup: { displayName: 'Crew' },
    LldapMembership: { userName: 'alice', groupName: 'Crew' },
    LldapAttributeSchema: { attributeName: 'shoe', attributeType: 'Integer', target: 'User' },
  };
  const kinds = Object.keys(KINDS) as KindName[];
  const observe = (kind: KindName, at: `${string}/${string}`, over: object = {}) =>
    w.apply(kind, at, { ...KINDS[kind], ...OBSERVE, ...over } as never);
  const manage = (kind: KindName, at: `${string}/${string}`) => w.edit(kind, at, { managementPolicy: 'Manage' });

  /** What the resources ask for, made by people. */
  function madeByHand(): void {
    w.byHand((directory) => {
      directory.createUser({ id: 'alice', email: 'alice@example.com' });
      directory.addMember('alice', directory.createGroup({ displayName: 'Crew' }).id);
    });
    const shoe = { name: 'shoe', attributeType: 'INTEGER' as const, isList: false, isVisible: false, isEditable: false };
    w.lldap.state.definitions.user.set('shoe', { ...shoe, isHardcoded: false, isReadonly: false });
  }

  describe('of what lldap holds', () => {
    for (const kind of kinds)
      it(`is Ready for ${kind}, and writes nothing but the status`, async () => {
        madeByHand();
        observe(kind, 'adm/o');
        await w.deliverEvents();
        assert.equal(w.condition(kind, 'adm/o', 'Ready')?.reason, 'Observed');
        assert.equal(w.message(kind, 'adm/o'), 'managementPolicy is Observe, and lldap holds what the resource asks for.');
        assert.deepEqual(w.writes, [`kube STATUS ${kind} adm/o`]);
        assert.deepEqual(w.posted, []);
        const { metadata, status } = w.get(kind, 'adm/o');
        assert.deepEqual(metadata.finalizers ?? [], []);
        const recorded = Object.keys(status ?? {}).filter((field) =>
          ['uuid', 'groupId', 'origin', 'joined', 'joining', 'created'].includes(field),
        );
        assert.deepEqual(recorded, []);
      });

    it('is left alone by sweeps, and by a run of mode drift', async () => {
      madeByHand();
      for (const kind of kinds) observe(kind, 'adm/o');
      await w.deliverEvents();
      for (const mode of ['sweep', 'drift'] as const) {
        const { posted, wouldChange } = await w.startup(mode);
        await w.deliverEvents();
        await w.pass(60);
        assert.deepEqual([posted.lost, posted.stalled, posted.drifted, wouldChange], [0, 0, 0, 0], mode);
      }
    });

    it('is taken over with marks alone once it is managed', async () => {
      madeByHand();
      for (const kind of kinds) observe(kind, 'adm/o', { deletionPolicy: 'Retain' });
      await w.deliverEvents();
      w.forget();
      for (const kind of kinds) manage(kind, 'adm/o');
      await w.deliverEvents();
      for (const kind of kinds) assert.equal(w.condition(kind, 'adm/o', 'Ready')?.reason, 'Reconciled', kind);
      assert.deepEqual(w.writes.filter((call) => call.startsWith('ldap') || call.startsWith('lldap')).sort(), [
        'lldap updateGroup 4',
        'lldap updateUser alice',
      ]);
    });

    it('vanishes without a trace when it is deleted', async () => {
      madeByHand();
      for (const kind of kinds) observe(kind, 'adm/o', { deletionPolicy: 'Delete' });
      await w.deliverEvents();
      w.forget();
      for (const kind of kinds) w.delete(kind, 'adm/o');
      await w.deliverEvents();
      for (const kind of kinds) assert.ok(!w.has(kind, 'adm/o'), kind);
      assert.deepEqual(w.writes, []);
      assert.deepEqual(w.members('Crew'), ['alice']);
    });
  });

  describe('of what lldap does not hold', () => {
    const missing: [KindName, message: string][] = [
      ['LldapUser', 'create the user'],
      ['LldapGroup', 'create the group'],
      ['LldapAttributeSchema', 'define the attribute'],
    ];
    for (const [kind, change] of missing)
      it(`says what Manage would do for ${kind}, and does not do it`, async () => {
        observe(kind, 'team/o');
        await w.deliverEvents();
        assert.equal(w.ready(kind, 'team/o'), 'False WouldChange');
        assert.equal(w.ready(kind, 'team/o', 'Stalled'), 'True WouldChange');
        assert.equal(w.message(kind, 'team/o'), `With managementPolicy: Manage, the operator would ${change}.`);
        assert.deepEqual(w.writes, [`kube STATUS ${kind} team/o`]);
      });

    it('says that a user would be added to a group', async () => {
      madeByHand();
      w.byHand((directory) => directory.removeMember('alice', 4));
      observe('LldapMembership', 'adm/o');
      await w.deliverEvents();
      assert.equal(w.message('LldapMembership', 'adm/o'), 'With managementPolicy: Manage, the operator would add the user to the group.');
      assert.deepEqual(w.members('Crew'), []);
    });

    it('names the fields and attributes that differ, and no value', async () => {
      madeByHand();
      observe('LldapUser', 'adm/o', {
        email: 'secret@example.com',
        firstName: 'Secret',
        attributes: [{ name: 'shoe', value: ['4711'] }],
      });
      observe('LldapGroup', 'adm/o', { displayName: 'CREW' });
      await w.deliverEvents();
      assert.equal(
        w.message('LldapUser', 'adm/o'),
        'With managementPolicy: Manage, the operator would change email and firstName and the attribute shoe.',
      );
      assert.equal(w.message('LldapGroup', 'adm/o'), 'With managementPolicy: Manage, the operator would change displayName.');
      assert.ok(!JSON.stringify([w.logs, w.kube.events]).match(/secret@|Secret|4711/));
    });

    it('is looked at again by each sweep, and is Observed once a person has changed lldap', async () => {
      observe('LldapGroup', 'adm/o');
      await w.deliverEvents();
      w.byHand((directory) => directory.createGroup({ displayName: 'Crew' }));
      const { wouldChange } = await w.startup();
      await w.deliverEvents();
      assert.equal(wouldChange, 1);
      assert.equal(w.condition('LldapGroup', 'adm/o', 'Ready')?.reason, 'Observed');
    });

    it('a run of mode drift notices that lldap has changed', async () => {
      madeByHand();
      for (const kind of kinds) observe(kind, 'adm/o');
      await w.deliverEvents();
      w.byHand((directory) => {
        directory.removeMember('alice', 4);
        directory.updateGroup({ id: 4, displayName: 'CREW' });
        directory.updateUser({ id: 'alice', email: 'other@example.com' });
      });
      const { posted } = await w.startup('drift');
      await w.deliverEvents();
      assert.equal(posted.drifted, 3);
      for (const kind of ['LldapUser', 'LldapGroup', 'LldapMembership'] as const)
        assert.equal(w.ready(kind, 'adm/o'), 'False WouldChange', kind);
    });
  });

  describe('is no oracle', () => {
    it('a resource that may not act is told that alone: nothing is compared, no definition looked up, no password tried', async () => {
      madeByHand();
      w.secret('team/s', 'alice-password');
      const password = { passwordPolicy: 'Manage', passwordSecretRef: { name: 's', key: 'password' } };
      observe('LldapUser', 'team/same', password);
      observe('LldapUser', 'team/other', { ...password, email: 'other@example.com', attributes: [{ name: 'unheard-of', value: ['1'] }] });
      await w.deliverEvents();
      assert.equal(w.ready('LldapUser', 'team/same'), 'False NotOurs');
      assert.equal(w.message('LldapUser', 'team/same'), w.message('LldapUser', 'team/other'));
      assert.deepEqual(
        w.asked.filter((call) => call.startsWith('ldap')),
        [],
      );
      assert.equal(w.condition('LldapUser', 'team/other', 'DependenciesReady'), undefined);
    });

    it('a group of another namespace’s resource is not compared', async () => {
      w.apply('LldapGroup', 'team/crew', { displayName: 'Crew' });
      await w.deliverEvents();
      observe('LldapGroup', 'other/o', { attributes: [{ name: 'unheard-of', value: ['1'] }] });
      await w.deliverEvents();
      assert.equal(w.ready('LldapGroup', 'other/o'), 'False Conflict');
    });

    it('a member of a built-in group is not compared from an ordinary namespace, where all may adopt either', async () => {
      startWith(createWorld({ ADOPTION: 'all' }));
      w.account('alice', 'lldap_admin');
      for (const [at, email] of [
        ['team/same', 'alice@example.com'],
        ['team/other', 'other@example.com'],
      ] as const)
        observe('LldapUser', at, { email });
      await w.deliverEvents();
      for (const at of ['team/same', 'team/other'] as const) assert.equal(w.ready('LldapUser', at), 'False Forbidden', at);
      assert.equal(w.message('LldapUser', 'team/same'), w.message('LldapUser', 'team/other'));
    });

    it('a membership that the group’s owner does not allow is told the same whether the user is in the group or not', async () => {
      w.user('team/alice');
      w.user('team/bob');
      w.apply('LldapGroup', 'team/crew', { displayName: 'Crew' });
      w.membership('team/m', 'alice', 'Crew');
      await w.deliverEvents();
      observe('LldapMembership', 'blue/in');
      observe('LldapMembership', 'blue/out', { userName: 'bob' });
      await w.deliverEvents();
      assert.equal(w.ready('LldapMembership', 'blue/in'), 'False Forbidden');
      assert.equal(w.message('LldapMembership', 'blue/in'), w.message('LldapMembership', 'blue/out'));
    });
  });

  describe('of a password', () => {
    const password = { passwordPolicy: 'Manage', passwordSecretRef: { name: 's', key: 'password' } };
    const binds = () =>
      w.asked.filter((call) => call === 'ldap verify alice' || call.startsWith('ldap bind alice') || /^ldap .*alice/.test(call));

    it('tries it once, and again only when the Secret or lldap’s password changes', async () => {
      madeByHand();
      w.lldap.setPassword('alice', 'right-password');
      w.secret('adm/s', 'right-password');
      observe('LldapUser', 'adm/o', password);
      await w.deliverEvents();
      assert.equal(w.condition('LldapUser', 'adm/o', 'Ready')?.reason, 'Observed');
      assert.equal(w.ready('LldapUser', 'adm/o', 'PasswordSynced'), 'True PasswordSynced');
      assert.equal(binds().length, 1);
      await w.reconcile('LldapUser', 'adm/o');
      assert.equal(binds().length, 1);
      w.secret('adm/s', 'wrong-password');
      await w.deliverEvents();
      assert.equal(w.message('LldapUser', 'adm/o'), 'With managementPolicy: Manage, the operator would set the password.');
      assert.equal(w.ready('LldapUser', 'adm/o', 'PasswordSynced'), 'False WouldChange');
      assert.equal(binds().length, 2);
      await w.reconcile('LldapUser', 'adm/o');
      assert.equal(binds().length, 2);
      await w.pass(1);
      w.byHand(() => w.lldap.setPassword('alice', 'wrong-password'));
      await w.startup();
      await w.deliverEvents();
      assert.equal(w.condition('LldapUser', 'adm/o', 'Ready')?.reason, 'Observed');
      assert.equal(binds().length, 3);
      assert.ok(!w.writes.some((call) => call.startsWith('ldap set')));
    });
  });

  describe('instead of Manage', () => {
    it('keeps the object of a resource that is deleted, whatever its deletionPolicy', async () => {
      w.apply('LldapGroup', 'team/crew', { displayName: 'Crew' });
      w.user('team/alice');
      w.membership('team/m', 'alice', 'Crew');
      await w.deliverEvents();
      w.edit('LldapGroup', 'team/crew', { ...OBSERVE, deletionPolicy: 'Delete' });
      w.edit('LldapMembership', 'team/m', OBSERVE);
      await w.deliverEvents();
      for (const [kind, at] of [
        ['LldapMembership', 'team/m'],
        ['LldapGroup', 'team/crew'],
      ] as const) {
        assert.equal(w.condition(kind, at, 'Ready')?.reason, 'Observed');
        w.delete(kind, at);
      }
      await w.deliverEvents();
      assert.ok(!w.has('LldapGroup', 'team/crew') && !w.has('LldapMembership', 'team/m'));
      assert.deepEqual(w.members('Crew'), ['alice']);
    });

    it('does not let a tenant leave a user in another’s group', async () => {
      w.apply('LldapGroup', 'team/crew', { displayName: 'Crew', allowedMemberships: { namespaces: { from: 'All' } } });
      w.user('team/alice');
      w.membership('blue/m', 'alice', 'Crew');
      await w.deliverEvents();
      w.edit('LldapMembership', 'blue/m', OBSERVE);
      w.delete('LldapMembership', 'blue/m');
      await w.deliverEvents();
      assert.ok(!w.has('LldapMembership', 'blue/m'));
      assert.deepEqual(w.members('Crew'), []);
    });

    it('does not save a member whom the group’s owner no longer allows', async () => {
      w.apply('LldapGroup', 'team/crew', { displayName: 'Crew', allowedMemberships: { namespaces: { from: 'All' } } });
      w.user('team/alice');
      w.membership('blue/m', 'alice', 'Crew');
      await w.deliverEvents();
      w.edit('LldapMembership', 'blue/m', OBSERVE);
      await w.deliverEvents();
      w.edit('LldapGroup', 'team/crew', { allowedMemberships: { namespaces: { from: 'Same' } } });
      await w.deliverEvents();
      assert.deepEqual([w.members('Crew'), w.ready('LldapMembership', 'blue/m')], [[], 'False Forbidden']);
    });

    it('keeps nobody in a group', async () => {
      w.apply('LldapGroup', 'team/crew', { displayName: 'Crew' });
      w.user('team/alice');
      w.membership('team/m', 'alice', 'Crew');
      observe('LldapMembership', 'team/o');
      await w.deliverEvents();
      w.delete('LldapMembership', 'team/m');
      await w.deliverEvents();
      assert.deepEqual(w.members('Crew'), []);
    });

    it('leaves the decision about a group to nobody: who has joined stays, others wait', async () => {
      w.apply('LldapGroup', 'team/crew', { displayName: 'Crew', allowedMemberships: { namespaces: { from: 'All' } } });
      w.user('team/alice');
      w.user('team/bob');
      w.membership('blue/m', 'alice', 'Crew');
      await w.deliverEvents();
      w.edit('LldapGroup', 'team/crew', { ...OBSERVE, allowedMemberships: { namespaces: { from: 'Same' } } });
      w.membership('blue/m2', 'bob', 'Crew');
      await w.deliverEvents();
      await w.startup('full');
      await w.deliverEvents();
      assert.deepEqual(w.members('Crew'), ['alice']);
      assert.equal(w.ready('LldapMembership', 'blue/m2'), 'False DependencyNotReady');
    });

    it('is Suspended if it is suspended', async () => {
      observe('LldapGroup', 'team/o', { suspend: true });
      await w.deliverEvents();
      assert.equal(w.ready('LldapGroup', 'team/o'), 'False Suspended');
    });
  });

  it('claims no name: others neither wait for it nor lose to it', async () => {
    madeByHand();
    for (const kind of ['LldapUser', 'LldapGroup'] as const) observe(kind, 'adm/o');
    await w.deliverEvents();
    w.apply('LldapUser', 'op/alice', USER);
    w.apply('LldapGroup', 'op/crew', { displayName: 'Crew' });
    w.membership('op/m', 'alice', 'Crew');
    await w.deliverEvents();
    for (const [kind, at] of [
      ['LldapUser', 'op/alice'],
      ['LldapGroup', 'op/crew'],
      ['LldapMembership', 'op/m'],
    ] as const)
      assert.equal(w.ready(kind, at), 'True', kind);
    await w.reconcile('LldapUser', 'adm/o');
    assert.equal(w.ready('LldapUser', 'adm/o'), 'False Conflict');
  });
});
