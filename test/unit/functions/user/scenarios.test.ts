import assert from 'node:assert/strict';
import { PASSWORD_KEY_SECRET } from '../../../../shared/constants.ts';
import type { LldapUserSpec } from '../../../../shared/kube/resources.ts';
import { createWorld, type TestWorld } from '../../support/world.ts';

const KIND = 'LldapUser';
const PLACE = 'team/alice';
const REF = { name: 's', key: 'password' };
const MANAGED: Partial<LldapUserSpec> = { passwordPolicy: 'Manage', passwordSecretRef: REF };
const LATE = { notBefore: '2026-03-01T11:00:00.000Z' };
const FORGOTTEN = undefined as never;

describe('users, from the resource to lldap', () => {
  let w: TestWorld;

  beforeEach(() => {
    w = createWorld();
  });

  const works = (password: string) => w.lldap.hasPassword('alice', password);
  /** A user with a password, in steady state. */
  async function made(over: Partial<LldapUserSpec> = {}): Promise<void> {
    w.secret('team/s', 'password-1');
    w.user(PLACE, { ...MANAGED, ...over });
    await w.deliverEvents();
    assert.equal(w.ready(KIND, PLACE), 'True', w.message(KIND, PLACE));
    w.forget();
  }
  /** The account is deleted and another of its name created. */
  function replace(mark: string | undefined, password?: string): void {
    w.byHand((directory) => {
      directory.deleteUser('alice');
      const attributes = mark === undefined ? [] : [{ name: 'k8s-owner', value: [mark] }];
      directory.createUser({ id: 'alice', email: 'alice@example.com', attributes });
    });
    if (password !== undefined) w.lldap.setPassword('alice', password);
  }
  /** Another tenant's resource for the same username, which says Conflict. */
  async function withContender(): Promise<string> {
    const { metadata } = w.user('other/alice');
    await w.deliverEvents();
    assert.equal(w.ready(KIND, 'other/alice'), 'False Conflict');
    w.forget();
    return `v2;main;other/alice;created;${metadata.uid}`;
  }

  describe('the account', () => {
    it('is created in one call with all that the spec says and with its mark, and the status says so', async () => {
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
      assert.deepEqual(w.events, [`Normal Reconciled ${PLACE}`]);
      assert.deepEqual(w.did, ['created the user']);
    });

    it('is left alone in steady state: a full reconcile reads it once, and wakes nobody', async () => {
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

    it('takes each change of the spec, and gets back what a person changed', async () => {
      await made({ displayName: 'Alice' });
      w.edit(KIND, PLACE, { email: 'new@example.com' });
      await w.deliverEvents();
      assert.deepEqual(w.did, ['updated the user']);
      assert.equal(w.accountOf('alice').email, 'new@example.com');
      w.byHand((directory) => directory.updateUser({ id: 'alice', displayName: 'Somebody' }));
      assert.deepEqual((await w.reconcile(KIND, PLACE)).did, ['updated the user']);
      assert.equal(w.accountOf('alice').displayName, 'Alice');
    });

    it('is created again with its password if somebody deleted it, and wakes the Ready memberships of the one before', async () => {
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

    it('whose name waits for others wakes them once it is Ready, and none that have what they need', async () => {
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

    it("an e-mail address that another has: the message names the holder and the holder's resource", async () => {
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

    it("the operator's own login is nobody's, and its resource goes without a trace", async () => {
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

    it('that is there already is adopted by privileged namespaces alone', async () => {
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

    it('whose creation was not answered is taken as ours, and nothing is created twice', async () => {
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

    it('wait for their definition, and the condition says which', async () => {
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

    it('that the spec no longer names leave no condition of dependencies behind', async () => {
      w.user(PLACE, desk);
      await w.deliverEvents();
      w.edit(KIND, PLACE, { attributes: [] });
      await w.deliverEvents();
      assert.deepEqual([w.ready(KIND, PLACE), w.ready(KIND, PLACE, 'DependenciesReady')], ['True', 'unset']);
    });
  });

  describe('the password', () => {
    it('is set from the Secret, once', async () => {
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

    it('follows the Secret at once', async () => {
      await made();
      w.secret('team/s', 'password-2');
      await w.deliverEvents();
      assert.deepEqual([works('password-1'), works('password-2')], [false, true]);
      assert.deepEqual(w.posted, [`reconcile ${KIND} ${PLACE}`]);
      assert.deepEqual(w.did, ['set the password']);
      assert.ok(!w.calls.includes('ldap verify alice'));
    });

    it('follows a Secret that changed unseen, when its user is looked at for another reason', async () => {
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

    it('of a user whose status lost its uuid is compared anew', async () => {
      await made();
      w.unwatched(() => w.forge(KIND, PLACE, { uuid: FORGOTTEN }));
      assert.equal((await w.reconcile(KIND, PLACE, LATE)).result, 'reconciled');
      assert.equal(w.status(KIND, PLACE).uuid, w.accountOf('alice').uuid);
    });

    it('that somebody else set is set back', async () => {
      await made();
      w.lldap.setPassword('alice', 'of-a-person');
      const report = await w.reconcile(KIND, PLACE);
      assert.deepEqual(report.did, ['checked the password, and set it if it did not work']);
      assert.deepEqual(w.asked, ['lldap user alice', 'ldap verify alice', 'ldap setPassword alice', 'lldap user alice']);
      assert.ok(works('password-1'));
      w.forget();
      await w.reconcile(KIND, PLACE);
      assert.deepEqual(w.asked, ['lldap user alice']);
    });

    it('that works already is only recorded, with the date from before the check', async () => {
      await made();
      const { passwordHash, passwordModifiedAt } = w.status(KIND, PLACE);
      w.unwatched(() => w.forge(KIND, PLACE, { passwordHash: FORGOTTEN, passwordModifiedAt: FORGOTTEN }));
      await w.reconcile(KIND, PLACE);
      assert.deepEqual(w.asked, ['lldap user alice', 'ldap verify alice']);
      assert.deepEqual([w.status(KIND, PLACE).passwordHash, w.status(KIND, PLACE).passwordModifiedAt], [passwordHash, passwordModifiedAt]);
    });

    it('is missing with its Secret: the account is created, the rest waits and is enqueued', async () => {
      w.user(PLACE, MANAGED);
      await w.deliverEvents();
      assert.ok(w.hasAccount('alice'));
      assert.deepEqual([w.ready(KIND, PLACE), w.ready(KIND, PLACE, 'PasswordSynced')], ['False SecretNotFound', 'False SecretNotFound']);
      w.secret('team/s', 'password-1');
      await w.deliverEvents();
      assert.deepEqual([w.ready(KIND, PLACE), works('password-1')], ['True', true]);
    });

    it('without a reference to a Secret says what to name', async () => {
      w.user(PLACE, { passwordPolicy: 'Manage' });
      await w.deliverEvents();
      assert.equal(w.ready(KIND, PLACE, 'Stalled'), 'True InvalidValue');
      assert.equal(
        w.message(KIND, PLACE),
        'spec.passwordSecretRef is missing. Name a Secret and its key, or set passwordPolicy to Ignore.',
      );
    });

    it('is unchecked while the account cannot be written', async () => {
      w.account('bob');
      w.secret('team/s', 'password-1');
      w.user(PLACE, { ...MANAGED, email: 'bob@example.com' });
      await w.deliverEvents();
      assert.equal(w.ready(KIND, PLACE), 'False EmailTaken');
      assert.equal(w.ready(KIND, PLACE, 'PasswordSynced'), 'Unknown PasswordUnchecked');
      assert.equal(w.message(KIND, PLACE, 'PasswordSynced'), 'The reconcile failed before it reached the password.');
    });

    it('with InitialOnly is set if none was ever set, and then the Secret is not even read', async () => {
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

    it('is left alone with Ignore: no Secret is read', async () => {
      w.user(PLACE, { ...MANAGED, passwordPolicy: 'Ignore' });
      await w.deliverEvents();
      assert.equal(w.ready(KIND, PLACE), 'True');
      assert.ok(!w.calls.some((call) => call.includes('Secret')));
    });

    it('waits for the key of the hashes, and says who makes it', async () => {
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

    it('reads the key of the hashes once in five minutes', async () => {
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

    it('comes last: LDAP that is down leaves the account created', async () => {
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

    it('of an account that vanished right after is recorded without a date', async () => {
      w.secret('team/s', 'password-1');
      await w.deliverEvents();
      w.before(/ldap setPassword/, () => w.before(/lldap user alice/, () => w.byHand((directory) => directory.deleteUser('alice'))));
      w.user(PLACE, MANAGED);
      await w.deliverEvents();
      assert.ok(!('passwordModifiedAt' in w.status(KIND, PLACE)));
      assert.ok(w.status(KIND, PLACE).passwordHash);
    });
  });

  describe('an account that another replaced during the reconcile', () => {
    it('an edit that reached it makes nobody Ready, and its owner is asked to look at it', async () => {
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

    it('a password that reached it logs nobody in', async () => {
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

    it('nor does one that reached an account without a mark', async () => {
      await made();
      w.unwatched(() => w.secret('team/s', 'password-2'));
      w.before(/ldap setPassword/, () => replace(undefined));
      assert.equal((await w.reconcile(KIND, PLACE)).reason, 'LldapUnavailable');
      assert.ok(!works('password-2'));
    });

    it('a password that reached our own new account stays', async () => {
      await made();
      const own = `v2;main;team/alice;created;${w.get(KIND, PLACE).metadata.uid}`;
      w.unwatched(() => w.secret('team/s', 'password-2'));
      w.before(/ldap setPassword/, () => replace(own));
      await w.reconcile(KIND, PLACE);
      assert.ok(works('password-2'));
    });
  });

  describe('an account that another replaced before, by a write whose answer was lost', () => {
    it("a password of ours that works there is disabled, its owner is asked, and we forget our own account's uuid", async () => {
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

    it('a password that a person gave it stays', async () => {
      await made();
      replace(await withContender(), 'of-the-other');
      await w.reconcile(KIND, PLACE);
      assert.ok(works('of-the-other'));
      assert.ok(!w.writes.includes('ldap setPassword alice'));
    });

    it('no password is tried with Ignore, or without the Secret', async () => {
      await made();
      const theirs = await withContender();
      w.unwatched(() => w.kube.deleteSecret('team/s'));
      replace(theirs, 'password-1');
      await w.reconcile(KIND, PLACE);
      assert.ok(!w.calls.includes('ldap verify alice'));
      assert.equal(w.status(KIND, PLACE).uuid, undefined);
      w = createWorld();
      w.secret('team/s', 'password-1');
      w.user(PLACE, { ...MANAGED, passwordPolicy: 'Ignore' });
      await w.deliverEvents();
      replace(await withContender(), 'password-1');
      await w.reconcile(KIND, PLACE);
      assert.ok(!w.calls.includes('ldap verify alice'));
      assert.equal(w.status(KIND, PLACE).uuid, undefined);
    });

    it('its owner is asked again if the broker did not accept the event', async () => {
      await made();
      replace(await withContender());
      w.fail(/broker post reconcile/, 'refused');
      await w.reconcile(KIND, PLACE);
      assert.ok(w.status(KIND, PLACE).uuid);
      await w.reconcile(KIND, PLACE);
      assert.ok(w.posted.includes(`reconcile ${KIND} other/alice`));
      assert.equal(w.status(KIND, PLACE).uuid, undefined);
    });

    it('one that we may take is ours again: nothing is handed over', async () => {
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

    it('our own account with the mark of another is not handed over: nothing replaced it', async () => {
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

  describe('deletion', () => {
    it('deletes the account that the operator created, and wakes the memberships and who else declares the name', async () => {
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

    it('leaves an adopted account, and one that is to be retained', async () => {
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

    it("completes when the account is gone, or another's", async () => {
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

    it('a resource that vanishes while its account is created leaves no account', async () => {
      w.before(/STATUS LldapUser/, () => w.kube.drop(w.get(KIND, PLACE)));
      w.user(PLACE);
      await w.deliverEvents();
      assert.ok(!w.hasAccount('alice'));
    });

    it('but no account that it did not create is deleted', async () => {
      w.before(/STATUS LldapUser/, () => {
        replace(`v2;main;team/alice;created;${w.get(KIND, PLACE).metadata.uid}`);
        w.kube.drop(w.get(KIND, PLACE));
      });
      w.user(PLACE);
      await w.deliverEvents();
      assert.ok(w.hasAccount('alice'));
    });

    it('nor does a rollback fail on an account that is gone', async () => {
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
    it('asks for each user of its namespace whose password is in it', async () => {
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

    it('is told again if the API server or the broker fails', async () => {
      await made();
      for (const call of [/LIST LldapUser spec/, /broker post reconcile/]) {
        w.fail(call, 'refused');
        const answer = await w.ask('user', { what: 'secret', namespace: 'team', name: 's', redelivered: 0 });
        assert.equal(answer.status, 503);
        assert.ok('message' in answer && answer.message.length > 0);
      }
      assert.deepEqual(await w.ask('user', { what: 'secret', namespace: 'team', name: 's', redelivered: 0 }), { status: 204 });
    });

    it('is nothing to an installation that serves another namespace', async () => {
      w = createWorld({ NAMESPACES: 'own' });
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

  it('a mark of another installation is respected, also by privileged namespaces', async () => {
    w.account('alice');
    replace('v2;blue;team/alice;created;uid-x');
    w.user('adm/alice');
    await w.deliverEvents();
    assert.equal(w.ready(KIND, 'adm/alice', 'Stalled'), 'True NotOurs');
    assert.match(w.message(KIND, 'adm/alice'), /belongs to the operator installation of instance "blue"/);
  });
});
