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
      "The operator's Secret lldap-operator-password-key is missing or holds no key of 32 bytes. The startup function creates a missing one. Delete one without a key.",
    );
  return { id: createHash('sha256').update(key).digest('hex').slice(0, 8), key };
}

/**
 * The hash of a password in the status: `v1:<key id>:<HMAC-SHA-256>` over lldap's uuid and the password. Only the holder
 * of the key can try passwords against it, and a user that was created again has another hash.
 */
export function passwordHash({ id, key }: PasswordKey, uuid: string, password: string): string {
  return `v1:${id}:${createHmac('sha256', key).update(`${uuid}\0${password}`).digest('base64url')}`;
}

/** Whether a hash was made with this key; any other says nothing about the password. */
export function isHashBy({ id }: PasswordKey, hash: string | undefined): boolean {
  return hash?.startsWith(`v1:${id}:`) ?? false;
}

export function sameHash(a: string | undefined, b: string): boolean {
  const [one, other] = [Buffer.from(a ?? ''), Buffer.from(b)];
  return one.length === other.length && timingSafeEqual(one, other);
}

/** Whether the password follows the Secret: the other policies leave an existing password alone. */
export function isPasswordManaged({ passwordPolicy = 'Manage' }: LldapUserSpec): boolean {
  return passwordPolicy === 'Manage';
}

/** A password from a Secret, or why there is none. */
export type PasswordState = { password: string; isLabelled: boolean } | Failure;

/** lldap accepts every password of fewer than 60,000 bytes, even an empty one, and drops the connection on a longer one. */
const MAX_PASSWORD_BYTES = 10_000;

/**
 * Reads a password from its Secret. The operator notices changes of a Secret at once only if it has the instance label.
 *
 * @param policy its `passwordMinLength` counts characters; lldap has no such rule
 */
export function passwordFrom(
  secret: Secret | undefined,
  { namespace, name, key }: { namespace: string; name: string; key: string },
  { instance, passwordMinLength }: Pick<Policy, 'instance' | 'passwordMinLength'>,
): PasswordState {
  const labelHint = `With the label ${INSTANCE_LABEL}: ${instance}, the operator notices changes of the Secret at once.`;
  if (!secret)
    return notReady(
      'SecretNotFound',
      `The Secret ${name} does not exist in the namespace ${namespace}. Create it with the key ${key}. ${labelHint}`,
    );
  const isLabelled = secret.metadata.labels?.[INSTANCE_LABEL] === instance;
  const hint = isLabelled ? '' : ` ${labelHint}`;
  // A key may have the name of a property that every object has.
  const data = Object.hasOwn(secret.data ?? {}, key) ? secret.data?.[key] : undefined;
  if (data === undefined)
    return notReady(
      'SecretKeyMissing',
      `The Secret ${name} in the namespace ${namespace} has no key ${key}. Add it, or correct spec.passwordSecretRef.key.${hint}`,
    );
  const bytes = Buffer.from(data, 'base64');
  const where = `The password in the Secret ${name}, key ${key},`;
  if (bytes.length > MAX_PASSWORD_BYTES)
    return invalid('InvalidValue', `${where} is longer than ${MAX_PASSWORD_BYTES} bytes. Use a shorter one.${hint}`);
  if (!isUtf8(bytes)) return invalid('InvalidValue', `${where} is not UTF-8 text. Use one that is.${hint}`);
  const password = bytes.toString();
  if ([...password].length < passwordMinLength)
    return invalid('PasswordTooShort', `${where} has fewer than ${passwordMinLength} characters. Use a longer one.${hint}`);
  return { password, isLabelled };
}
