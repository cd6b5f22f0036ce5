import assert from 'node:assert/strict';
import { PASSWORD_KEY_SECRET } from '../../../../shared/constants.ts';
import { useWorld } from '../../support/world.ts';
import { FORGOTTEN, KIND, LATE, MANAGED, PLACE, userScenes } from './scenes.ts';

describe('passwords of users', () => {
  const { w } = useWorld();
  const { works, made } = userScenes(w);

  describe('the password', () => {
    it('is set from the Secret once', async () => {
      w.secret('team/s', 'password-1');
      w.user(PLACE, MANAGED);
      await w.deliverEvents();
      assert.ok(works('password-1'));
      assert.deepEqual(w.did, ['created the user', 'set the password']);
      assert.equal(w.ready(KIND, PLACE, 'PasswordSynced'), 'True PasswordSynced');
      const { passwordHash, passwordModifiedAt } = w.status(KIND, PLACE);
      assert.match(passwordHash ?? '', /^v1:[0-9a-f]{8}:[-\w]{43}$/);
      assert.equal(Date.parse(passwordModifiedAt ?? ''), Date.parse(w.accountOf('alice').passwordModifiedAt));
      w.forget();
      await w.reconcile(KIND, PLACE);
      assert.deepEqual([w.writes, w.asked], [[], ['lldap user alice']]);
    });

    it('is set at once when the Secret changes', async () => {
      await made();
      w.secret('team/s', 'password-2');
      await w.deliverEvents();
      assert.deepEqual([works('password-1'), works('password-2')], [false, true]);
      assert.deepEqual(w.posted, [`reconcile ${KIND} ${PLACE}`]);
      assert.deepEqual(w.did, ['set the password']);
      assert.deepEqual(
        w.calls.filter((call) => call.startsWith('ldap ')),
        ['ldap setPassword alice', 'ldap verify alice'],
      );
    });

    it('is set by a late retry if the Secret changed unnoticed', async () => {
      await made();
      assert.equal((await w.reconcile(KIND, PLACE, LATE)).result, 'unchanged');
      assert.deepEqual(w.asked, []);
      w.unwatched(() => w.secret('team/s', 'password-2'));
      assert.equal((await w.reconcile(KIND, PLACE, LATE)).result, 'reconciled');
      assert.ok(works('password-2'));
      w.unwatched(() => w.kube.deleteSecret('team/s'));
      assert.equal((await w.reconcile(KIND, PLACE, LATE)).reason, 'SecretNotFound');
      assert.ok(works('password-2'));
    });

    it('is checked again if the status lost the uuid', async () => {
      await made();
      w.unwatched(() => w.forge(KIND, PLACE, { uuid: FORGOTTEN }));
      assert.equal((await w.reconcile(KIND, PLACE, LATE)).result, 'reconciled');
      assert.equal(w.status(KIND, PLACE).uuid, w.accountOf('alice').uuid);
    });

    it('is set back by the next full reconcile if somebody with a session changed it right after a rotation', async () => {
      await made();
      let isArmed = true;
      w.before(/ldap setPassword alice/, () => {
        if (isArmed) w.before(/lldap user alice/, () => w.lldap.setPassword('alice', 'of-an-attacker'));
        isArmed = false;
      });
      w.secret('team/s', 'password-2');
      await w.deliverEvents();
      assert.ok(works('of-an-attacker'));
      await w.reconcile(KIND, PLACE);
      assert.deepEqual([works('of-an-attacker'), works('password-2')], [false, true]);
    });

    it('is set back if somebody else changed it', async () => {
      await made();
      w.lldap.setPassword('alice', 'of-a-person');
      const report = await w.reconcile(KIND, PLACE);
      assert.deepEqual(report.did, ['checked the password, and set it if it did not work']);
      assert.deepEqual(w.asked, [
        'lldap user alice',
        'ldap verify alice',
        'ldap setPassword alice',
        'lldap user alice',
        'ldap verify alice',
      ]);
      assert.ok(works('password-1'));
      w.forget();
      await w.reconcile(KIND, PLACE);
      assert.deepEqual(w.asked, ['lldap user alice']);
    });

    it('is only recorded if it works already', async () => {
      await made();
      const { passwordHash, passwordModifiedAt } = w.status(KIND, PLACE);
      w.unwatched(() => w.forge(KIND, PLACE, { passwordHash: FORGOTTEN, passwordModifiedAt: FORGOTTEN }));
      await w.reconcile(KIND, PLACE);
      assert.deepEqual(w.asked, ['lldap user alice', 'ldap verify alice']);
      assert.deepEqual([w.status(KIND, PLACE).passwordHash, w.status(KIND, PLACE).passwordModifiedAt], [passwordHash, passwordModifiedAt]);
    });

    it('waits for the Secret after the account was created, and is set as soon as the Secret exists', async () => {
      w.user(PLACE, MANAGED);
      await w.deliverEvents();
      assert.ok(w.hasAccount('alice'));
      assert.deepEqual([w.ready(KIND, PLACE), w.ready(KIND, PLACE, 'PasswordSynced')], ['False SecretNotFound', 'False SecretNotFound']);
      w.secret('team/s', 'password-1');
      await w.deliverEvents();
      assert.deepEqual([w.ready(KIND, PLACE), works('password-1')], ['True', true]);
    });

    it('without a Secret reference reports what to set', async () => {
      w.user(PLACE, { passwordPolicy: 'Manage' });
      await w.deliverEvents();
      assert.equal(w.ready(KIND, PLACE, 'Stalled'), 'True InvalidValue');
      assert.equal(
        w.message(KIND, PLACE),
        'spec.passwordSecretRef is missing. Name a Secret and its key, or set passwordPolicy to Ignore.',
      );
    });

    it('reports PasswordUnchecked while the account cannot be created', async () => {
      w.account('bob');
      w.secret('team/s', 'password-1');
      w.user(PLACE, { ...MANAGED, email: 'bob@example.com' });
      await w.deliverEvents();
      assert.equal(w.ready(KIND, PLACE), 'False EmailTaken');
      assert.equal(w.ready(KIND, PLACE, 'PasswordSynced'), 'Unknown PasswordUnchecked');
      assert.equal(w.message(KIND, PLACE, 'PasswordSynced'), 'The reconcile failed before it reached the password.');
    });

    it('with InitialOnly is set once, and the Secret is not read afterwards', async () => {
      w.secret('team/s', 'password-1');
      w.user(PLACE, { ...MANAGED, passwordPolicy: 'InitialOnly' });
      await w.deliverEvents();
      assert.ok(works('password-1'));
      assert.equal(w.ready(KIND, PLACE, 'PasswordSynced'), 'True PasswordInitialOnly');
      w.unwatched(() => w.kube.deleteSecret('team/s'));
      w.lldap.setPassword('alice', 'of-a-person');
      w.forget();
      assert.equal((await w.reconcile(KIND, PLACE)).ready, true);
      assert.deepEqual(w.calls, [`kube GET ${KIND} ${PLACE}`, 'lldap user alice']);
      assert.ok(works('of-a-person'));
    });

    it('with Ignore needs no Secret', async () => {
      w.user(PLACE, { ...MANAGED, passwordPolicy: 'Ignore' });
      await w.deliverEvents();
      assert.equal(w.ready(KIND, PLACE), 'True');
      assert.ok(!w.calls.some((call) => call.includes('Secret')));
    });

    it("waits for the installation's password key", async () => {
      w.kube.deleteSecret(`op/${PASSWORD_KEY_SECRET}`);
      w.secret('team/s', 'password-1');
      w.user(PLACE, MANAGED);
      await w.deliverEvents();
      assert.equal(w.ready(KIND, PLACE), 'False PasswordKeyMissing');
      assert.ok(!w.hasAccount('alice'));
      w.kube.putSecret({ metadata: { name: PASSWORD_KEY_SECRET, namespace: 'op' }, data: { key: Buffer.alloc(32, 1).toString('base64') } });
      await w.reconcile(KIND, PLACE);
      assert.ok(works('password-1'));
    });

    it('reuses the password key for five minutes', async () => {
      await made();
      const keyReads = async () => {
        w.forget();
        await w.reconcile(KIND, PLACE);
        return w.calls.filter((call) => call.includes(PASSWORD_KEY_SECRET)).length;
      };
      assert.equal(await keyReads(), 0);
      w.scheduler.now += 299_999;
      assert.equal(await keyReads(), 0);
      w.scheduler.now += 1;
      assert.equal(await keyReads(), 1);
      assert.equal(await keyReads(), 0);
    });

    it('comes last, so that the account is created while LDAP is down', async () => {
      w.secret('team/s', 'password-1');
      await w.deliverEvents();
      w.fail(/ldap setPassword/, 'refused');
      w.user(PLACE, MANAGED);
      await w.deliverEvents();
      assert.deepEqual([w.ready(KIND, PLACE), w.hasAccount('alice')], ['False LldapUnavailable', true]);
      assert.equal(w.status(KIND, PLACE).uuid, w.accountOf('alice').uuid);
      await w.pass(6);
      assert.deepEqual([w.ready(KIND, PLACE), works('password-1')], ['True', true]);
    });

    it('is not set after the deadline', async () => {
      await made();
      w.lldap.setPassword('alice', 'of-a-person');
      w.before(/ldap verify/, () => {
        w.scheduler.now += 30_001;
      });
      assert.equal((await w.reconcile(KIND, PLACE)).reason, 'DeadlineExceeded');
      assert.ok(works('of-a-person'));
    });

    it('is recorded without a date if the account vanished right after', async () => {
      w.secret('team/s', 'password-1');
      await w.deliverEvents();
      w.before(/ldap setPassword/, () => w.before(/lldap user alice/, () => w.byHand((directory) => directory.deleteUser('alice'))));
      w.user(PLACE, MANAGED);
      await w.deliverEvents();
      assert.ok(!('passwordModifiedAt' in w.status(KIND, PLACE)));
      assert.ok(w.status(KIND, PLACE).passwordHash);
    });
  });
});
