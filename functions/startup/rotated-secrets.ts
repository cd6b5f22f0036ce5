import { randomBytes } from 'node:crypto';
import { PASSWORD_KEY_SECRET } from '../../shared/constants.ts';
import type { Kube } from '../../shared/kube/client.ts';
import type { Secret } from '../../shared/kube/objects.ts';
import type { LldapUser } from '../../shared/kube/resources.ts';
import type { Io } from '../../shared/lookup/io.ts';
import { Failure } from '../../shared/rules/failure.ts';
import { isPasswordManaged, type PasswordKey, passwordFrom, passwordHash, readPasswordKey, sameHash } from '../../shared/rules/password.ts';
import type { Policy } from '../../shared/rules/policy.ts';
import { isDeleting, isReady } from '../../shared/rules/predicates.ts';
import { refOf } from '../../shared/rules/resource-names.ts';

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
 * The settled users whose Secret holds another password than the one that was set: labelled Secrets are read page by
 * page, the others that users name one by one, at a bounded rate. No Secret is kept: large ones may be anybody's.
 */
export async function findRotated(io: Io, policy: Policy, key: PasswordKey, users: readonly LldapUser[]): Promise<LldapUser[]> {
  const managed = users.filter((u) => isPasswordManaged(u.spec) && isReady(u) && !u.spec.suspend && !isDeleting(u));
  const usersOf = Map.groupBy(
    managed.filter((u) => u.spec.passwordSecretRef !== undefined && u.status?.uuid !== undefined),
    (u) => `${u.metadata.namespace}/${u.spec.passwordSecretRef?.name}`,
  );
  if (usersOf.size === 0) return [];
  const rotatedBy = (secret: Secret | undefined, named: readonly LldapUser[]): LldapUser[] =>
    named.filter((user) => isRotated(user, secret, key, policy));
  const looked = await io.lookup.scanSecrets((secret) => {
    const id = refOf(secret);
    const named = usersOf.get(id);
    return named && { id, rotated: rotatedBy(secret, named) };
  });
  const rotated: LldapUser[] = [];
  for (const labelled of looked) {
    if (!labelled) continue;
    rotated.push(...labelled.rotated);
    usersOf.delete(labelled.id);
  }
  for (const [id, named] of usersOf) {
    const [namespace = '', name = ''] = id.split('/');
    rotated.push(...rotatedBy(await io.kube.secret(namespace, name), named));
    await io.clock.sleep(READ_EVERY_MS);
  }
  return rotated;
}

function isRotated({ metadata, spec, status }: LldapUser, secret: Secret | undefined, key: PasswordKey, policy: Policy): boolean {
  const { passwordSecretRef: ref } = spec;
  if (!ref || status?.uuid === undefined) return false;
  const state = passwordFrom(secret, { ...ref, namespace: metadata.namespace }, policy);
  return state instanceof Failure || !sameHash(status.passwordHash, passwordHash(key, status.uuid, state.password));
}
