import assert from 'node:assert/strict';
import { useHarness } from './support/harness.ts';
import type { CreateOptions } from './support/person.ts';

describe('Ownership', () => {
  const h = useHarness();
  const byHand = (query: string) => h.lldap.edit(`mutation { ${query} }`);
  const inNs = (namespace: string | undefined) => (namespace ? { namespace } : {});
  const make = async (kind: 'LldapUser' | 'LldapGroup', name: string, called = name, { namespace }: CreateOptions = {}) => {
    if (kind === 'LldapUser')
      await h.create(
        kind,
        name,
        { username: called, email: `${called}@example.com`.toLowerCase(), passwordPolicy: 'Ignore' },
        inNs(namespace),
      );
    else await h.create(kind, name, { displayName: called }, inNs(namespace));
    return h.reconcile(kind, name, { full: true, ...inNs(namespace) });
  };
  const remove = async (kind: 'LldapUser' | 'LldapGroup', name: string, namespace = h.namespace) => {
    await h.remove(kind, name, namespace);
    await h.reconcile(kind, name, { namespace });
    assert.equal(await h.exists(kind, name, namespace), false);
  };
  const seen = async (kind: 'LldapUser' | 'LldapGroup', called: string) =>
    kind === 'LldapUser'
      ? (await h.lldap.users()).find(({ id }) => id === called.toLowerCase())
      : (await h.lldap.groups()).find(({ displayName }) => displayName.toLowerCase() === called.toLowerCase());
  const markOf = async (kind: 'LldapUser' | 'LldapGroup', called: string) => (await seen(kind, called))?.attributes['k8s-owner']?.[0];
  const createByHand = (kind: 'LldapUser' | 'LldapGroup', called: string) =>
    byHand(
      kind === 'LldapUser'
        ? `createUser(user: {id: "${called}", email: "${called}@example.com"}) { id }`
        : `createGroup(name: "${called}") { id }`,
    );
  const unmark = async (kind: 'LldapUser' | 'LldapGroup', called: string) => {
    const target = kind === 'LldapUser' ? `User(user: {id: "${called}"` : `Group(group: {id: ${(await seen(kind, called))?.id}`;
    await byHand(`update${target}, removeAttributes: ["k8s-owner"]}) { ok }`);
  };

  for (const kind of ['LldapUser', 'LldapGroup'] as const) {
    const short = kind === 'LldapUser' ? 'user' : 'group';
    const name = (what: string) => `${short}-${what}`;

    it(`a ${short} that is there is taken over from a privileged namespace: marked, kept as it is otherwise, and kept at deletion`, async () => {
      await createByHand(kind, name('adopted'));
      const cost = await h.cost(() => make(kind, name('adopted'), name('adopted'), { namespace: h.operatorNamespace }));
      assert.equal(cost.mutations.at(-1)?.startsWith(kind === 'LldapUser' ? 'updateUser' : 'updateGroup'), true);
      assert.equal((await h.ready(kind, name('adopted'), h.operatorNamespace)).status, 'True');
      assert.equal(await markOf(kind, name('adopted')), await h.updatedMark(kind, name('adopted'), 'adopted', h.operatorNamespace));
      assert.equal((await h.get(kind, name('adopted'), h.operatorNamespace)).status?.origin, 'adopted');
      await remove(kind, name('adopted'), h.operatorNamespace);
      assert.ok(await seen(kind, name('adopted')));
    });

    it(`a ${short} that was taken over is deleted where the resource says Delete`, async () => {
      await createByHand(kind, name('told'));
      await make(kind, name('told'), name('told'), { namespace: h.operatorNamespace });
      await h.edit(kind, name('told'), { spec: { deletionPolicy: 'Delete' } }, h.operatorNamespace);
      await remove(kind, name('told'), h.operatorNamespace);
      assert.equal(await seen(kind, name('told')), undefined);
    });

    it(`a ${short} that is there is not an ordinary namespace's: Stalled NotOurs with the way out, nothing written, and its deletion touches nothing`, async () => {
      await createByHand(kind, name('theirs'));
      const before = await seen(kind, name('theirs'));
      const report = await make(kind, name('theirs'));
      assert.deepEqual([report.reason, report.retry], ['NotOurs', undefined]);
      assert.match(report.message ?? '', new RegExp(`The ${short} ${name('theirs')} .*privileged namespace.*another name`));
      await h.edit(kind, name('theirs'), { spec: { deletionPolicy: 'Delete' } });
      await remove(kind, name('theirs'));
      assert.deepEqual(await seen(kind, name('theirs')), before);
    });

    it(`a ${short} of another installation is never taken over, not even from a privileged namespace`, async () => {
      const mark = `[{name: "k8s-owner", value: ["v1;another;elsewhere/x;created"]}]`;
      await byHand(
        kind === 'LldapUser'
          ? `createUser(user: {id: "${name('foreign')}", email: "foreign@example.com", attributes: ${mark}}) { id }`
          : `createGroupWithDetails(request: {displayName: "${name('foreign')}", attributes: ${mark}}) { id }`,
      );
      const report = await make(kind, name('foreign'), name('foreign'), { namespace: h.operatorNamespace });
      assert.equal(report.reason, 'NotOurs');
      assert.match(report.message ?? '', /instance "another"/);
      await remove(kind, name('foreign'), h.operatorNamespace);
      assert.ok(await seen(kind, name('foreign')));
    });

    it(`two resources of one ${short}, differing in case: the second says Conflict, names the owner, writes nothing, and takes over when the owner goes`, async () => {
      const other = await h.cluster.createNamespace('tenant');
      await make(kind, 'first', name('Double'));
      const before = await seen(kind, name('double'));
      const report = await make(kind, 'second', name('DOUBLE'), { namespace: other });
      assert.deepEqual([report.reason, report.retry?.category], ['Conflict', 'Taken']);
      assert.ok(report.message?.includes(`${kind} ${h.namespace}/first`), report.message);
      assert.deepEqual(await seen(kind, name('double')), before);
      await remove(kind, 'first');
      assert.deepEqual(
        h.posted.reconcile.map(({ target }) => `${target.namespace}/${target.name}`),
        // Before the owner's finalizer goes, so that a crash repeats it, and when the owner is gone.
        [`${other}/second`, `${other}/second`],
      );
      await h.deliverEvents();
      assert.equal((await h.ready(kind, 'second', other)).status, 'True');
      const after = await seen(kind, name('double'));
      assert.notEqual(after?.uuid, before?.uuid);
      assert.equal(await markOf(kind, name('double')), await h.mark(kind, 'second', 'created', other));
      await remove(kind, 'second', other);
    });

    it(`a Conflict that is deleted leaves the owner's ${short} alone`, async () => {
      const other = await h.cluster.createNamespace('tenant');
      await make(kind, 'owner', name('kept'));
      await make(kind, 'loser', name('kept'), { namespace: other });
      await h.edit(kind, 'loser', { spec: { deletionPolicy: 'Delete' } }, other);
      await remove(kind, 'loser', other);
      assert.ok(await seen(kind, name('kept')));
      await remove(kind, 'owner');
    });

    it(`two resources of one ${short} at the same moment: one owns it, the other says Conflict`, async () => {
      const other = await h.cluster.createNamespace('tenant');
      await Promise.all([make(kind, 'twin', name('twins')), make(kind, 'twin', name('twins'), { namespace: other })]);
      const reasons = [(await h.ready(kind, 'twin')).reason, (await h.ready(kind, 'twin', other)).reason];
      assert.deepEqual(reasons.sort(), ['Conflict', 'Reconciled']);
      await remove(kind, 'twin');
      await remove(kind, 'twin', other);
    });

    it(`a person removes the mark: the ${short} is still ours by what is recorded, is marked again, and is deleted with the resource`, async () => {
      await make(kind, name('unmarked'));
      await unmark(kind, name('unmarked'));
      await h.reconcile(kind, name('unmarked'));
      assert.equal((await h.ready(kind, name('unmarked'))).status, 'True');
      assert.equal(await markOf(kind, name('unmarked')), await h.updatedMark(kind, name('unmarked'), 'created'));
      await unmark(kind, name('unmarked'));
      await remove(kind, name('unmarked'));
      assert.equal(await seen(kind, name('unmarked')), undefined);
    });

    it(`a person removes the mark of a ${short} that was taken over: it is still kept at deletion`, async () => {
      await createByHand(kind, name('was-there'));
      await make(kind, name('was-there'), name('was-there'), { namespace: h.operatorNamespace });
      await unmark(kind, name('was-there'));
      await h.reconcile(kind, name('was-there'), { namespace: h.operatorNamespace, full: true });
      assert.match((await markOf(kind, name('was-there'))) ?? '', /;adopted;/);
      await unmark(kind, name('was-there'));
      await remove(kind, name('was-there'), h.operatorNamespace);
      assert.ok(await seen(kind, name('was-there')));
    });

    it(`a mark that is no mark of ours counts as none`, async () => {
      await make(kind, name('garbled'));
      const target =
        kind === 'LldapUser' ? `User(user: {id: "${name('garbled')}"` : `Group(group: {id: ${(await seen(kind, name('garbled')))?.id}`;
      await byHand(`update${target}, insertAttributes: [{name: "k8s-owner", value: ["nonsense"]}]}) { ok }`);
      await h.reconcile(kind, name('garbled'));
      assert.equal(await markOf(kind, name('garbled')), await h.updatedMark(kind, name('garbled'), 'created'));
    });

    it(`the mark's definition is deleted: a new ${short} is made all the same, old ones are marked again, and startup is asked for a full run once`, async () => {
      await make(kind, name('old'));
      await byHand(`delete${kind === 'LldapUser' ? 'User' : 'Group'}Attribute(name: "k8s-owner") { ok }`);
      const report = await make(kind, name('new'));
      assert.equal(report.ready, true, report.message);
      assert.ok(await markOf(kind, name('new')));
      assert.deepEqual(h.posted.startup, ['full']);
      await h.reconcile(kind, name('old'));
      assert.equal(await markOf(kind, name('old')), await h.updatedMark(kind, name('old'), 'created'));
      assert.deepEqual(h.posted.startup, ['full']);
    });

    it(`the mark's definition is deleted and the resource too: the ${short} is deleted by what is recorded`, async () => {
      await make(kind, name('last'));
      await byHand(`delete${kind === 'LldapUser' ? 'User' : 'Group'}Attribute(name: "k8s-owner") { ok }`);
      await remove(kind, name('last'));
      assert.equal(await seen(kind, name('last')), undefined);
      await h.startup();
    });

    it(`deleted with Retain and created again, under the same or another name, the resource takes its ${short} back as its own`, async () => {
      for (const again of ['same', 'other']) {
        const called = name(`retained-${again}`);
        await make(kind, called);
        const before = await seen(kind, called);
        await h.edit(kind, called, { spec: { deletionPolicy: 'Retain' } });
        await h.remove(kind, called);
        const cost = await h.cost(() => h.reconcile(kind, called, {}));
        assert.deepEqual([cost.lldapReads, cost.mutations], [[], []]);
        assert.deepEqual(await seen(kind, called), before);
        const second = again === 'same' ? called : `${called}-2`;
        assert.equal((await make(kind, second, called)).ready, true);
        assert.equal((await seen(kind, called))?.uuid, before?.uuid);
        assert.equal(await markOf(kind, called), await h.updatedMark(kind, second, 'created'));
        await remove(kind, second);
        assert.equal(await seen(kind, called), undefined);
      }
    });

    if (kind === 'LldapGroup')
      it('what was told to stay stays under its name, when a resource of the same metadata.name is made for another group, and deleted', async () => {
        await make(kind, 'reused', 'Kept');
        await h.edit(kind, 'reused', { spec: { deletionPolicy: 'Retain' } });
        await remove(kind, 'reused');
        const before = await seen(kind, 'Kept');
        assert.equal((await make(kind, 'reused', 'New')).ready, true);
        assert.deepEqual(await seen(kind, 'Kept'), before);
        await h.lldap.edit(`mutation { deleteGroup(groupId: ${(await seen(kind, 'New'))?.id}) { ok } }`);
        await remove(kind, 'reused');
        assert.deepEqual(await seen(kind, 'Kept'), before);
      });

    it(`deleted with Retain, the ${short} is not the next ordinary namespace's`, async () => {
      const other = await h.cluster.createNamespace('tenant');
      await make(kind, name('left'));
      await h.edit(kind, name('left'), { spec: { deletionPolicy: 'Retain' } });
      await remove(kind, name('left'));
      assert.equal((await make(kind, name('left'), name('left'), { namespace: other })).reason, 'NotOurs');
    });

    it(`the cluster is restored without status and finalizers: the mark finds the ${short}, and nothing but the mark is written`, async () => {
      await make(kind, name('restored'));
      const before = await seen(kind, name('restored'));
      await h.edit(kind, name('restored'), { metadata: { finalizers: null } });
      await h.remove(kind, name('restored'));
      const cost = await h.cost(() => make(kind, name('restored')));
      assert.deepEqual(cost.mutations, [kind === 'LldapUser' ? 'updateUser user-restored' : `updateGroup ${before?.id}`]);
      const marked = { ...before?.attributes, 'k8s-owner': [await h.updatedMark(kind, name('restored'), 'created')] };
      assert.deepEqual(await seen(kind, name('restored')), { ...before, attributes: marked });
      assert.equal((await h.ready(kind, name('restored'))).status, 'True');
      const { status } = await h.get(kind, name('restored'));
      assert.deepEqual([status?.uuid, status?.origin], [before?.uuid, 'created']);
    });
  }

  it('what the operator let go holds up nobody, although another’s finalizer keeps the resource', async () => {
    const spec = { username: 'handed', email: 'handed@example.com', passwordPolicy: 'Ignore' } as const;
    await make('LldapGroup', 'hands');
    await h.create('LldapUser', 'giver', { ...spec, deletionPolicy: 'Retain' });
    await h.reconcile('LldapUser', 'giver');
    const { finalizers = [] } = (await h.get('LldapUser', 'giver')).metadata;
    await h.edit('LldapUser', 'giver', { metadata: { finalizers: ['example.com/theirs', ...finalizers] } });
    await h.create('LldapUser', 'taker', spec);
    assert.equal((await h.reconcile('LldapUser', 'taker')).reason, 'Conflict');
    await h.remove('LldapUser', 'giver');
    assert.equal((await h.reconcile('LldapUser', 'giver')).result, 'deleted');
    await h.create('LldapMembership', 'handed-in-hands', { userName: 'handed', groupName: 'hands' });
    assert.equal((await h.reconcile('LldapMembership', 'handed-in-hands')).ready, true);
    await h.deliverEvents();
    assert.equal((await h.ready('LldapUser', 'taker')).status, 'True');
    assert.match((await markOf('LldapUser', 'handed')) ?? '', /\/taker;/);
    await h.edit('LldapUser', 'giver', { metadata: { finalizers: null } });
  });

  it('a group changes its name while another resource creates the old one: nobody steals the group', async () => {
    await make('LldapGroup', 'mover', 'position');
    const before = await seen('LldapGroup', 'position');
    await h.edit('LldapGroup', 'mover', { spec: { displayName: 'elsewhere' } });
    assert.equal((await make('LldapGroup', 'taker', 'position')).reason, 'Conflict');
    await h.reconcile('LldapGroup', 'mover', {});
    await h.deliverEvents();
    assert.equal((await seen('LldapGroup', 'elsewhere'))?.id, before?.id);
    assert.notEqual((await seen('LldapGroup', 'position'))?.id, before?.id);
    for (const name of ['mover', 'taker']) assert.equal((await h.ready('LldapGroup', name)).status, 'True');
  });

  it('a group’s mark is lost while its new name waits for another: the old name’s new resource does not get it', async () => {
    await make('LldapGroup', 'holds', 'taken');
    await make('LldapGroup', 'waits', 'waiting');
    await h.edit('LldapGroup', 'waits', { spec: { displayName: 'taken' } });
    await h.reconcile('LldapGroup', 'waits', {});
    await unmark('LldapGroup', 'waiting');
    const before = await seen('LldapGroup', 'waiting');
    await make('LldapGroup', 'thief', 'waiting');
    assert.notEqual((await h.ready('LldapGroup', 'thief')).status, 'True');
    assert.equal((await seen('LldapGroup', 'waiting'))?.id, before?.id);
  });
});
