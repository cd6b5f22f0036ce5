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
import { sampleFairly } from './unsettled.ts';

/** Reads the installation's key for password hashes, or creates it. Two concurrent runs get the same key, since only one create succeeds. */
export async function keepPasswordKey(kube: Kube, instance: string): Promise<PasswordKey> {
  const namespace = await kube.namespace();
  const existing = await kube.secret(namespace, PASSWORD_KEY_SECRET);
  if (existing) return readPasswordKey(existing);
  const labels = { 'app.kubernetes.io/part-of': 'lldap-operator', 'app.kubernetes.io/instance': instance };
  const created = await kube.createSecret(namespace, PASSWORD_KEY_SECRET, labels, { key: randomBytes(32).toString('base64') });
  return readPasswordKey(created ?? (await kube.secret(namespace, PASSWORD_KEY_SECRET)));
}

/** They add at most 20 s to a sweep. */
const MAX_UNLABELLED_PER_SWEEP = 1_000;
/** Between two reads of Secrets without the instance's label. */
const SECRET_READ_INTERVAL_MS = 20;

/**
 * The Ready users whose Secret holds another password than the operator has set. Reads labelled Secrets page by page, and
 * the other Secrets that users name one by one at a bounded rate. Keeps no Secret in memory, since tenants may create large ones.
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
  const labelled = await io.lookup.scanSecrets((secret) => {
    const id = refOf(secret);
    const named = usersOf.get(id);
    return named && { id, rotated: rotatedBy(secret, named) };
  });
  const rotated: LldapUser[] = [];
  for (const compared of labelled) {
    if (!compared) continue;
    rotated.push(...compared.rotated);
    usersOf.delete(compared.id);
  }
  const named = [...usersOf.values()].flatMap(([first]) => first ?? []);
  for (const { metadata, spec } of sampleFairly(named, MAX_UNLABELLED_PER_SWEEP, io.random)) {
    const name = spec.passwordSecretRef?.name ?? '';
    const users = usersOf.get(`${metadata.namespace}/${name}`) ?? [];
    rotated.push(...rotatedBy(await io.kube.secret(metadata.namespace, name), users));
    await io.clock.sleep(SECRET_READ_INTERVAL_MS);
  }
  return rotated;
}

function isRotated({ metadata, spec, status }: LldapUser, secret: Secret | undefined, key: PasswordKey, policy: Policy): boolean {
  const { passwordSecretRef: ref } = spec;
  if (!ref || status?.uuid === undefined) return false;
  const state = passwordFrom(secret, { ...ref, namespace: metadata.namespace }, policy);
  return state instanceof Failure || !sameHash(status.passwordHash, passwordHash(key, status.uuid, state.password));
}
