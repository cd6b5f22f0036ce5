import { isUtf8 } from 'node:buffer';
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { INSTANCE_LABEL } from '../constants.ts';
import type { Secret } from '../kube/objects.ts';
import type { LldapUserSpec } from '../kube/resources.ts';
import { type Failure, invalid, notReady } from './failure.ts';
import type { Policy } from './policy.ts';

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

/** Whether the password follows the Secret; the other policies leave one that was set to others. */
export function isPasswordManaged({ passwordPolicy = 'Manage' }: LldapUserSpec): boolean {
  return passwordPolicy === 'Manage';
}

/** A password from a Secret, or why there is none. */
export type PasswordState = { password: string; watched: boolean } | Failure;

/** lldap drops the connection on 60,000 bytes and accepts everything below, the empty password too. */
const MAX_BYTES = 10_000;

/**
 * Whether a change of the Secret is noticed at once stands in its label, which the source of Secrets selects on.
 *
 * @param policy its `passwordMinLength` counts characters; lldap has no such rule
 */
export function passwordFrom(
  secret: Secret | undefined,
  { namespace, name, key }: { namespace: string; name: string; key: string },
  { instance, passwordMinLength }: Pick<Policy, 'instance' | 'passwordMinLength'>,
): PasswordState {
  if (!secret)
    return notReady(
      'SecretNotFound',
      `The Secret ${name} does not exist in the namespace ${namespace}; create it there with the key ${key}, and with the label ${INSTANCE_LABEL}: ${instance} so that it is noticed at once.`,
    );
  // A key may have any name, also that of something that every object has.
  const data = Object.hasOwn(secret.data ?? {}, key) ? secret.data?.[key] : undefined;
  if (data === undefined)
    return notReady(
      'SecretKeyMissing',
      `The Secret ${name} in the namespace ${namespace} has no key ${key}; add it, or correct spec.passwordSecretRef.key.`,
    );
  const bytes = Buffer.from(data, 'base64');
  const where = `The password in the Secret ${name}, key ${key},`;
  if (bytes.length > MAX_BYTES) return invalid('InvalidValue', `${where} is longer than ${MAX_BYTES} bytes; use a shorter one.`);
  if (!isUtf8(bytes)) return invalid('InvalidValue', `${where} is not UTF-8 text; use one that is.`);
  const password = bytes.toString();
  if ([...password].length < passwordMinLength)
    return invalid('PasswordTooShort', `${where} has fewer than ${passwordMinLength} characters; use a longer one.`);
  return { password, watched: secret.metadata.labels?.[INSTANCE_LABEL] === instance };
}
