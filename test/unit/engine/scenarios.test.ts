import assert from 'node:assert/strict';
import { FINALIZER, INSTANCE_LABEL, MARK_ATTRIBUTE, PASSWORD_KEY_SECRET, REQUESTED_AT } from '../../../shared/constants.ts';
import { createWorld, LABELS, type TestWorld } from '../support/world.ts';

const KIND = 'LldapGroup';
const PLACE = 'team/crew';
const TARGET = { kind: KIND, namespace: 'team', name: 'crew' } as const;
const LATE = { notBefore: '2026-03-01T11:00:00.000Z' };
const DOWN = [/^lldap/, 'refused', 1000] as const;

describe('the engine, over all kinds', () => {
  let w: TestWorld;

  beforeEach(() => {
    w = createWorld();
  });

  const apply = (displayName = 'Crew') => w.apply(KIND, PLACE, { displayName });
  async function made(): Promise<void> {
    apply();
    await w.deliverEvents();
    assert.equal(w.ready(KIND, PLACE), 'True');
    w.forget();
  }
  /** A resource that waits for its first retry. */
  async function failed(): Promise<string> {
    w.fail(...DOWN);
    apply();
    await w.deliverEvents();
    w.heal();
    assert.equal(w.ready(KIND, PLACE), 'False LldapUnavailable');
    w.forget();
    return w.status(KIND, PLACE).retry?.nextTime ?? assert.fail();
  }
  const count = (call: RegExp) => w.calls.filter((name) => call.test(name)).length;
  const tell = (object: unknown = w.get(KIND, PLACE)) => w.broker.post({ what: 'resource', change: 'update', target: TARGET, object });
  /** Another controller writes to the resource. */
  const touch = () => {
    const resource = w.get(KIND, PLACE);
    w.unwatched(() => w.kube.changeMetadata(resource, { annotations: { at: resource.metadata.resourceVersion } }));
  };
  const vanish = () => w.unwatched(() => w.kube.drop(w.get(KIND, PLACE)));

  describe('events', () => {
    it('about a resource in steady state cost no call', async () => {
      await made();
      const { metadata } = w.get(KIND, PLACE);
      for (const uid of [metadata.uid, 'u'.repeat(64)]) tell({ ...w.get(KIND, PLACE), metadata: { ...metadata, uid } });
      await w.deliverEvents();
      assert.deepEqual(w.calls, []);
      const answer = await w.ask('group', { what: 'resource', change: 'update', target: TARGET, object: w.get(KIND, PLACE) });
      assert.deepEqual(answer, { status: 200, body: { result: 'unchanged', ...TARGET, did: [] } });
    });

    it('of own writes cost no call either, although the resource is not Ready', async () => {
      await failed();
      tell();
      await w.deliverEvents();
      assert.deepEqual(w.calls, []);
    });

    it("of others' writes lead to one look at the resource alone", async () => {
      await failed();
      touch();
      tell();
      await w.deliverEvents();
      assert.deepEqual([w.calls, w.results], [[`kube GET ${KIND} ${PLACE}`], [`waiting ${KIND} ${PLACE}`]]);
    });

    it('whose object has not the form of a resource are no reason not to look', async () => {
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

    it('are hints: the resource is read afresh, whatever they say', async () => {
      await made();
      w.unwatched(() => w.edit(KIND, PLACE, { displayName: 'Team' }));
      tell({ ...w.get(KIND, PLACE), spec: { displayName: 'Forged' } });
      await w.deliverEvents();
      assert.deepEqual([w.hasGroup('Team'), w.hasGroup('Forged')], [true, false]);
    });

    it('that come while a reconcile runs lead to one more, and none is forgotten', async () => {
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

    it('beyond that are collapsed, which who asked is told', async () => {
      await made();
      const reports = await Promise.all([w.reconcile(KIND, PLACE), w.reconcile(KIND, PLACE), w.reconcile(KIND, PLACE)]);
      assert.equal(count(/GET/), 2);
      assert.deepEqual(
        reports.map(({ result, name }) => `${result} ${name}`),
        ['reconciled crew', 'collapsed crew', 'reconciled crew'],
      );
    });
  });

  describe('which resources', () => {
    it('those of another installation, and what is not there, are left alone', async () => {
      w.kube.create(KIND, 'team', 'blue', { [INSTANCE_LABEL]: 'blue' }, { displayName: 'Blue' });
      w.kube.create(KIND, 'team', 'bare', {}, { displayName: 'Bare' });
      w.unwatched(() => w.kube.changeMetadata(w.get(KIND, 'team/bare'), { labels: undefined as never }));
      await w.deliverEvents();
      assert.deepEqual(w.results, [`ignored ${KIND} team/blue`, `ignored ${KIND} team/bare`]);
      assert.equal((await w.reconcile(KIND, 'team/none')).result, 'gone');
      assert.deepEqual([w.asked, w.writes], [[], []]);
      assert.ok(w.logs.filter(({ message }) => message === 'reconciled').every(({ level }) => level === 'debug'));
    });

    it('an installation of one namespace does not even read those of others', async () => {
      w = createWorld({ NAMESPACES: 'own' });
      apply();
      w.apply(KIND, 'op/crew', { displayName: 'Ops' });
      await w.deliverEvents();
      assert.deepEqual(w.results, [`ignored ${KIND} ${PLACE}`, `reconciled ${KIND} op/crew`]);
      assert.ok(!w.calls.some((call) => call.includes(PLACE)));
    });
  });

  describe('retries', () => {
    it('the broker has the event before the status names it, and the condition says when', async () => {
      w.fail(...DOWN);
      apply();
      await w.deliverEvents();
      assert.ok(w.calls.indexOf('broker post requeue') < w.calls.indexOf(`kube STATUS ${KIND} ${PLACE}`));
      const { retry } = w.status(KIND, PLACE);
      assert.deepEqual([retry?.attempts, retry?.category], [1, 'Unavailable']);
      assert.equal(Date.parse(retry?.nextTime ?? '') - w.scheduler.now, 4_500);
      assert.equal(w.ready(KIND, PLACE, 'Reconciling'), 'True LldapUnavailable');
      assert.equal(w.message(KIND, PLACE, 'Reconciling'), `Attempt 1 failed. The next one is due at ${retry?.nextTime}.`);
      assert.equal(w.ready(KIND, PLACE, 'Stalled'), 'unset');
      assert.deepEqual(w.posted, [`requeue ${KIND} ${PLACE}`]);
      assert.equal(count(/GET/), 1, 'events of own writes that come meanwhile lead to no other look');
      const [line] = w.logs.filter(({ message }) => message === 'reconciled');
      assert.deepEqual([line?.level, line?.result, line?.ready, line?.reason], ['info', 'reconciled', false, 'LldapUnavailable']);
      assert.deepEqual(line?.retry, retry);
    });

    it('come at their time, and count on', async () => {
      w.fail(...DOWN);
      apply();
      await w.pass(16);
      assert.equal(w.status(KIND, PLACE).retry?.attempts, 3);
      assert.deepEqual(w.events, [`Warning LldapUnavailable ${PLACE}`]);
      w.heal();
      await w.pass(60);
      assert.deepEqual(
        [w.ready(KIND, PLACE), w.status(KIND, PLACE).retry, w.ready(KIND, PLACE, 'Reconciling')],
        ['True', undefined, 'unset'],
      );
      assert.deepEqual(w.events, [`Warning LldapUnavailable ${PLACE}`, `Normal Reconciled ${PLACE}`]);
    });

    it('only the retry itself, a full reconcile, a new generation or its time starts a resource that waits for one', async () => {
      const next = await failed();
      assert.equal((await w.reconcile(KIND, PLACE, LATE)).result, 'waiting');
      assert.deepEqual(w.calls, [`kube GET ${KIND} ${PLACE}`]);
      assert.equal((await w.reconcile(KIND, PLACE, { notBefore: next })).result, 'reconciled');
      for (const start of [() => w.reconcile(KIND, PLACE), () => w.edit(KIND, PLACE, { displayName: 'CREW' }), () => w.pass(5)]) {
        w = createWorld();
        await failed();
        await start();
        await w.deliverEvents();
        assert.equal(w.ready(KIND, PLACE), 'True', start.toString());
      }
    });

    it('a full reconcile that fails for the same cause leaves the retry as it is, and writes nothing', async () => {
      const next = await failed();
      w.fail(...DOWN);
      const report = await w.reconcile(KIND, PLACE);
      assert.deepEqual([report.retry?.nextTime, report.retry?.attempts], [next, 1]);
      assert.deepEqual([w.posted, w.writes, w.events], [[], [], []]);
    });

    it('one that fails for another cause begins another', async () => {
      await failed();
      w.fail(/auth/, 'denied', 100);
      w.fail(/lldap/, 'denied', 100);
      const report = await w.reconcile(KIND, PLACE);
      assert.deepEqual([report.reason, report.retry?.attempts, report.retry?.category], ['LldapUnauthenticated', 1, 'Unauthenticated']);
      assert.deepEqual(w.posted, [`requeue ${KIND} ${PLACE}`]);
    });

    it('the retry that fails again asks for the next', async () => {
      const next = await failed();
      w.fail(...DOWN);
      const report = await w.reconcile(KIND, PLACE, { notBefore: next });
      assert.deepEqual([report.retry?.attempts, w.posted], [2, [`requeue ${KIND} ${PLACE}`]]);
      w.scheduler.now += 600_000;
      assert.equal((await w.reconcile(KIND, PLACE)).retry?.attempts, 3, 'one whose time is over is no longer to come');
    });

    it('the retry that is delivered again is the retry still, although it is full and its time is to come', async () => {
      const next = await failed();
      w.fail(...DOWN);
      await w.ask('group', { what: 'reconcile', target: TARGET, notBefore: next, redelivered: 1 });
      assert.equal(w.status(KIND, PLACE).retry?.attempts, 2);
    });

    it('a mutation that fails is not tried again at once', async () => {
      w.fail(/createGroup/, 'refused', 10);
      apply();
      await w.deliverEvents();
      assert.deepEqual([count(/createGroup/), w.ready(KIND, PLACE)], [1, 'False LldapUnavailable']);
    });

    it('are none where only a person can help', async () => {
      w.byHand((directory) => directory.createGroup({ displayName: 'Crew' }));
      apply();
      await w.deliverEvents();
      assert.deepEqual([w.ready(KIND, PLACE, 'Stalled'), w.status(KIND, PLACE).retry, w.posted], ['True NotOurs', undefined, []]);
    });

    it('that the broker does not take are told in the status, and the event is delivered again', async () => {
      w.fail(...DOWN);
      w.fail(/broker post requeue/, 'refused');
      apply();
      await w.deliverEvents();
      assert.deepEqual(w.status(KIND, PLACE).retry, { attempts: 1, category: 'Unavailable' });
      assert.equal(
        w.message(KIND, PLACE, 'Reconciling'),
        'Attempt 1 failed. The broker did not accept the next one; the sweep will start it.',
      );
      const [line] = w.logs.filter(({ message }) => message === 'reconciled');
      assert.deepEqual([line?.result, line?.detail], ['unwritten', 'The broker did not accept the event.']);
      assert.ok(
        w.logs.some(({ level, message, name }) => level === 'error' && message === 'the broker did not accept a retry' && name === 'crew'),
      );
      await w.pass(1);
      assert.ok(w.status(KIND, PLACE).retry?.nextTime);
    });
  });

  describe('a request of a person', () => {
    it('is a full reconcile, and the status says that it was handled', async () => {
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

    it('is not taken for an own write that came back', async () => {
      await failed();
      const handled = w.get(KIND, PLACE);
      w.unwatched(() => w.request(KIND, PLACE, 'please'));
      tell({ ...w.get(KIND, PLACE), metadata: { ...handled.metadata, annotations: { [REQUESTED_AT]: 'please' } } });
      await w.deliverEvents();
      assert.equal(w.ready(KIND, PLACE), 'True');
    });
  });

  describe('suspended resources', () => {
    it('are left alone, say so, and go on when they are told to', async () => {
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

    it('are not deleted in lldap, nor in the cluster', async () => {
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
    it('comes before the first mutation: without it nothing is made', async () => {
      w.fail(/FINALIZER/, 'refused', 100);
      apply();
      await w.deliverEvents();
      assert.deepEqual([w.hasGroup('Crew'), w.get(KIND, PLACE).status], [false, undefined]);
      w.heal();
      await w.pass(60);
      assert.deepEqual(w.get(KIND, PLACE).metadata.finalizers, [FINALIZER]);
      assert.ok(w.hasGroup('Crew'));
    });

    it('is added once, beside those of others, and again if somebody removed it', async () => {
      w.apply(KIND, PLACE, { displayName: 'Crew' }, { finalizers: ['example.com/other'] });
      await w.deliverEvents();
      assert.deepEqual(w.get(KIND, PLACE).metadata.finalizers, ['example.com/other', FINALIZER]);
      assert.equal(count(/FINALIZER/), 1);
      w.kube.changeMetadata(w.get(KIND, PLACE), { finalizers: [] });
      await w.deliverEvents();
      assert.deepEqual(w.get(KIND, PLACE).metadata.finalizers, [FINALIZER]);
    });

    it('is not added for what gets no object', async () => {
      apply('lldap_admin');
      await w.deliverEvents();
      assert.equal(count(/FINALIZER/), 0);
    });
  });

  describe('a deletion', () => {
    it('waits while lldap is down, says so and how to go on without, and completes with the retry', async () => {
      await made();
      w.fail(...DOWN);
      w.delete(KIND, PLACE);
      await w.deliverEvents();
      assert.equal(w.ready(KIND, PLACE), 'False LldapUnavailable');
      assert.match(
        w.message(KIND, PLACE),
        /^Not deleted yet: lldap .* To delete the resource without touching lldap, set spec\.deletionPolicy to Retain\.$/,
      );
      assert.equal(w.status(KIND, PLACE).retry?.attempts, 1);
      w.heal();
      await w.pass(6);
      assert.deepEqual([w.has(KIND, PLACE), w.hasGroup('Crew')], [false, false]);
    });

    it('of what has no finalizer of ours is nothing to us', async () => {
      w.unwatched(() => {
        w.apply(KIND, PLACE, { displayName: 'Crew' }, { finalizers: ['example.com/other'] });
        w.delete(KIND, PLACE);
      });
      assert.equal((await w.reconcile(KIND, PLACE)).result, 'gone');
      assert.deepEqual(w.calls, [`kube GET ${KIND} ${PLACE}`]);
    });

    it('is not held back by dependents that cannot be found or told', async () => {
      for (const call of [/LIST LldapMembership/, /broker/]) {
        w = createWorld();
        await made();
        w.membership('team/m', 'nobody', 'Crew');
        await w.deliverEvents();
        w.forget();
        w.fail(call, 'refused', 100);
        w.delete(KIND, PLACE);
        await w.deliverEvents();
        assert.ok(!w.has(KIND, PLACE), String(call));
        const [warning] = w.logs.filter(({ message }) => message === 'failed to enqueue dependents');
        assert.equal(warning?.level, 'warn');
        assert.ok(String(warning?.reason).length > 10);
      }
    });

    it('wakes the dependents before the finalizer goes, and rivals for the name once more after it', async () => {
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

    it('of a user that its namespace may not change leaves the account', async () => {
      w.user('team/alice');
      await w.deliverEvents();
      w.byHand((directory) => directory.addMember('alice', 1));
      w.delete('LldapUser', 'team/alice');
      await w.deliverEvents();
      assert.deepEqual([w.has('LldapUser', 'team/alice'), w.hasAccount('alice')], [false, true]);
    });
  });

  describe('an API server that fails', () => {
    for (const [what, call] of [
      ['reading the resource', /GET LldapGroup/],
      ['reading what it depends on', /LIST LldapAttributeSchema/],
      ['writing the status', /STATUS/],
    ] as const)
      it(`at ${what}: the event is delivered again, and the next reconcile completes it`, async () => {
        w.fail(call, 'odd');
        w.apply('LldapAttributeSchema', 'team/floor', { attributeName: 'floor', attributeType: 'Integer', target: 'Group' });
        w.apply(KIND, PLACE, { displayName: 'Crew', attributes: [{ name: 'floor', value: ['1'] }] });
        w.fail(call, 'broken');
        await w.pass(20);
        assert.equal(w.ready(KIND, PLACE), 'True');
        assert.equal(w.did.filter((step) => step === 'created the group').length, 1);
      });

    it('answers 503 with what it said, but not with what was asked', async () => {
      await made();
      w.fail(/GET LldapGroup/, 'odd');
      const answer = await w.ask('group', { what: 'reconcile', target: TARGET, redelivered: 0 });
      assert.deepEqual(answer, {
        status: 503,
        message: 'The API server answered 500',
        body: { result: 'unwritten', ...TARGET, did: [], message: 'The API server answered 500' },
      });
      assert.ok(w.logs.some(({ level, message }) => level === 'error' && message === 'a reconcile failed at the API server'));
    });

    it('makes the next reconcile as full as the one that failed', async () => {
      await made();
      w.byHand((directory) => directory.updateGroup({ id: 4, displayName: 'Theirs' }));
      w.fail(/GET LldapGroup/, 'odd');
      assert.equal((await w.reconcile(KIND, PLACE)).result, 'unwritten');
      assert.equal((await w.reconcile(KIND, PLACE, LATE)).result, 'reconciled');
      assert.ok(w.hasGroup('Crew'));
    });

    it('refuses a status for good: the log says so, and nothing is tried again', async () => {
      w.fail(/STATUS/, 'odd');
      apply();
      await w.deliverEvents();
      assert.deepEqual([w.hasGroup('Crew'), w.get(KIND, PLACE).status, count(/STATUS/)], [true, undefined, 1]);
      const [line] = w.logs.filter(({ message }) => message === 'the API server rejected the status');
      assert.deepEqual([line?.level, line?.kind, line?.reason], ['error', KIND, 'The API server answered 422']);
    });

    it('takes no Event: the reconcile is none the worse', async () => {
      w.fail(/EVENT/, 'odd');
      apply();
      await w.deliverEvents();
      assert.equal(w.ready(KIND, PLACE), 'True');
      assert.ok(w.logs.some(({ level, message }) => level === 'warn' && message === 'failed to create a Kubernetes Event'));
    });
  });

  describe('another writer', () => {
    it('before the status is written: it is looked at again, and nothing is made twice', async () => {
      w.before(/STATUS/, touch);
      apply();
      await w.deliverEvents();
      assert.equal(w.ready(KIND, PLACE), 'True');
      assert.deepEqual([count(/createGroup/), count(/STATUS/), w.did], [1, 2, ['created the group']]);
      assert.deepEqual([w.status(KIND, PLACE).uuid, w.status(KIND, PLACE).origin], [w.groupOf('Crew').uuid, 'created']);
      assert.ok(!w.logs.some(({ level }) => level === 'error'));
    });

    it('three times in a row: the event is delivered again', async () => {
      for (let times = 0; times < 3; times++) w.before(/STATUS/, touch);
      apply();
      await w.deliverEvents();
      assert.deepEqual([count(/STATUS/), w.get(KIND, PLACE).status], [3, undefined]);
      assert.deepEqual(w.results, [`unwritten ${KIND} ${PLACE}`]);
      await w.pass(1);
      assert.equal(w.ready(KIND, PLACE), 'True');
      assert.equal(count(/createGroup/), 1);
    });

    it('who changed the spec meanwhile: the newer one counts', async () => {
      w.before(/STATUS/, () => w.unwatched(() => w.edit(KIND, PLACE, { displayName: 'Team' })));
      apply();
      await w.deliverEvents();
      assert.deepEqual([w.hasGroup('Crew'), w.hasGroup('Team'), w.status(KIND, PLACE).nameKey], [false, true, 'team']);
    });

    it('before the finalizer is added: nothing is made of what was read before', async () => {
      w.before(/FINALIZER/, () => w.unwatched(() => w.edit(KIND, PLACE, { displayName: 'Team' })));
      apply();
      await w.deliverEvents();
      assert.deepEqual([w.hasGroup('Crew'), w.hasGroup('Team'), w.ready(KIND, PLACE)], [false, true, 'True']);
    });

    it('who put another resource in the place: what was made for the first goes', async () => {
      w.before(/STATUS/, () => {
        vanish();
        w.unwatched(() => w.apply(KIND, PLACE, { displayName: 'Team' }));
      });
      apply();
      await w.deliverEvents();
      assert.deepEqual([w.hasGroup('Crew'), w.hasGroup('Team'), w.ready(KIND, PLACE)], [false, true, 'True']);
      assert.deepEqual([count(/createGroup/), count(/deleteGroup/)], [2, 1]);
    });

    it('does not make an object a duplicate that was made for one which had gone', async () => {
      await made();
      w.byHand((directory) => directory.deleteGroup(4));
      w.before(/STATUS/, touch);
      await w.reconcile(KIND, PLACE);
      assert.deepEqual([count(/createGroup/), count(/deleteGroup/), w.status(KIND, PLACE).groupId], [1, 0, 5]);
    });

    it('who recorded a newer spec before us: lldap is looked at again, for our change may have come after theirs', async () => {
      await made();
      w.before(/STATUS/, () =>
        w.unwatched(() => {
          w.edit(KIND, PLACE, { displayName: 'Second' });
          w.forge(KIND, PLACE, { observedGeneration: w.get(KIND, PLACE).metadata.generation, nameKey: 'second' });
        }),
      );
      w.edit(KIND, PLACE, { displayName: 'First' });
      await w.deliverEvents();
      assert.deepEqual([w.hasGroup('First'), w.hasGroup('Second')], [false, true]);
    });

    it('and then nobody: what was made goes, and nothing that was not', async () => {
      w.before(/STATUS/, () => {
        touch();
        w.before(/GET LldapGroup/, vanish);
      });
      apply();
      await w.deliverEvents();
      assert.ok(!w.hasGroup('Crew'));
      w.before(/STATUS/, () => {
        touch();
        w.before(/GET LldapGroup/, () => {
          const value = [`v2;main;team/crew;created;${w.get(KIND, PLACE).metadata.uid}`];
          w.byHand((directory) => {
            directory.deleteGroup(w.groupOf('Crew').id);
            directory.createGroup({ displayName: 'Crew', attributes: [{ name: MARK_ATTRIBUTE, value }] });
          });
          vanish();
        });
      });
      apply();
      await w.deliverEvents();
      assert.ok(w.hasGroup('Crew'));
    });

    it('and then nobody at the second try: what the first made goes', async () => {
      w.before(/STATUS/, () => {
        touch();
        w.before(/STATUS/, vanish);
      });
      apply();
      await w.deliverEvents();
      assert.ok(!w.hasGroup('Crew'));
    });

    it('who recorded another object meanwhile: ours goes, and that one is taken', async () => {
      w.before(/STATUS/, () => {
        const { uid } = w.get(KIND, PLACE).metadata;
        const value = [`v2;main;team/crew;created;${uid}`];
        w.byHand((directory) => directory.createGroup({ displayName: 'Other', attributes: [{ name: MARK_ATTRIBUTE, value }] }));
        const { id, uuid } = w.groupOf('Other');
        w.unwatched(() => w.forge(KIND, PLACE, { groupId: id, uuid, nameKey: 'crew', origin: 'created' }));
      });
      apply();
      await w.deliverEvents();
      assert.deepEqual([w.groupOf('Crew').id, w.hasGroup('Other'), w.status(KIND, PLACE).groupId], [5, false, 5]);
    });

    it('who recorded the very object: nothing goes', async () => {
      w.before(/STATUS/, () => {
        const { id, uuid } = w.groupOf('Crew');
        w.unwatched(() => w.forge(KIND, PLACE, { groupId: id, uuid, nameKey: 'crew', origin: 'created' }));
      });
      apply();
      await w.deliverEvents();
      assert.deepEqual([w.groupOf('Crew').id, count(/deleteGroup/), w.ready(KIND, PLACE)], [4, 0, 'True']);
    });
  });

  describe('a rollback', () => {
    it('is tried four times, with pauses of 1, 5 and 15 seconds, and if all fail the log tells of the orphan', async () => {
      w.before(/STATUS/, () => {
        vanish();
        w.fail(...DOWN);
      });
      apply();
      await w.deliverEvents();
      const tries = () => count(/lldap group 4/);
      assert.equal(tries(), 1);
      for (const [seconds, expected] of [
        [0.9, 1],
        [0.1, 2],
        [4.9, 2],
        [0.1, 3],
        [14.9, 3],
        [0.1, 4],
      ] as const) {
        await w.pass(seconds);
        assert.equal(tries(), expected);
      }
      const [line] = w.logs.filter(({ message }) => message === 'failed to roll back; an orphan stays in lldap');
      assert.deepEqual([line?.level, line?.kind, line?.name, line?.reason], ['error', KIND, 'crew', 'LldapUnavailable']);
      await w.pass(60);
      assert.equal(tries(), 4);
    });

    it('that succeeds in the end leaves no orphan and no word', async () => {
      w.before(/STATUS/, () => {
        vanish();
        w.fail(/^lldap/, 'refused', 1);
      });
      apply();
      await w.pass(2);
      assert.ok(!w.hasGroup('Crew'));
      assert.ok(!w.logs.some(({ message }) => message.startsWith('failed to roll back')));
    });

    it('of a resource that made nothing does nothing', async () => {
      await made();
      w.before(/STATUS/, vanish);
      w.edit(KIND, PLACE, { displayName: 'Team' });
      await w.deliverEvents();
      assert.ok(w.hasGroup('Team'));
      assert.equal(count(/deleteGroup/), 0);
    });

    it('goes on after the deadline, for nobody else will do it', async () => {
      w.before(/STATUS/, () => {
        w.scheduler.now += 60_000;
        vanish();
      });
      apply();
      await w.deliverEvents();
      assert.ok(!w.hasGroup('Crew'));
    });
  });

  describe('the deadline', () => {
    for (const [ms, isOver] of [
      [30_000, false],
      [30_001, true],
    ] as const)
      it(`after ${ms} ms ${isOver ? 'nothing more is begun' : 'the next step is still begun'}`, async () => {
        w.before(/FINALIZER/, () => {
          w.scheduler.now += ms;
        });
        apply();
        await w.deliverEvents();
        assert.equal(w.hasGroup('Crew'), !isOver);
        assert.equal(w.ready(KIND, PLACE), isOver ? 'False DeadlineExceeded' : 'True');
        if (isOver) assert.equal(w.message(KIND, PLACE), 'The reconcile ran out of time. The next attempt continues where it stopped.');
      });
  });

  describe('lldap that contradicts what it said before', () => {
    it('"exists" to a creation leads to a search, four times at most', async () => {
      for (let times = 0; times < 5; times++) {
        w.before(/createGroup/, () => w.byHand((directory) => directory.createGroup({ displayName: 'Crew' })));
        w.before(/lldap groups/, () => w.byHand((directory) => directory.deleteGroup(w.groupOf('Crew').id)));
      }
      apply();
      await w.deliverEvents();
      assert.equal(w.ready(KIND, PLACE), 'False NameTaken');
      assert.deepEqual([count(/createGroup/), count(/lldap groups/)], [4, 3]);
    });

    it('no definition of the mark: a full run of startup is asked for, the mark defined, and the object made with it', async () => {
      w.byHand(({ state }) => state.definitions.group.delete(MARK_ATTRIBUTE));
      w.fail(/post startup/, 'refused');
      apply();
      await w.deliverEvents();
      assert.ok(w.markOf(w.groupOf('Crew')));
      assert.ok(w.posted.includes('startup full'));
      assert.ok(w.calls.indexOf('broker post startup') < w.calls.indexOf('lldap addGroupAttribute k8s-owner'));
      assert.ok(
        w.logs.some(({ level, message }) => level === 'error' && message.includes('the broker did not accept a full run of startup')),
      );
      assert.ok(w.logs.some(({ level, message }) => level === 'warn' && message.startsWith('lldap had no definition of the mark')));
    });

    it('and while the broker does not take that request, it stays undefined, and the resource waits', async () => {
      w.byHand(({ state }) => state.definitions.group.delete(MARK_ATTRIBUTE));
      w.fail(/post startup/, 'refused', 100);
      apply();
      await w.deliverEvents();
      assert.ok(!w.lldap.state.definitions.group.has(MARK_ATTRIBUTE));
      assert.deepEqual([w.hasGroup('Crew'), w.ready(KIND, PLACE)], [false, 'False DependencyNotReady']);
      assert.equal(count(/createGroup/), 4);
    });

    it('an answer that nobody foresaw is InternalError, retried, and the log has the stack', async () => {
      w.fail(/createGroup/, 'odd');
      apply();
      await w.deliverEvents();
      assert.equal(w.ready(KIND, PLACE), 'False InternalError');
      assert.equal(w.status(KIND, PLACE).retry?.category, 'Bug');
      const [line] = w.logs.filter(({ message }) => message === 'unexpected error');
      assert.match(String(line?.stack), /LldapError.*\n\s+at /);
      await w.pass(6);
      assert.equal(w.ready(KIND, PLACE), 'True');
    });
  });

  it('a failure at the question whether anything changed is met again and recorded', async () => {
    w.secret('team/s', 'password-1');
    w.user('team/alice', { passwordPolicy: 'Manage', passwordSecretRef: { name: 's', key: 'password' } });
    await w.deliverEvents();
    w.scheduler.now += 300_000;
    w.kube.deleteSecret(`op/${PASSWORD_KEY_SECRET}`);
    assert.equal((await w.reconcile('LldapUser', 'team/alice', LATE)).reason, 'PasswordKeyMissing');
  });

  it('what succeeded is in the status, although a later step failed', async () => {
    w.secret('team/s', 'password-1', {});
    w.fail(/ldap setPassword/, 'refused');
    w.user('team/alice', { passwordPolicy: 'Manage', passwordSecretRef: { name: 's', key: 'password' } });
    await w.deliverEvents();
    assert.equal(w.ready('LldapUser', 'team/alice'), 'False LldapUnavailable');
    const { uuid, origin, observedGeneration } = w.status('LldapUser', 'team/alice');
    assert.deepEqual([uuid, origin, observedGeneration], [w.accountOf('alice').uuid, 'created', 1]);
    assert.deepEqual(w.did, ['created the user']);
  });

  it('conditions of other controllers survive, also a write ahead', async () => {
    const audited = {
      type: 'Audited',
      status: 'True' as const,
      reason: 'Audited',
      message: '',
      lastTransitionTime: '2026-03-01T12:00:00Z',
    };
    w.user('adm/root');
    w.unwatched(() =>
      w.kube.changeStatus(w.kube.create('LldapMembership', 'adm', 'm', LABELS, { userName: 'root', groupName: 'lldap_admin' }), {
        conditions: [audited],
      }),
    );
    await w.deliverEvents();
    await w.reconcile('LldapMembership', 'adm/m');
    assert.equal(w.ready('LldapMembership', 'adm/m'), 'True');
    assert.deepEqual(w.condition('LldapMembership', 'adm/m', 'Audited'), audited);
  });
});
