import assert from 'node:assert/strict';
import { BUILT_IN_GROUPS, FINALIZER } from '../../shared/constants.ts';
import { useHarness } from './support/harness.ts';

describe('LldapGroup', () => {
  const h = useHarness();
  const made = async (name: string, displayName = name) => {
    await h.create('LldapGroup', name, { displayName });
    await h.reconcile('LldapGroup', name);
    assert.equal((await h.ready('LldapGroup', name)).status, 'True');
    return h.get('LldapGroup', name);
  };
  const rename = async (name: string, displayName: string) => {
    await h.edit('LldapGroup', name, { spec: { displayName } });
    return h.reconcile('LldapGroup', name, {});
  };
  const called = async (displayName: string) => (await h.lldap.groups()).find((group) => group.displayName === displayName);

  it('is made with its mark in the same call, and its status records id and uuid', async () => {
    await h.create('LldapGroup', 'made', { displayName: 'The Makers' });
    const cost = await h.cost(() => h.reconcile('LldapGroup', 'made'));
    assert.deepEqual([cost.lldapReads, cost.mutations], [[], ['createGroupWithDetails The Makers']]);
    const group = await called('The Makers');
    assert.deepEqual(group?.attributes, { 'k8s-owner': [await h.mark('LldapGroup', 'made', 'created')] });
    const { status, metadata } = await h.get('LldapGroup', 'made');
    assert.deepEqual([status?.groupId, status?.uuid, status?.nameKey, status?.origin], [group?.id, group?.uuid, 'the makers', 'created']);
    assert.deepEqual(metadata.finalizers, [FINALIZER]);
  });

  it('a new name renames the group with the same id, and makes no second one', async () => {
    const before = await made('renamed', 'Old Name');
    const cost = await h.cost(() => rename('renamed', 'New Name'));
    assert.deepEqual(cost.mutations, [`updateGroup ${before.status?.groupId}`]);
    assert.deepEqual([(await called('New Name'))?.id, await called('Old Name')], [before.status?.groupId, undefined]);
    assert.equal((await h.get('LldapGroup', 'renamed')).status?.nameKey, 'new name');
  });

  it('a name that differs by its case alone is a rename', async () => {
    const before = await made('cased');
    await rename('cased', 'CASED');
    assert.equal((await called('CASED'))?.id, before.status?.groupId);
  });

  it('a name or attribute that a person changed in lldap is put back by a full reconcile', async () => {
    const { status } = await made('drifting');
    await h.lldap.edit(`mutation { updateGroup(group: {id: ${status?.groupId}, displayName: "elsewhere"}) { ok } }`);
    await h.reconcile('LldapGroup', 'drifting');
    assert.equal((await called('drifting'))?.id, status?.groupId);
  });

  it('that a person deleted in lldap is made again by a full reconcile, with another id', async () => {
    const before = await made('deleted');
    await h.lldap.edit(`mutation { deleteGroup(groupId: ${before.status?.groupId}) { ok } }`);
    await h.reconcile('LldapGroup', 'deleted');
    const { status } = await h.get('LldapGroup', 'deleted');
    assert.notEqual(status?.uuid, before.status?.uuid);
    assert.deepEqual([(await called('deleted'))?.id, (await called('deleted'))?.uuid], [status?.groupId, status?.uuid]);
  });

  it('a new name that another group has: Taken, naming the name, its owner and the remedy; the group keeps its own', async () => {
    const owner = await made('owner');
    const wants = await made('wants');
    const report = await rename('wants', 'OWNER');
    assert.deepEqual([report.reason, report.retry?.category], ['NameTaken', 'Taken']);
    for (const part of ['spec.displayName', 'OWNER', `LldapGroup ${h.namespace}/owner`, 'third'])
      assert.ok(report.message?.includes(part), report.message);
    assert.deepEqual([(await called('owner'))?.id, (await called('wants'))?.id], [owner.status?.groupId, wants.status?.groupId]);
  });

  it('a new name that belongs to a group of nobody’s: the message says so', async () => {
    await h.lldap.edit('mutation { createGroup(name: "by hand") { id } }');
    await made('into');
    assert.match((await rename('into', 'By Hand')).message ?? '', /managed by no resource/);
  });

  it('two groups hand a name on in one go: both are Ready in the end, and each keeps its id', async () => {
    const [a, b] = [await made('hand-a'), await made('hand-b')];
    assert.equal((await rename('hand-a', 'hand-b')).reason, 'NameTaken');
    await rename('hand-b', 'hand-new');
    await h.deliverEvents();
    await h.nextRetry();
    assert.deepEqual([(await called('hand-b'))?.id, (await called('hand-new'))?.id], [a.status?.groupId, b.status?.groupId]);
    for (const name of ['hand-a', 'hand-b']) assert.equal((await h.ready('LldapGroup', name)).status, 'True');
  });

  it('whoever frees a name wakes those that wait for it', async () => {
    await made('frees');
    await made('awaits');
    await rename('awaits', 'frees');
    await rename('frees', 'free');
    assert.deepEqual(
      h.posted.reconcile.map(({ target }) => target.name),
      ['awaits'],
    );
    await h.deliverEvents();
    assert.equal((await h.ready('LldapGroup', 'awaits')).status, 'True');
  });

  it('two groups swap their names: both say Taken, name each other, and the way by a third name works', async () => {
    await made('swap-a');
    await made('swap-b');
    for (const [name, other] of [
      ['swap-a', 'swap-b'],
      ['swap-b', 'swap-a'],
    ] as const) {
      const report = await rename(name, other);
      assert.equal(report.reason, 'NameTaken');
      assert.ok(report.message?.includes(`${h.namespace}/${other}`), report.message);
    }
    await rename('swap-a', 'swap-third');
    await h.deliverEvents();
    await rename('swap-a', 'swap-b');
    for (const name of ['swap-a', 'swap-b']) assert.equal((await h.ready('LldapGroup', name)).status, 'True');
  });

  it("a built-in group's name is no resource's, in any case and any namespace, and its resource goes without a trace", async () => {
    for (const [namespace, displayName] of [
      [h.namespace, 'lldap_admin'],
      [h.operatorNamespace, 'LLDAP_Password_Manager'],
      [h.namespace, 'lldap_strict_READONLY'],
    ] as const) {
      await h.create('LldapGroup', 'grab', { displayName }, { namespace });
      const report = await h.reconcile('LldapGroup', 'grab', { namespace });
      assert.deepEqual([report.reason, report.retry], ['Protected', undefined]);
      assert.ok(report.message?.includes(displayName), report.message);
      await h.remove('LldapGroup', 'grab', namespace);
      await h.reconcile('LldapGroup', 'grab', { namespace, full: true });
      assert.equal(await h.exists('LldapGroup', 'grab', namespace), false);
    }
    for (const name of BUILT_IN_GROUPS) assert.ok(await called(name));
  });

  it('is not renamed onto a built-in group, and keeps its name meanwhile', async () => {
    const { status } = await made('climber');
    assert.equal((await rename('climber', 'lldap_admin')).reason, 'Protected');
    assert.equal((await called('climber'))?.id, status?.groupId);
    await rename('climber', 'climber');
    assert.equal((await h.ready('LldapGroup', 'climber')).status, 'True');
  });

  it('virtual groups are left to startup', async () => {
    const before = await h.get('LldapGroup', 'lldap-admin', h.operatorNamespace);
    assert.equal((await h.reconcile('LldapGroup', 'lldap-admin', { namespace: h.operatorNamespace })).result, 'ignored');
    assert.equal((await h.get('LldapGroup', 'lldap-admin', h.operatorNamespace)).metadata.resourceVersion, before.metadata.resourceVersion);
    assert.equal(before.metadata.finalizers, undefined);
  });

  it('the answer to its creation is lost: the next reconcile finds it by its mark, and makes no second one', async () => {
    await h.lldap.fault({ kind: 'drop', only: { operation: 'createGroupWithDetails' }, times: 1 });
    await h.create('LldapGroup', 'dropped', { displayName: 'dropped' });
    assert.equal((await h.reconcile('LldapGroup', 'dropped')).reason, 'LldapUnavailable');
    const cost = await h.cost(() => h.nextRetry());
    assert.deepEqual([cost.lldapReads, cost.mutations], [['groups'], []]);
    assert.equal((await h.get('LldapGroup', 'dropped')).status?.groupId, (await called('dropped'))?.id);
  });

  it('the answer to its creation is lost and the resource is deleted at once, or renamed: no orphan stays', async () => {
    for (const renamed of [false, true]) {
      const name = renamed ? 'unborn-2' : 'unborn';
      await h.lldap.fault({ kind: 'drop', only: { operation: 'createGroupWithDetails' }, times: 1 });
      await h.create('LldapGroup', name, { displayName: name });
      await h.reconcile('LldapGroup', name);
      assert.ok(await called(name));
      if (renamed) await h.edit('LldapGroup', name, { spec: { displayName: 'something else' } });
      await h.remove('LldapGroup', name);
      await h.reconcile('LldapGroup', name, {});
      assert.equal(await called(name), undefined);
      assert.equal(await h.exists('LldapGroup', name), false);
    }
  });

  it('among 500 other groups none is taken as absent or as another, and many that wait share one list', async () => {
    for (let i = 0; i < 500; i++) await h.lldap.edit(`mutation { createGroup(name: "crowd ${i}") { id } }`);
    const names = Array.from({ length: 20 }, (_, i) => `crowd-${i}`);
    for (const [i, name] of names.entries()) await h.create('LldapGroup', name, { displayName: `CROWD ${i}` });
    const cost = await h.cost(() => Promise.all(names.map((name) => h.reconcile('LldapGroup', name))));
    for (const name of names) assert.equal((await h.ready('LldapGroup', name)).reason, 'NotOurs');
    assert.deepEqual(cost.mutations, []);
    assert.ok(cost.lldapReads.filter((read) => read === 'groups').length < names.length, String(cost.lldapReads));
    assert.equal((await h.lldap.groups()).filter(({ displayName }) => displayName.startsWith('crowd')).length, 500);
  });
});
