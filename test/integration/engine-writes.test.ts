import assert from 'node:assert/strict';
import { FINALIZER, REQUESTED_AT } from '../../shared/constants.ts';
import type { KubeRequest } from '../../shared/kube/connection.ts';
import { KubeError } from '../../shared/kube/errors.ts';
import { useHarness } from './support/harness.ts';

const isStatusOf = (name: string, { method, path }: KubeRequest) => method === 'PATCH' && path.includes(`/${name}/status`);

describe('Writes to the API server', () => {
  const h = useHarness();
  const plain = (username: string) => ({ username, email: `${username}@example.com`, passwordPolicy: 'Ignore' as const });
  const withPassword = async (username: string) => {
    await h.secret(username, { password: `${username} has a password` });
    return { username, email: `${username}@example.com`, passwordSecretRef: { name: username, key: 'password' } };
  };

  it('another write came first: the reconcile looks again, takes the newer spec, and does not set the password twice', async () => {
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

  it('a user that was lost in lldap is made again, and stays though another write came first', async () => {
    await h.create('LldapUser', 'regained', plain('regained'));
    await h.reconcile('LldapUser', 'regained');
    await h.lldap.edit('mutation { deleteUser(userId: "regained") { ok } }');
    let edits = 0;
    h.interfere = async (_by, request) => {
      if (isStatusOf('regained', request) && edits++ === 0) await h.edit('LldapUser', 'regained', { spec: { firstName: 'Newer' } });
    };
    const cost = await h.cost(() => h.reconcile('LldapUser', 'regained'));
    assert.deepEqual(cost.mutations, ['createUser regained', 'updateUser regained']);
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
    assert.ok(h.logs.some((line) => line.includes('rejected the status') && line.includes('refused')));
  });

  it('a status holds a name as it is, also one of characters that YAML refuses, or takes for the end of a line', async () => {
    for (const [name, displayName] of Object.entries({
      mojibake: 'the team\u0092s',
      line: 'one\u0085two \u2028 three \u2029 four',
      odd: '\ufeffa\ufffe\uffffb\u{1f600}',
    })) {
      await h.create('LldapGroup', name, { displayName });
      await h.reconcile('LldapGroup', name, {});
      assert.equal((await h.get('LldapGroup', name)).status?.nameKey, displayName, name);
    }
    const wrong = 'not a photo: \u007f\u0090';
    await h.create('LldapUser', 'untold', { ...plain('untold'), attributes: [{ name: 'avatar', value: [wrong] }] });
    await h.reconcile('LldapUser', 'untold', {});
    const { reason, message } = await h.ready('LldapUser', 'untold');
    assert.deepEqual([reason, message.includes(wrong)], ['InvalidValue', true]);
  });

  it('a token that would be cut within a character is handled once', async () => {
    await h.create('LldapUser', 'cut', plain('cut'));
    await h.edit('LldapUser', 'cut', { metadata: { annotations: { [REQUESTED_AT]: `${'x'.repeat(63)}😀` } } });
    await h.reconcile('LldapUser', 'cut', {});
    assert.equal((await h.get('LldapUser', 'cut')).status?.lastHandledReconcileAt, 'x'.repeat(63));
    assert.equal((await h.reconcile('LldapUser', 'cut', {})).result, 'unchanged');
  });

  it('a Kubernetes Event that cannot be written fails no reconcile', async () => {
    await h.create('LldapUser', 'unheard', plain('unheard'));
    h.interfere = async (_by, { method }) => {
      if (method === 'POST') throw new KubeError(500, 'no Events today');
    };
    assert.equal((await h.reconcile('LldapUser', 'unheard', {})).ready, true);
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
