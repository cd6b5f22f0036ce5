import assert from 'node:assert/strict';
import { FINALIZER } from '../../shared/constants.ts';
import type { KubeRequest } from '../../shared/kube/connection.ts';
import { useHarness } from './support/harness.ts';

const isStatusOf = (name: string, { method, path }: KubeRequest) => method === 'PATCH' && path.includes(`/${name}/status`);

describe('Resources that vanish within a reconcile', () => {
  const h = useHarness();
  const plain = (username: string) => ({ username, email: `${username}@example.com`, passwordPolicy: 'Ignore' as const });
  const withPassword = async (username: string) => {
    await h.secret(username, { password: `${username} has a password` });
    return { username, email: `${username}@example.com`, passwordSecretRef: { name: username, key: 'password' } };
  };

  it('a resource that is gone by the time of its status leaves no orphan in lldap', async () => {
    const vanish = (kind: 'LldapUser' | 'LldapGroup', name: string) => async (_by: string, request: KubeRequest) => {
      if (!isStatusOf(name, request)) return;
      await h.edit(kind, name, { metadata: { finalizers: null } });
      await h.remove(kind, name);
    };
    await h.create('LldapUser', 'vanishing', plain('vanishing'));
    h.interfere = vanish('LldapUser', 'vanishing');
    assert.equal((await h.reconcile('LldapUser', 'vanishing', {})).result, 'gone');
    assert.equal(
      (await h.lldap.users()).some(({ id }) => id === 'vanishing'),
      false,
    );
    await h.create('LldapGroup', 'vanishing', { displayName: 'Vanishing' });
    h.interfere = vanish('LldapGroup', 'vanishing');
    assert.equal((await h.reconcile('LldapGroup', 'vanishing', {})).result, 'gone');
    assert.equal(
      (await h.lldap.groups()).some(({ displayName }) => displayName === 'Vanishing'),
      false,
    );
  });

  it('a resource that was taken over as it was, and is gone by the time of its status, loses nothing in lldap', async () => {
    await h.lldap.edit('mutation { createUser(user: {id: "veteran", email: "veteran@example.com"}) { id } }');
    await h.create('LldapUser', 'veteran', plain('veteran'), { namespace: h.operatorNamespace });
    h.interfere = async (_by, request) => {
      if (!isStatusOf('veteran', request)) return;
      await h.edit('LldapUser', 'veteran', { metadata: { finalizers: null } }, h.operatorNamespace);
      await h.remove('LldapUser', 'veteran', h.operatorNamespace);
    };
    await h.reconcile('LldapUser', 'veteran', { namespace: h.operatorNamespace });
    assert.equal(
      (await h.lldap.users()).some(({ id }) => id === 'veteran'),
      true,
    );
  });

  it('a resource that was edited and then vanished within a reconcile leaves no orphan either', async () => {
    await h.create('LldapGroup', 'fleeting', { displayName: 'Fleeting' });
    let writes = 0;
    h.interfere = async (_by, request) => {
      if (!isStatusOf('fleeting', request)) return;
      if (writes++ === 0) await h.edit('LldapGroup', 'fleeting', { metadata: { annotations: { edited: 'yes' } } });
      else {
        await h.edit('LldapGroup', 'fleeting', { metadata: { finalizers: null } });
        await h.remove('LldapGroup', 'fleeting');
      }
    };
    assert.equal((await h.reconcile('LldapGroup', 'fleeting', {})).result, 'gone');
    assert.equal(
      (await h.lldap.groups()).some(({ displayName }) => displayName === 'Fleeting'),
      false,
    );
  });

  for (const { attempts, times, stays } of [
    { attempts: 'one attempt', times: 1, stays: false },
    { attempts: 'three attempts', times: 3, stays: false },
    { attempts: 'all attempts', times: undefined, stays: true },
  ]) {
    const name = `orphan-${times ?? 'ever'}`;
    it(`lldap fails ${attempts} to undo the creation of a gone resource: ${stays ? 'the log says so' : 'the next does it'}, and nothing is redelivered`, async () => {
      await h.create('LldapUser', name, plain(name));
      h.interfere = async (_by, request) => {
        if (!isStatusOf(name, request)) return;
        await h.lldap.fault({ kind: 'status', status: 503, ...(times && { times }) });
        await h.edit('LldapUser', name, { metadata: { finalizers: null } });
        await h.remove('LldapUser', name);
      };
      assert.equal((await h.reconcile('LldapUser', name, {})).result, 'gone');
      await h.lldap.heal();
      assert.equal(
        (await h.lldap.users()).some(({ id }) => id === name),
        stays,
      );
      assert.equal(
        h.logs.some((line) => line.includes('"level":"error"') && line.includes(`"name":"${name}"`)),
        stays,
      );
    });
  }

  it('a resource that was deleted and created again within a reconcile is reconciled as the new one', async () => {
    await h.create('LldapUser', 'twice', await withPassword('twice'));
    let once = true;
    h.interfere = async (_by, request) => {
      if (!isStatusOf('twice', request) || !once) return;
      once = false;
      await h.edit('LldapUser', 'twice', { metadata: { finalizers: null } });
      await h.remove('LldapUser', 'twice');
      await h.create('LldapUser', 'twice', { ...(await withPassword('twice')), firstName: 'Second' });
    };
    await h.reconcile('LldapUser', 'twice', {});
    const { status, metadata } = await h.get('LldapUser', 'twice');
    assert.deepEqual(metadata.finalizers, [FINALIZER]);
    assert.equal((await h.ready('LldapUser', 'twice')).status, 'True');
    assert.ok(status?.passwordHash);
    assert.equal((await h.lldap.users()).find(({ id }) => id === 'twice')?.attributes.first_name?.[0], 'Second');
  });

  it('a resource that is deleted within a reconcile is deleted by that reconcile, with what it had made', async () => {
    await h.create('LldapUser', 'short-lived', plain('short-lived'));
    let once = true;
    h.interfere = async (_by, request) => {
      if (!isStatusOf('short-lived', request) || !once) return;
      once = false;
      await h.remove('LldapUser', 'short-lived');
    };
    assert.equal((await h.reconcile('LldapUser', 'short-lived', {})).result, 'deleted');
    assert.equal(
      (await h.lldap.users()).some(({ id }) => id === 'short-lived'),
      false,
    );
  });
});
