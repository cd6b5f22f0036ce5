import { INSTANCE_LABEL } from '../../shared/constants.ts';
import type { ConditionDraft } from '../../shared/engine/conditions.ts';
import type { PlanInput } from '../../shared/engine/kind.ts';
import type { LldapAccount } from '../../shared/lldap/api.ts';
import { Failure } from '../../shared/rules/failure.ts';
import { attribute } from '../../shared/rules/owner-mark.ts';
import { isHashBy, type PasswordKey, type PasswordState, passwordHash, sameHash } from '../../shared/rules/password.ts';
import { REASONS } from '../../shared/rules/reasons.ts';

/** The Secret's password, and the key for its hash. */
export interface PasswordObserved {
  state: PasswordState;
  key: PasswordKey;
}

export interface PasswordStep {
  do: 'setPassword' | 'verifyOrSetPassword';
  password: string;
  key: PasswordKey;
  /** lldap's date of the current password, which may turn out to be the right one. */
  modifiedAt?: string;
}

/** Whether a password was ever set: until then, lldap reports the creation date. */
export function hasPassword(account: LldapAccount): boolean {
  return attribute(account, 'password_modified_date') !== attribute(account, 'creation_date');
}

/**
 * Plans the password with as few operations as possible: each occupies lldap's only thread for some 70 ms.
 *
 * 1. Policy Ignore: never. InitialOnly: only while no password was ever set.
 * 2. No password yet: set it.
 * 3. lldap's date is the recorded one and the hash matches the Secret: nothing.
 * 4. lldap's date is the recorded one and the hash differs: the Secret has changed, so set it.
 * 5. Otherwise somebody set a password, perhaps a reconcile that died before its status write, or the key has changed
 *    and the hash says nothing: set it only if the Secret's password does not work.
 */
export function planPassword(
  { resource, draft }: PlanInput<'LldapUser'>,
  { account, password }: { account?: LldapAccount; password?: PasswordObserved },
): { steps: PasswordStep[]; blockedBy?: Failure } {
  if (!password) return { steps: [] };
  const { state, key } = password;
  if (state instanceof Failure) return { steps: [], blockedBy: state };
  const set: PasswordStep = { do: 'setPassword', password: state.password, key };
  if (!account || !hasPassword(account)) return { steps: [set] };
  if (resource.spec.passwordPolicy === 'InitialOnly') return { steps: [] };
  const modifiedAt = attribute(account, 'password_modified_date');
  if (modifiedAt !== draft.passwordModifiedAt || !isHashBy(key, draft.passwordHash))
    return { steps: [{ ...set, do: 'verifyOrSetPassword', ...(modifiedAt && { modifiedAt }) }] };
  return { steps: sameHash(draft.passwordHash, passwordHash(key, account.uuid, state.password)) ? [] : [set] };
}

/** PasswordSynced after a reconcile that reached the password. */
export function passwordCondition(policy: string | undefined, password: PasswordObserved | undefined): ConditionDraft {
  if (policy === 'Ignore') return { status: 'Unknown', reason: 'PasswordNotManaged', message: REASONS.PasswordNotManaged };
  const state = password?.state;
  if (state instanceof Failure) return { status: 'False', reason: state.reason, message: state.message };
  // The same after every reconcile, or the next one would have to write it again.
  if (policy === 'InitialOnly' || !state) return { status: 'True', reason: 'PasswordInitialOnly', message: REASONS.PasswordInitialOnly };
  const hints = [
    // Editors and `echo` end files with one.
    /[\r\n]$/.test(state.password) && 'It ends with a line break, which is part of it: remove it from the Secret if it is not intended.',
    !state.isLabelled && `The Secret has no label ${INSTANCE_LABEL}, so the operator notices changes only at the next sweep.`,
  ];
  return { status: 'True', reason: 'PasswordSynced', message: [REASONS.PasswordSynced, ...hints.filter(Boolean)].join(' ') };
}
