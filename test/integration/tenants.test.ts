import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { KindName } from '../../shared/kube/resources.ts';
import { type Harness, useHarness } from './support/harness.ts';
import { createMembers } from './support/membership.ts';

/** Waits until what is created is younger than the resource, of which the API server tells whole seconds. */
async function nextSecond(h: Harness, kind: KindName, name: string, namespace: string): Promise<void> {
  const { metadata } = await h.get(kind, name, namespace);
  while (Date.now() < Date.parse(metadata.creationTimestamp) + 1000) await sleep(20);
}

describe('What a tenant can do to another', () => {
  const h = useHarness();
  const m = createMembers(h);
  let other: string;
  const userSeen = async (id: string) => (await h.lldap.users()).find((user) => user.id === id);
  const groupSeen = async (name: string) => (await h.lldap.groups()).find(({ displayName }) => displayName === name);
  /** A user with a password, made by `namespace`. */
  const withPassword = async (name: string, namespace = h.namespace) => {
    await h.secret(name, { password: `password of ${name}` }, { namespace });
    const spec = { username: name, email: `${name}@example.com`, passwordSecretRef: { name, key: 'password' } };
    await h.create('LldapUser', name, spec, { namespace });
    assert.equal((await h.reconcile('LldapUser', name, { namespace, full: true })).ready, true);
  };
  /** A mutation that the user makes with no other rights than his own; answers lldap's error, if any. */
  const asHimself = async (name: string, mutation: string): Promise<string> => {
    const post = async (path: string, body: object, headers = {}) => {
      const init = { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json', ...headers } };
      return (await fetch(h.lldap.url + path, init)).json();
    };
    const { token } = (await post('/auth/simple/login', { username: name, password: `password of ${name}` })) as { token: string };
    const query = { query: `mutation { ${mutation} }` };
    const answer = (await post('/api/graphql', query, { authorization: `Bearer ${token}` })) as { errors?: { message: string }[] };
    return answer.errors?.[0]?.message ?? '';
  };

  before(async () => {
    other = await h.cluster.createNamespace('other');
  });

  it('no password out of another namespace’s Secret, the operator’s own included, nor any look at it', async () => {
    for (const namespace of [h.operatorNamespace, other]) await h.secret('treasure', { password: 'not for the others' }, { namespace });
    const spec = { username: 'digger', email: 'digger@example.com', passwordSecretRef: { name: 'treasure', key: 'password' } };
    await h.create('LldapUser', 'digger', spec);
    const cost = await h.cost(() => h.reconcile('LldapUser', 'digger'));
    assert.equal((await h.ready('LldapUser', 'digger')).reason, 'SecretNotFound');
    assert.deepEqual(cost.passwords, []);
    assert.deepEqual(
      cost.kubeReads.map(({ path }) => path).filter((path) => path.includes('/secrets') && !path.endsWith('-password-key')),
      [`/api/v1/namespaces/${h.namespace}/secrets/treasure`],
    );
    for (const namespace of [h.operatorNamespace, other]) assert.equal((await h.secretEvent('treasure', namespace)).status, 204);
    assert.deepEqual(h.posted.reconcile, [], 'others’ Secrets are no news to him');
  });

  it('who writes another’s ids into the status of a resource of his own gets nothing of the other’s group, and loses him nothing', async () => {
    // The older of two that record one object would be its owner, if the mark did not say otherwise.
    await m.group('attack', 'attack', { namespace: other });
    await nextSecond(h, 'LldapGroup', 'attack', other);
    await m.group('victim');
    const { status: stolen } = await h.get('LldapGroup', 'victim');
    const before = await groupSeen('victim');
    await h.editStatus('LldapGroup', 'attack', { groupId: stolen?.groupId, uuid: stolen?.uuid, origin: 'created' }, other);
    for (const spec of [{}, { displayName: 'stolen' }, { displayName: 'VICTIM' }, { deletionPolicy: 'Delete' }]) {
      await h.edit('LldapGroup', 'attack', { spec }, other);
      await h.reconcile('LldapGroup', 'attack', { namespace: other, full: true });
      assert.deepEqual(await groupSeen('victim'), before, JSON.stringify(spec));
    }
    assert.equal((await h.ready('LldapGroup', 'attack', other)).reason, 'Conflict');
    await h.remove('LldapGroup', 'attack', other);
    await h.reconcile('LldapGroup', 'attack', { namespace: other });
    assert.equal(await h.exists('LldapGroup', 'attack', other), false);
    assert.deepEqual(await groupSeen('victim'), before);
    assert.equal((await h.reconcile('LldapGroup', 'victim')).ready, true);
  });

  it('who writes another’s uuid into the status of a resource of the same name gets nothing of the other’s user, and loses him nothing', async () => {
    await h.secret('prey', { password: 'chosen by the hunter' }, { namespace: other });
    const spec = { username: 'prey', email: 'hunter@example.com', passwordSecretRef: { name: 'prey', key: 'password' } };
    await h.create('LldapUser', 'prey', { ...spec, deletionPolicy: 'Delete', suspend: true }, { namespace: other });
    await nextSecond(h, 'LldapUser', 'prey', other);
    await withPassword('prey');
    const before = await userSeen('prey');
    const { status } = await h.get('LldapUser', 'prey');
    await h.edit('LldapUser', 'prey', { spec: { suspend: false } }, other);
    await h.editStatus('LldapUser', 'prey', { ...status, conditions: null }, other);
    const cost = await h.cost(() => h.reconcile('LldapUser', 'prey', { namespace: other, full: true }));
    assert.equal((await h.ready('LldapUser', 'prey', other)).reason, 'Conflict');
    await h.edit('LldapUser', 'prey', { metadata: { finalizers: (await h.get('LldapUser', 'prey')).metadata.finalizers } }, other);
    await h.remove('LldapUser', 'prey', other);
    const deletion = await h.cost(() => h.reconcile('LldapUser', 'prey', { namespace: other }));
    assert.deepEqual([cost.mutations, cost.passwords, deletion.mutations], [[], [], []]);
    assert.deepEqual(await userSeen('prey'), before);
    assert.equal(await h.lldap.check('prey', 'password of prey'), true);
  });

  it('who writes another group’s ids into the status of a resource of his own leads nobody’s membership there', async () => {
    const privileged = { namespace: h.operatorNamespace };
    await m.user('led', privileged);
    await h.create('LldapGroup', 'bait', { displayName: 'bait', suspend: true }, { namespace: other });
    await h.reconcile('LldapGroup', 'bait', { namespace: other });
    const managers = await groupSeen('lldap_password_manager');
    const ready = { type: 'Ready', status: 'True', reason: 'Reconciled', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' };
    await h.editStatus('LldapGroup', 'bait', { groupId: managers?.id, uuid: managers?.uuid, conditions: [ready] }, other);
    await h.create('LldapMembership', 'led', { userName: 'led', groupName: 'bait' }, privileged);
    const report = await h.reconcile('LldapMembership', 'led', { full: true, ...privileged });
    assert.deepEqual([report.reason, report.did], ['DependencyNotReady', []]);
    assert.deepEqual(await m.groupsOf('led'), []);
  });

  it('any user, others’ included, into a group of its own namespace, and out again, whoever had put him in', async () => {
    await m.user('theirs', { namespace: other });
    await m.group('ops');
    assert.equal((await m.member('theirs', 'theirs', 'ops')).ready, true);
    assert.deepEqual(await m.groupsOf('theirs'), ['ops']);
    await m.remove('LldapMembership', 'theirs');
    await m.byHand(`addUserToGroup(userId: "theirs", groupId: ${(await groupSeen('ops'))?.id}) { ok }`);
    await m.member('theirs', 'theirs', 'ops');
    await m.remove('LldapMembership', 'theirs');
    assert.deepEqual(await m.groupsOf('theirs'), []);
  });

  it('what others wait for: a membership takes whoever creates the user that it names, and a group that allows it', async () => {
    assert.equal((await m.member('waits', 'awaited', 'awaited')).reason, 'DependencyNotReady');
    await m.user('awaited', { namespace: other });
    await m.group('awaited', 'awaited', { namespace: other });
    await h.deliverEvents();
    assert.equal((await h.ready('LldapMembership', 'waits')).reason, 'Forbidden');
    await h.edit('LldapGroup', 'awaited', { spec: { allowedMemberships: { namespaces: { from: 'All' } } } }, other);
    await h.reconcile('LldapGroup', 'awaited', { namespace: other });
    await h.deliverEvents();
    assert.equal((await h.ready('LldapMembership', 'waits')).status, 'True');
    assert.deepEqual(await m.groupsOf('awaited'), ['awaited']);
  });

  it('a user who takes his own mark away helps nobody to his account: it stays its owner’s, who marks it again', async () => {
    await withPassword('carol');
    assert.equal(await asHimself('carol', 'updateUser(user: {id: "carol", removeAttributes: ["k8s-owner"]}) { ok }'), '');
    const before = await userSeen('carol');
    assert.equal(before?.attributes['k8s-owner'], undefined);
    const spec = { username: 'carol', email: 'thief@example.com', passwordPolicy: 'Ignore' as const, deletionPolicy: 'Delete' as const };
    await h.create('LldapUser', 'thief', spec, { namespace: other });
    const report = await h.reconcile('LldapUser', 'thief', { namespace: other, full: true });
    assert.equal(report.reason, 'Conflict');
    assert.ok(report.message?.includes(`LldapUser ${h.namespace}/carol`), report.message);
    await h.remove('LldapUser', 'thief', other);
    await h.reconcile('LldapUser', 'thief', { namespace: other });
    assert.deepEqual(await userSeen('carol'), before);
    await h.reconcile('LldapUser', 'carol');
    assert.deepEqual((await userSeen('carol'))?.attributes['k8s-owner'], [await h.updatedMark('LldapUser', 'carol', 'created')]);
  });

  it('a user can write no mark of his own', async () => {
    await withPassword('forger');
    const forged = `{name: "k8s-owner", value: ["v1;${h.instance};${h.operatorNamespace}/forger;created"]}`;
    assert.match(
      await asHimself('forger', `updateUser(user: {id: "forger", insertAttributes: [${forged}]}) { ok }`),
      /k8s-owner is not editable by regular users/,
    );
    assert.deepEqual((await userSeen('forger'))?.attributes['k8s-owner'], [await h.mark('LldapUser', 'forger', 'created')]);
  });

  it('a user who takes away the mark of what was left behind with Retain makes it nobody’s: no ordinary namespace takes it over', async () => {
    await withPassword('orphan');
    await h.edit('LldapUser', 'orphan', { spec: { deletionPolicy: 'Retain' } });
    await m.remove('LldapUser', 'orphan');
    assert.equal(await asHimself('orphan', 'updateUser(user: {id: "orphan", removeAttributes: ["k8s-owner"]}) { ok }'), '');
    for (const namespace of [other, h.namespace]) {
      assert.equal((await m.user('orphan', { namespace })).reason, 'NotOurs');
      await h.remove('LldapUser', 'orphan', namespace);
    }
    assert.equal(await h.lldap.check('orphan', 'password of orphan'), true);
  });
});
