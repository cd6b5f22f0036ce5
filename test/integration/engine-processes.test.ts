import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { KubeRequest } from '../../shared/kube/connection.ts';
import { KubeError } from '../../shared/kube/errors.ts';
import type { Functions } from './support/functions.ts';
import { useHarness } from './support/harness.ts';

const isStatusOf = (name: string, { method, path }: KubeRequest) => method === 'PATCH' && path.includes(`/${name}/status`);

describe('Two processes on one resource', () => {
  const h = useHarness();

  it('twenty copies of one event over three processes at once have one effect, and the status does not flap', async () => {
    await h.secret('many', { password: 'many has a password' });
    const spec = { username: 'many', email: 'many@example.com', passwordSecretRef: { name: 'many', key: 'password' } };
    const object = await h.create('LldapUser', 'many', spec);
    const processes = [h.another(), h.another(), h.another()];
    const cost = await h.cost(async () => {
      const copies = Array.from({ length: 20 }, (_, i) =>
        h.deliver('LldapUser', 'many', { object, ...(processes[i % 3] && { by: processes[i % 3] }) }),
      );
      const answers = await Promise.all(copies);
      // Who met others' writes three times in one reconcile asks the broker to come again.
      for (const answer of answers) if (answer.status !== 200) await h.deliver('LldapUser', 'many', { object });
    });
    assert.deepEqual(cost.mutations, ['createUser many']);
    assert.equal((await h.ready('LldapUser', 'many')).status, 'True');
    assert.deepEqual(await h.events('many'), []);
    assert.equal(await h.lldap.check('many', 'many has a password'), true);
    const before = await h.get('LldapUser', 'many');
    for (const by of processes) await h.deliver('LldapUser', 'many', { by, full: true });
    assert.equal((await h.get('LldapUser', 'many')).metadata.resourceVersion, before.metadata.resourceVersion);
  });

  /** Two processes update one user; the one with the older spec writes to lldap last. */
  const race = async (name: string): Promise<{ slow: Functions; older: Promise<unknown> }> => {
    await h.create('LldapUser', name, { username: name, email: `${name}@example.com`, passwordPolicy: 'Ignore' });
    await h.reconcile('LldapUser', name);
    const [slow, quick] = [h.another(), h.another()];
    await h.edit('LldapUser', name, { spec: { firstName: 'Older' } });
    await h.lldap.fault({ kind: 'slow', ms: 400, only: { operation: 'updateUser', id: name }, times: 1 });
    await h.lldap.forget();
    const older = h.deliver('LldapUser', name, { by: slow });
    while (!(await h.lldap.asked()).some(({ operation }) => operation === 'user')) await sleep(5);
    await h.edit('LldapUser', name, { spec: { firstName: 'Newer' } });
    await h.deliver('LldapUser', name, { by: quick });
    return { slow, older };
  };
  const firstName = async (name: string) => (await h.lldap.users()).find(({ id }) => id === name)?.attributes.first_name?.[0];

  it('one makes a group by the older name, the other by the newer: one group stays, by the newer name', async () => {
    const [slow, quick] = [h.another(), h.another()];
    await h.create('LldapGroup', 'double', { displayName: 'older' });
    await h.lldap.fault({ kind: 'slow', ms: 400, only: { operation: 'createGroupWithDetails', id: 'older' }, times: 1 });
    const older = h.deliver('LldapGroup', 'double', { by: slow });
    while (!(await h.get('LldapGroup', 'double')).metadata.finalizers) await sleep(5);
    await h.edit('LldapGroup', 'double', { spec: { displayName: 'newer' } });
    await h.deliver('LldapGroup', 'double', { by: quick });
    await older;
    await h.reconcile('LldapGroup', 'double');
    assert.deepEqual(
      (await h.lldap.groups()).filter(({ attributes }) => attributes['k8s-owner']).map(({ displayName }) => displayName),
      ['newer'],
    );
    assert.equal((await h.ready('LldapGroup', 'double')).status, 'True');
  });

  it('the one with the older spec is the slower: the newer spec wins in lldap', async () => {
    const { older } = await race('old');
    await older;
    assert.equal(await firstName('old'), 'Newer');
    const { status, metadata } = await h.get('LldapUser', 'old');
    assert.equal(status?.observedGeneration, metadata.generation);
  });

  it('the one with the older spec is the slower, and cannot write its status: with the redelivery the newer spec wins', async () => {
    let failing = true;
    h.interfere = async (_by, request) => {
      if (isStatusOf('older', request) && failing && (await firstName('older')) === 'Older') throw new KubeError(0, 'connection refused');
    };
    const { slow, older } = await race('older');
    await older;
    failing = false;
    await h.deliver('LldapUser', 'older', { by: slow });
    assert.equal(await firstName('older'), 'Newer');
  });

  for (const [kind, mutation] of [
    ['LldapGroup', 'createGroupWithDetails copies'],
    ['LldapAttributeSchema', 'addUserAttribute copies'],
    ['LldapMembership', 'addUserToGroup'],
  ] as const) {
    it(`so it is with twenty copies of the event of an ${kind}, and it is known afterwards as what we made`, async () => {
      const create = {
        LldapGroup: () => h.create('LldapGroup', 'copies', { displayName: 'copies' }),
        LldapAttributeSchema: () =>
          h.create('LldapAttributeSchema', 'copies', { attributeName: 'copies', attributeType: 'String', target: 'User' }),
        LldapMembership: () => h.create('LldapMembership', 'copies', { userName: 'many', groupName: 'copies' }),
      };
      const object = await create[kind]();
      const processes = [h.another(), h.another(), h.another()];
      const cost = await h.cost(async () => {
        const copies = Array.from({ length: 20 }, (_, i) =>
          h.deliver(kind, 'copies', { object, ...(processes[i % 3] && { by: processes[i % 3] }) }),
        );
        for (const answer of await Promise.all(copies)) if (answer.status !== 200) await h.deliver(kind, 'copies', { object });
      });
      assert.deepEqual(
        cost.mutations.map((one) => (kind === 'LldapMembership' ? one.split(' ')[0] : one)),
        [mutation],
      );
      assert.equal((await h.ready(kind, 'copies')).status, 'True');
      assert.deepEqual(await h.events('copies'), []);
      const { status } = await h.get(kind, 'copies');
      assert.deepEqual(
        {
          ...(status && 'origin' in status && { origin: status.origin }),
          ...(status && 'created' in status && { created: status.created }),
        },
        kind === 'LldapGroup' ? { origin: 'created' } : kind === 'LldapAttributeSchema' ? { created: true } : {},
      );
    });
  }
});
