import assert from 'node:assert/strict';
import { type Harness, useHarness } from './support/harness.ts';

describe('After lldap was restored from an older backup', () => {
  const h = useHarness({ SWEEP_EVENTS_PER_SECOND: '10000' });
  let backup: Awaited<ReturnType<Harness['lldap']['snapshot']>>;
  const byHand = (query: string) => h.lldap.edit(`mutation { ${query} }`);
  const group = async (name: string) => {
    await h.create('LldapGroup', name, { displayName: name });
    await h.reconcile('LldapGroup', name);
    return (await h.get('LldapGroup', name)).status?.groupId ?? -1;
  };
  const user = async (name: string) => {
    await h.secret(name, { password: `password of ${name}` });
    await h.create('LldapUser', name, { username: name, email: `${name}@example.com`, passwordSecretRef: { name, key: 'password' } });
    await h.reconcile('LldapUser', name);
  };
  const groups = async () => new Map((await h.lldap.groups()).map((g) => [g.id, g]));

  beforeEach(async () => {
    backup = await h.lldap.snapshot();
  });

  it('whose ids were given to other groups meanwhile, no stranger is renamed, joined or deleted', async () => {
    const [kept, renamed, deleted] = [await group('kept'), await group('renamed'), await group('deleted')];
    await user('member');
    await h.create('LldapMembership', 'member', { userName: 'member', groupName: 'kept' });
    await h.reconcile('LldapMembership', 'member');
    await h.lldap.restore(backup);
    for (const name of ['stranger-1', 'stranger-2', 'stranger-3']) await byHand(`createGroup(name: "${name}") { id }`);
    const strangers = await groups();
    assert.deepEqual(
      [kept, renamed, deleted].map((id) => strangers.get(id)?.displayName),
      ['stranger-1', 'stranger-2', 'stranger-3'],
    );

    await h.reconcile('LldapMembership', 'member');
    await h.edit('LldapGroup', 'renamed', { spec: { displayName: 'renamed since' } });
    await h.reconcile('LldapGroup', 'renamed', {});
    await h.remove('LldapGroup', 'deleted');
    await h.reconcile('LldapGroup', 'deleted', {});
    await h.startup('full');
    await h.deliverEvents();

    const after = await groups();
    for (const id of [kept, renamed, deleted]) assert.deepEqual(after.get(id), strangers.get(id));
    assert.equal(await h.exists('LldapGroup', 'deleted'), false);
    for (const name of ['kept', 'renamed']) {
      const { status, spec } = await h.get('LldapGroup', name);
      assert.equal(after.get(status?.groupId ?? -1)?.displayName, spec.displayName);
    }
    assert.deepEqual(after.get((await h.get('LldapGroup', 'kept')).status?.groupId ?? -1)?.members, ['member']);
    assert.equal(await h.lldap.check('member', 'password of member'), true);
  });

  it('a full run of startup brings everything back, each thing once', async () => {
    await h.create('LldapAttributeSchema', 'seat', { attributeName: 'seat', attributeType: 'Integer', target: 'User' });
    await h.reconcile('LldapAttributeSchema', 'seat');
    await group('crew');
    await user('pilot');
    await h.edit('LldapUser', 'pilot', { spec: { attributes: [{ name: 'seat', value: ['1'] }] } });
    await h.reconcile('LldapUser', 'pilot', {});
    await h.create('LldapMembership', 'pilot', { userName: 'pilot', groupName: 'crew' });
    await h.reconcile('LldapMembership', 'pilot');
    await h.lldap.restore(backup);
    const { posted, resources } = await h.startup('full');
    assert.equal(posted.full + posted.lost + posted.stalled + posted.rotated, resources - 3, 'all but the virtual groups');
    await h.deliverEvents();
    const pilot = (await h.lldap.users()).find(({ id }) => id === 'pilot');
    assert.deepEqual([pilot?.groups, pilot?.attributes.seat], [['crew'], ['1']]);
    assert.equal(await h.lldap.check('pilot', 'password of pilot'), true);
    for (const [kind, name] of [
      ['LldapAttributeSchema', 'seat'],
      ['LldapGroup', 'crew'],
      ['LldapUser', 'pilot'],
      ['LldapMembership', 'pilot'],
    ] as const)
      assert.equal((await h.ready(kind, name)).status, 'True');
    const cost = await h.cost(async () => {
      await h.startup('full');
      await h.deliverEvents();
    });
    assert.deepEqual([cost.mutations, cost.passwords, cost.kubeWrites], [[], [], []]);
  });

  it('with a group under its former name and a user with its former password, both are as the resources say', async () => {
    const id = await group('former');
    await user('former');
    const newer = await h.lldap.snapshot();
    await h.edit('LldapGroup', 'former', { spec: { displayName: 'latter' } });
    await h.reconcile('LldapGroup', 'former', {});
    await h.secret('former', { password: 'a newer password' });
    await h.reconcile('LldapUser', 'former');
    await h.lldap.restore(newer);
    await h.startup('full');
    await h.deliverEvents();
    assert.equal((await groups()).get(id)?.displayName, 'latter');
    assert.equal(await h.lldap.check('former', 'a newer password'), true);
  });

  it('with a user that a person has made since, an ordinary resource leaves it alone', async () => {
    await user('usurped');
    await h.lldap.restore(backup);
    await byHand('createUser(user: {id: "usurped", email: "person@example.com"}) { id }');
    await h.reconcile('LldapUser', 'usurped');
    assert.equal((await h.ready('LldapUser', 'usurped')).reason, 'NotOurs');
    await h.remove('LldapUser', 'usurped');
    await h.reconcile('LldapUser', 'usurped', {});
    assert.equal((await h.lldap.users()).find(({ id }) => id === 'usurped')?.email, 'person@example.com');
  });

  it('with a group whose resource is deleted before anything was looked at, only that group goes', async () => {
    await group('brief');
    await h.lldap.restore(backup);
    const kept = await h.lldap.groups();
    await h.remove('LldapGroup', 'brief');
    assert.equal((await h.reconcile('LldapGroup', 'brief', {})).result, 'deleted');
    assert.deepEqual(await h.lldap.groups(), kept);
  });

  it('where the mark was not yet defined, it is defined and all is marked again', async () => {
    await group('early');
    await user('early');
    await byHand('deleteUserAttribute(name: "k8s-owner") { ok }');
    await byHand('deleteGroupAttribute(name: "k8s-owner") { ok }');
    // The CronJob's run does, without being told that anything was lost.
    const summary = await h.startup();
    assert.equal(summary.marksDefined, 2);
    await h.deliverEvents();
    assert.ok((await h.lldap.users()).find(({ id }) => id === 'early')?.attributes['k8s-owner']);
    assert.ok((await h.lldap.groups()).find(({ displayName }) => displayName === 'early')?.attributes['k8s-owner']);
  });
});

describe('After the cluster was restored without status', () => {
  const h = useHarness({ SWEEP_EVENTS_PER_SECOND: '10000' });

  it('the sweep finds everything, the marks find their objects, and nothing in lldap is changed but the marks', async () => {
    await h.secret('one', { password: 'the one password' });
    const user = { username: 'one', email: 'one@example.com', passwordSecretRef: { name: 'one', key: 'password' } };
    const adopted = { username: 'two', email: 'two@example.com', passwordPolicy: 'Ignore' as const };
    await h.lldap.edit('mutation { createUser(user: {id: "two", email: "two@example.com"}) { id } }');
    const make = async () => {
      await h.create('LldapAttributeSchema', 'one', { attributeName: 'one', attributeType: 'String', target: 'User' });
      await h.create('LldapUser', 'one', user);
      await h.create('LldapUser', 'two', adopted, { namespace: h.operatorNamespace });
      await h.create('LldapGroup', 'one', { displayName: 'One' });
      await h.create('LldapMembership', 'one', { userName: 'one', groupName: 'one' });
      await h.startup();
      await h.deliverEvents();
    };
    await make();
    const unmarked = <T extends { attributes: Record<string, string[]> }>(entries: T[]) =>
      entries.map((entry) => ({ ...entry, attributes: { ...entry.attributes, 'k8s-owner': [] } }));
    const lldap = async () => ({ users: unmarked(await h.lldap.users()), groups: unmarked(await h.lldap.groups()) });
    const before = await lldap();
    for (const [kind, name, namespace] of [
      ['LldapAttributeSchema', 'one', h.namespace],
      ['LldapUser', 'one', h.namespace],
      ['LldapUser', 'two', h.operatorNamespace],
      ['LldapGroup', 'one', h.namespace],
      ['LldapMembership', 'one', h.namespace],
    ] as const) {
      assert.equal((await h.ready(kind, name, namespace)).status, 'True');
      await h.edit(kind, name, { metadata: { finalizers: null } }, namespace);
      await h.remove(kind, name, namespace);
    }
    await h.restart();
    const cost = await h.cost(make);
    assert.deepEqual([cost.mutations.length, cost.passwords], [3, ['bind one']]);
    assert.deepEqual(await lldap(), before);
    for (const kind of ['LldapAttributeSchema', 'LldapUser', 'LldapGroup', 'LldapMembership'] as const)
      assert.equal((await h.ready(kind, 'one')).status, 'True');
    const [one, two] = [await h.get('LldapUser', 'one'), await h.get('LldapUser', 'two', h.operatorNamespace)];
    assert.deepEqual([one.status?.origin, two.status?.origin], ['created', 'adopted']);
  });
});
