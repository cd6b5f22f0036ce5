import assert from 'node:assert/strict';
import { type Cost, useHarness } from './support/harness.ts';

const NOTHING: Cost = { kubeReads: [], kubeWrites: [], lldapReads: [], mutations: [], passwords: [] };

describe('What a reconcile costs', () => {
  const h = useHarness();

  before(async () => {
    await h.secret('passwords', { first: 'correct horse 1', second: 'correct horse 2' });
    await h.create('LldapUser', 'warm', {
      username: 'warm',
      email: 'warm@example.com',
      passwordSecretRef: { name: 'passwords', key: 'first' },
    });
    await h.reconcile('LldapUser', 'warm');
  });

  it('a new user with a password takes at most 4 reads and 2 writes of the API server, 2 reads of lldap, one creation and one password', async () => {
    const ref = { name: 'passwords', key: 'second' };
    const object = await h.create('LldapUser', 'new', { username: 'New', email: 'new@example.com', passwordSecretRef: ref });
    const cost = await h.cost(() => h.reconcile('LldapUser', 'new', { object }));
    assert.equal((await h.ready('LldapUser', 'new')).status, 'True');
    assert.ok(cost.kubeReads.length <= 4, JSON.stringify(cost.kubeReads));
    assert.ok(cost.kubeWrites.length <= 2, JSON.stringify(cost.kubeWrites));
    assert.ok(cost.lldapReads.length <= 2, JSON.stringify(cost.lldapReads));
    assert.deepEqual(cost.mutations, ['createUser new']);
    assert.deepEqual(cost.passwords, ['passwordModify new']);
    assert.equal(await h.lldap.check('new', 'correct horse 2'), true);
  });

  it('a new group, definition and membership take at most 4, 4 and 5 requests of the API server and one mutation each', async () => {
    const costOfNew = async (kind: 'LldapGroup' | 'LldapAttributeSchema' | 'LldapMembership', name: string, object: unknown) => {
      const cost = await h.cost(() => h.reconcile(kind, name, { object }));
      assert.equal((await h.ready(kind, name)).status, 'True');
      const calls = [...cost.kubeReads, ...cost.kubeWrites];
      assert.ok(calls.length <= (kind === 'LldapMembership' ? 5 : 4), JSON.stringify(calls));
      return cost;
    };
    const group = await costOfNew('LldapGroup', 'team', await h.create('LldapGroup', 'team', { displayName: 'Team' }));
    assert.deepEqual([group.lldapReads, group.mutations], [[], ['createGroupWithDetails Team']]);
    const schema = await costOfNew(
      'LldapAttributeSchema',
      'badge',
      await h.create('LldapAttributeSchema', 'badge', { attributeName: 'badge', attributeType: 'String', target: 'User' }),
    );
    assert.deepEqual([schema.lldapReads, schema.mutations], [['schema'], ['addUserAttribute badge']]);
    const joins = await costOfNew(
      'LldapMembership',
      'joins',
      await h.create('LldapMembership', 'joins', { userName: 'warm', groupName: 'team' }),
    );
    assert.equal(joins.mutations.length, 1);
    assert.ok(joins.lldapReads.length <= 2, JSON.stringify(joins.lldapReads));
  });

  const isList = ({ path }: Cost['kubeReads'][number]) => /\/(lldap\w+)(\?|$)/.test(path);

  it('a membership lists nothing for a user and a group whose marks name Ready resources, once its process knows the group', async () => {
    await h.create('LldapUser', 'second', { username: 'second', email: 'second@example.com', passwordPolicy: 'Ignore' });
    await h.reconcile('LldapUser', 'second');
    const object = await h.create('LldapMembership', 'second-joins', { userName: 'second', groupName: 'TEAM' });
    const cost = await h.cost(() => h.reconcile('LldapMembership', 'second-joins', { object }));
    assert.equal((await h.ready('LldapMembership', 'second-joins')).status, 'True');
    assert.deepEqual(cost.kubeReads.filter(isList), []);
    assert.deepEqual(cost.lldapReads.length, 2);
  });

  it("a membership of a person's group lists lldap's groups only once in a process", async () => {
    await h.lldap.edit('mutation { createGroup(name: "By hand") { id } }');
    const namespace = h.operatorNamespace;
    const readsOf = async (name: string, userName: string) => {
      const object = await h.create('LldapMembership', name, { userName, groupName: 'by hand' }, { namespace });
      const { lldapReads } = await h.cost(() => h.reconcile('LldapMembership', name, { namespace, object }));
      assert.equal((await h.ready('LldapMembership', name, namespace)).status, 'True');
      return lldapReads.map((read) => read.split(' ')[0]);
    };
    assert.deepEqual(await readsOf('by-hand-1', 'warm'), ['groups', 'group', 'user']);
    assert.deepEqual(await readsOf('by-hand-2', 'second'), ['group', 'user']);
  });

  it('a change of a user, group or membership lists nothing, and takes one write of the API server and one mutation at most', async () => {
    for (const [kind, name, spec] of [
      ['LldapUser', 'second', { displayName: 'Second' }],
      ['LldapGroup', 'team', { displayName: 'TEAM' }],
      ['LldapMembership', 'second-joins', { deletionPolicy: 'Delete' }],
    ] as const) {
      const object = await h.edit(kind, name, { spec });
      const cost = await h.cost(() => h.reconcile(kind, name, { object }));
      assert.equal((await h.ready(kind, name)).status, 'True');
      assert.deepEqual(cost.kubeReads.filter(isList), [], name);
      assert.ok(cost.kubeWrites.length <= 1, JSON.stringify(cost.kubeWrites));
      assert.ok(cost.mutations.length <= 1, JSON.stringify(cost.mutations));
    }
  });

  it('the deletion of a membership lists only those of its user, and those that are not Ready', async () => {
    await h.remove('LldapMembership', 'second-joins');
    const cost = await h.cost(() => h.reconcile('LldapMembership', 'second-joins', {}));
    const selectors = cost.kubeReads.filter(isList).map(({ path }) => new URL(path, 'http://kube').searchParams.get('fieldSelector'));
    assert.deepEqual(new Set(selectors), new Set(['status.userKey=second', 'status.ready!=true']));
    assert.deepEqual(cost.mutations, ['removeUserFromGroup second:4']);
  });

  it('the deletion of a group and of a user lists only what names them', async () => {
    for (const [kind, name, of] of [
      ['LldapGroup', 'listed', { displayName: 'Listed' }],
      ['LldapUser', 'listed', { username: 'listed', email: 'listed@example.com', passwordPolicy: 'Ignore' }],
    ] as const) {
      await h.create(kind, name, of);
      await h.reconcile(kind, name);
      await h.remove(kind, name);
      const cost = await h.cost(() => h.reconcile(kind, name, {}));
      const lists = cost.kubeReads.filter(isList);
      assert.ok(lists.length <= 3, JSON.stringify(lists));
      for (const { path } of lists) assert.match(path, /fieldSelector=status\.((userKey|groupKey|nameKey)%3Dlisted|joined\.groupUuid%3D)/);
    }
  });

  it('a user with attributes takes one more read of lldap, for its definitions', async () => {
    const attributes = [{ name: 'badge', value: ['7'] }];
    const spec = { username: 'badged', email: 'badged@example.com', passwordPolicy: 'Ignore' as const, attributes };
    const object = await h.create('LldapUser', 'badged', spec);
    const cost = await h.cost(() => h.reconcile('LldapUser', 'badged', { object }));
    assert.equal((await h.ready('LldapUser', 'badged')).status, 'True');
    assert.deepEqual([cost.lldapReads, cost.mutations], [['schema', 'user badged'], ['createUser badged']]);
  });

  it('an event that carries a steady resource takes no call at all, of whatever kind', async () => {
    await h.restart();
    for (const [kind, name] of [
      ['LldapUser', 'new'],
      ['LldapGroup', 'team'],
      ['LldapMembership', 'joins'],
      ['LldapAttributeSchema', 'badge'],
    ] as const) {
      const object = await h.get(kind, name);
      assert.deepEqual(await h.cost(() => h.reconcile(kind, name, { object })), NOTHING, kind);
    }
  });

  it('a steady user without its object in the event takes two reads of the API server and none of lldap', async () => {
    await h.reconcile('LldapUser', 'warm');
    const cost = await h.cost(() => h.reconcile('LldapUser', 'warm', {}));
    assert.deepEqual({ ...cost, kubeReads: cost.kubeReads.length }, { ...NOTHING, kubeReads: 2 });
  });

  it('twenty full reconciles of each kind change no resourceVersion and leave no Event and no mutation', async () => {
    for (const [kind, name] of [
      ['LldapUser', 'new'],
      ['LldapGroup', 'team'],
      ['LldapMembership', 'joins'],
      ['LldapAttributeSchema', 'badge'],
    ] as const) {
      const before = await h.get(kind, name);
      const events = (await h.events(name)).length;
      const cost = await h.cost(async () => {
        for (let i = 0; i < 20; i++) assert.equal((await h.reconcile(kind, name)).result, 'reconciled');
      });
      assert.deepEqual([cost.kubeWrites, cost.mutations, cost.passwords], [[], [], []], kind);
      assert.equal((await h.get(kind, name)).metadata.resourceVersion, before.metadata.resourceVersion, kind);
      assert.equal((await h.events(name)).length, events, kind);
      if (kind === 'LldapUser') assert.equal(cost.lldapReads.length, 20);
    }
    assert.deepEqual(h.posted.requeue, []);
  });

  it('twenty full reconciles of what is not Ready, and cannot be, change no resourceVersion either, and leave no Event, mutation or retry', async () => {
    const other = await h.cluster.createNamespace('tenant');
    await h.lldap.edit('mutation { createUser(user: {id: "theirs", email: "theirs@example.com"}) { id } }');
    const plain = (username: string) => ({ username, email: `${username}@example.com`, passwordPolicy: 'Ignore' as const });
    await h.create('LldapUser', 'not-ours', plain('theirs'));
    await h.create('LldapUser', 'secretless', {
      ...plain('secretless'),
      passwordPolicy: 'Manage',
      passwordSecretRef: { name: 'none', key: 'x' },
    });
    await h.create('LldapUser', 'waits', { ...plain('waits'), attributes: [{ name: 'undefined', value: ['1'] }] });
    await h.create('LldapGroup', 'conflict', { displayName: 'Team' }, { namespace: other });
    await h.create('LldapGroup', 'protected', { displayName: 'lldap_admin' });
    await h.create('LldapMembership', 'forbidden', { userName: 'warm', groupName: 'lldap_admin' });
    await h.create('LldapMembership', 'waits', { userName: 'nobody', groupName: 'Team' });
    await h.create('LldapAttributeSchema', 'mismatch', { attributeName: 'badge', attributeType: 'Integer', target: 'User' });
    for (const [kind, name, reason, namespace = h.namespace] of [
      ['LldapUser', 'not-ours', 'NotOurs'],
      ['LldapUser', 'secretless', 'SecretNotFound'],
      ['LldapUser', 'waits', 'DependencyNotReady'],
      ['LldapGroup', 'conflict', 'Conflict', other],
      ['LldapGroup', 'protected', 'Protected'],
      ['LldapMembership', 'forbidden', 'Forbidden'],
      ['LldapMembership', 'waits', 'DependencyNotReady'],
      ['LldapAttributeSchema', 'mismatch', 'SchemaMismatch'],
    ] as const) {
      assert.equal((await h.reconcile(kind, name, { namespace, full: true })).reason, reason, name);
      const before = await h.get(kind, name, namespace);
      const [events, retries] = [(await h.events(name, namespace)).length, h.posted.requeue.length];
      const cost = await h.cost(async () => {
        for (let i = 0; i < 20; i++) await h.reconcile(kind, name, { namespace, full: true });
      });
      assert.deepEqual([cost.kubeWrites, cost.mutations, cost.passwords], [[], [], []], name);
      assert.equal((await h.get(kind, name, namespace)).metadata.resourceVersion, before.metadata.resourceVersion, name);
      assert.deepEqual([(await h.events(name, namespace)).length, h.posted.requeue.length], [events, retries], name);
    }
    h.posted.requeue = [];
  });

  it('a user without a password and policy Ignore is Ready without any LDAP traffic', async () => {
    await h.create('LldapUser', 'plain', { username: 'plain', email: 'plain@example.com', passwordPolicy: 'Ignore' });
    await h.lldap.forget();
    await h.reconcile('LldapUser', 'plain');
    assert.equal((await h.ready('LldapUser', 'plain')).status, 'True');
    assert.equal((await h.lldap.asked()).filter(({ protocol }) => protocol === 'ldap').length, 0);
    assert.equal((await h.condition('LldapUser', 'plain', 'PasswordSynced'))?.reason, 'PasswordNotManaged');
  });
});
