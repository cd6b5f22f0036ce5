import type { Client } from 'ldapts';
import type { Log } from '../telemetry/log.ts';
import { count, inSpan } from '../telemetry/telemetry.ts';
import { LldapError } from './api.ts';
import { ldapError } from './ldap-errors.ts';
import { foldId } from './names.ts';
import { type Credentials, readCredentials } from './session.ts';

export interface LdapOptions {
  /** `ldap://` or `ldaps://`; lldap has no StartTLS. */
  url: string;
  /** PEM certificates to trust for ldaps, instead of the system's. */
  ca?: string | undefined;
  /** Read from lldap, once per process, if not given. */
  baseDn?: string | undefined;
  /** Called for each bind. */
  credentials: () => Promise<Credentials>;
  /** Bounds connecting, each operation, and the wait for a turn. */
  timeoutMs?: number;
  log: Log;
}

/** The operator's login to lldap's LDAP port. */
export interface LdapLogin {
  /** A connection that connects and binds with its first operation. */
  connection(): Promise<Client>;
  /** Throws {@link LldapError}. */
  bindAsOperator(): Promise<Client>;
  baseDn(client: Client): Promise<string>;
  /** Throws {@link LldapError} `refused` for an id that has no DN. */
  dnOf(client: Client, userId: string): Promise<string>;
}

/** Nothing is loaded or connected before the first call. */
export function createLdapLogin({ url, ca, credentials, log, timeoutMs = 5000, ...options }: LdapOptions): LdapLogin {
  let known = options.baseDn === undefined ? undefined : foldId(options.baseDn.trim());

  // ldapts uses TLS if it gets any TLS options.
  const tls = /^ldaps:/i.test(url) && ca !== undefined ? { tlsOptions: { ca } } : {};
  const connection = async (): Promise<Client> => {
    const { Client } = await import('ldapts');
    return new Client({ url, timeout: timeoutMs, connectTimeout: timeoutMs, ...tls });
  };

  const baseDn = async (client: Client): Promise<string> => {
    known ??= foldId(await traced('discover', discover(client)));
    return known;
  };

  /** lldap splits names at `,` and `=` and has no escaping, and an upper-case letter in a DN can end the connection. */
  const dnOf = async (client: Client, userId: string): Promise<string> => {
    if (/[,=\\]/.test(userId)) throw new LldapError('refused', "lldap's LDAP port cannot be asked about a user id with a comma, = or \\");
    return `uid=${foldId(userId)},ou=people,${await baseDn(client)}`;
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

  return { connection, bindAsOperator, baseDn, dnOf };
}

/** Counts the operation. Throws {@link LldapError}. */
export async function traced<T>(doing: 'bind' | 'verify' | 'discover' | 'set' | 'search', work: Promise<T>): Promise<T> {
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
