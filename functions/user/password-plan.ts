import { INSTANCE_LABEL } from '../../shared/constants.ts';
import type { Finding } from '../../shared/engine/conditions.ts';
import type { PlanInput } from '../../shared/engine/kind.ts';
import type { LldapAccount } from '../../shared/lldap/api.ts';
import { Failure } from '../../shared/rules/failure.ts';
import { attribute } from '../../shared/rules/owner-mark.ts';
import { isHashBy, type PasswordKey, type PasswordState, passwordHash, sameHash } from '../../shared/rules/password.ts';
import { REASONS } from '../../shared/rules/reasons.ts';

/** The Secret's password, and the key of its hash. */
export interface PasswordObserved {
  state: PasswordState;
  key: PasswordKey;
}

export interface PasswordStep {
  do: 'setPassword' | 'verifyOrSetPassword';
  password: string;
  key: PasswordKey;
  /** lldap's date before the step: that of the password that may turn out to be the right one. */
  modifiedAt?: string;
}

/** Whether a password was ever set: lldap then moves this date off the creation's. */
export function everSet(account: LldapAccount): boolean {
  return attribute(account, 'password_modified_date') !== attribute(account, 'creation_date');
}

/**
 * Password by policy, at no more operations than needed; each costs lldap's only thread some 70 ms.
 *
 * 1. Ignore: never. InitialOnly: only while none was ever set.
 * 2. Never set: set it.
 * 3. The status's hash is the Secret's, and lldap's date is the one that we recorded: nothing.
 * 4. lldap's date is the one that we recorded: the Secret has changed, so set it.
 * 5. Otherwise somebody set it, perhaps a pass of ours that died before its status, or the hashes' key is another
 *    and they tell nothing: set it only if the Secret's does not work.
 */
export function decidePassword(
  { resource, draft }: PlanInput<'LldapUser'>,
  { account, password }: { account?: LldapAccount; password?: PasswordObserved },
): { steps: PasswordStep[]; unmet?: Failure } {
  if (!password) return { steps: [] };
  const { state, key } = password;
  if (state instanceof Failure) return { steps: [], unmet: state };
  const set: PasswordStep = { do: 'setPassword', password: state.password, key };
  if (!account || !everSet(account)) return { steps: [set] };
  if (resource.spec.passwordPolicy === 'InitialOnly') return { steps: [] };
  const modifiedAt = attribute(account, 'password_modified_date');
  if (modifiedAt !== draft.passwordModifiedAt || !isHashBy(key, draft.passwordHash))
    return { steps: [{ ...set, do: 'verifyOrSetPassword', ...(modifiedAt && { modifiedAt }) }] };
  return { steps: sameHash(draft.passwordHash, passwordHash(key, account.uuid, state.password)) ? [] : [set] };
}

/** What PasswordSynced says at the end of a pass that came to the password. */
export function passwordFinding(policy: string | undefined, password: PasswordObserved | undefined): Finding {
  if (policy === 'Ignore')
    return { status: 'Unknown', reason: 'PasswordNotManaged', message: 'passwordPolicy is Ignore: the password is left to others.' };
  const state = password?.state;
  if (state instanceof Failure) return { status: 'False', reason: state.reason, message: state.message };
  // The pass that sets it says the same as all that come later, or the next one would have something to write.
  if (policy === 'InitialOnly' || !state) return { status: 'True', reason: 'PasswordInitialOnly', message: REASONS.PasswordInitialOnly };
  const hints = [
    // As files have it that an editor or `echo` made.
    /[\r\n]$/.test(state.password) && 'It ends with a line break, which counts: take it out of the Secret if it is not meant.',
    !state.watched && `The Secret has no label ${INSTANCE_LABEL}, so a change of it is noticed by the next sweep, not at once.`,
  ];
  return { status: 'True', reason: 'PasswordSynced', message: ["lldap has the Secret's password.", ...hints.filter(Boolean)].join(' ') };
}
