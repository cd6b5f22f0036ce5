import type { Clock } from '../platform/clock.ts';
import { type Http, type HttpAnswer, HttpError, type HttpRequest, parseJson } from '../platform/http.ts';
import type { Log } from '../telemetry/log.ts';
import { LldapError } from './api.ts';
import { answerError, networkError, statusError } from './errors.ts';
import { isClaims, isLoginAnswer, isRefreshAnswer } from './validate.ts';

export interface Credentials {
  username: string;
  password: string;
}

/** The operator's standing with lldap: one token that all calls of a process share. */
export interface Session {
  /** A token that is not about to expire. Throws {@link LldapError}. */
  token(): Promise<string>;
  /** A token other than this one, which lldap did not accept. Whoever asks meanwhile shares the one renewal. */
  renew(stale: string): Promise<string>;
  /** A new login with the credentials as they are now, whatever is remembered; answers the groups that lldap sees us in. */
  login(): Promise<string[]>;
  /** Whether the token says that its owner was no administrator when it was made. */
  lacksRights(token: string): boolean;
  /** Makes the next token come from a login: lldap did not accept this one, which it had just given. */
  forget(refused: string): void;
}

export interface SessionOptions {
  http: Http;
  /** Read anew for each login, so that rotated credentials are used without a restart. */
  credentials: () => Promise<Credentials>;
  log: Log;
  clock: Clock;
}

interface Token {
  jwt: string;
  /** By the monotonic clock: lldap's wall clock may differ from ours. */
  renewAt: number;
  /** Unknown where the token is of another shape. */
  groups: string[] | undefined;
}

/** A token is renewed when this part of its life is over. */
const RENEWAL_FRACTION = 0.9;
/** How long credentials that lldap refused are not tried again: each try costs lldap's only thread 65 ms. */
const REFUSED_CREDENTIALS_MS = 5000;

/**
 * Keeps the token. lldap's tokens live 24 h, but anyone can have ours blacklisted without authentication, so each may
 * die at any time. A refresh (2 ms) is preferred to a login (75 ms of lldap's only thread, and two rows in its
 * database). It never logs out: that would end the sessions of all other processes that use the account.
 */
export function createSession({ http, credentials, log, clock }: SessionOptions): Session {
  let token: Token | undefined;
  let refreshToken: string | undefined;
  let renewal: Promise<Token> | undefined;
  let refused: { credentials: Credentials; until: number } | undefined;

  const remember = (jwt: string): Token => {
    const claims = readClaims(jwt);
    const life = claims === undefined ? Number.POSITIVE_INFINITY : (claims.exp - claims.iat) * 1000;
    token = { jwt, renewAt: clock.monotonic() + life * RENEWAL_FRACTION, groups: claims?.groups };
    return token;
  };

  const login = async (): Promise<Token> => {
    const mine = await readCredentials(credentials);
    if (refused !== undefined && clock.monotonic() < refused.until && same(mine, refused.credentials)) throw statusError(401);
    const answer = await ask(http, {
      method: 'POST',
      url: '/auth/simple/login',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ username: mine.username, password: mine.password }),
    });
    if (answer.status === 401) refused = { credentials: mine, until: clock.monotonic() + REFUSED_CREDENTIALS_MS };
    if (answer.status !== 200) throw statusError(answer.status);
    const data = parseJson(answer.text);
    if (!isLoginAnswer(data)) throw answerError('no token came back from the login');
    refused = undefined;
    refreshToken = data.refreshToken;
    log.debug('logged in to lldap');
    return remember(data.token);
  };

  const refresh = async (current: string): Promise<Token | undefined> => {
    const answer = await ask(http, { method: 'GET', url: '/auth/refresh', headers: { 'refresh-token': current } });
    if (answer.status === 401) return undefined;
    if (answer.status !== 200) throw statusError(answer.status);
    const data = parseJson(answer.text);
    if (!isRefreshAnswer(data)) throw answerError('no token came back from the refresh');
    return remember(data.token);
  };

  const renewed = async (): Promise<Token> => {
    const fresh = refreshToken === undefined ? undefined : await refresh(refreshToken);
    if (fresh !== undefined) return fresh;
    refreshToken = undefined;
    return await login();
  };

  const share = async (work: () => Promise<Token>): Promise<Token> => {
    renewal ??= work().finally(() => {
      renewal = undefined;
    });
    return await renewal;
  };

  return {
    async token() {
      return token !== undefined && clock.monotonic() < token.renewAt ? token.jwt : (await share(renewed)).jwt;
    },
    async renew(stale) {
      return token !== undefined && token.jwt !== stale ? token.jwt : (await share(renewed)).jwt;
    },
    async login() {
      refused = undefined;
      return (await login()).groups ?? [];
    },
    lacksRights: (jwt) => token?.jwt === jwt && token.groups !== undefined && !token.groups.includes('lldap_admin'),
    forget(refusedToken) {
      if (token?.jwt !== refusedToken) return;
      token = undefined;
      refreshToken = undefined;
    },
  };
}

export async function readCredentials(credentials: () => Promise<Credentials>): Promise<Credentials> {
  try {
    return await credentials();
  } catch (error) {
    if (error instanceof LldapError) throw error;
    throw new LldapError('unauthenticated', error instanceof Error ? error.message : 'the credentials cannot be read');
  }
}

/** Throws {@link LldapError}. */
export async function ask(http: Http, request: HttpRequest): Promise<HttpAnswer> {
  try {
    return await http.request(request);
  } catch (error) {
    if (error instanceof HttpError) throw networkError(error);
    throw error;
  }
}

/** The claims of a token, read without checking its signature: only lldap can, and only lldap needs to. */
function readClaims(jwt: string): { exp: number; iat: number; groups: string[] } | undefined {
  const claims = parseJson(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString());
  return isClaims(claims) ? claims : undefined;
}

function same(a: Credentials, b: Credentials): boolean {
  return a.username === b.username && a.password === b.password;
}
