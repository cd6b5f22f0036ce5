import assert from 'node:assert/strict';
import { Attribute, BerWriter, Change, type Client, ResultCodeError } from 'ldapts';
import { createLldapPasswords } from '../../shared/lldap/passwords.ts';
import { createLog } from '../../shared/telemetry/log.ts';
import { newUser, rejects, useTarget, valuesOf } from './target.ts';

const PASSWORD_MODIFY = '1.3.6.1.4.1.4203.1.11.1';

describe("lldap's passwords", () => {
  const target = useTarget();
  const dn = async (id: string) => `uid=${id},ou=people,${await target.baseDn()}`;
  const code = async (promise: Promise<unknown>): Promise<[number, string]> => {
    const outcome = await promise.then(
      () => undefined,
      (error: unknown) => error,
    );
    if (outcome === undefined) return [0, ''];
    assert.ok(outcome instanceof ResultCodeError, String(outcome));
    return [outcome.code, outcome.message];
  };
  const modify = (client: Client, identity: string | undefined, password: string | Buffer | undefined) => {
    const writer = new BerWriter();
    writer.startSequence();
    if (identity !== undefined) writer.writeString(identity, 0x80);
    if (password !== undefined) writer.writeBuffer(Buffer.from(password), 0x82);
    writer.endSequence();
    return code(client.exop(PASSWORD_MODIFY, writer.buffer));
  };
  const bound = async (id = target.admin.username, password = target.admin.password) => {
    const client = target.ldap();
    await client.bind(await dn(id), password);
    return client;
  };

  it('need the base DN, which the root entry names to anybody', async () => {
    const { searchEntries } = await target.ldap().search('', { scope: 'base', filter: '(objectClass=*)' });
    assert.match(String(searchEntries[0]?.defaultNamingContext), /^[a-z]+=/);
    assert.ok([searchEntries[0]?.supportedExtension].flat().includes(PASSWORD_MODIFY));
  });

  it('are set by Password Modify, and hold at once for HTTP and LDAP', async () => {
    const id = await newUser(target);
    assert.equal((await target.login(id, 'first password')).status, 401);
    for (const password of ['first password', 'Zweites Paßwort 😀', 'x', 'a'.repeat(32_000)]) {
      await target.passwords.set(id.toUpperCase(), password);
      assert.equal((await target.login(id, password)).status, 200);
      assert.equal(await target.passwords.verify(id, password), true);
    }
    assert.equal(await target.passwords.verify(id, 'first password'), false);
  });

  it('move the date of their change each time, be they the same', async () => {
    const id = await newUser(target);
    const dates = new Set<string | undefined>();
    for (let i = 0; i < 3; i++) {
      dates.add(valuesOf(await target.client.user(id), 'password_modified_date')?.[0]);
      await target.passwords.set(id, 'the same password');
    }
    assert.equal(dates.size, 3);
    const user = await target.client.user(id);
    assert.ok(
      Number(new Date(valuesOf(user, 'password_modified_date')?.[0] ?? '')) >= Number(new Date(valuesOf(user, 'creation_date')?.[0] ?? '')),
    );
  });

  it('are accepted by lldap even when empty', async () => {
    const id = await newUser(target);
    assert.deepEqual(await modify(await bound(), await dn(id), ''), [0, '']);
    assert.equal((await target.login(id, '')).status, 200);
  });

  it('do not work for who has none, does not exist, or has another', async () => {
    const id = await newUser(target);
    assert.equal(await target.passwords.verify(id, 'any password'), false);
    assert.equal(await target.passwords.verify(target.unique(), 'any password'), false);
    const client = target.ldap();
    assert.equal((await code(client.bind(await dn(target.admin.username), 'wrong')))[0], 49);
  });

  it('cannot be set for who is not there', async () => {
    await rejects(target.passwords.set(target.unique(), 'some password'), 'notFound');
    const [result, message] = await modify(await bound(), await dn(target.unique()), 'some password');
    assert.equal(result, 1);
    assert.match(message, /EntityNotFound/);
  });

  it('cannot be set by who is not bound or lacks the rights', async () => {
    const [id, other] = [await newUser(target, { password: 'password of the user' }), await newUser(target)];
    assert.equal((await modify(target.ldap(), await dn(id), 'some password'))[0], 50);
    assert.equal((await modify(await bound(id, 'password of the user'), await dn(other), 'some password'))[0], 50);
    assert.equal((await modify(await bound(id, 'password of the user'), await dn(id), 'another password'))[0], 0);
    const passwords = createLldapPasswords({
      url: target.ldapUrl,
      credentials: async () => ({ username: id, password: 'another password' }),
      log: createLog('error'),
      timeoutMs: 60_000,
    });
    await rejects(passwords.set(other, 'some password'), 'unauthorized');
    await passwords.close();
  });

  it('cannot be set by us when our own is wrong', async () => {
    const passwords = createLldapPasswords({
      url: target.ldapUrl,
      credentials: async () => ({ username: target.admin.username, password: 'wrong' }),
      log: createLog('error'),
      timeoutMs: 60_000,
    });
    await rejects(passwords.set(target.admin.username, 'some password'), 'unauthenticated');
    await rejects(passwords.check(), 'unauthenticated');
    await passwords.close();
  });

  it('belong to names of exactly one form, in any case', async () => {
    const id = await newUser(target);
    const client = await bound();
    const base = await target.baseDn();
    for (const name of [
      `uid=${id},ou=people,${base}`,
      `UID=${id.toUpperCase()}, OU=People, ${base.toUpperCase()}`,
      `cn=${id},ou=people,${base}`,
    ]) {
      assert.deepEqual(await modify(client, name, 'some password'), [0, ''], name);
    }
    for (const name of [id, `cn=lldap_admin,ou=groups,${base}`, `uid=${id},ou=people,dc=elsewhere`]) {
      assert.equal((await modify(client, name, 'some password'))[0], 34, name);
    }
    assert.equal((await modify(client, undefined, 'some password'))[0], 19);
    assert.equal((await modify(client, await dn(id), undefined))[0], 19);
    assert.equal((await modify(client, await dn(id), Buffer.from([0xff, 0xfe])))[0], 2);
  });

  it('are set by a Modify of userPassword, too, as by other tools, and by nothing else that Modify can do', async () => {
    const [id, other] = [await newUser(target, { password: 'password of the user' }), await newUser(target)];
    const change = (type: string, values: string[], operation: 'add' | 'delete' | 'replace' = 'replace') =>
      new Change({ operation, modification: new Attribute({ type, values }) });
    const works = async (password: string) => (await target.login(id, password)).status === 200;
    const administrator = await bound();
    const modified = async (name: string, ...changes: Change[]) => (await code(administrator.modify(name, changes)))[0];
    assert.equal(await modified(await dn(id), change('USERPASSWORD', ['second password'])), 0);
    assert.equal(await works('second password'), true);
    for (const [result, ...changes] of [
      [21, change('userPassword', ['one', 'two'])],
      [21, change('userPassword', [])],
      [53, change('userPassword', ['x'], 'add')],
      [53, change('userPassword', ['x'], 'delete')],
      [53, change('mail', ['x@example.com'])],
    ] as const)
      assert.equal(await modified(await dn(id), ...changes), result);
    assert.equal(await works('second password'), true);
    // What comes before a change that is refused stays.
    assert.equal(await modified(await dn(id), change('userPassword', ['third password']), change('mail', ['x@example.com'])), 53);
    assert.equal(await works('third password'), true);
    assert.equal(await modified(await dn(target.unique()), change('userPassword', ['x'])), 1);
    assert.equal(await modified(`cn=lldap_admin,ou=groups,${await target.baseDn()}`, change('userPassword', ['x'])), 34);
    const user = await bound(id, 'third password');
    assert.equal((await code(user.modify(await dn(id), change('userPassword', ['own password']))))[0], 0);
    assert.equal((await code(user.modify(await dn(other), change('userPassword', ['x']))))[0], 50);
    assert.equal((await code(target.ldap().modify(await dn(id), change('userPassword', ['x']))))[0], 50);
    assert.equal(await works('own password'), true);
  });

  it('are refused for a bind under another form of name, and without one', async () => {
    const base = await target.baseDn();
    for (const name of ['admin', 'uid=admin', `uid=admin,ou=groups,${base}`, 'uid=admin,ou=people,dc=elsewhere']) {
      assert.equal((await code(target.ldap().bind(name, 'x')))[0], 64, name);
    }
    assert.equal((await code(target.ldap().bind('', '')))[0], 48);
  });

  it('leave a connection with the rights it had when a bind on it fails', async () => {
    const id = await newUser(target);
    const client = await bound();
    assert.equal((await code(client.bind(await dn(id), 'wrong')))[0], 49);
    assert.deepEqual(await modify(client, await dn(id), 'some password'), [0, '']);
  });

  it('cannot be sent after a StartTLS, which lldap has not', async () => {
    assert.equal((await code(target.ldap().exop('1.3.6.1.4.1.1466.20037')))[0], 53);
  });

  it('pass our check', async () => {
    await target.passwords.check();
  });

  it('can be set over LDAPS by who trusts the certificate, and by nobody else', async () => {
    // A real lldap may have none.
    if (target.ldapsUrl === undefined || target.ca === undefined) return;
    const options = { url: target.ldapsUrl, credentials: async () => target.admin, log: createLog('error'), timeoutMs: 60_000 };
    const id = await newUser(target);
    const passwords = createLldapPasswords({ ...options, ca: target.ca });
    await passwords.set(id, 'some password');
    assert.equal(await passwords.verify(id, 'some password'), true);
    await passwords.close();
    const { message } = await rejects(createLldapPasswords(options).set(id, 'some password'), 'unavailable');
    assert.match(message, /SELF_SIGNED/);
  });
});
