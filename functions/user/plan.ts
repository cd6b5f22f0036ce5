import type { StatusOf } from '../../shared/engine/context.ts';
import type { Plan, PlanInput } from '../../shared/engine/kind.ts';
import type { AttributeValue, LldapUser, LldapUserSpec } from '../../shared/kube/resources.ts';
import type { AccountChange, LldapAccount } from '../../shared/lldap/api.ts';
import { foldId } from '../../shared/lldap/names.ts';
import { checkAttributes, type Definitions, diffAttributes } from '../../shared/rules/attributes.ts';
import { Failure, taken } from '../../shared/rules/failure.ts';
import { attribute } from '../../shared/rules/owner-mark.ts';
import { authorize, markFor, type Owner, refusePrivilegedAccount } from '../../shared/rules/ownership.ts';
import { isObserved } from '../../shared/rules/predicates.ts';
import { type PasswordObserved, type PasswordStep, passwordCondition, planPassword } from './password-plan.ts';

/** What was read for one user. */
export interface Observed {
  account?: LldapAccount;
  owner?: Owner;
  definitions: Definitions;
  /** The account with the e-mail address that the spec asks for; looked up only after lldap has refused the address. */
  emailHolder?: { id: string; owner: string };
  /** Absent when the policy sets no password. */
  password?: PasswordObserved;
}

export type Step = { do: 'create' } | { do: 'update'; change: AccountChange } | PasswordStep | { do: 'delete' };

/**
 * 1. An existing account is changed only where {@link authorize} allows it and only where it differs.
 * 2. Values must fit their definitions before anything is written.
 * 3. A missing account is created, with its mark.
 * 4. Only a privileged namespace may change a member of a built-in group, or compare itself with one that is not its own.
 * 5. The password comes last, so that its failure prevents nothing else.
 */
export function plan(input: PlanInput<'LldapUser'>, observed: Observed): Plan<Step, StatusOf<'LldapUser'>> {
  const { resource, policy } = input;
  const { account, owner } = observed;
  const access = account && owner && authorize(owner, `user ${account.id}`, resource.metadata.namespace, resource.kind, policy);
  if (access instanceof Failure) return { rejected: access };
  const unacceptable = checkAttributes(resource.spec.attributes, observed.definitions) ?? emailTaken(resource, observed);
  const conditions = { PasswordSynced: passwordCondition(resource.spec.passwordPolicy, observed.password) };
  const rest = { ...planPassword(input, observed), conditions };
  if (!account || !access) return unacceptable ? { rejected: unacceptable } : { ...rest, steps: [{ do: 'create' }, ...rest.steps] };

  const mark = access.marked || isObserved(resource) ? undefined : markFor(resource, access.origin, policy, account.uuid);
  const change = differences(resource, account, observed.definitions, mark);
  const update: Step[] = change ? [{ do: 'update', change }] : [];
  const steps = [...update, ...rest.steps];
  const forbidden = (steps.length > 0 || !access.marked) && refusePrivilegedAccount(account, resource.metadata.namespace, policy);
  const rejected = forbidden || unacceptable;
  if (rejected) return { rejected };
  return { ...rest, steps, statusPatch: { uuid: account.uuid, origin: access.origin } };
}

/** Deletes only our own account: one that the operator created, or any with deletionPolicy Delete. */
export function planDeletion({ resource, policy }: PlanInput<'LldapUser'>, { account, owner }: Observed): Plan<Step> {
  if (!account || owner?.who !== 'self') return { steps: [] };
  const forbidden = refusePrivilegedAccount(account, resource.metadata.namespace, policy);
  if (forbidden) return { rejected: forbidden };
  const remove = resource.spec.deletionPolicy === 'Delete' || owner.origin === 'created';
  return { steps: remove ? [{ do: 'delete' }] : [] };
}

function emailTaken({ spec }: LldapUser, { account, emailHolder }: Observed): Failure | undefined {
  if (!emailHolder || emailHolder.id === foldId(spec.username)) return undefined;
  if (account && account.email.toLowerCase() === spec.email.toLowerCase()) return undefined;
  return taken(
    'EmailTaken',
    `spec.email: the user ${emailHolder.id} has the address ${spec.email} (${emailHolder.owner}). Use another address, or change that user's. To swap two addresses, give one of the users a third address first.`,
  );
}

/** Compared as attributes: some versions of lldap return empty fields for attributes that are set. */
const FIELDS = [
  ['email', 'mail'],
  ['displayName', 'display_name'],
  ['firstName', 'first_name'],
  ['lastName', 'last_name'],
] as const;

/** The update that makes lldap hold what the spec says; undefined if it does. */
function differences(
  { spec }: LldapUser,
  account: LldapAccount,
  definitions: Definitions,
  mark: AttributeValue | undefined,
): AccountChange | undefined {
  const change: AccountChange = diffAttributes(spec.attributes, account.attributes, definitions, mark);
  for (const [field, name] of FIELDS) {
    const want = spec[field];
    if (want !== undefined && want !== (attribute(account, name) ?? '')) change[field] = want;
  }
  return Object.keys(change).length > 0 ? change : undefined;
}

/** What a new account is created with. Empty strings are left out, since lldap would store them. */
export function creation(spec: LldapUserSpec, mark: AttributeValue) {
  return {
    id: foldId(spec.username),
    email: spec.email,
    ...(spec.displayName && { displayName: spec.displayName }),
    ...(spec.firstName && { firstName: spec.firstName }),
    ...(spec.lastName && { lastName: spec.lastName }),
    attributes: diffAttributes(spec.attributes, [], new Map(), mark).insertAttributes ?? [],
  };
}
