import assert from 'node:assert/strict';
import { createWorld, useWorld } from '../../support/world.ts';
import { KIND, MANAGED, PLACE, userScenes } from './scenes.ts';

describe('users whose account was replaced', () => {
  const { w, startWith } = useWorld();
  const { works, made, replace, withContender } = userScenes(w);

  describe('an account replaced during the reconcile', () => {
    it('an update that reached it is not taken for success, and its owner is enqueued', async () => {
      await made();
      const theirs = await withContender();
      w.before(/updateUser/, () => replace(theirs));
      w.unwatched(() => w.edit(KIND, PLACE, { firstName: 'Ours' }));
      const report = await w.reconcile(KIND, PLACE);
      assert.equal(report.reason, 'LldapUnavailable');
      assert.equal(
        w.message(KIND, PLACE),
        'The user alice was replaced in lldap during the reconcile. The operator will look at it again.',
      );
      assert.deepEqual(w.posted.slice(0, 1), [`reconcile ${KIND} other/alice`]);
    });

    it('a password that reached it is disabled', async () => {
      await made();
      const theirs = await withContender();
      w.unwatched(() => w.secret('team/s', 'password-2'));
      w.before(/ldap setPassword/, () => replace(theirs, 'of-the-other'));
      const report = await w.reconcile(KIND, PLACE);
      assert.equal(report.reason, 'LldapUnavailable');
      assert.deepEqual([works('password-2'), works('password-1'), works('of-the-other')], [false, false, false]);
      assert.equal(w.calls.filter((call) => call === 'ldap setPassword alice').length, 2);
      assert.deepEqual(w.posted.slice(0, 1), [`reconcile ${KIND} other/alice`]);
    });

    it('a password that reached an account without a mark is disabled', async () => {
      await made();
      w.unwatched(() => w.secret('team/s', 'password-2'));
      w.before(/ldap setPassword/, () => replace(undefined));
      assert.equal((await w.reconcile(KIND, PLACE)).reason, 'LldapUnavailable');
      assert.ok(!works('password-2'));
    });

    it("a password that reached the resource's own new account stays", async () => {
      await made();
      const own = `v2;main;team/alice;created;${w.get(KIND, PLACE).metadata.uid}`;
      w.unwatched(() => w.secret('team/s', 'password-2'));
      w.before(/ldap setPassword/, () => replace(own));
      await w.reconcile(KIND, PLACE);
      assert.ok(works('password-2'));
    });
  });

  describe('an account replaced before the reconcile, which a lost write may have reached', () => {
    it('a password that works there is disabled, its owner is enqueued, and the status forgets the old account', async () => {
      await made();
      const theirs = await withContender();
      replace(theirs, 'password-1');
      const report = await w.reconcile(KIND, PLACE);
      assert.equal(report.reason, 'Conflict');
      assert.ok(!works('password-1'));
      assert.ok(w.posted.includes(`reconcile ${KIND} other/alice`));
      const { uuid, passwordHash, passwordModifiedAt } = w.status(KIND, PLACE);
      assert.deepEqual([uuid, passwordHash, passwordModifiedAt], [undefined, undefined, undefined]);
      w.forget();
      await w.reconcile(KIND, PLACE);
      assert.deepEqual(w.asked, ['lldap user alice'], 'done once');
    });

    it('a password that somebody else set there stays', async () => {
      await made();
      replace(await withContender(), 'of-the-other');
      await w.reconcile(KIND, PLACE);
      assert.ok(works('of-the-other'));
      assert.ok(!w.writes.includes('ldap setPassword alice'));
    });

    it('no password is tried with Ignore or without the Secret', async () => {
      await made();
      const theirs = await withContender();
      w.unwatched(() => w.kube.deleteSecret('team/s'));
      replace(theirs, 'password-1');
      await w.reconcile(KIND, PLACE);
      assert.ok(!w.calls.includes('ldap verify alice'));
      assert.equal(w.status(KIND, PLACE).uuid, undefined);
      startWith(createWorld());
      w.secret('team/s', 'password-1');
      w.user(PLACE, { ...MANAGED, passwordPolicy: 'Ignore' });
      await w.deliverEvents();
      replace(await withContender(), 'password-1');
      await w.reconcile(KIND, PLACE);
      assert.ok(!w.calls.includes('ldap verify alice'));
      assert.equal(w.status(KIND, PLACE).uuid, undefined);
    });

    it('its owner is enqueued again if the broker fails', async () => {
      await made();
      replace(await withContender());
      w.fail(/broker post reconcile/, 'refused');
      await w.reconcile(KIND, PLACE);
      assert.ok(w.status(KIND, PLACE).uuid);
      await w.reconcile(KIND, PLACE);
      assert.ok(w.posted.includes(`reconcile ${KIND} other/alice`));
      assert.equal(w.status(KIND, PLACE).uuid, undefined);
    });

    it('an account that the namespace may adopt is adopted', async () => {
      w.secret('adm/s', 'password-1');
      w.user('adm/alice', MANAGED);
      await w.deliverEvents();
      replace(undefined);
      w.forget();
      await w.reconcile(KIND, 'adm/alice');
      assert.equal(w.status(KIND, 'adm/alice').uuid, w.accountOf('alice').uuid);
      assert.equal(w.status(KIND, 'adm/alice').origin, 'adopted');
      assert.deepEqual(w.posted, []);
    });

    it("the same account with another resource's mark counts as a Conflict, not as a replacement", async () => {
      await made();
      const value = [await withContender()];
      w.byHand((directory) => directory.updateUser({ id: 'alice', insertAttributes: [{ name: 'k8s-owner', value }] }));
      const report = await w.reconcile(KIND, PLACE);
      assert.equal(report.reason, 'Conflict');
      assert.ok(w.status(KIND, PLACE).uuid);
      assert.deepEqual(w.asked, ['lldap user alice']);
    });

    it('no password is disabled after the deadline', async () => {
      await made();
      replace(await withContender(), 'password-1');
      w.before(/ldap verify/, () => {
        w.scheduler.now += 30_001;
      });
      assert.equal((await w.reconcile(KIND, PLACE)).reason, 'DeadlineExceeded');
      assert.ok(works('password-1'));
    });
  });
});
