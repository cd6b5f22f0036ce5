import { randomBytes } from 'node:crypto';
import { PASSWORD_KEY_SECRET } from '../../shared/constants.ts';
import type { Kube } from '../../shared/kube/client.ts';
import type { LldapUser } from '../../shared/kube/resources.ts';
import type { Io } from '../../shared/lookup/io.ts';
import { Failure } from '../../shared/rules/failure.ts';
import { isPasswordManaged, type PasswordKey, passwordFrom, passwordHash, readPasswordKey, sameHash } from '../../shared/rules/password.ts';
import type { Policy } from '../../shared/rules/policy.ts';
import { isDeleting, isReady } from '../../shared/rules/predicates.ts';

/** The installation's key for password hashes; made once, by create, so that two runs never differ. */
export async function keepPasswordKey(kube: Kube, instance: string): Promise<PasswordKey> {
  const namespace = await kube.namespace();
  const existing = await kube.secret(namespace, PASSWORD_KEY_SECRET);
  if (existing) return readPasswordKey(existing);
  const labels = { 'app.kubernetes.io/part-of': 'lldap-operator', 'app.kubernetes.io/instance': instance };
  const created = await kube.createSecret(namespace, PASSWORD_KEY_SECRET, labels, { key: randomBytes(32).toString('base64') });
  return readPasswordKey(created ?? (await kube.secret(namespace, PASSWORD_KEY_SECRET)));
}

/** Milliseconds between two reads of Secrets that carry no label of ours. */
const READ_EVERY_MS = 20;

/**
 * The settled users whose Secret holds another password than the one that was set: labelled Secrets are read in
 * one list, the others that users name one by one, at a bounded rate.
 */
export async function findRotated(io: Io, policy: Policy, key: PasswordKey, users: readonly LldapUser[]): Promise<LldapUser[]> {
  const managed = users.filter((u) => isPasswordManaged(u.spec) && isReady(u) && !u.spec.suspend && !isDeleting(u));
  if (managed.length === 0) return [];
  const secrets = new Map((await io.lookup.secrets()).map((s) => [`${s.metadata.namespace}/${s.metadata.name}`, s]));
  const rotated: LldapUser[] = [];
  for (const user of managed) {
    const ref = user.spec.passwordSecretRef;
    const uuid = user.status?.uuid;
    if (!ref || uuid === undefined) continue;
    const id = `${user.metadata.namespace}/${ref.name}`;
    if (!secrets.has(id)) {
      const secret = await io.kube.secret(user.metadata.namespace, ref.name);
      if (secret) secrets.set(id, secret);
      await io.clock.sleep(READ_EVERY_MS);
    }
    const state = passwordFrom(secrets.get(id), { ...ref, namespace: user.metadata.namespace }, policy);
    if (state instanceof Failure || !sameHash(user.status?.passwordHash, passwordHash(key, uuid, state.password))) rotated.push(user);
  }
  return rotated;
}
