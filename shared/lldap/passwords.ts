import type { BerWriter, Client } from 'ldapts';
import { systemClock } from '../platform/clock.ts';
import { createLimiter } from '../platform/concurrency.ts';
import type { Log } from '../telemetry/log.ts';
import { count, inSpan } from '../telemetry/telemetry.ts';
import { LldapError, type LldapPasswords } from './api.ts';
import { shareConnection } from './ldap-connection.ts';
import { ldapError } from './ldap-errors.ts';
import { foldId } from './names.ts';
import { type Credentials, readCredentials } from './session.ts';

export interface LldapPasswordsOptions {
  /** `ldap://` or `ldaps://`; lldap has no StartTLS. */
  url: string;
  /** PEM certificates to trust for ldaps, instead of the system's. */
  ca?: string | undefined;
  /** Read from lldap, once per process, if not given. */
  baseDn?: string | undefined;
  /** Called for each bind. */
  credentials: () => Promise<Credentials>;
  /** Bounds the wait for a free slot, connecting, and each operation. */
  timeoutMs?: number;
  log: Log;
}

const PASSWORD_MODIFY = '1.3.6.1.4.1.4203.1.11.1';
/** Each operation blocks lldap's only thread for 70 ms. */
const MAX_CONCURRENT_OPERATIONS = 2;
/** lldap drops the connection at 60,000 bytes. */
const MAX_PASSWORD_BYTES = 32_000;

/** See {@link LldapPasswords}. Nothing is loaded or connected before the first call. */
export function createLldapPasswords(options: LldapPasswordsOptions): LldapPasswords {
  const { url, ca, credentials, log, timeoutMs = 5000 } = options;
  const limit = createLimiter(MAX_CONCURRENT_OPERATIONS);
  let baseDn = options.baseDn === undefined ? undefined : foldId(options.baseDn.trim());

  /** Runs the operation when a slot is free. Gives up if that takes too long: behind an lldap that hangs, callers would wait for minutes. */
  const withTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const asked = systemClock.monotonic();
    return limit(async () => {
      if (systemClock.monotonic() - asked > timeoutMs)
        throw new LldapError('unavailable', "lldap's LDAP port is too slow for the passwords that wait");
      return await work();
    });
  };

  // ldapts uses TLS if it gets any TLS options.
  const tls = /^ldaps:/i.test(url) && ca !== undefined ? { tlsOptions: { ca } } : {};
  const connection = async (): Promise<Client> => {
    const { Client } = await import('ldapts');
    return new Client({ url, timeout: timeoutMs, connectTimeout: timeoutMs, ...tls });
  };

  /** lldap splits names at `,` and `=` and has no escaping, and an upper-case letter in a DN can end the connection. */
  const dnOf = async (client: Client, userId: string): Promise<string> => {
    if (/[,=\\]/.test(userId)) throw new LldapError('refused', "lldap's LDAP port cannot be asked about a user id with a comma, = or \\");
    baseDn ??= foldId(await traced('discover', discover(client)));
    return `uid=${foldId(userId)},ou=people,${baseDn}`;
  };

  const bindAsOperator = async (): Promise<Client> => {
    const { username, password } = await readCredentials(credentials);
    const client = await connection();
    try {
      await traced('bind', client.bind(await dnOf(client, username), password));
    } catch (error) {
      await client.unbind();
      throw error;
    }
    log.debug('bound to lldap over LDAP');
    return client;
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

async function traced<T>(doing: 'bind' | 'verify' | 'discover' | 'set', work: Promise<T>): Promise<T> {
  return inSpan(`ldap ${doing}`, { kind: 'client', attributes: { 'peer.service': 'lldap' } }, async () => {
    try {
      const result = await work;
      count('lldap_operator.lldap.calls', { operation: `ldap ${doing}`, outcome: 'ok' });
      return result;
    } catch (error) {
      const failure = error instanceof LldapError ? error : ldapError(error);
      count('lldap_operator.lldap.calls', { operation: `ldap ${doing}`, outcome: failure.kind });
      throw failure;
    }
  });
}

/** Reads the base DN from the root entry, which needs no bind. */
async function discover(client: Client): Promise<string> {
  const { searchEntries } = await client.search('', { scope: 'base', filter: '(objectClass=*)', attributes: ['defaultNamingContext'] });
  const found = searchEntries[0]?.defaultNamingContext;
  if (typeof found !== 'string' || found === '')
    throw new LldapError('unavailable', "lldap's LDAP port names no base DN: give it as a setting");
  return found;
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
