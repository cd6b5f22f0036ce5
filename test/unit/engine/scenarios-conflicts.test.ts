import assert from 'node:assert/strict';
import { MARK_ATTRIBUTE } from '../../../shared/constants.ts';
import { ORPHAN_LEFT } from '../../../shared/engine/rollback.ts';
import { useWorld } from '../support/world.ts';
import { DOWN, engineScenes, KIND, LATE, PLACE, TARGET } from './scenes.ts';

describe('the engine and the API server', () => {
  const { w } = useWorld();
  const { apply, made, count, touch, vanish } = engineScenes(w);

  describe('a failing API server', () => {
    for (const [what, call] of [
      ['reading the resource', /GET LldapGroup/],
      ['reading what it depends on', /LIST LldapAttributeSchema/],
      ['writing the status', /STATUS/],
    ] as const)
      it(`at ${what} makes the broker deliver the event again, which completes the reconcile`, async () => {
        w.fail(call, 'odd');
        w.apply('LldapAttributeSchema', 'team/floor', { attributeName: 'floor', attributeType: 'Integer', target: 'Group' });
        w.apply(KIND, PLACE, { displayName: 'Crew', attributes: [{ name: 'floor', value: ['1'] }] });
        w.fail(call, 'broken');
        await w.pass(20);
        assert.equal(w.ready(KIND, PLACE), 'True');
        assert.equal(w.did.filter((step) => step === 'created the group').length, 1);
      });

    it('leads to a 503 that holds no part of the request', async () => {
      await made();
      w.fail(/GET LldapGroup/, 'odd');
      const answer = await w.ask('group', { what: 'reconcile', target: TARGET, redelivered: 0 });
      assert.deepEqual(answer, {
        status: 503,
        message: 'The API server answered 500',
        body: { result: 'unwritten', ...TARGET, did: [], message: 'The API server answered 500' },
      });
      assert.ok(w.logged('error').length === 1);
    });

    it('makes the next reconcile a full one if the failed one was', async () => {
      await made();
      w.byHand((directory) => directory.updateGroup({ id: 4, displayName: 'Theirs' }));
      w.fail(/GET LldapGroup/, 'odd');
      assert.equal((await w.reconcile(KIND, PLACE)).result, 'unwritten');
      assert.equal((await w.reconcile(KIND, PLACE, LATE)).result, 'reconciled');
      assert.ok(w.hasGroup('Crew'));
    });

    it('that rejects a status for good is logged, without a retry', async () => {
      w.fail(/STATUS/, 'odd');
      apply();
      await w.deliverEvents();
      assert.deepEqual([w.hasGroup('Crew'), w.get(KIND, PLACE).status, count(/STATUS/)], [true, undefined, 1]);
      assert.deepEqual(w.results, [`reconciled ${KIND} ${PLACE}`]);
      const [line] = w.logged('error');
      assert.deepEqual([line?.level, line?.kind, line?.reason], ['error', KIND, 'The API server answered 422']);
    });

    it('that rejects an Event does not fail the reconcile', async () => {
      w.fail(/EVENT/, 'odd');
      w.apply(KIND, PLACE, { displayName: 'lldap_admin' });
      await w.deliverEvents();
      assert.equal(w.ready(KIND, PLACE), 'False Protected');
      assert.ok(w.logged('warn').length === 1);
    });
  });

  describe('a conflict with another writer', () => {
    it('at the status write leads to another attempt, which creates nothing twice', async () => {
      w.before(/STATUS/, touch);
      apply();
      await w.deliverEvents();
      assert.equal(w.ready(KIND, PLACE), 'True');
      assert.deepEqual([count(/createGroup/), count(/STATUS/), w.did], [1, 2, ['created the group']]);
      assert.deepEqual([w.status(KIND, PLACE).uuid, w.status(KIND, PLACE).origin], [w.groupOf('Crew').uuid, 'created']);
      assert.ok(!w.logs.some(({ level }) => level === 'error'));
    });

    it("is left to the broker's next delivery after three attempts", async () => {
      for (let times = 0; times < 3; times++) w.before(/STATUS/, touch);
      apply();
      await w.deliverEvents();
      assert.deepEqual([count(/STATUS/), w.get(KIND, PLACE).status], [3, undefined]);
      assert.deepEqual(w.results, [`unwritten ${KIND} ${PLACE}`]);
      await w.pass(1);
      assert.equal(w.ready(KIND, PLACE), 'True');
      assert.equal(count(/createGroup/), 1);
    });

    it('that changed the spec makes the newer spec count', async () => {
      w.before(/STATUS/, () => w.unwatched(() => w.edit(KIND, PLACE, { displayName: 'Team' })));
      apply();
      await w.deliverEvents();
      assert.deepEqual([w.hasGroup('Crew'), w.hasGroup('Team'), w.status(KIND, PLACE).nameKey], [false, true, 'team']);
    });

    it('at the finalizer discards what was read before', async () => {
      w.before(/FINALIZER/, () => w.unwatched(() => w.edit(KIND, PLACE, { displayName: 'Team' })));
      apply();
      await w.deliverEvents();
      assert.deepEqual([w.hasGroup('Crew'), w.hasGroup('Team'), w.ready(KIND, PLACE)], [false, true, 'True']);
    });

    it('that replaced the resource rolls back what was created for the first one', async () => {
      w.before(/STATUS/, () => {
        vanish();
        w.unwatched(() => w.apply(KIND, PLACE, { displayName: 'Team' }));
      });
      apply();
      await w.deliverEvents();
      assert.deepEqual([w.hasGroup('Crew'), w.hasGroup('Team'), w.ready(KIND, PLACE)], [false, true, 'True']);
      assert.deepEqual([count(/createGroup/), count(/deleteGroup/)], [2, 1]);
    });

    it('keeps an object that replaced a deleted one', async () => {
      await made();
      w.byHand((directory) => directory.deleteGroup(4));
      w.before(/STATUS/, touch);
      await w.reconcile(KIND, PLACE);
      assert.deepEqual([count(/createGroup/), count(/deleteGroup/), w.status(KIND, PLACE).groupId], [1, 0, 5]);
    });

    it('that recorded a newer spec leads to a full look at lldap, which may hold the older change', async () => {
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

    it('followed by the deletion of the resource rolls back what was created, and nothing else', async () => {
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

    it('followed by a deletion during the second attempt rolls back what the first created', async () => {
      w.before(/STATUS/, () => {
        touch();
        w.before(/STATUS/, vanish);
      });
      apply();
      await w.deliverEvents();
      assert.ok(!w.hasGroup('Crew'));
    });

    it('that recorded another object rolls back the duplicate', async () => {
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

    it('that recorded the same object rolls back nothing', async () => {
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
    it('is tried four times, after 1, 5 and 15 seconds, then logs the orphan', async () => {
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
      const [line] = w.logged('error').filter(({ message }) => message === ORPHAN_LEFT);
      assert.deepEqual([line?.level, line?.kind, line?.name, line?.reason], ['error', KIND, 'crew', 'LldapUnavailable']);
      await w.pass(60);
      assert.equal(tries(), 4);
    });

    it('that succeeds later logs no orphan', async () => {
      w.before(/STATUS/, () => {
        vanish();
        w.fail(/^lldap/, 'refused', 1);
      });
      apply();
      await w.pass(2);
      assert.ok(!w.hasGroup('Crew'));
      assert.deepEqual(w.logged('error'), []);
    });

    it('does nothing if nothing was created', async () => {
      await made();
      w.before(/STATUS/, vanish);
      w.edit(KIND, PLACE, { displayName: 'Team' });
      await w.deliverEvents();
      assert.ok(w.hasGroup('Team'));
      assert.equal(count(/deleteGroup/), 0);
    });

    it('is not bound by the deadline', async () => {
      w.before(/STATUS/, () => {
        w.scheduler.now += 60_000;
        vanish();
      });
      apply();
      await w.deliverEvents();
      assert.ok(!w.hasGroup('Crew'));
    });
  });
});
