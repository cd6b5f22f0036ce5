import type { BerWriter } from 'ldapts';
import { systemClock } from '../platform/clock.ts';
import { createLimiter } from '../platform/concurrency.ts';
import { LldapError, type LldapPasswords } from './api.ts';
import { shareConnection } from './ldap-connection.ts';
import { createLdapLogin, type LdapOptions, traced } from './ldap-login.ts';

const PASSWORD_MODIFY = '1.3.6.1.4.1.4203.1.11.1';
/** Each operation blocks lldap's only thread for 70 ms. */
const MAX_CONCURRENT_OPERATIONS = 2;
/** lldap drops the connection at 60,000 bytes. */
const MAX_PASSWORD_BYTES = 32_000;

/** See {@link LldapPasswords}. Nothing is loaded or connected before the first call. */
export function createLldapPasswords(options: LdapOptions): LldapPasswords {
  const { timeoutMs = 5000, log } = options;
  const limit = createLimiter(MAX_CONCURRENT_OPERATIONS);
  const { connection, bindAsOperator, dnOf } = createLdapLogin(options);

  /** Runs the operation when a slot is free. Gives up if that takes too long: behind an lldap that hangs, callers would wait for minutes. */
  const withTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const asked = systemClock.monotonic();
    return limit(async () => {
      if (systemClock.monotonic() - asked > timeoutMs)
        throw new LldapError('unavailable', "lldap's LDAP port is too slow for the passwords that wait");
      return await work();
    });
  };

  const shared = shareConnection(bindAsOperator);

  return {
    async set(userId, password) {
      if (Buffer.byteLength(password) > MAX_PASSWORD_BYTES)
        throw new LldapError('refused', `the password is longer than ${MAX_PASSWORD_BYTES} bytes`);
      await withTurn(() =>
        shared.use(async (client) => {
          const { BerWriter } = await import('ldapts');
          const value = passwordModify(new BerWriter(), await dnOf(client, userId), password);
          await traced('set', client.exop(PASSWORD_MODIFY, value));
          log.debug('set a password in lldap', { user: userId });
        }),
      );
    },
    async verify(userId, password) {
      // After a failed bind, lldap keeps the connection's former identity. So each verification has a connection of its own.
      return await withTurn(async () => {
        const client = await connection();
        try {
          await traced('verify', client.bind(await dnOf(client, userId), password));
          return true;
        } catch (error) {
          if (error instanceof LldapError && error.kind === 'unauthenticated') return false;
          throw error;
        } finally {
          await client.unbind();
        }
      });
    },
    async check() {
      await withTurn(async () => await (await bindAsOperator()).unbind());
    },
    close: shared.close,
  };
}

/** RFC 3062: `SEQUENCE { userIdentity [0], newPasswd [2] }`. */
function passwordModify(writer: BerWriter, dn: string, password: string): Buffer {
  writer.startSequence();
  writer.writeString(dn, 0x80);
  writer.writeString(password, 0x82);
  writer.endSequence();
  // With NODE_DEBUG=ldapts, ldapts prints its requests as JSON.
  return Object.assign(Buffer.from(writer.buffer), { toJSON: () => 'hidden' });
}
