import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { Secret } from '../kube/objects.ts';
import { type Failure, invalid, notReady } from './failure.ts';

/** The installation's key for password hashes, kept in a Secret. */
export interface PasswordKey {
  id: string;
  key: Buffer;
}

/** @throws Failure NotReady when the Secret is not there or holds no key */
export function readPasswordKey(secret: Secret | undefined): PasswordKey {
  const key = Buffer.from(secret?.data?.key ?? '', 'base64');
  if (key.length < 32)
    throw notReady(
      'PasswordKeyMissing',
      "The operator's Secret lldap-operator-password-key holds no key of 32 bytes; startup creates the Secret where there is none.",
    );
  return { id: createHash('sha256').update(key).digest('hex').slice(0, 8), key };
}

/**
 * What the status keeps of a password: `v1:<key id>:<HMAC-SHA-256>` over lldap's uuid and the password, so that
 * only the holder of the key can try passwords against it, and a user that was created anew has another hash.
 */
export function passwordHash({ id, key }: PasswordKey, uuid: string, password: string): string {
  return `v1:${id}:${createHmac('sha256', key).update(`${uuid}\0${password}`).digest('base64url')}`;
}

/** Whether a hash was made with this key; another's tells nothing of the password. */
export function isHashBy({ id }: PasswordKey, hash: string | undefined): boolean {
  return hash?.startsWith(`v1:${id}:`) ?? false;
}

export function sameHash(a: string | undefined, b: string): boolean {
  const [one, other] = [Buffer.from(a ?? ''), Buffer.from(b)];
  return one.length === other.length && timingSafeEqual(one, other);
}

/** A password from a Secret, or why there is none. */
export type PasswordState = { ok: true; password: string; watched: boolean } | { ok: false; why: Failure };

/** lldap drops the connection on 60,000 bytes and accepts everything below, the empty password too. */
const MAX_BYTES = 10_000;

/**
 * @param watched whether a change of the Secret is noticed at once
 * @param minLength in characters; lldap has no such rule
 */
export function passwordFrom(
  secret: Secret | undefined,
  ref: { name: string; key: string },
  watched: boolean,
  minLength: number,
): PasswordState {
  const no = (why: Failure): PasswordState => ({ ok: false, why });
  if (!secret) return no(notReady('SecretNotFound', `The Secret ${ref.name} does not exist; create it with the key ${ref.key}.`));
  // A key may have any name, also that of something that every object has.
  const data = Object.hasOwn(secret.data ?? {}, ref.key) ? secret.data?.[ref.key] : undefined;
  if (data === undefined)
    return no(notReady('SecretKeyMissing', `The Secret ${ref.name} has no key ${ref.key}; add it, or correct spec.passwordSecretRef.key.`));
  const password = decode(Buffer.from(data, 'base64'));
  const where = `The password in the Secret ${ref.name}, key ${ref.key},`;
  if (password === undefined)
    return no(invalid('RefusedByLldap', `${where} is not UTF-8 text or is longer than ${MAX_BYTES} bytes; change it.`));
  if ([...password].length < minLength)
    return no(invalid('PasswordTooShort', `${where} has fewer than ${minLength} characters; use a longer one.`));
  return { ok: true, password, watched };
}

function decode(bytes: Buffer): string | undefined {
  if (bytes.length > MAX_BYTES) return undefined;
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
