import assert from 'node:assert/strict';
import { BUILT_IN_GROUPS } from '../../shared/constants.ts';
import type { LldapUserSpec } from '../../shared/kube/resources.ts';
import { type Harness, useHarness } from './support/harness.ts';

/** What the tests of this page ask of one harness. */
function createWays(h: Harness) {
  const byHand = (query: string) => h.lldap.edit(`mutation { ${query} }`);
  return {
    byHand,
    seen: async (id: string) => (await h.lldap.users()).find((user) => user.id === id),
    account: (id: string) => byHand(`createUser(user: {id: "${id}", email: "${id}@example.com"}) { id }`),
    async join(id: string, group: string) {
      const found = (await h.lldap.groups()).find(({ displayName }) => displayName === group);
      await byHand(`addUserToGroup(userId: "${id}", groupId: ${found?.id}) { ok }`);
    },
    /** An LldapUser with a Secret that holds `new password of <name>`. */
    async user(name: string, namespace: string, more: Partial<LldapUserSpec> = {}) {
      await h.secret(name, { password: `new password of ${name}` }, { namespace });
      const spec = { username: name, email: `${name}@example.com`, passwordSecretRef: { name, key: 'password' }, ...more };
      await h.create('LldapUser', name, spec, { namespace });
      return h.reconcile('LldapUser', name, { namespace, full: true });
    },
    async remove(kind: 'LldapUser' | 'LldapMembership', name: string, namespace: string) {
      await h.remove(kind, name, namespace);
      await h.reconcile(kind, name, { namespace });
      assert.equal(await h.exists(kind, name, namespace), false);
    },
  };
}

describe('Adoption', () => {
  const platform = `platform-${process.pid}`;
  const h = useHarness({ PRIVILEGED_NAMESPACES: platform });
  const ways = createWays(h);

  before(async () => {
    const { code } = await h.cluster.request('POST', '/api/v1/namespaces', { body: { metadata: { name: platform } } });
    assert.equal(code, 201);
  });

  for (const group of BUILT_IN_GROUPS) {
    it(`a member of ${group} is adopted by a namespace that the installation names as privileged, changed, and deleted where it says so`, async () => {
      const name = group.replaceAll('_', '-');
      await ways.account(name);
      await ways.join(name, group);
      assert.equal((await ways.user(name, platform, { firstName: 'Adopted', deletionPolicy: 'Delete' })).ready, true);
      const adopted = await ways.seen(name);
      assert.deepEqual([adopted?.attributes.first_name, adopted?.groups], [['Adopted'], [group]]);
      assert.equal(await h.lldap.check(name, `new password of ${name}`), true);
      await ways.remove('LldapUser', name, platform);
      assert.equal(await ways.seen(name), undefined);
    });
  }

  const POLICIES: [policy: 'Manage' | 'InitialOnly' | 'Ignore', had: boolean, works: 'old' | 'new' | 'none'][] = [
    ['Manage', true, 'new'],
    ['Manage', false, 'new'],
    ['InitialOnly', true, 'old'],
    ['InitialOnly', false, 'new'],
    ['Ignore', true, 'old'],
    ['Ignore', false, 'none'],
  ];
  for (const [passwordPolicy, had, works] of POLICIES) {
    it(`an account that ${had ? 'had a' : 'never had a'} password is adopted with the policy ${passwordPolicy}: ${works === 'none' ? 'it has none' : `the ${works} one works`}`, async () => {
      const name = `${passwordPolicy.toLowerCase()}-${had}`;
      await ways.account(name);
      if (had) await h.lldap.setPassword(name, 'old password');
      assert.equal((await ways.user(name, h.operatorNamespace, { passwordPolicy })).ready, true);
      assert.equal(await h.lldap.check(name, 'old password'), works === 'old');
      assert.equal(await h.lldap.check(name, `new password of ${name}`), works === 'new');
      const again = await h.cost(() => h.reconcile('LldapUser', name, { namespace: h.operatorNamespace, full: true }));
      assert.deepEqual([again.passwords, again.mutations, again.kubeWrites], [[], [], []]);
    });
  }

  it('an account that is there keeps its password and everything else against an ordinary namespace, whatever that asks for', async () => {
    await ways.account('free-looking');
    await h.lldap.setPassword('free-looking', 'old password');
    const before = await ways.seen('free-looking');
    const cost = await h.cost(() => ways.user('free-looking', h.namespace, { firstName: 'Taken', deletionPolicy: 'Delete' }));
    assert.equal((await h.ready('LldapUser', 'free-looking')).reason, 'NotOurs');
    assert.equal((await h.condition('LldapUser', 'free-looking', 'Stalled'))?.status, 'True');
    await ways.remove('LldapUser', 'free-looking', h.namespace);
    assert.deepEqual([cost.mutations, cost.passwords], [[], []]);
    assert.deepEqual(await ways.seen('free-looking'), before);
    assert.equal(await h.lldap.check('free-looking', 'old password'), true);
  });

  it('an account that has become the operator’s own login is kept, with its rights, when its resource and its membership are deleted', async () => {
    const namespace = h.operatorNamespace;
    await ways.user('robot', namespace, { deletionPolicy: 'Delete' });
    await h.create('LldapMembership', 'robot', { userName: 'robot', groupName: 'lldap_admin' }, { namespace });
    assert.equal((await h.reconcile('LldapMembership', 'robot', { namespace, full: true })).ready, true);
    const before = await ways.seen('robot');
    const password = 'new password of robot';
    h.credentials = { username: 'ROBOT', password };
    await h.restart();
    await h.secret('robot', { password: 'rotated by somebody else' }, { namespace });
    const rotation = await h.cost(() => h.reconcile('LldapUser', 'robot', { namespace, full: true }));
    assert.equal((await h.ready('LldapUser', 'robot', namespace)).reason, 'Protected');
    assert.deepEqual([rotation.mutations, rotation.passwords.filter((one) => one.startsWith('passwordModify'))], [[], []]);
    await ways.remove('LldapMembership', 'robot', namespace);
    await ways.remove('LldapUser', 'robot', namespace);
    assert.deepEqual(await ways.seen('robot'), before);
    assert.equal(await h.lldap.check('robot', password), true);
    h.credentials = h.lldap.admin;
    await h.restart();
  });
});

describe('Adoption by all', () => {
  const h = useHarness({ ADOPTION: 'all' });
  const ways = createWays(h);

  it('every namespace may take over every account and group that exists, set its password, and delete it', async () => {
    await ways.account('anybody');
    assert.equal((await ways.user('anybody', h.namespace, { deletionPolicy: 'Delete' })).ready, true);
    assert.equal(await h.lldap.check('anybody', 'new password of anybody'), true);
    await ways.remove('LldapUser', 'anybody', h.namespace);
    assert.equal(await ways.seen('anybody'), undefined);
    await ways.byHand('createGroup(name: "anything") { id }');
    await h.create('LldapGroup', 'anything', { displayName: 'Anything' });
    assert.equal((await h.reconcile('LldapGroup', 'anything')).ready, true);
    assert.ok((await h.lldap.groups()).some(({ displayName }) => displayName === 'Anything'));
  });

  it('what another resource or installation owns, lldap’s own groups and the operator’s login are out of its reach all the same', async () => {
    const other = await h.cluster.createNamespace('other');
    await ways.user('owned', other);
    const mark = '{name: "k8s-owner", value: ["v1;another;elsewhere/x;created"]}';
    await ways.byHand(`createUser(user: {id: "foreign", email: "foreign@example.com", attributes: [${mark}]}) { id }`);
    const before = [await h.lldap.users(), await h.lldap.groups()];
    for (const [name, reason] of [
      ['owned', 'Conflict'],
      ['foreign', 'NotOurs'],
      ['admin', 'Protected'],
    ] as const)
      assert.equal((await ways.user(name, h.namespace, { firstName: 'Taken', deletionPolicy: 'Delete' })).reason, reason);
    await h.create('LldapGroup', 'grab', { displayName: 'lldap_admin', deletionPolicy: 'Delete' });
    assert.equal((await h.reconcile('LldapGroup', 'grab')).reason, 'Protected');
    await h.remove('LldapGroup', 'grab');
    for (const name of ['owned', 'foreign', 'admin']) await ways.remove('LldapUser', name, h.namespace);
    assert.deepEqual([await h.lldap.users(), await h.lldap.groups()], before);
  });

  it('members of the built-in groups are still out of reach of ordinary namespaces', async () => {
    for (const group of BUILT_IN_GROUPS) {
      const name = `in-${group.replaceAll('_', '-')}`;
      await ways.account(name);
      await ways.join(name, group);
      const before = await ways.seen(name);
      const cost = await h.cost(() => ways.user(name, h.namespace, { firstName: 'Mine', deletionPolicy: 'Delete' }));
      assert.deepEqual([cost.mutations, cost.passwords], [[], []]);
      assert.equal((await h.ready('LldapUser', name)).reason, 'Forbidden');
      await ways.remove('LldapUser', name, h.namespace);
      assert.deepEqual(await ways.seen(name), before);
    }
  });
});
