import assert from 'node:assert/strict';
import type { KindName } from '../../shared/kube/resources.ts';
import { type Cost, useHarness } from './support/harness.ts';

const NOTHING: Cost = { kubeReads: [], kubeWrites: [], lldapReads: [], mutations: [], passwords: [] };
const USERS = 500;
const GROUPS = 200;
const MEMBERSHIPS = 300;

describe('A thousand resources', () => {
  const h = useHarness();
  const all: [KindName, string][] = [];
  /** What the source tells of a list's resources. */
  const objects = async (kind: KindName, plural: string) => {
    const { body } = await h.cluster.request('GET', `/apis/lldap-operator.lukidoescode.com/v1alpha1/namespaces/${h.namespace}/${plural}`);
    return (body as { items: { metadata: { name: string } }[] }).items.map((item) => ({
      kind,
      name: item.metadata.name,
      object: { ...item, kind },
    }));
  };

  before(async () => {
    await h.secret('shared', { password: 'shared by five hundred' });
    const make = async <K extends KindName>(kind: K, count: number, spec: (i: number) => Parameters<typeof h.create<K>>[2]) => {
      const one = async (_: unknown, i: number) => {
        const name = `${kind.toLowerCase()}-${i}`;
        all.push([kind, name]);
        await h.reconcile(kind, name, { object: await h.create(kind, name, spec(i)) });
      };
      await Promise.all(Array.from({ length: count }, one));
    };
    await make('LldapGroup', GROUPS, (i) => ({ displayName: `group ${i}` }));
    await make('LldapUser', USERS, (i) => ({
      username: `user-${i}`,
      email: `user-${i}@example.com`,
      passwordSecretRef: { name: 'shared', key: 'password' },
    }));
    await make('LldapMembership', MEMBERSHIPS, (i) => ({ userName: `user-${i}`, groupName: `group ${i % GROUPS}` }));
    // A busy machine may make lldap look slow.
    while (await h.nextRetry()) await h.deliverEvents();
    h.posted.reconcile = [];
  });

  it('reach a steady state, each object created once, though all came at once', async () => {
    const users = await h.lldap.users();
    assert.deepEqual([users.length, (await h.lldap.groups()).length], [USERS + 1, GROUPS + 3]);
    assert.equal(
      users.reduce((sum, { groups }) => sum + groups.length, 0),
      MEMBERSHIPS + 1,
    );
    assert.ok(users.every(({ hasPassword }) => hasPassword));
    for (const [kind, name] of [all[0], all[GROUPS], all.at(-1)].filter((one) => one !== undefined))
      assert.equal((await h.ready(kind, name)).status, 'True');
  });

  it('after a restart of everything cost a sweep some lists, no write, no mutation and no event', async () => {
    await h.restart();
    const cost = await h.cost(async () => {
      const summary = await h.startup();
      assert.deepEqual([summary.ok, summary.resources], [true, USERS + GROUPS + MEMBERSHIPS + 3]);
      assert.deepEqual(summary.posted, { lost: 0, stalled: 0, rotated: 0, drifted: 0, full: 0 });
    });
    assert.deepEqual([cost.kubeWrites, cost.mutations, cost.passwords], [[], [], []]);
    assert.ok(cost.kubeReads.length <= 8, JSON.stringify(cost.kubeReads.map(({ path }) => path)));
    assert.ok(cost.lldapReads.length <= 5, JSON.stringify(cost.lldapReads));
  });

  it('cost no call when the source tells of each of them again', async () => {
    const told = [
      ...(await objects('LldapUser', 'lldapusers')),
      ...(await objects('LldapGroup', 'lldapgroups')),
      ...(await objects('LldapMembership', 'lldapmemberships')),
    ];
    assert.equal(told.length, USERS + GROUPS + MEMBERSHIPS);
    const cost = await h.cost(() => Promise.all(told.map(({ kind, name, object }) => h.reconcile(kind, name, { object }))));
    assert.deepEqual(cost, NOTHING);
  });

  it('one fails for an hour: it leaves a handful of Events, and a new one beside it is Ready at once', async () => {
    await h.lldap.fault({ kind: 'text', text: 'Something is wrong with this one', only: { operation: 'user', id: 'user-7' } });
    await h.reconcile('LldapUser', 'lldapuser-7');
    const start = h.clock.now();
    while (h.clock.now() - start < 3_600_000) assert.equal(await h.nextRetry(), true);
    const events = (await h.events('lldapuser-7')).filter(({ type }) => type === 'Warning');
    assert.ok(events.length >= 1 && events.length <= 3, JSON.stringify(events));
    const object = await h.create('LldapUser', 'newcomer', {
      username: 'newcomer',
      email: 'newcomer@example.com',
      passwordPolicy: 'Ignore',
    });
    assert.equal((await h.reconcile('LldapUser', 'newcomer', { object })).ready, true);
  });
});
