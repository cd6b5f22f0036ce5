import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { inspect } from 'node:util';
import { LldapError } from '../../../shared/lldap/api.ts';
import type { LdapOptions } from '../../../shared/lldap/ldap-login.ts';
import { createLldapPasswords } from '../../../shared/lldap/passwords.ts';
import { createLog } from '../../../shared/telemetry/log.ts';
import { type LocalLldap, startLldap } from '../../local/lldap/start.ts';
import { useTelemetry } from '../support/telemetry.ts';

describe('passwords over LDAP', () => {
  const recorded = useTelemetry();
  let lldap: LocalLldap;
  let log: string[];
  const closing: (() => Promise<void>)[] = [];

  beforeEach(async () => {
    log = [];
    lldap = await startLldap({ passwordCost: 'cheap' });
    for (const id of ['alice', 'bob'])
      await lldap.edit(`mutation { createUser(user: { id: "${id}", email: "${id}@example.com" }) { id } }`);
  });
  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
    await lldap.stop();
  });

  const connect = (options: Partial<LdapOptions> = {}) => {
    const passwords = createLldapPasswords({
      url: lldap.ldapUrl,
      credentials: async () => lldap.admin,
      log: createLog('debug', (line) => log.push(line)),
      timeoutMs: 60_000,
      ...options,
    });
    closing.push(passwords.close);
    return passwords;
  };
  /** Waits for an answer only so long, over a connection that is there already: getting it may take its time. */
  const connectHastily = async () => {
    const passwords = connect({ timeoutMs: 300 });
    const isSet = () =>
      passwords.set('bob', 'any password').then(
        () => true,
        () => false,
      );
    while (!(await isSet())) await new Promise((resolve) => setTimeout(resolve, 20));
    return passwords;
  };
  const asked = async () => (await lldap.asked()).map(({ operation, id }) => (id === undefined ? operation : `${operation} ${id}`));
  const failure = async (promise: Promise<unknown>): Promise<LldapError> => {
    const outcome = await promise.then(
      () => 'done',
      (error: unknown) => error,
    );
    assert.ok(outcome instanceof LldapError, inspect(outcome));
    return outcome;
  };

  it('are set over one connection, bound once, whose base DN is asked for once', async () => {
    const passwords = connect();
    for (const user of ['alice', 'bob', 'ALICE']) await passwords.set(user, `${user}-password`);
    assert.deepEqual(await asked(), ['search', 'bind admin', 'passwordModify alice', 'passwordModify bob', 'passwordModify alice']);
    assert.equal((await lldap.sockets()).ldap, 1);
    assert.deepEqual([await lldap.check('alice', 'ALICE-password'), await lldap.check('bob', 'bob-password')], [true, true]);
  });

  it('need no question for the base DN when it is given', async () => {
    await connect({ baseDn: ' DC=Example,DC=com ' }).set('alice', 'alice-password');
    assert.deepEqual(await asked(), ['bind admin', 'passwordModify alice']);
  });

  it('say that the base DN must be given if lldap names none', async () => {
    const nameless = await startLldap({ passwordCost: 'cheap', baseDn: '' });
    try {
      const { kind, message } = await failure(connect({ url: nameless.ldapUrl }).verify('alice', 'alice-password'));
      assert.deepEqual([kind, message], ['unavailable', "lldap's LDAP port names no base DN: give it as a setting"]);
    } finally {
      await nameless.close();
    }
  });

  it('are counted and traced by what is done, with its outcome', async () => {
    const passwords = connect();
    await lldap.setPassword('alice', 'alice-password');
    await passwords.set('bob', 'bob-password');
    await passwords.verify('alice', 'wrong');
    await failure(passwords.set('nobody', 'some password'));
    const calls = [
      ['ldap discover', 'ok'],
      ['ldap bind', 'ok'],
      ['ldap set', 'ok'],
      ['ldap verify', 'unauthenticated'],
      ['ldap set', 'notFound'],
    ];
    assert.deepEqual(
      recorded.counts,
      calls.map(([operation, outcome]) => ['lldap_operator.lldap.calls', { operation, outcome }]),
    );
    assert.deepEqual(
      recorded.spans,
      calls.map(([name]) => ({ name, kind: 'client', attributes: { 'peer.service': 'lldap' } })),
    );
  });

  it('leave no connection open after a verification, a check or a bind that failed', async () => {
    const passwords = connect({ baseDn: 'dc=example,dc=com' });
    await passwords.verify('alice', 'wrong');
    await passwords.check();
    await failure(connect({ credentials: async () => ({ username: 'admin', password: 'wrong' }) }).check());
    for (let i = 0; i < 3000 && (await lldap.connections()).ldap > 0; i++) await new Promise((resolve) => setTimeout(resolve, 10));
    assert.equal((await lldap.connections()).ldap, 0);
  });

  it('log who got one, and no word of it', async () => {
    await connect().set('alice', 'alice-password');
    const logged = log.map((line) => JSON.parse(line)).map(({ level, user }) => [level, user]);
    assert.deepEqual(logged, [
      ['debug', undefined],
      ['debug', 'alice'],
    ]);
  });

  it('share the connection between many at once', async () => {
    const passwords = connect({ baseDn: 'dc=example,dc=com' });
    await Promise.all(Array.from({ length: 20 }, (_, i) => passwords.set(i % 2 === 0 ? 'alice' : 'bob', `password ${i}`)));
    assert.equal((await lldap.sockets()).ldap, 1);
    assert.equal((await asked()).filter((one) => one.startsWith('bind')).length, 1);
  });

  it('are worked on two at a time, verifications too', async () => {
    const passwords = connect({ baseDn: 'dc=example,dc=com' });
    await passwords.set('alice', 'alice-password');
    await lldap.forget();
    await lldap.fault({ kind: 'slow', ms: 300 });
    const all = Promise.all([
      ...Array.from({ length: 4 }, () => passwords.verify('alice', 'alice-password')),
      passwords.set('bob', 'bob-password'),
    ]);
    let most = 0;
    let done = false;
    const watch = all.then(() => {
      done = true;
    });
    while (!done) {
      most = Math.max(most, (await lldap.sockets()).ldap - (await asked()).length);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await watch;
    assert.equal(most, 2);
  });

  it('leave no connection open when idle, and take a new one then', async () => {
    const passwords = connect();
    await passwords.set('alice', 'first password');
    const connections = async () => (await lldap.connections()).ldap;
    assert.equal(await connections(), 1);
    while ((await connections()) > 0) await new Promise((resolve) => setTimeout(resolve, 50));
    await passwords.set('alice', 'second password');
    assert.equal(await lldap.check('alice', 'second password'), true);
  });

  it('are set again after lldap was restarted', async () => {
    const passwords = connect();
    await passwords.set('alice', 'first password');
    await lldap.stop();
    assert.equal((await failure(passwords.set('alice', 'second password'))).kind, 'unavailable');
    assert.equal((await failure(passwords.set('alice', 'second password'))).kind, 'unavailable');
    await lldap.start();
    await passwords.set('alice', 'third password');
    assert.equal(await lldap.check('alice', 'third password'), true);
  });

  it('are verified on a connection of their own, by one bind', async () => {
    const passwords = connect({ baseDn: 'dc=example,dc=com' });
    await lldap.setPassword('alice', 'alice-password');
    assert.equal(await passwords.verify('alice', 'alice-password'), true);
    assert.equal(await passwords.verify('alice', 'wrong'), false);
    assert.equal(await passwords.verify('nobody', 'wrong'), false);
    assert.deepEqual(await asked(), ['bind alice', 'bind alice', 'bind nobody']);
    assert.equal((await lldap.sockets()).ldap, 3);
  });

  it('say that lldap is unavailable when the answer is missing', async () => {
    for (const kind of ['drop', 'hang'] as const) {
      const passwords = kind === 'hang' ? await connectHastily() : connect();
      await lldap.fault({ kind, only: { operation: 'passwordModify' }, times: 1 });
      const setting = await failure(passwords.set('alice', 'alice-password'));
      assert.equal(setting.kind, 'unavailable', kind);
      await lldap.heal();
      await lldap.fault({ kind, only: { operation: 'bind', id: 'alice' } });
      const verifying = await failure(passwords.verify('alice', 'alice-password'));
      assert.equal(verifying.kind, 'unavailable', kind);
      await lldap.heal();
    }
  });

  it('are not waited for without end when lldap hangs', async () => {
    const passwords = connect({ timeoutMs: 200 });
    await lldap.fault({ kind: 'hang' });
    const errors = await Promise.all(Array.from({ length: 30 }, () => failure(passwords.verify('alice', 'x'))));
    assert.ok(errors.every(({ kind }) => kind === 'unavailable'));
    assert.ok(errors.some(({ message }) => message === "lldap's LDAP port is too slow for the passwords that wait"));
    assert.ok((await lldap.sockets()).ldap <= 4);
  });

  it("need the operator's own to be right, which is read anew each time", async () => {
    let password = 'wrong';
    const passwords = connect({ credentials: async () => ({ username: 'admin', password }) });
    assert.equal((await failure(passwords.set('alice', 'alice-password'))).kind, 'unauthenticated');
    assert.equal((await failure(passwords.check())).kind, 'unauthenticated');
    password = lldap.admin.password;
    await passwords.check();
    await passwords.set('alice', 'alice-password');
    assert.equal(await lldap.check('alice', 'alice-password'), true);
  });

  it('cannot be set for who is not there, for names that LDAP cannot carry, or longer than lldap takes', async () => {
    const passwords = connect();
    assert.equal((await failure(passwords.set('nobody', 'some password'))).kind, 'notFound');
    const refusal = async (promise: Promise<unknown>) => {
      const { kind, message } = await failure(promise);
      assert.equal(kind, 'refused');
      return message;
    };
    const named = "lldap's LDAP port cannot be asked about a user id with a comma, = or \\";
    for (const id of ['a,b', 'a=b', 'a\\b']) assert.equal(await refusal(passwords.set(id, 'some password')), named);
    assert.equal(await refusal(passwords.set('alice', 'a'.repeat(32_001))), 'the password is longer than 32000 bytes');
    await passwords.set('alice', 'a'.repeat(32_000));
  });

  it('go over LDAPS when told to, to a server that is trusted', async () => {
    const passwords = connect({ url: lldap.ldapsUrl, ca: lldap.ca });
    await passwords.set('alice', 'alice-password');
    assert.equal(await passwords.verify('alice', 'alice-password'), true);
    await connect({ url: lldap.ldapsUrl.replace('ldaps', 'LDAPS'), ca: lldap.ca }).set('alice', 'alice-password');
    const error = await failure(connect({ url: lldap.ldapsUrl }).set('alice', 'another password'));
    assert.equal(error.kind, 'unavailable');
    assert.match(error.message, /SELF_SIGNED/);
    // One certificate serves both of lldap's addresses; it does not turn a plain one into TLS.
    await connect({ ca: lldap.ca }).set('alice', 'alice-password');
  });

  it('never show in errors or in the log', async () => {
    const said: string[] = [];
    for (const fault of [{ kind: 'text', text: 'hush-password' }, { kind: 'drop' }, { kind: 'hang' }] as const) {
      const passwords = fault.kind === 'hang' ? await connectHastily() : connect();
      await lldap.fault(fault);
      for (const error of await Promise.all([
        failure(passwords.set('alice', 'hush-password')),
        failure(passwords.verify('alice', 'hush-password')),
      ])) {
        said.push(inspect(error, { depth: 10, showHidden: true }), JSON.stringify(error), String(error.stack));
      }
      await lldap.heal();
    }
    await connect().set('alice', 'hush-password');
    assert.doesNotMatch([...said, ...log].join('\n'), /hush|admin-password/);
    assert.ok(log.length > 0);
  });

  it('never show in what ldapts prints for NODE_DEBUG', () => {
    const program = `
      import { startLldap } from './test/local/lldap/start.ts';
      import { createLldapPasswords } from './shared/lldap/passwords.ts';
      import { createLog } from './shared/telemetry/log.ts';
      const lldap = await startLldap({ passwordCost: 'cheap' });
      const passwords = createLldapPasswords({ url: lldap.ldapUrl, credentials: async () => lldap.admin, log: createLog('debug'), timeoutMs: 60_000 });
      await passwords.set('admin', 'hush-password');
      await passwords.close();
      await lldap.close();`;
    const { stderr, status } = spawnSync(process.execPath, ['--input-type=module', '--eval', program], {
      env: { ...process.env, NODE_DEBUG: 'ldapts' },
      encoding: 'utf8',
    });
    assert.equal(status, 0, stderr);
    assert.match(stderr, /Sending message/);
    const bytes = Buffer.from('hush-password').join(',');
    assert.ok(!stderr.includes('hush') && !stderr.includes(bytes) && !stderr.includes('admin-password'));
  });
});
