import assert from 'node:assert/strict';
import { FINALIZER, INSTANCE_LABEL, REQUESTED_AT } from '../../../shared/constants.ts';
import { createWorld, useWorld } from '../support/world.ts';
import { DOWN, engineScenes, KIND, PLACE, TARGET } from './scenes.ts';

describe('the engine and its events', () => {
  const { w, startWith } = useWorld();
  const { apply, made, failed, count, tell, touch } = engineScenes(w);

  describe('events', () => {
    it('for a resource in steady state cost no call', async () => {
      await made();
      const { metadata } = w.get(KIND, PLACE);
      for (const uid of [metadata.uid, 'u'.repeat(64)]) tell({ ...w.get(KIND, PLACE), metadata: { ...metadata, uid } });
      await w.deliverEvents();
      assert.deepEqual(w.calls, []);
      const answer = await w.ask('group', { what: 'resource', change: 'update', target: TARGET, object: w.get(KIND, PLACE) });
      assert.deepEqual(answer, { status: 200, body: { result: 'unchanged', ...TARGET, did: [] } });
    });

    it('for own writes cost no call', async () => {
      await failed();
      tell();
      await w.deliverEvents();
      assert.deepEqual(w.calls, []);
    });

    it("for others' writes cost one read of the resource while a retry is due", async () => {
      await failed();
      touch();
      tell();
      await w.deliverEvents();
      assert.deepEqual([w.calls, w.results], [[`kube GET ${KIND} ${PLACE}`], [`waiting ${KIND} ${PLACE}`]]);
    });

    it('with a malformed object lead to a read of the resource', async () => {
      await made();
      const good = w.get(KIND, PLACE);
      const { metadata, status } = good;
      const forms: unknown[] = [
        null,
        'text',
        { ...good, metadata: undefined },
        { ...good, metadata: { ...metadata, uid: 7 } },
        { ...good, metadata: { ...metadata, uid: 'u'.repeat(65) } },
        { ...good, metadata: { ...metadata, resourceVersion: null } },
        { ...good, metadata: { ...metadata, finalizers: 'none' } },
        { ...good, metadata: { ...metadata, annotations: 'none' } },
        { ...good, metadata: { ...metadata, annotations: { [REQUESTED_AT]: 7 } } },
        { ...good, status: { ...status, conditions: 'none' } },
        { ...good, status: { ...status, conditions: ['none'] } },
      ];
      for (const object of forms) {
        w.forget();
        tell(object);
        await w.deliverEvents();
        assert.deepEqual(w.calls, [`kube GET ${KIND} ${PLACE}`], JSON.stringify(object));
        assert.deepEqual(w.results, [`unchanged ${KIND} ${PLACE}`]);
      }
    });

    it('are hints: the resource is always read afresh', async () => {
      await made();
      w.unwatched(() => w.edit(KIND, PLACE, { displayName: 'Team' }));
      tell({ ...w.get(KIND, PLACE), spec: { displayName: 'Forged' } });
      await w.deliverEvents();
      assert.deepEqual([w.hasGroup('Team'), w.hasGroup('Forged')], [true, false]);
    });

    it('during a reconcile lead to one more reconcile, and none is forgotten', async () => {
      await made();
      w.before(/updateGroup/, () => {
        w.edit(KIND, PLACE, { displayName: 'Second' });
        w.edit(KIND, PLACE, { displayName: 'Third' });
      });
      w.edit(KIND, PLACE, { displayName: 'First' });
      await w.deliverEvents();
      assert.deepEqual([w.hasGroup('Third'), w.ready(KIND, PLACE)], [true, 'True']);
      assert.equal(count(/updateGroup/), 2);
      assert.equal(w.status(KIND, PLACE).observedGeneration, w.get(KIND, PLACE).metadata.generation);
    });

    it('beyond that are collapsed, and the answer says so', async () => {
      await made();
      const reports = await Promise.all([w.reconcile(KIND, PLACE), w.reconcile(KIND, PLACE), w.reconcile(KIND, PLACE)]);
      assert.equal(count(/GET/), 2);
      assert.deepEqual(
        reports.map(({ result, name }) => `${result} ${name}`),
        ['reconciled crew', 'collapsed crew', 'reconciled crew'],
      );
    });
  });

  describe('resources', () => {
    it('of another installation are ignored, as are missing ones', async () => {
      w.kube.create(KIND, 'team', 'blue', { [INSTANCE_LABEL]: 'blue' }, { displayName: 'Blue' });
      w.kube.create(KIND, 'team', 'bare', {}, { displayName: 'Bare' });
      w.unwatched(() => w.kube.changeMetadata(w.get(KIND, 'team/bare'), { labels: undefined as never }));
      await w.deliverEvents();
      assert.deepEqual(w.results, [`ignored ${KIND} team/blue`, `ignored ${KIND} team/bare`]);
      assert.equal((await w.reconcile(KIND, 'team/none')).result, 'gone');
      assert.deepEqual([w.asked, w.writes], [[], []]);
      assert.ok(w.reports.every(({ level }) => level === 'debug'));
    });

    it('of other namespaces are not even read by an installation for its own namespace', async () => {
      startWith(createWorld({ NAMESPACES: 'own' }));
      apply();
      w.apply(KIND, 'op/crew', { displayName: 'Ops' });
      await w.deliverEvents();
      assert.deepEqual(w.results, [`ignored ${KIND} ${PLACE}`, `reconciled ${KIND} op/crew`]);
      assert.ok(!w.calls.some((call) => call.includes(PLACE)));
    });
  });

  describe('a requested-at annotation', () => {
    it('starts a full reconcile, and the status records that it was handled', async () => {
      await made();
      w.request(KIND, PLACE, 'please');
      await w.deliverEvents();
      assert.deepEqual(w.asked, ['lldap group 4']);
      assert.equal(w.status(KIND, PLACE).lastHandledReconcileAt, 'please');
      w.forget();
      tell();
      await w.deliverEvents();
      assert.deepEqual(w.calls, []);
    });

    it('is handled although the version is an own write', async () => {
      await failed();
      const handled = w.get(KIND, PLACE);
      w.unwatched(() => w.request(KIND, PLACE, 'please'));
      tell({ ...w.get(KIND, PLACE), metadata: { ...handled.metadata, annotations: { [REQUESTED_AT]: 'please' } } });
      await w.deliverEvents();
      assert.equal(w.ready(KIND, PLACE), 'True');
    });
  });

  describe('suspended resources', () => {
    it('are left alone and say so, until spec.suspend is false', async () => {
      await made();
      w.edit(KIND, PLACE, { suspend: true, displayName: 'Team' });
      await w.deliverEvents();
      assert.deepEqual([w.ready(KIND, PLACE), w.hasGroup('Crew'), w.asked], ['False Suspended', true, []]);
      assert.equal(w.message(KIND, PLACE), 'spec.suspend is true. Set it to false to resume reconciliation.');
      assert.deepEqual([w.events, w.status(KIND, PLACE).retry], [[`Normal Suspended ${PLACE}`], undefined]);
      w.edit(KIND, PLACE, { suspend: false });
      await w.deliverEvents();
      assert.ok(w.hasGroup('Team'));
    });

    it('are not deleted, neither in lldap nor in the cluster', async () => {
      await made();
      w.edit(KIND, PLACE, { suspend: true });
      w.delete(KIND, PLACE);
      await w.deliverEvents();
      assert.deepEqual([w.has(KIND, PLACE), w.hasGroup('Crew'), w.ready(KIND, PLACE)], [true, true, 'False Suspended']);
      w.edit(KIND, PLACE, { suspend: false });
      await w.deliverEvents();
      assert.deepEqual([w.has(KIND, PLACE), w.hasGroup('Crew')], [false, false]);
    });
  });

  describe('the finalizer', () => {
    it('is added before the first mutation', async () => {
      w.fail(/FINALIZER/, 'refused', 100);
      apply();
      await w.deliverEvents();
      assert.deepEqual([w.hasGroup('Crew'), w.get(KIND, PLACE).status], [false, undefined]);
      w.heal();
      await w.pass(60);
      assert.deepEqual(w.get(KIND, PLACE).metadata.finalizers, [FINALIZER]);
      assert.ok(w.hasGroup('Crew'));
    });

    it("is added once, after others' finalizers, and again if somebody removes it", async () => {
      w.apply(KIND, PLACE, { displayName: 'Crew' }, { finalizers: ['example.com/other'] });
      await w.deliverEvents();
      assert.deepEqual(w.get(KIND, PLACE).metadata.finalizers, ['example.com/other', FINALIZER]);
      assert.equal(count(/FINALIZER/), 1);
      w.kube.changeMetadata(w.get(KIND, PLACE), { finalizers: [] });
      await w.deliverEvents();
      assert.deepEqual(w.get(KIND, PLACE).metadata.finalizers, [FINALIZER]);
    });

    it('is not added to a rejected resource', async () => {
      apply('lldap_admin');
      await w.deliverEvents();
      assert.equal(count(/FINALIZER/), 0);
    });
  });

  describe('a deletion', () => {
    it('waits while lldap is down, says how to delete without lldap, and completes with the retry', async () => {
      await made();
      w.fail(...DOWN);
      w.delete(KIND, PLACE);
      await w.deliverEvents();
      assert.equal(w.ready(KIND, PLACE), 'False LldapUnavailable');
      assert.match(
        w.message(KIND, PLACE),
        /^Not deleted yet. lldap .* To delete the resource without touching lldap, set spec\.deletionPolicy to Retain\.$/,
      );
      assert.equal(w.status(KIND, PLACE).retry?.attempts, 1);
      w.heal();
      await w.pass(6);
      assert.deepEqual([w.has(KIND, PLACE), w.hasGroup('Crew')], [false, false]);
    });

    it('of a resource without our finalizer needs no call', async () => {
      w.unwatched(() => {
        w.apply(KIND, PLACE, { displayName: 'Crew' }, { finalizers: ['example.com/other'] });
        w.delete(KIND, PLACE);
      });
      assert.equal((await w.reconcile(KIND, PLACE)).result, 'gone');
      assert.deepEqual(w.calls, [`kube GET ${KIND} ${PLACE}`]);
    });

    it('completes although its dependents cannot be found or enqueued', async () => {
      for (const call of [/LIST LldapMembership/, /broker/]) {
        startWith(createWorld());
        await made();
        w.membership('team/m', 'nobody', 'Crew');
        await w.deliverEvents();
        w.forget();
        w.fail(call, 'refused', 100);
        w.delete(KIND, PLACE);
        await w.deliverEvents();
        assert.ok(!w.has(KIND, PLACE), String(call));
        const [warning] = w.logged('warn');
        assert.ok(String(warning?.reason).length > 10);
      }
    });

    it('enqueues dependents before the finalizer is removed, and other resources of the name once more afterwards', async () => {
      await made();
      w.membership('team/m', 'nobody', 'Crew');
      w.apply(KIND, 'team/second', { displayName: 'Crew' });
      await w.deliverEvents();
      w.forget();
      w.before(/FINALIZER LldapGroup team\/crew/, () =>
        assert.deepEqual(w.posted.slice(0, 2), ['reconcile LldapMembership team/m', `reconcile ${KIND} team/second`]),
      );
      w.delete(KIND, PLACE);
      const report = await w.reconcile(KIND, PLACE);
      assert.ok(['deleted', 'gone'].includes(report.result));
      await w.deliverEvents();
      assert.equal(w.posted.filter((event) => event === `reconcile ${KIND} team/second`).length, 2);
      assert.ok(w.results.includes(`deleted ${KIND} ${PLACE}`));
    });

    it('keeps an account that the namespace may not change', async () => {
      w.user('team/alice');
      await w.deliverEvents();
      w.byHand((directory) => directory.addMember('alice', 1));
      w.delete('LldapUser', 'team/alice');
      await w.deliverEvents();
      assert.deepEqual([w.has('LldapUser', 'team/alice'), w.hasAccount('alice')], [false, true]);
    });
  });
});
