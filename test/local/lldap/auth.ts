import { argon2Sync, createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { fold } from './definitions.ts';
import type { Directory } from './directory.ts';
import type { PasswordHash } from './state.ts';
import { timestamp } from './values.ts';

/** `real`: one run of Argon2 over 50 MiB, about 70 ms in which the whole server does nothing else. */
export type PasswordCost = 'real' | 'cheap';

/** Who asks, by what a token or an LDAP bind once said: neither notices a later promotion, demotion or deletion. */
export interface Caller {
  id: string;
  /** Display names. */
  groups: string[];
}

export type Role = 'admin' | 'passwordManager' | 'reader' | 'regular';

export function roleOf({ groups }: Caller): Role {
  if (groups.includes('lldap_admin')) return 'admin';
  if (groups.includes('lldap_password_manager')) return 'passwordManager';
  return groups.includes('lldap_strict_readonly') ? 'reader' : 'regular';
}

const LIFE_SECONDS = 86_400;

/** Passwords, tokens and refresh tokens. */
export class Auth {
  readonly #directory: Directory;
  readonly #cost: PasswordCost;
  readonly #secret = randomBytes(32);

  constructor(directory: Directory, cost: PasswordCost) {
    this.#directory = directory;
    this.#cost = cost;
  }

  setPassword(userId: string, password: Uint8Array): void {
    const user = this.#directory.user(userId);
    const salt = randomBytes(16);
    user.password = { salt, hash: this.#hash(password, salt) };
    user.passwordModifiedAt = timestamp();
  }

  /** Costs nothing for who does not exist or has no password. */
  caller(userId: string, password: Uint8Array): Caller | undefined {
    const user = this.#directory.state.users.get(fold(userId));
    if (user?.password === undefined || !this.#matches(password, user.password)) return undefined;
    return this.#callerOf(user.id);
  }

  login(userId: string, password: Uint8Array): { token: string; refreshToken: string } | undefined {
    const caller = this.caller(userId, password);
    if (caller === undefined) return undefined;
    const refreshToken = `${randomBytes(75).toString('base64url')}+${caller.id}`;
    this.#directory.state.refreshTokens.set(refreshToken, caller.id);
    return { token: this.#issue(caller), refreshToken };
  }

  /** The token's groups are those of now. */
  refresh(refreshToken: string): string | undefined {
    const userId = this.#directory.state.refreshTokens.get(refreshToken);
    return userId === undefined ? undefined : this.#issue(this.#callerOf(userId));
  }

  /** Ends all tokens of the user whom the refresh token's end names, known or not: lldap checks no more than that. */
  logout(refreshToken: string): void {
    const { refreshTokens, tokens, blacklist } = this.#directory.state;
    refreshTokens.delete(refreshToken);
    const userId = refreshToken.slice(refreshToken.indexOf('+') + 1);
    for (const [id, owner] of tokens) if (owner === userId) blacklist.add(id);
  }

  /** The caller whom a token names, or the text of lldap's 401. */
  verify(token: string): Caller | string {
    const [header = '', payload = '', signature = ''] = token.split('.');
    const expected = this.#sign(`${header}.${payload}`);
    if (!isEqual(Buffer.from(signature, 'base64url'), expected)) return 'Invalid JWT';
    const claims: { exp: number; jti: string; user: string; groups: string[] } = JSON.parse(Buffer.from(payload, 'base64url').toString());
    if (claims.exp * 1000 < Date.now()) return 'Expired JWT';
    if (this.#directory.state.blacklist.has(claims.jti)) return 'JWT was logged out';
    return { id: claims.user, groups: claims.groups };
  }

  #issue(caller: Caller): string {
    const iat = Math.floor(Date.now() / 1000);
    const jti = randomBytes(16).toString('hex');
    this.#directory.state.tokens.set(jti, caller.id);
    const text = [{ alg: 'HS512' }, { exp: iat + LIFE_SECONDS, iat, jti, user: caller.id, groups: caller.groups }]
      .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
      .join('.');
    return `${text}.${this.#sign(text).toString('base64url')}`;
  }

  #callerOf(userId: string): Caller {
    return { id: userId, groups: this.#directory.groupsOf(userId).map(({ displayName }) => displayName) };
  }

  #sign(text: string): Buffer {
    return createHmac('sha512', this.#secret).update(text).digest();
  }

  #matches(password: Uint8Array, { salt, hash }: PasswordHash): boolean {
    return isEqual(this.#hash(password, salt), hash);
  }

  #hash(password: Uint8Array, salt: Uint8Array): Buffer {
    if (this.#cost === 'cheap') return createHash('sha256').update(salt).update(password).digest();
    return argon2Sync('argon2id', { message: password, nonce: salt, parallelism: 1, tagLength: 32, memory: 50 * 1024, passes: 1 });
  }
}

function isEqual(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}
