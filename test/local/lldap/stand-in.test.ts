import assert from 'node:assert/strict';
import { LldapError } from '../../../shared/lldap/api.ts';
import { createLldapClient } from '../../../shared/lldap/client.ts';
import { createLldapPasswords } from '../../../shared/lldap/passwords.ts';
import { createLog } from '../../../shared/telemetry/log.ts';
import { startLldap } from './start.ts';

type Lldap = Awaited<ReturnType<typeof startLldap>>;

describe('the stand-in for lldap', () => {
  const closing: (() => void | Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });

  const start = async (options: Parameters<typeof startLldap>[0] = {}) => {
    const lldap = await startLldap({ passwordCost: 'cheap', ...options });
    closing.push(lldap.close);
    return lldap;
  };
  const clients = (lldap: Lldap) => {
    const options = { credentials: async () => lldap.admin, log: createLog('error'), timeoutMs: 60_000 };
    const client = createLldapClient({ url: lldap.url, ...options });
    const passwords = createLldapPasswords({ url: lldap.ldapUrl, ...options });
    closing.push(client.close, passwords.close);
    return { client, passwords };
  };

  for (const separate of [false, true]) {
    it(`serves from ${separate ? 'a process of its own' : "the test's process"}, and tells what it was asked, but no value`, async () => {
      const lldap = await start({ separate });
      const { client, passwords } = clients(lldap);
      await client.createUser({ id: 'Alice', email: 'secret@example.com' });
      const { id } = await client.createGroup({ displayName: 'Team' });
      await client.addUserToGroup('alice', id);
      await passwords.set('alice', 'secret-password');
      await client.user('alice');
      const asked = await lldap.asked();
      assert.deepEqual(
        asked.map((entry) => `${entry.protocol} ${entry.operation} ${entry.id ?? ''}${entry.mutation ? '!' : ''}`),
        [
          'http login ',
          'graphql createUser Alice!',
          'graphql createGroupWithDetails Team!',
          `graphql addUserToGroup alice:${id}!`,
          'ldap search ',
          'ldap bind admin',
          'ldap passwordModify alice!',
          'graphql user alice',
        ],
      );
      assert.doesNotMatch(JSON.stringify(asked), /secret/);
      assert.equal(await lldap.check('alice', 'secret-password'), true);
      const user = (await lldap.users()).find((one) => one.id === 'alice');
      assert.deepEqual([user?.groups, user?.hasPassword], [['Team'], true]);
      const group = (await lldap.groups()).find((one) => one.id === id);
      assert.equal(new Set([String(group?.id), group?.uuid, group?.displayName]).size, 3);
      await lldap.forget();
      await lldap.edit('mutation { deleteUser(userId: "alice") { ok } }');
      assert.deepEqual(await lldap.asked(), []);
      await assert.rejects(lldap.edit('mutation { deleteUser(userId: "alice") { ok } }'), /Entity not found/);
    });
  }

  it('keeps its ports and what it knows over an outage, and makes built-in groups anew', async () => {
    const lldap = await start();
    const { client } = clients(lldap);
    await client.createUser({ id: 'alice', email: 'a@example.com' });
    await client.deleteGroup(3);
    await lldap.stop();
    await assert.rejects(client.user('alice'), LldapError);
    await lldap.start();
    assert.equal((await client.user('alice'))?.id, 'alice');
    const groups = (await client.groups()).map(({ id, displayName }) => `${id} ${displayName}`);
    assert.deepEqual(groups, ['1 lldap_admin', '2 lldap_password_manager', '4 lldap_strict_readonly']);
  });

  it('goes back to a backup, and then gives ids that others had', async () => {
    const lldap = await start();
    const { client } = clients(lldap);
    await client.createUser({ id: 'alice', email: 'a@example.com' });
    const backup = await lldap.snapshot();
    const lost = await client.createGroup({ displayName: 'lost' });
    await client.deleteUser('alice');
    await lldap.restore(backup);
    const other = await client.createGroup({ displayName: 'other' });
    assert.equal(other.id, lost.id);
    assert.notEqual(other.uuid, lost.uuid);
    assert.equal((await client.user('alice'))?.id, 'alice');
  });

  it('fails in one way for one request only, when told so', async () => {
    const lldap = await start();
    const { client } = clients(lldap);
    for (const id of ['alice', 'bob']) await client.createUser({ id, email: `${id}@example.com` });
    await lldap.fault({ kind: 'status', status: 503, only: { operation: 'user', id: 'alice' } });
    await assert.rejects(client.user('alice'), /503/);
    assert.equal((await client.user('bob'))?.id, 'bob');
    await lldap.heal();
    assert.equal((await client.user('alice'))?.id, 'alice');
  });

  it('carries a mutation out before it drops the connection', async () => {
    const lldap = await start();
    const { client, passwords } = clients(lldap);
    await lldap.fault({ kind: 'drop', only: { operation: 'createUser' }, times: 1 });
    await assert.rejects(client.createUser({ id: 'alice', email: 'a@example.com' }), LldapError);
    assert.equal((await client.user('alice'))?.id, 'alice');
    await lldap.fault({ kind: 'drop', only: { operation: 'passwordModify' }, times: 1 });
    await assert.rejects(passwords.set('alice', 'alice-password'), LldapError);
    assert.equal(await lldap.check('alice', 'alice-password'), true);
  });

  it('says what a Postgres would say when told so, which the client takes alike', async () => {
    const lldap = await start({ dialect: 'postgres' });
    const { client } = clients(lldap);
    await client.createUser({ id: 'alice', email: 'a@example.com' });
    await client.createUser({ id: 'bob', email: 'b@example.com' });
    const { id } = await client.createGroup({ displayName: 'Team' });
    const kindOf = async (promise: Promise<unknown>) => {
      const error = await promise.catch((thrown: unknown) => thrown);
      return error instanceof LldapError ? error.kind : 'done';
    };
    await client.addUserToGroup('alice', id);
    assert.equal(await kindOf(client.addUserToGroup('alice', id)), 'done');
    assert.equal(await kindOf(client.createUser({ id: 'alice', email: 'a@example.com' })), 'exists');
    assert.equal(await kindOf(client.createUser({ id: 'carol', email: 'A@example.com' })), 'exists');
    assert.equal(await kindOf(client.updateUser('bob', { email: 'a@example.com' })), 'exists');
    assert.equal(await kindOf(client.createGroup({ displayName: 'TEAM' })), 'exists');
    assert.equal(await kindOf(client.addUserToGroup('nobody', id)), 'notFound');
    assert.equal(await kindOf(client.addUserToGroup('bob', 99)), 'notFound');
    // A creation that failed has used up an id.
    assert.equal((await client.createGroup({ displayName: 'Other' })).id, id + 2);
  });

  it('takes its time for a password, as lldap does', async () => {
    const lldap = await start({ passwordCost: 'real', separate: true });
    const { passwords } = clients(lldap);
    const started = performance.now();
    for (let i = 0; i < 4; i++) await passwords.verify('admin', lldap.admin.password);
    assert.ok(performance.now() - started > 4 * 20);
  });
});
