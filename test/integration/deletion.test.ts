import assert from 'node:assert/strict';
import { FINALIZER } from '../../shared/constants.ts';
import { KubeError } from '../../shared/kube/errors.ts';
import { useHarness } from './support/harness.ts';

describe('Deletion', () => {
  const h = useHarness();
  const made = async (kind: 'LldapUser' | 'LldapGroup', name: string) => {
    if (kind === 'LldapUser') await h.create(kind, name, { username: name, email: `${name}@example.com`, passwordPolicy: 'Ignore' });
    else await h.create(kind, name, { displayName: name });
    await h.reconcile(kind, name);
    assert.equal((await h.ready(kind, name)).status, 'True');
  };
  const inLldap = async (kind: 'LldapUser' | 'LldapGroup', name: string): Promise<boolean> =>
    kind === 'LldapUser'
      ? (await h.lldap.users()).some(({ id }) => id === name)
      : (await h.lldap.groups()).some(({ displayName }) => displayName === name);

  for (const kind of ['LldapUser', 'LldapGroup'] as const) {
    const name = (what: string) => `${kind === 'LldapUser' ? 'user' : 'group'}-${what}`;

    it(`of a ${kind}: gone from lldap first, then the finalizer, in one call each`, async () => {
      await made(kind, name('gone'));
      await h.remove(kind, name('gone'));
      let wasThere: boolean | undefined;
      h.interfere = async (_by, { method }) => {
        if (method === 'PATCH') wasThere = await inLldap(kind, name('gone'));
      };
      const cost = await h.cost(() => h.reconcile(kind, name('gone'), {}));
      assert.equal(wasThere, false);
      assert.deepEqual([cost.mutations.length, cost.kubeWrites.length], [1, 1]);
      assert.equal(await h.exists(kind, name('gone')), false);
    });

    it(`of a ${kind} that is gone from lldap already completes`, async () => {
      await made(kind, name('already'));
      const id = (await h.lldap.groups()).find(({ displayName }) => displayName === name('already'))?.id;
      await h.lldap.edit(
        `mutation { ${kind === 'LldapUser' ? `deleteUser(userId: "${name('already')}")` : `deleteGroup(groupId: ${id})`} { ok } }`,
      );
      await h.remove(kind, name('already'));
      assert.equal((await h.reconcile(kind, name('already'), {})).result, 'deleted');
    });

    it(`of a ${kind} that never reached lldap completes`, async () => {
      await h.lldap.fault({
        kind: 'text',
        text: 'no',
        only: { operation: kind === 'LldapUser' ? 'createUser' : 'createGroupWithDetails' },
      });
      if (kind === 'LldapUser')
        await h.create(kind, name('never'), { username: name('never'), email: 'never@example.com', passwordPolicy: 'Ignore' });
      else await h.create(kind, name('never'), { displayName: name('never') });
      await h.reconcile(kind, name('never'));
      assert.deepEqual((await h.get(kind, name('never'))).metadata.finalizers, [FINALIZER]);
      await h.remove(kind, name('never'));
      assert.equal((await h.reconcile(kind, name('never'), {})).result, 'deleted');
    });

    it(`of a ${kind} waits while lldap is down, with a retry, and says why and how to let it go`, async () => {
      await made(kind, name('down'));
      await h.lldap.fault({ kind: 'status', status: 503 });
      await h.remove(kind, name('down'));
      const report = await h.reconcile(kind, name('down'), {});
      assert.deepEqual([report.result, report.reason, report.retry?.attempts], ['reconciled', 'LldapUnavailable', 1]);
      assert.match(report.message ?? '', /^Not deleted yet. .*set spec\.deletionPolicy to Retain/);
      assert.equal((await h.ready(kind, name('down'))).status, 'False');
      assert.equal((await h.reconcile(kind, name('down'), {})).result, 'waiting');
      await h.lldap.heal();
      await h.nextRetry();
      assert.equal(await h.exists(kind, name('down')), false);
      assert.equal(await inLldap(kind, name('down')), false);
    });

    it(`of a ${kind} with Retain goes while lldap is down, and leaves it in lldap`, async () => {
      await made(kind, name('retained'));
      await h.edit(kind, name('retained'), { spec: { deletionPolicy: 'Retain' } });
      await h.lldap.fault({ kind: 'status', status: 503 });
      await h.remove(kind, name('retained'));
      assert.equal((await h.reconcile(kind, name('retained'), {})).result, 'deleted');
      assert.equal(await inLldap(kind, name('retained')), true);
    });

    it(`of a ${kind}: the process dies before the finalizer goes: the next reconcile completes it`, async () => {
      await made(kind, name('died'));
      await h.remove(kind, name('died'));
      h.interfere = async (_by, { method }) => {
        if (method === 'PATCH') throw new KubeError(0, 'no connection');
      };
      assert.equal((await h.deliver(kind, name('died'), {})).status, 503);
      assert.equal(await inLldap(kind, name('died')), false);
      h.interfere = async () => {};
      await h.restart();
      assert.equal((await h.reconcile(kind, name('died'), {})).result, 'deleted');
    });

    it(`of a ${kind}: somebody edits the resource meanwhile: it still completes`, async () => {
      await made(kind, name('edited'));
      await h.remove(kind, name('edited'));
      let once = true;
      h.interfere = async (_by, { method }) => {
        if (method !== 'PATCH' || !once) return;
        once = false;
        await h.edit(kind, name('edited'), { metadata: { annotations: { edited: 'yes' } } });
      };
      assert.equal((await h.reconcile(kind, name('edited'), {})).result, 'deleted');
    });
  }

  it('the answer to a deletion is lost: the next reconcile completes it', async () => {
    await made('LldapUser', 'lost');
    await h.remove('LldapUser', 'lost');
    await h.lldap.fault({ kind: 'drop', only: { operation: 'deleteUser' }, times: 1 });
    assert.equal((await h.reconcile('LldapUser', 'lost', {})).reason, 'LldapUnavailable');
    await h.nextRetry();
    assert.equal(await h.exists('LldapUser', 'lost'), false);
  });

  it('those who depend on it are enqueued before the finalizer goes', async () => {
    await made('LldapUser', 'needed');
    await made('LldapGroup', 'needed');
    await h.create('LldapMembership', 'needs', { userName: 'needed', groupName: 'needed' });
    await h.reconcile('LldapMembership', 'needs');
    await h.remove('LldapUser', 'needed');
    let woken: string[] = [];
    h.interfere = async (_by, { method }) => {
      if (method === 'PATCH') woken = h.posted.reconcile.map(({ target }) => target.name);
    };
    await h.reconcile('LldapUser', 'needed', {});
    assert.deepEqual(woken, ['needs']);
  });

  it('a broker that takes no event does not hold it back', async () => {
    await made('LldapUser', 'unheard');
    await made('LldapGroup', 'unheard');
    await h.create('LldapMembership', 'unheard', { userName: 'unheard', groupName: 'unheard' });
    await h.reconcile('LldapMembership', 'unheard');
    h.breakBroker(true);
    await h.remove('LldapGroup', 'unheard');
    assert.equal((await h.reconcile('LldapGroup', 'unheard', {})).result, 'deleted');
  });

  it('what another operator installation or nobody owns by now is not deleted', async () => {
    await made('LldapUser', 'handed');
    const mark = `v1;another;elsewhere/handed;created`;
    await h.lldap.edit(`mutation { updateUser(user: {id: "handed", insertAttributes: [{name: "k8s-owner", value: ["${mark}"]}]}) { ok } }`);
    await h.remove('LldapUser', 'handed');
    assert.equal((await h.reconcile('LldapUser', 'handed', {})).result, 'deleted');
    assert.equal(await inLldap('LldapUser', 'handed'), true);
  });

  it('a group that a person made a built-in one by its name is not deleted', async () => {
    await made('LldapGroup', 'promoted');
    const groups = await h.lldap.groups();
    const [builtIn, ours] = ['lldap_strict_readonly', 'promoted'].map((name) => groups.find(({ displayName }) => displayName === name)?.id);
    await h.lldap.edit(`mutation { updateGroup(group: {id: ${builtIn}, displayName: "former"}) { ok } }`);
    await h.lldap.edit(`mutation { updateGroup(group: {id: ${ours}, displayName: "lldap_strict_readonly"}) { ok } }`);
    assert.equal((await h.reconcile('LldapGroup', 'promoted')).reason, 'Protected');
    await h.remove('LldapGroup', 'promoted');
    assert.equal((await h.reconcile('LldapGroup', 'promoted', {})).result, 'deleted');
    assert.equal(await inLldap('LldapGroup', 'lldap_strict_readonly'), true);
  });
});
