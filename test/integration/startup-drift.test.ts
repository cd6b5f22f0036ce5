import assert from 'node:assert/strict';
import { useHarness } from './support/harness.ts';

describe('Drift', () => {
  const h = useHarness();
  const byHand = (query: string) => h.lldap.edit(`mutation { ${query} }`);
  const idOf = async (name: string) => (await h.get('LldapGroup', name)).status?.groupId;
  const user = async (name: string, namespace = h.namespace) => {
    await h.secret(name, { password: `password of ${name}` }, { namespace });
    const spec = {
      username: name,
      email: `${name}@example.com`,
      firstName: 'Right',
      attributes: [{ name: 'level', value: ['007'] }],
      passwordSecretRef: { name, key: 'password' },
    };
    await h.create('LldapUser', name, spec, { namespace });
    await h.reconcile('LldapUser', name, { namespace, full: true });
    assert.equal((await h.ready('LldapUser', name, namespace)).status, 'True');
  };
  const group = async (name: string) => {
    await h.create('LldapGroup', name, { displayName: name, attributes: [{ name: 'floor', value: ['1'] }] });
    await h.reconcile('LldapGroup', name);
  };
  const drifted = async (): Promise<string[]> => {
    h.posted.reconcile = [];
    const summary = await h.startup('drift');
    assert.equal(summary.ok, true, summary.problems.join());
    assert.equal(summary.posted.drifted, h.posted.reconcile.length);
    return h.posted.reconcile.map(({ target }) => `${target.kind} ${target.name}`).sort();
  };

  before(async () => {
    for (const [name, target] of [
      ['level', 'User'],
      ['floor', 'Group'],
      ['spare', 'User'],
    ] as const) {
      await h.create('LldapAttributeSchema', name, { attributeName: name, attributeType: 'Integer', target });
      await h.reconcile('LldapAttributeSchema', name);
    }
    for (const name of ['same', 'changed', 'unset', 'gone', 'unmarked', 'password', 'member', 'ignored']) await user(name);
    await h.edit('LldapUser', 'ignored', { spec: { passwordPolicy: 'Ignore' } });
    await h.reconcile('LldapUser', 'ignored', {});
    for (const name of ['same', 'renamed', 'lost', 'valued', 'strange']) await group(name);
    for (const [name, groupName] of [
      ['stays', 'same'],
      ['out', 'renamed'],
    ] as const) {
      await h.create('LldapMembership', name, { userName: 'member', groupName });
      await h.reconcile('LldapMembership', name);
    }
    await byHand('createUser(user: {id: "taken", email: "taken@example.com"}) { id }');
    await user('taken', h.operatorNamespace);
  });

  it('nothing has changed: nothing is posted, in a handful of reads of lldap', async () => {
    const cost = await h.cost(async () => assert.deepEqual(await drifted(), []));
    assert.deepEqual([cost.kubeWrites, cost.mutations, cost.passwords], [[], [], []]);
    const reads = cost.lldapReads.filter((read) => !read.startsWith('group '));
    assert.deepEqual(reads.sort(), ['apiVersion', 'groups', 'schema', 'schema', 'users']);
  });

  it('exactly what a person changed is posted, and is right again afterwards', async () => {
    await byHand('updateUser(user: {id: "changed", firstName: "Wrong", lastName: "Not managed"}) { ok }');
    await byHand('updateUser(user: {id: "same", lastName: "Not managed"}) { ok }');
    await byHand('updateUser(user: {id: "unset", removeAttributes: ["level"]}) { ok }');
    await byHand('deleteUser(userId: "gone") { ok }');
    await byHand('updateUser(user: {id: "unmarked", removeAttributes: ["k8s-owner"]}) { ok }');
    await h.lldap.setPassword('password', 'something else');
    await h.lldap.setPassword('ignored', 'something else');
    await byHand(`updateGroup(group: {id: ${await idOf('renamed')}, displayName: "elsewhere"}) { ok }`);
    await byHand(`deleteGroup(groupId: ${await idOf('lost')}) { ok }`);
    await byHand(`updateGroup(group: {id: ${await idOf('valued')}, insertAttributes: [{name: "floor", value: ["2"]}]}) { ok }`);
    await byHand(`updateGroup(group: {id: ${await idOf('strange')}, insertAttributes: [{name: "k8s-owner", value: ["nonsense"]}]}) { ok }`);
    await byHand(`removeUserFromGroup(userId: "member", groupId: ${await idOf('renamed')}) { ok }`);
    await byHand('createGroup(name: "somebody’s") { id }');
    await byHand('deleteUserAttribute(name: "spare") { ok }');
    assert.deepEqual(await drifted(), [
      'LldapAttributeSchema spare',
      'LldapGroup lost',
      'LldapGroup renamed',
      'LldapGroup strange',
      'LldapGroup valued',
      'LldapMembership out',
      'LldapUser changed',
      'LldapUser gone',
      'LldapUser password',
      'LldapUser unmarked',
      'LldapUser unset',
    ]);
    await h.deliverEvents();
    assert.deepEqual(await drifted(), []);
    const users = new Map((await h.lldap.users()).map((u) => [u.id, u]));
    assert.deepEqual(
      [users.get('changed')?.attributes.first_name, users.get('changed')?.attributes.last_name, users.get('unset')?.attributes.level],
      [['Right'], ['Not managed'], ['7']],
    );
    assert.equal(await h.lldap.check('password', 'password of password'), true);
    assert.deepEqual(users.get('member')?.groups.sort(), ['renamed', 'same']);
  });

  it('the plain list of users, which stops lldap, is never asked for, and no filter has more than 100 ids', async () => {
    const one = async (_: unknown, i: number) => {
      await h.create('LldapUser', `many-${i}`, { username: `many-${i}`, email: `many-${i}@example.com`, passwordPolicy: 'Ignore' });
      assert.equal((await h.reconcile('LldapUser', `many-${i}`)).ready, true);
    };
    await Promise.all(Array.from({ length: 120 }, one));
    const cost = await h.cost(async () => assert.deepEqual(await drifted(), []));
    assert.equal(cost.lldapReads.filter((read) => read === 'users').length, 2);
  });

  it('a suspended resource, and one that is not steady anyway, are left to themselves', async () => {
    await h.edit('LldapUser', 'changed', { spec: { suspend: true } });
    await h.reconcile('LldapUser', 'changed');
    await byHand('updateUser(user: {id: "changed", firstName: "Wrong"}) { ok }');
    assert.deepEqual(await drifted(), []);
  });
});
