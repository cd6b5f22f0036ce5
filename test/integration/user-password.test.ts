import assert from 'node:assert/strict';
import { PASSWORD_KEY_SECRET } from '../../shared/constants.ts';
import { KubeError } from '../../shared/kube/errors.ts';
import type { LldapUserSpec } from '../../shared/kube/resources.ts';
import { useHarness } from './support/harness.ts';
import type { CreateOptions } from './support/person.ts';

describe('Passwords', () => {
  const h = useHarness();
  const ref = (name: string, key = 'password') => ({ name, key });
  const user = (name: string, more: Partial<LldapUserSpec> = {}, options: CreateOptions = {}) =>
    h.create('LldapUser', name, { username: name, email: `${name}@example.com`, passwordSecretRef: ref(name), ...more }, options);
  const made = async (name: string, more: Partial<LldapUserSpec> = {}) => {
    await h.secret(name, { password: `first of ${name}` });
    await user(name, more);
    await h.reconcile('LldapUser', name);
    assert.equal((await h.ready('LldapUser', name)).status, 'True');
  };
  const synced = async (name: string) => (await h.condition('LldapUser', name, 'PasswordSynced'))?.reason;
  /** What the Secrets source tells, and all that follows from it. */
  const rotate = async (name: string, password: string) => {
    await h.secret(name, { password });
    await h.secretEvent(name);
    return h.cost(() => h.deliverEvents());
  };

  it('the status keeps a hash that says nothing, and says that lldap has the password', async () => {
    await made('hashed');
    const { status } = await h.get('LldapUser', 'hashed');
    assert.match(status?.passwordHash ?? '', /^v1:[0-9a-f]{8}:[\w-]{43}$/);
    assert.equal(status?.passwordModifiedAt, (await h.lldap.users()).find(({ id }) => id === 'hashed')?.passwordModifiedAt);
    assert.equal(await synced('hashed'), 'PasswordSynced');
    assert.equal(await h.lldap.check('hashed', 'first of hashed'), true);
  });

  it('while the Secret does not change, ten full reconciles over two processes set nothing and bind never', async () => {
    await made('steady');
    const other = h.another();
    const cost = await h.cost(async () => {
      for (let i = 0; i < 10; i++) await h.deliver('LldapUser', 'steady', i % 2 ? { full: true } : { full: true, by: other });
    });
    assert.deepEqual([cost.passwords, cost.kubeWrites], [[], []]);
  });

  it('a rotated Secret is set once, at once, for all users whose password is in it', async () => {
    await h.secret('shared', { password: 'shared by many 1' });
    for (const name of ['many-a', 'many-b', 'many-c']) await user(name, { passwordSecretRef: ref('shared') });
    await user('elsewhere', { passwordSecretRef: ref('shared') }, { namespace: h.operatorNamespace });
    for (const name of ['many-a', 'many-b', 'many-c']) await h.reconcile('LldapUser', name);
    await h.secret('shared', { password: 'shared by many 2' });
    assert.deepEqual(await h.secretEvent('shared'), { status: 204 });
    assert.deepEqual(
      h.posted.reconcile.map(({ target }) => `${target.namespace}/${target.name}`).sort(),
      ['many-a', 'many-b', 'many-c'].map((name) => `${h.namespace}/${name}`),
    );
    const cost = await h.cost(() => h.deliverEvents());
    assert.deepEqual(cost.passwords.filter((one) => one.startsWith('passwordModify')).sort(), [
      'passwordModify many-a',
      'passwordModify many-b',
      'passwordModify many-c',
    ]);
    for (const name of ['many-a', 'many-b', 'many-c']) assert.equal(await h.lldap.check(name, 'shared by many 2'), true);
    const again = await h.cost(async () => {
      await h.secretEvent('shared');
      await h.deliverEvents();
    });
    assert.deepEqual([again.passwords, again.kubeWrites], [[], []]);
  });

  it('an event of a Secret that nobody names asks for nothing', async () => {
    await h.secret('unused', { password: 'nobody has this' });
    assert.deepEqual(await h.secretEvent('unused'), { status: 204 });
    assert.deepEqual(h.posted.reconcile, []);
  });

  it('an event of a Secret whose users cannot be told is delivered again', async () => {
    await made('untold');
    h.breakBroker(true);
    assert.equal((await h.secretEvent('untold')).status, 503);
    h.breakBroker(false);
  });

  it('a password that somebody changed elsewhere is set back by Manage, and left by InitialOnly and Ignore', async () => {
    for (const [name, passwordPolicy, works] of [
      ['else-manage', 'Manage', true],
      ['else-initial', 'InitialOnly', false],
      ['else-ignore', 'Ignore', false],
    ] as const) {
      await made(name, { passwordPolicy });
      await h.lldap.setPassword(name, 'changed elsewhere');
      const cost = await h.cost(() => h.reconcile('LldapUser', name));
      assert.deepEqual(cost.passwords, works ? [`bind ${name}`, `passwordModify ${name}`, `bind ${name}`] : [], name);
      assert.equal(await h.lldap.check(name, `first of ${name}`), works, name);
      assert.equal(await h.lldap.check(name, 'changed elsewhere'), !works, name);
      assert.equal((await h.ready('LldapUser', name)).status, 'True');
      assert.deepEqual((await h.cost(() => h.reconcile('LldapUser', name))).passwords, [], name);
    }
  });

  it('InitialOnly sets one if none was ever set, and nothing after a rotation', async () => {
    await made('initial', { passwordPolicy: 'InitialOnly' });
    assert.equal(await h.lldap.check('initial', 'first of initial'), true);
    assert.deepEqual((await rotate('initial', 'second of initial')).passwords, []);
    assert.equal(await h.lldap.check('initial', 'first of initial'), true);
    assert.equal(await synced('initial'), 'PasswordInitialOnly');
  });

  it('InitialOnly needs its Secret no longer once a password was set', async () => {
    await made('once', { passwordPolicy: 'InitialOnly' });
    await h.cluster.request('DELETE', `/api/v1/namespaces/${h.namespace}/secrets/once`);
    assert.equal((await h.reconcile('LldapUser', 'once')).ready, true);
  });

  it('a policy that changes takes effect: Ignore to Manage sets it, Manage to Ignore leaves it', async () => {
    await made('policy', { passwordPolicy: 'Ignore' });
    assert.equal(await h.lldap.check('policy', 'first of policy'), false);
    await h.edit('LldapUser', 'policy', { spec: { passwordPolicy: 'Manage' } });
    await h.reconcile('LldapUser', 'policy', {});
    assert.equal(await h.lldap.check('policy', 'first of policy'), true);
    await h.edit('LldapUser', 'policy', { spec: { passwordPolicy: 'Ignore' } });
    await h.reconcile('LldapUser', 'policy', {});
    assert.deepEqual((await rotate('policy', 'second of policy')).passwords, []);
    assert.equal(await synced('policy'), 'PasswordNotManaged');
  });

  for (const policy of ['Manage', 'InitialOnly'] as const) {
    it(`the process dies between the creation of a user and the first password: with ${policy} the next reconcile sets it`, async () => {
      const name = `died-${policy.toLowerCase()}`;
      await h.secret(name, { password: `first of ${name}` });
      await user(name, { passwordPolicy: policy });
      // Nothing comes of what follows the creation, and the process forgets all.
      await h.lldap.fault({ kind: 'text', text: 'no', only: { operation: 'passwordModify' } });
      h.interfere = async (_by, { path }) => {
        if (path.includes(`/${name}/status`)) throw new KubeError(0, 'no connection');
      };
      assert.equal((await h.deliver('LldapUser', name, {})).status, 503);
      assert.equal((await h.lldap.users()).find(({ id }) => id === name)?.hasPassword, false);
      await h.restart();
      h.interfere = async () => {};
      await h.lldap.heal();
      assert.equal((await h.get('LldapUser', name)).status, undefined);
      await h.reconcile('LldapUser', name, {});
      assert.equal(await h.lldap.check(name, `first of ${name}`), true);
      assert.equal((await h.ready('LldapUser', name)).status, 'True');
    });
  }

  it('the answer to the setting is lost: the next reconcile finds that the password works, and only records it', async () => {
    await h.secret('lost', { password: 'first of lost' });
    await user('lost');
    await h.lldap.fault({ kind: 'drop', only: { operation: 'passwordModify' }, times: 1 });
    assert.equal((await h.reconcile('LldapUser', 'lost')).reason, 'LldapUnavailable');
    assert.equal((await h.get('LldapUser', 'lost')).status?.passwordHash, undefined);
    const cost = await h.cost(() => h.nextRetry());
    assert.deepEqual(cost.passwords, ['bind lost']);
    assert.ok((await h.get('LldapUser', 'lost')).status?.passwordHash);
    assert.equal((await h.ready('LldapUser', 'lost')).status, 'True');
  });

  it('a user that is taken over with the password that the Secret holds keeps it without a new one', async () => {
    await h.lldap.edit('mutation { createUser(user: {id: "adopted", email: "adopted@example.com"}) { id } }');
    await h.lldap.setPassword('adopted', 'had this before');
    await h.secret('adopted', { password: 'had this before' }, { namespace: h.operatorNamespace });
    await user('adopted', {}, { namespace: h.operatorNamespace });
    const cost = await h.cost(() => h.reconcile('LldapUser', 'adopted', { namespace: h.operatorNamespace }));
    assert.deepEqual([cost.passwords, cost.mutations], [['bind adopted'], ['updateUser adopted']]);
    assert.equal((await h.ready('LldapUser', 'adopted', h.operatorNamespace)).status, 'True');
  });

  it('the key of the hashes is lost: no password is set anew, only the hashes are', async () => {
    await made('keyless');
    const before = (await h.get('LldapUser', 'keyless')).status?.passwordHash;
    await h.cluster.request('DELETE', `/api/v1/namespaces/${h.operatorNamespace}/secrets/${PASSWORD_KEY_SECRET}`);
    await h.restart();
    const report = await h.reconcile('LldapUser', 'keyless');
    assert.equal(report.reason, 'PasswordKeyMissing');
    assert.match(report.message ?? '', /startup/);
    await h.startup();
    const cost = await h.cost(() => h.nextRetry());
    assert.deepEqual(cost.passwords, ['bind keyless']);
    assert.notEqual((await h.get('LldapUser', 'keyless')).status?.passwordHash, before);
    assert.equal((await h.ready('LldapUser', 'keyless')).status, 'True');
    h.posted.reconcile = [];
  });

  it('a user that was deleted in lldap and made again gets its password again', async () => {
    await made('again');
    await h.lldap.edit('mutation { deleteUser(userId: "again") { ok } }');
    await h.reconcile('LldapUser', 'again');
    assert.equal(await h.lldap.check('again', 'first of again'), true);
  });
});
