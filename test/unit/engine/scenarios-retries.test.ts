import assert from 'node:assert/strict';
import { MARK_ATTRIBUTE, PASSWORD_KEY_SECRET } from '../../../shared/constants.ts';
import { LABELS } from '../../chaos/installation.ts';
import { createWorld, useWorld } from '../support/world.ts';
import { DOWN, engineScenes, KIND, LATE, PLACE, TARGET } from './scenes.ts';

describe('the engine and its retries', () => {
  const { w, startWith } = useWorld();
  const { apply, failed, count } = engineScenes(w);

  describe('retries', () => {
    it('are accepted by the broker before the status names them, and Reconciling says when', async () => {
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
      const [line] = w.reports;
      assert.deepEqual([line?.level, line?.result, line?.ready, line?.reason], ['info', 'reconciled', false, 'LldapUnavailable']);
      assert.deepEqual(line?.retry, retry);
    });

    it('come at their time, and count their attempts', async () => {
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

    it('are started only by their own event, a full reconcile, a new generation, or their time', async () => {
      const next = await failed();
      assert.equal((await w.reconcile(KIND, PLACE, LATE)).result, 'waiting');
      assert.deepEqual(w.calls, [`kube GET ${KIND} ${PLACE}`]);
      assert.equal((await w.reconcile(KIND, PLACE, { notBefore: next })).result, 'reconciled');
      for (const start of [() => w.reconcile(KIND, PLACE), () => w.edit(KIND, PLACE, { displayName: 'CREW' }), () => w.pass(5)]) {
        startWith(createWorld());
        await failed();
        await start();
        await w.deliverEvents();
        assert.equal(w.ready(KIND, PLACE), 'True', start.toString());
      }
    });

    it('stay as they are if a full reconcile fails for the same cause', async () => {
      const next = await failed();
      w.fail(...DOWN);
      const report = await w.reconcile(KIND, PLACE);
      assert.deepEqual([report.retry?.nextTime, report.retry?.attempts], [next, 1]);
      assert.deepEqual([w.posted, w.writes, w.events], [[], [], []]);
    });

    it('begin again if a full reconcile fails for another cause', async () => {
      await failed();
      w.fail(/auth/, 'denied', 100);
      w.fail(/lldap/, 'denied', 100);
      const report = await w.reconcile(KIND, PLACE);
      assert.deepEqual([report.reason, report.retry?.attempts, report.retry?.category], ['LldapUnauthenticated', 1, 'Unauthenticated']);
      assert.deepEqual(w.posted, [`requeue ${KIND} ${PLACE}`]);
    });

    it('that fail lead to the next', async () => {
      const next = await failed();
      w.fail(...DOWN);
      const report = await w.reconcile(KIND, PLACE, { notBefore: next });
      assert.deepEqual([report.retry?.attempts, w.posted], [2, [`requeue ${KIND} ${PLACE}`]]);
      w.scheduler.now += 600_000;
      assert.equal((await w.reconcile(KIND, PLACE)).retry?.attempts, 3, 'one whose time is over is no longer to come');
    });

    it('that are delivered again still count as the retry', async () => {
      const next = await failed();
      w.fail(...DOWN);
      await w.ask('group', { what: 'reconcile', target: TARGET, notBefore: next, redelivered: 1 });
      assert.equal(w.status(KIND, PLACE).retry?.attempts, 2);
    });

    it('do not repeat a failed mutation at once', async () => {
      w.fail(/createGroup/, 'refused', 10);
      apply();
      await w.deliverEvents();
      assert.deepEqual([count(/createGroup/), w.ready(KIND, PLACE)], [1, 'False LldapUnavailable']);
    });

    it('are not made if only a person can help', async () => {
      w.byHand((directory) => directory.createGroup({ displayName: 'Crew' }));
      apply();
      await w.deliverEvents();
      assert.deepEqual([w.ready(KIND, PLACE, 'Stalled'), w.status(KIND, PLACE).retry, w.posted], ['True NotOurs', undefined, []]);
    });

    it('that the broker does not accept show in the status, and the event is delivered again', async () => {
      w.fail(...DOWN);
      w.fail(/broker post requeue/, 'refused');
      apply();
      await w.deliverEvents();
      assert.deepEqual(w.status(KIND, PLACE).retry, { attempts: 1, category: 'Unavailable' });
      assert.equal(
        w.message(KIND, PLACE, 'Reconciling'),
        'Attempt 1 failed. The broker did not accept the next one; the sweep will start it.',
      );
      const [line] = w.reports;
      assert.deepEqual([line?.result, line?.detail], ['unwritten', 'The broker did not accept the event.']);
      assert.ok(w.logged('error').some(({ name }) => name === 'crew'));
      await w.pass(1);
      assert.ok(w.status(KIND, PLACE).retry?.nextTime);
    });
  });

  describe('the deadline', () => {
    for (const [ms, isOver] of [
      [30_000, false],
      [30_001, true],
    ] as const)
      it(`${isOver ? 'stops' : 'allows'} the next mutation after ${ms} ms`, async () => {
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

  describe('an lldap that contradicts the observation', () => {
    it('leads to a search if a creation answers "exists", in at most four rounds', async () => {
      for (let times = 0; times < 5; times++) {
        w.before(/createGroup/, () => w.byHand((directory) => directory.createGroup({ displayName: 'Crew' })));
        w.before(/lldap groups/, () => w.byHand((directory) => directory.deleteGroup(w.groupOf('Crew').id)));
      }
      apply();
      await w.deliverEvents();
      assert.equal(w.ready(KIND, PLACE), 'False NameTaken');
      assert.deepEqual([count(/createGroup/), count(/lldap groups/)], [4, 3]);
    });

    it("without the mark's definition leads to a full run of startup, then the object is created with its mark", async () => {
      w.byHand(({ state }) => state.definitions.group.delete(MARK_ATTRIBUTE));
      w.fail(/post startup/, 'refused');
      apply();
      await w.deliverEvents();
      assert.ok(w.markOf(w.groupOf('Crew')));
      assert.ok(w.posted.includes('startup full'));
      assert.ok(w.calls.indexOf('broker post startup') < w.calls.indexOf('lldap addGroupAttribute k8s-owner'));
      assert.ok(w.logged('error').length === 1);
      assert.ok(w.logged('warn').length === 1);
    });

    it('keeps the mark undefined while the broker does not accept that run', async () => {
      w.byHand(({ state }) => state.definitions.group.delete(MARK_ATTRIBUTE));
      w.fail(/post startup/, 'refused', 100);
      apply();
      await w.deliverEvents();
      assert.ok(!w.lldap.state.definitions.group.has(MARK_ATTRIBUTE));
      assert.deepEqual([w.hasGroup('Crew'), w.ready(KIND, PLACE)], [false, 'False DependencyNotReady']);
      assert.equal(count(/createGroup/), 4);
    });

    it('with an unknown answer leads to InternalError, a retry, and a stack in the log', async () => {
      w.fail(/createGroup/, 'odd');
      apply();
      await w.deliverEvents();
      assert.equal(w.ready(KIND, PLACE), 'False InternalError');
      assert.equal(w.status(KIND, PLACE).retry?.category, 'Bug');
      const [line] = w.logged('error');
      assert.match(String(line?.stack), /LldapError.*\n\s+at /);
      await w.pass(6);
      assert.equal(w.ready(KIND, PLACE), 'True');
    });
  });

  it('a failure of the check for changes is recorded', async () => {
    w.secret('team/s', 'password-1');
    w.user('team/alice', { passwordPolicy: 'Manage', passwordSecretRef: { name: 's', key: 'password' } });
    await w.deliverEvents();
    w.scheduler.now += 300_000;
    w.kube.deleteSecret(`op/${PASSWORD_KEY_SECRET}`);
    assert.equal((await w.reconcile('LldapUser', 'team/alice', LATE)).reason, 'PasswordKeyMissing');
  });

  it('the status keeps what succeeded before a later step failed', async () => {
    w.secret('team/s', 'password-1', {});
    w.fail(/ldap setPassword/, 'refused');
    w.user('team/alice', { passwordPolicy: 'Manage', passwordSecretRef: { name: 's', key: 'password' } });
    await w.deliverEvents();
    assert.equal(w.ready('LldapUser', 'team/alice'), 'False LldapUnavailable');
    const { uuid, origin, observedGeneration } = w.status('LldapUser', 'team/alice');
    assert.deepEqual([uuid, origin, observedGeneration], [w.accountOf('alice').uuid, 'created', 1]);
    assert.deepEqual(w.did, ['created the user']);
  });

  it('conditions of other controllers survive, also when a step is written ahead', async () => {
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
