import type { StatusOf } from '../../shared/engine/context.ts';
import type { Plan, PlanInput } from '../../shared/engine/kind.ts';
import type { AttributeValue, LldapUser, LldapUserSpec } from '../../shared/kube/resources.ts';
import type { AccountChange, LldapAccount } from '../../shared/lldap/api.ts';
import { foldId } from '../../shared/lldap/names.ts';
import { checkAttributes, type Definitions, diffAttributes } from '../../shared/rules/attributes.ts';
import { Failure, taken } from '../../shared/rules/failure.ts';
import { attribute } from '../../shared/rules/owner-mark.ts';
import { markFor, type Owner, refusePrivilegedAccount, standing } from '../../shared/rules/ownership.ts';
import { decidePassword, type PasswordObserved, type PasswordStep, passwordFinding } from './password-plan.ts';

/** What was read for one user. */
export interface Observed {
  account?: LldapAccount;
  owner?: Owner;
  definitions: Definitions;
  /** Another account that has the e-mail which the spec asks for; looked up only when lldap says so. */
  emailHolder?: { id: string; owner: string };
  /** Absent when no password is to be set. */
  password?: PasswordObserved;
}

export type Step = { do: 'create' } | { do: 'update'; change: AccountChange } | PasswordStep | { do: 'delete' };

/**
 * 1. Values must fit their definitions before anything is written.
 * 2. An absent account is created with its mark.
 * 3. An account that is there is written to only by whom §standing allows, and only where it differs.
 * 4. A member of a built-in group is written to from privileged namespaces only.
 * 5. The password comes last: what precedes it stands even if it fails.
 */
export function plan(input: PlanInput<'LldapUser'>, observed: Observed): Plan<Step, StatusOf<'LldapUser'>> {
  const { resource, policy } = input;
  const { account, owner } = observed;
  const wrong = checkAttributes(resource.spec.attributes, observed.definitions) ?? emailTaken(resource, observed);
  if (wrong) return { refused: wrong };
  const findings = { PasswordSynced: passwordFinding(resource.spec.passwordPolicy, observed.password) };
  const rest = { ...decidePassword(input, observed), findings };
  if (!account || !owner) return { ...rest, steps: [{ do: 'create' }, ...rest.steps] };

  const stand = standing(owner, `user ${account.id}`, resource.metadata.namespace, resource.kind, policy);
  if (stand instanceof Failure) return { refused: stand };
  const change = differences(resource, account, observed.definitions, stand.marked ? undefined : markFor(resource, stand.origin, policy));
  const update: Step[] = change ? [{ do: 'update', change }] : [];
  const steps = [...update, ...rest.steps];
  const forbidden = steps.length > 0 && refusePrivilegedAccount(account, resource.metadata.namespace, policy);
  if (forbidden) return { refused: forbidden };
  return { ...rest, steps, keep: { uuid: account.uuid, origin: stand.origin } };
}

/** Only what is ours, and unless told otherwise only what we made. */
export function planDeletion({ resource, policy }: PlanInput<'LldapUser'>, { account, owner }: Observed): Plan<Step> {
  if (!account || owner?.who !== 'self') return { steps: [] };
  const forbidden = refusePrivilegedAccount(account, resource.metadata.namespace, policy);
  if (forbidden) return { refused: forbidden };
  const remove = resource.spec.deletionPolicy === 'Delete' || owner.origin === 'created';
  return { steps: remove ? [{ do: 'delete' }] : [] };
}

function emailTaken({ spec }: LldapUser, { account, emailHolder }: Observed): Failure | undefined {
  if (!emailHolder || emailHolder.id === foldId(spec.username)) return undefined;
  if (account && account.email.toLowerCase() === spec.email.toLowerCase()) return undefined;
  return taken(
    'EmailTaken',
    `spec.email: ${spec.email} belongs to the user ${emailHolder.id} (${emailHolder.owner}); use another address or free it there. To swap two addresses, give one of the users a third one first.`,
  );
}

/** Read as attributes: some versions of lldap answer empty fields for attributes that are set. */
const FIELDS = [
  ['email', 'mail'],
  ['displayName', 'display_name'],
  ['firstName', 'first_name'],
  ['lastName', 'last_name'],
] as const;

/** The one update that makes lldap hold what the spec names; undefined when it does. */
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

/** What a new account is created with; an empty text would be stored as one. */
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
