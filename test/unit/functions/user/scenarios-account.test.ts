import assert from 'node:assert/strict';
import { createWorld, useWorld } from '../../support/world.ts';
import { KIND, LATE, MANAGED, PLACE, REF, userScenes } from './scenes.ts';

describe('accounts of users', () => {
  const { w, startWith } = useWorld();
  const { works, made, replace, withContender } = userScenes(w);

  describe('the account', () => {
    it('is created in one call with the fields of the spec and its mark, and recorded in the status', async () => {
      const { metadata } = w.user(PLACE, { username: 'Alice', displayName: 'Alice A.', firstName: 'Alice', lastName: '' });
      await w.deliverEvents();
      const { uuid, email, displayName, attributes } = w.accountOf('alice');
      assert.deepEqual([email, displayName], ['alice@example.com', 'Alice A.']);
      assert.deepEqual(Object.fromEntries(attributes), {
        first_name: ['Alice'],
        'k8s-owner': [`v2;main;team/alice;created;${metadata.uid}`],
      });
      const status = w.status(KIND, PLACE);
      assert.deepEqual([status.nameKey, status.uuid, status.origin], ['alice', uuid, 'created']);
      assert.deepEqual(
        [w.ready(KIND, PLACE, 'PasswordSynced'), w.ready(KIND, PLACE, 'DependenciesReady')],
        ['Unknown PasswordNotManaged', 'unset'],
      );
      assert.deepEqual(w.writes, [`kube FINALIZER ${KIND} ${PLACE}`, 'lldap createUser alice Alice A.', `kube STATUS ${KIND} ${PLACE}`]);
      assert.deepEqual(w.events, []);
      assert.deepEqual(w.did, ['created the user']);
    });

    it('is only read in steady state: a full reconcile makes one call to lldap and enqueues nothing', async () => {
      w.user(PLACE);
      w.apply('LldapGroup', 'team/crew', { displayName: 'Crew' });
      w.membership('team/m', 'alice', 'Crew');
      await w.deliverEvents();
      w.forget();
      assert.equal((await w.reconcile(KIND, PLACE)).result, 'reconciled');
      assert.deepEqual(w.calls, [`kube GET ${KIND} ${PLACE}`, 'lldap user alice']);
      w.forget();
      assert.equal((await w.reconcile(KIND, PLACE, LATE)).result, 'unchanged');
      assert.deepEqual(w.calls, [`kube GET ${KIND} ${PLACE}`]);
    });

    it('follows the spec, and a full reconcile reverts manual changes', async () => {
      await made({ displayName: 'Alice' });
      w.edit(KIND, PLACE, { email: 'new@example.com' });
      await w.deliverEvents();
      assert.deepEqual(w.did, ['updated the user']);
      assert.equal(w.accountOf('alice').email, 'new@example.com');
      w.byHand((directory) => directory.updateUser({ id: 'alice', displayName: 'Somebody' }));
      assert.deepEqual((await w.reconcile(KIND, PLACE)).did, ['updated the user']);
      assert.equal(w.accountOf('alice').displayName, 'Alice');
    });

    it('is created again with its password if somebody deletes it, and enqueues the memberships of the old one', async () => {
      await made();
      w.apply('LldapGroup', 'team/crew', { displayName: 'Crew' });
      w.membership('team/m', 'alice', 'crew');
      w.account('bob');
      w.membership('team/of-bob', 'bob', 'crew');
      await w.deliverEvents();
      const before = w.status(KIND, PLACE).uuid;
      w.byHand((directory) => directory.deleteUser('alice'));
      w.forget();
      const report = await w.reconcile(KIND, PLACE);
      assert.deepEqual([report.result, report.did], ['reconciled', ['created the user', 'set the password']]);
      assert.deepEqual(w.posted, ['reconcile LldapMembership team/m']);
      assert.notEqual(w.status(KIND, PLACE).uuid, before);
      assert.ok(works('password-1'));
      await w.deliverEvents();
      assert.deepEqual(w.members('Crew'), ['alice', 'bob']);
    });

    it('enqueues waiting memberships when it becomes Ready, and no Ready ones', async () => {
      await made();
      w.apply('LldapGroup', 'team/crew', { displayName: 'Crew' });
      w.membership('team/m', 'alice', 'Crew');
      w.membership('team/waits', 'alice', 'none');
      await w.deliverEvents();
      w.account('bob');
      w.edit(KIND, PLACE, { email: 'bob@example.com' });
      await w.deliverEvents();
      assert.equal(w.ready(KIND, PLACE), 'False EmailTaken');
      w.forget();
      w.edit(KIND, PLACE, { email: 'alice@example.com' });
      await w.deliverEvents();
      assert.deepEqual(w.posted, ['reconcile LldapMembership team/waits']);
    });

    it("reports EmailTaken with the holder of the address and the holder's resource", async () => {
      w.user('team/bob');
      w.account('carol');
      await w.deliverEvents();
      w.user(PLACE, { email: 'Bob@example.com' });
      await w.deliverEvents();
      assert.equal(w.ready(KIND, PLACE), 'False EmailTaken');
      assert.match(
        w.message(KIND, PLACE),
        /^spec\.email: the user bob has the address Bob@example\.com \(LldapUser team\/bob\)\. Use another address, or change that user's\./,
      );
      assert.ok(!w.hasAccount('alice'));
      w.edit(KIND, PLACE, { email: 'carol@example.com' });
      await w.deliverEvents();
      assert.match(w.message(KIND, PLACE), /the user carol has the address carol@example\.com \(managed by no resource\)/);
      assert.equal(w.status(KIND, PLACE).retry?.category, 'Taken');
    });

    it('of the operator itself is owned by no resource, and a resource for it is deleted without a trace', async () => {
      w.user('adm/x', { username: 'Admin', deletionPolicy: 'Delete' });
      await w.deliverEvents();
      assert.equal(w.ready(KIND, 'adm/x', 'Stalled'), 'True Protected');
      assert.equal(
        w.message(KIND, 'adm/x'),
        'spec.username: the operator logs in as Admin, and no resource may own that account. Delete this resource.',
      );
      w.delete(KIND, 'adm/x');
      await w.deliverEvents();
      assert.deepEqual([w.has(KIND, 'adm/x'), w.hasAccount('admin'), w.asked], [false, true, []]);
    });

    it('is adopted only by privileged namespaces if it exists already', async () => {
      const { uuid } = w.account('alice');
      w.user(PLACE);
      await w.deliverEvents();
      assert.equal(w.ready(KIND, PLACE, 'Stalled'), 'True NotOurs');
      assert.equal(w.markOf(w.accountOf('alice')), undefined);
      const { metadata } = w.user('adm/alice');
      await w.deliverEvents();
      assert.equal(w.markOf(w.accountOf('alice')), `v2;main;adm/alice;adopted;${metadata.uid};${uuid}`);
      assert.equal(w.status(KIND, 'adm/alice').origin, 'adopted');
    });

    it('is recognised by its mark if the answer to its creation was lost', async () => {
      w.fail(/createUser/, 'unanswered');
      w.user(PLACE);
      await w.deliverEvents();
      assert.deepEqual([w.ready(KIND, PLACE), w.hasAccount('alice')], ['False LldapUnavailable', true]);
      await w.pass(6);
      assert.equal(w.ready(KIND, PLACE), 'True');
      assert.equal(w.status(KIND, PLACE).origin, 'created');
      assert.equal(w.calls.filter((call) => call.includes('createUser')).length, 1);
    });
  });

  describe('attributes', () => {
    const desk = { attributes: [{ name: 'desk', value: ['7'] }] };

    it('wait for their definition, which DependenciesReady names', async () => {
      w.apply('LldapAttributeSchema', 'team/floor', { attributeName: 'floor', attributeType: 'Integer', target: 'User' });
      await w.deliverEvents();
      w.user(PLACE, desk);
      await w.deliverEvents();
      const message = 'lldap has no attribute desk for users. Create an LldapAttributeSchema for it, or correct spec.attributes.';
      assert.deepEqual([w.ready(KIND, PLACE), w.message(KIND, PLACE)], ['False DependencyNotReady', message]);
      assert.equal(w.message(KIND, PLACE, 'DependenciesReady'), message);
      assert.equal(w.ready(KIND, PLACE, 'PasswordSynced'), 'unset');
      w.apply('LldapAttributeSchema', 'team/desk', { attributeName: 'desk', attributeType: 'Integer', target: 'User' });
      await w.deliverEvents();
      assert.deepEqual([w.ready(KIND, PLACE), w.ready(KIND, PLACE, 'DependenciesReady')], ['True', 'True DependenciesReady']);
      assert.deepEqual(w.accountOf('alice').attributes.get('desk'), ['7']);
    });

    it('removed from the spec leave no DependenciesReady behind', async () => {
      w.user(PLACE, desk);
      await w.deliverEvents();
      w.edit(KIND, PLACE, { attributes: [] });
      await w.deliverEvents();
      assert.deepEqual([w.ready(KIND, PLACE), w.ready(KIND, PLACE, 'DependenciesReady')], ['True', 'unset']);
    });
  });

  describe('deletion', () => {
    it('deletes an account that the operator created, and enqueues memberships and other resources of the name', async () => {
      await made();
      w.apply('LldapGroup', 'team/crew', { displayName: 'Crew' });
      w.membership('team/m', 'alice', 'Crew');
      w.account('bob');
      w.membership('team/of-bob', 'bob', 'crew');
      await withContender();
      w.delete(KIND, PLACE);
      await w.deliverEvents();
      assert.deepEqual(w.did.slice(0, 1), ['deleted the user']);
      assert.deepEqual(w.posted.slice(0, 3), [
        'reconcile LldapMembership team/m',
        `reconcile ${KIND} other/alice`,
        `reconcile ${KIND} other/alice`,
      ]);
      assert.equal(w.ready(KIND, 'other/alice'), 'True');
      assert.equal(w.accountOf('alice').attributes.get('k8s-owner')?.[0]?.split(';')[2], 'other/alice');
    });

    it('keeps an adopted account, and one with deletionPolicy Retain', async () => {
      w.account('alice');
      w.user('adm/alice');
      w.user('team/bob', { deletionPolicy: 'Retain' });
      await w.deliverEvents();
      w.delete(KIND, 'adm/alice');
      w.delete(KIND, 'team/bob');
      await w.deliverEvents();
      assert.deepEqual([w.has(KIND, 'adm/alice'), w.has(KIND, 'team/bob')], [false, false]);
      assert.deepEqual([w.hasAccount('alice'), w.hasAccount('bob')], [true, true]);
    });

    it('completes if the account is gone or belongs to another resource', async () => {
      await made();
      const theirs = await withContender();
      replace(theirs, 'password-1');
      w.delete(KIND, PLACE);
      await w.deliverEvents();
      assert.ok(!w.has(KIND, PLACE));
      assert.ok(w.hasAccount('alice'));
      assert.ok(!works('password-1'), 'a password that works there by a lost answer is disabled');
      w.user('team/bob');
      await w.deliverEvents();
      w.byHand((directory) => directory.deleteUser('bob'));
      w.delete(KIND, 'team/bob');
      await w.deliverEvents();
      assert.ok(!w.has(KIND, 'team/bob'));
    });

    it('rolls back the creation if the resource vanishes meanwhile', async () => {
      w.before(/STATUS LldapUser/, () => w.kube.drop(w.get(KIND, PLACE)));
      w.user(PLACE);
      await w.deliverEvents();
      assert.ok(!w.hasAccount('alice'));
    });

    it('the rollback deletes no account that replaced the created one', async () => {
      w.before(/STATUS LldapUser/, () => {
        replace(`v2;main;team/alice;created;${w.get(KIND, PLACE).metadata.uid}`);
        w.kube.drop(w.get(KIND, PLACE));
      });
      w.user(PLACE);
      await w.deliverEvents();
      assert.ok(w.hasAccount('alice'));
    });

    it('the rollback succeeds if the account is gone already', async () => {
      w.before(/STATUS LldapUser/, () => {
        w.byHand((directory) => directory.deleteUser('alice'));
        w.kube.drop(w.get(KIND, PLACE));
      });
      w.user(PLACE);
      await w.pass(60);
      assert.deepEqual(
        w.logs.filter(({ level }) => level === 'error'),
        [],
      );
    });
  });

  describe('a Secret that changes', () => {
    it('enqueues each user of its namespace that names it', async () => {
      w.secret('team/s', 'password-1');
      w.user('team/a', MANAGED);
      w.user('team/b', MANAGED);
      w.user('team/c', { ...MANAGED, passwordSecretRef: { name: 't', key: 'password' } });
      w.user('other/d', MANAGED);
      w.kube.create(KIND, 'team', 'e', {}, { username: 'e', email: 'e@example.com', passwordSecretRef: REF });
      await w.deliverEvents();
      w.forget();
      w.secret('team/s', 'password-2');
      await w.deliverEvents();
      assert.deepEqual(w.posted.sort(), [`reconcile ${KIND} team/a`, `reconcile ${KIND} team/b`]);
    });

    it('is delivered again if the API server or the broker fails', async () => {
      await made();
      for (const call of [/LIST LldapUser spec/, /broker post reconcile/]) {
        w.fail(call, 'refused');
        const answer = await w.ask('user', { what: 'secret', namespace: 'team', name: 's', redelivered: 0 });
        assert.equal(answer.status, 503);
        assert.ok('message' in answer && answer.message.length > 0);
      }
      assert.deepEqual(await w.ask('user', { what: 'secret', namespace: 'team', name: 's', redelivered: 0 }), { status: 204 });
    });

    it('is ignored in namespaces that the installation does not serve', async () => {
      startWith(createWorld({ NAMESPACES: 'own' }));
      w.user('op/a', MANAGED);
      w.user('team/a', MANAGED);
      await w.deliverEvents();
      w.forget();
      assert.deepEqual(await w.ask('user', { what: 'secret', namespace: 'team', name: 's', redelivered: 0 }), { status: 204 });
      assert.deepEqual([w.calls, w.posted], [[], []]);
      assert.deepEqual(await w.ask('user', { what: 'secret', namespace: 'op', name: 's', redelivered: 0 }), { status: 204 });
      assert.deepEqual(w.posted, [`reconcile ${KIND} op/a`]);
    });
  });

  it('an account of another installation is not adopted, not even by privileged namespaces', async () => {
    w.account('alice');
    replace('v2;blue;team/alice;created;uid-x');
    w.user('adm/alice');
    await w.deliverEvents();
    assert.equal(w.ready(KIND, 'adm/alice', 'Stalled'), 'True NotOurs');
    assert.match(w.message(KIND, 'adm/alice'), /belongs to the operator installation of instance "blue"/);
  });
});
