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

/** The operator's login to lldap: one token that all calls of a process share. */
export interface Session {
  /** Returns a token that is not about to expire. Throws {@link LldapError}. */
  token(): Promise<string>;
  /** Replaces a token that lldap refused. Concurrent callers share one renewal. */
  renew(stale: string): Promise<string>;
  /** Logs in with the current credentials, whatever is cached. Returns the groups of the operator's account. */
  login(): Promise<string[]>;
  /** Whether the account was no administrator when lldap issued the token. */
  lacksRights(token: string): boolean;
  /** Discards a new token that lldap refused at once, so that the next one comes from a login. */
  forget(refused: string): void;
}

export interface SessionOptions {
  http: Http;
  /** Called for each login, so that rotated credentials need no restart. */
  credentials: () => Promise<Credentials>;
  log: Log;
  clock: Clock;
}

interface Token {
  jwt: string;
  /** By the monotonic clock, since lldap's wall clock may differ. */
  renewAt: number;
  /** Undefined if the token has another shape. */
  groups: string[] | undefined;
}

/** Of a token's lifetime, after which it is renewed. */
const RENEWAL_FRACTION = 0.9;
/** For this long, credentials that lldap refused are not tried again: each login blocks lldap's only thread for 65 ms. */
const REFUSED_CREDENTIALS_MS = 5000;

/**
 * Keeps the token. lldap's tokens live 24 h, but anybody can have one blacklisted without authentication, so a token may
 * become invalid at any time. The session prefers a refresh (2 ms) to a login (75 ms of lldap's only thread, and two rows
 * in its database). It never logs out, since that would end the sessions of all other processes with the same account.
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

/** Reads the claims of a token without checking its signature: only lldap can do that, and only lldap must. */
function readClaims(jwt: string): { exp: number; iat: number; groups: string[] } | undefined {
  const claims = parseJson(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString());
  return isClaims(claims) ? claims : undefined;
}

function same(a: Credentials, b: Credentials): boolean {
  return a.username === b.username && a.password === b.password;
}
