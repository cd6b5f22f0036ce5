import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { KubeRequest } from '../../shared/kube/connection.ts';
import { KubeError } from '../../shared/kube/errors.ts';
import { FINALIZER } from '../../shared/names.ts';
import { CLUSTER_TIMEOUT_MS } from '../local/kube/shared.ts';
import type { Functions } from './functions.ts';
import { type Harness, startHarness } from './harness.ts';

const isStatusOf = (name: string, { method, path }: KubeRequest) => method === 'PATCH' && path.includes(`/${name}/status`);

describe('Writes to the API server', () => {
  let h: Harness;
  const plain = (username: string) => ({ username, email: `${username}@example.com`, passwordPolicy: 'Ignore' as const });
  const withPassword = async (username: string) => {
    await h.secret(username, { password: `${username} has a password` });
    return { username, email: `${username}@example.com`, passwordSecretRef: { name: username, key: 'password' } };
  };

  before(async function () {
    this.timeout(CLUSTER_TIMEOUT_MS);
    h = await startHarness();
  });
  afterEach(async () => {
    h.interfere = async () => {};
    await h.lldap.heal();
    h.posted.requeue = [];
  });
  after(() => h.close());

  it('another write came first: the pass looks again, takes the newer spec, and does not set the password twice', async () => {
    await h.create('LldapUser', 'raced', await withPassword('raced'));
    let edits = 0;
    h.interfere = async (_by, request) => {
      if (isStatusOf('raced', request) && edits++ === 0) await h.edit('LldapUser', 'raced', { spec: { firstName: 'Newer' } });
    };
    const cost = await h.cost(() => h.reconcile('LldapUser', 'raced', {}));
    assert.deepEqual(cost.mutations, ['createUser raced', 'updateUser raced']);
    assert.deepEqual(cost.passwords, ['passwordModify raced']);
    const { status, metadata } = await h.get('LldapUser', 'raced');
    assert.equal(status?.observedGeneration, metadata.generation);
    assert.ok(status?.passwordHash);
    assert.equal((await h.lldap.users()).find(({ id }) => id === 'raced')?.attributes.first_name?.[0], 'Newer');
  });

  it('other writes come first again and again: 503, and the next delivery goes on without a second password', async () => {
    await h.create('LldapUser', 'hectic', await withPassword('hectic'));
    let edits = 0;
    h.interfere = async (_by, request) => {
      if (isStatusOf('hectic', request)) await h.edit('LldapUser', 'hectic', { metadata: { annotations: { edit: String(edits++) } } });
    };
    const cost = await h.cost(async () => assert.equal((await h.deliver('LldapUser', 'hectic', {})).status, 503));
    assert.equal(edits, 3);
    assert.deepEqual([cost.mutations, cost.passwords], [['createUser hectic'], ['passwordModify hectic']]);
    h.interfere = async () => {};
    const again = await h.cost(() => h.reconcile('LldapUser', 'hectic', {}));
    assert.deepEqual([again.mutations, again.passwords], [[], ['bind hectic']]);
    assert.equal((await h.ready('LldapUser', 'hectic')).status, 'True');
  });

  it('the API server does not answer, or refuses our rights, as while it restarts: 503, then all goes on', async () => {
    for (const [name, error] of [
      ['away', new KubeError(0, 'connection refused')],
      ['unknown', new KubeError(401, 'Unauthorized')],
      ['forbidden', new KubeError(403, 'forbidden')],
      ['overloaded', new KubeError(429, 'too many requests')],
      ['failing', new KubeError(500, 'internal error')],
    ] as const) {
      await h.create('LldapUser', name, plain(name));
      h.interfere = async (_by, request) => {
        if (isStatusOf(name, request)) throw error;
      };
      const answer = await h.deliver('LldapUser', name, {});
      assert.equal(answer.status, 503, name);
      h.interfere = async () => {};
      assert.equal((await h.reconcile('LldapUser', name, {})).ready, true, name);
    }
  });

  it('a status that the API server refuses is logged and leads to no redelivery', async () => {
    await h.create('LldapUser', 'refused', plain('refused'));
    h.interfere = async (_by, request) => {
      if (isStatusOf('refused', request)) throw new KubeError(422, 'status.conditions: Invalid value', 'Invalid');
    };
    assert.equal((await h.deliver('LldapUser', 'refused', {})).status, 200);
    assert.ok(h.logs.some((line) => line.includes('refuses the status') && line.includes('refused')));
  });

  it('a Kubernetes Event that cannot be written fails no pass', async () => {
    await h.create('LldapUser', 'unheard', plain('unheard'));
    h.interfere = async (_by, { method }) => {
      if (method === 'POST') throw new KubeError(500, 'no Events today');
    };
    assert.equal((await h.reconcile('LldapUser', 'unheard', {})).ready, true);
  });

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

  it('a resource that was edited and then vanished within a pass leaves no orphan either', async () => {
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

  it('lldap is down when the creation of a gone resource is to be undone: it is said in the log, and nothing is redelivered', async () => {
    await h.create('LldapUser', 'orphan', plain('orphan'));
    h.interfere = async (_by, request) => {
      if (!isStatusOf('orphan', request)) return;
      await h.lldap.fault({ kind: 'status', status: 503 });
      await h.edit('LldapUser', 'orphan', { metadata: { finalizers: null } });
      await h.remove('LldapUser', 'orphan');
    };
    assert.equal((await h.reconcile('LldapUser', 'orphan', {})).result, 'gone');
    assert.ok(h.logs.some((line) => line.includes('"level":"error"') && line.includes('orphan')));
  });

  it('a resource that was deleted and created again within a pass is reconciled as the new one', async () => {
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

  it('a resource that is deleted within a pass is deleted by that pass, with what it had made', async () => {
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

  it("another controller's finalizer and condition survive ours coming and going", async () => {
    await h.create('LldapUser', 'shared', plain('shared'));
    const theirs = 'example.com/theirs';
    const condition = {
      type: 'Audited',
      status: 'True',
      reason: 'Fine',
      message: 'as it should be',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    };
    await h.edit('LldapUser', 'shared', { metadata: { finalizers: [theirs] } });
    await h.editStatus('LldapUser', 'shared', { conditions: [condition] });
    await h.reconcile('LldapUser', 'shared');
    assert.deepEqual((await h.get('LldapUser', 'shared')).metadata.finalizers, [theirs, FINALIZER]);
    assert.deepEqual(await h.condition('LldapUser', 'shared', 'Audited'), condition);
    const { metadata } = await h.get('LldapUser', 'shared');
    await h.reconcile('LldapUser', 'shared');
    assert.equal((await h.get('LldapUser', 'shared')).metadata.resourceVersion, metadata.resourceVersion);
    await h.edit('LldapUser', 'shared', { metadata: { finalizers: [FINALIZER, theirs] } });
    await h.remove('LldapUser', 'shared');
    assert.equal((await h.reconcile('LldapUser', 'shared')).result, 'deleted');
    const after = await h.get('LldapUser', 'shared');
    assert.deepEqual(after.metadata.finalizers, [theirs]);
    assert.deepEqual(await h.condition('LldapUser', 'shared', 'Audited'), condition);
    assert.equal((await h.reconcile('LldapUser', 'shared')).result, 'gone');
    await h.edit('LldapUser', 'shared', { metadata: { finalizers: null } });
  });

  it('a finalizer that a person took away comes back', async () => {
    await h.create('LldapUser', 'stripped', plain('stripped'));
    await h.reconcile('LldapUser', 'stripped');
    const object = await h.edit('LldapUser', 'stripped', { metadata: { finalizers: null } });
    await h.reconcile('LldapUser', 'stripped', { object });
    assert.deepEqual((await h.get('LldapUser', 'stripped')).metadata.finalizers, [FINALIZER]);
  });

  it('a condition keeps the time of its last transition while only its reason or message changes', async () => {
    await h.create('LldapUser', 'timed', plain('timed'));
    await h.lldap.fault({ kind: 'status', status: 503 });
    await h.reconcile('LldapUser', 'timed');
    const first = await h.ready('LldapUser', 'timed');
    await h.lldap.heal();
    await h.lldap.edit('mutation { createUser(user: {id: "holds", email: "timed@example.com"}) { id } }');
    h.clock.advance(3_600_000);
    await h.reconcile('LldapUser', 'timed');
    const second = await h.ready('LldapUser', 'timed');
    assert.notEqual(second.reason, first.reason);
    assert.equal(second.lastTransitionTime, first.lastTransitionTime);
    await h.lldap.edit('mutation { deleteUser(userId: "holds") { ok } }');
    await h.reconcile('LldapUser', 'timed');
    assert.equal((await h.ready('LldapUser', 'timed')).lastTransitionTime, new Date(h.clock.now()).toISOString().replace('.000Z', 'Z'));
  });

  it('the status lands on the resource, whatever its name in lldap', async () => {
    await h.create('LldapUser', 'a-name', plain('Another.Name'));
    await h.reconcile('LldapUser', 'a-name');
    const { status } = await h.get('LldapUser', 'a-name');
    assert.equal(status?.nameKey, 'another.name');
    assert.equal((await h.lldap.users()).find(({ id }) => id === 'another.name')?.uuid, status?.uuid);
  });
});

describe('Two processes on one resource', () => {
  let h: Harness;
  before(async function () {
    this.timeout(CLUSTER_TIMEOUT_MS);
    h = await startHarness();
  });
  afterEach(() => {
    h.interfere = async () => {};
  });
  after(() => h.close());

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
      // Who met others' writes three times in one pass asks the broker to come again.
      for (const answer of answers) if (answer.status !== 200) await h.deliver('LldapUser', 'many', { object });
    });
    assert.deepEqual(cost.mutations, ['createUser many']);
    assert.equal((await h.ready('LldapUser', 'many')).status, 'True');
    assert.equal((await h.events('many')).length, 1);
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
});
