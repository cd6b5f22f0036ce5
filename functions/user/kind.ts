import { randomBytes } from 'node:crypto';
import { PASSWORD_KEY_SECRET } from '../../shared/constants.ts';
import type { ConditionDraft } from '../../shared/engine/conditions.ts';
import type { ReconcileContext } from '../../shared/engine/context.ts';
import type { Kind } from '../../shared/engine/kind.ts';
import type { LldapAccount } from '../../shared/lldap/api.ts';
import { foldId } from '../../shared/lldap/names.ts';
import { findDefinitions } from '../../shared/lookup/attribute-definitions.ts';
import { enqueueDependents, membershipsAwaiting, membershipsNaming, resourcesClaiming } from '../../shared/lookup/dependents.ts';
import type { Io } from '../../shared/lookup/io.ts';
import { findOwner } from '../../shared/lookup/owner.ts';
import { once } from '../../shared/platform/concurrency.ts';
import { changedFields, type Definitions } from '../../shared/rules/attributes.ts';
import { Failure, invalid } from '../../shared/rules/failure.ts';
import { attribute, markOf, ownerText } from '../../shared/rules/owner-mark.ts';
import { authorize, markFor } from '../../shared/rules/ownership.ts';
import {
  isPasswordManaged,
  type PasswordKey,
  type PasswordState,
  passwordFrom,
  passwordHash,
  readPasswordKey,
  sameHash,
} from '../../shared/rules/password.ts';
import { isObserved } from '../../shared/rules/predicates.ts';
import { REASONS } from '../../shared/rules/reasons.ts';
import { declaredName } from '../../shared/rules/resource-names.ts';
import { hasPassword, type PasswordStep } from './password-plan.ts';
import { creation, type Observed, plan, planDeletion, type Step } from './plan.ts';

type UserContext = ReconcileContext<'LldapUser'>;

/** How long a process uses the key before it reads it again: restoring the cluster may replace it. */
const KEY_MAX_AGE_MS = 300_000;

function createKeyReader(io: Io): () => Promise<PasswordKey> {
  const make = () => once(async () => readPasswordKey(await io.kube.secret(await io.kube.namespace(), PASSWORD_KEY_SECRET)));
  let [read, since] = [make(), io.clock.now()];
  return () => {
    const now = io.clock.now();
    if (now - since >= KEY_MAX_AGE_MS) [read, since] = [make(), now];
    return read();
  };
}

/** Users: an account in lldap, its attributes, and its password. */
export function userKind(io: Io): Kind<'LldapUser', Definitions, Observed, Step> {
  const passwordKey = createKeyReader(io);
  const withPassword = async (context: UserContext, account: LldapAccount | undefined): Promise<Pick<Observed, 'password'>> => {
    const password = await observePassword(context, account, passwordKey);
    return password ? { password } : {};
  };
  return {
    name: 'LldapUser',
    refuse: ({ spec }, policy) =>
      foldId(spec.username) === policy.operatorLogin
        ? invalid(
            'Protected',
            `spec.username: the operator logs in as ${spec.username}, and no resource may own that account. Delete this resource.`,
          )
        : undefined,
    async isUnchanged(context) {
      const { spec } = context.resource;
      if (!isPasswordManaged(spec)) return true;
      const state = await readPassword(context);
      const uuid = context.draft.uuid;
      if (state instanceof Failure || uuid === undefined) return false;
      return sameHash(context.draft.passwordHash, passwordHash(await passwordKey(), uuid, state.password));
    },
    withoutDependencies: new Map(),
    hasDependencies: ({ spec }) => (spec.attributes?.length ?? 0) > 0,
    findDependencies: findDefinitions,
    async observe(context, definitions, searchAll) {
      const found = await observeAccount(context);
      if (isObserved(context.resource)) return { ...found, definitions, ...(await withPassword(context, found.account)) };
      delete context.draft.passwordTried;
      await handOver(context, found);
      const emailHolder = searchAll ? await findEmailHolder(context) : undefined;
      const password = await withPassword(context, found.account);
      context.conditions.PasswordSynced = UNCHECKED;
      return { ...found, definitions, ...(emailHolder && { emailHolder }), ...password };
    },
    plan,
    async observeDeletion(context, onlyCreated) {
      const found = await observeAccount(context);
      if (onlyCreated) return { definitions: new Map(), ...(found.account?.uuid === context.draft.uuid ? found : {}) };
      await handOver(context, found);
      return { definitions: new Map(), ...found };
    },
    planDeletion,
    apply,
    describe: (step) => DESCRIPTIONS[step.do],
    preview,
    async findDependents({ io, resource, draft }, { becameReady, gone }) {
      const name = declaredName(resource);
      if (gone) return [...(await membershipsNaming(io, { userKey: name }, () => true)), ...(await resourcesClaiming(io, resource, name))];
      if (!becameReady && resource.status?.uuid === draft.uuid) return [];
      return membershipsAwaiting(io, { userKey: name }, { uuid: draft.uuid, recorded: resource.status?.uuid });
    },
  };
}

const UNCHECKED: ConditionDraft = {
  status: 'Unknown',
  reason: 'PasswordUnchecked',
  message: REASONS.PasswordUnchecked,
};

const DESCRIPTIONS: Record<Step['do'], string> = {
  create: 'created the user',
  update: 'updated the user',
  setPassword: 'set the password',
  verifyOrSetPassword: 'checked the password, and set it if it did not work',
  delete: 'deleted the user',
};

async function observeAccount({ io, resource, policy }: UserContext): Promise<Pick<Observed, 'account' | 'owner'>> {
  const account = await io.lldap.user(foldId(resource.spec.username));
  if (!account) return {};
  const object = { uuid: account.uuid, name: foldId(account.id), mark: markOf(account) };
  return { account, owner: await findOwner(io.lookup, resource, object, policy.instance) };
}

async function findEmailHolder({ io, resource }: UserContext): Promise<Observed['emailHolder']> {
  const holder = await io.lldap.userByEmail(resource.spec.email);
  return holder && { id: holder.id, owner: ownerText('LldapUser', holder) };
}

async function readPassword({ io, resource, policy }: UserContext): Promise<PasswordState> {
  const ref = resource.spec.passwordSecretRef;
  if (!ref)
    return invalid('InvalidValue', 'spec.passwordSecretRef is missing. Name a Secret and its key, or set passwordPolicy to Ignore.');
  const { namespace } = resource.metadata;
  return passwordFrom(await io.kube.secret(namespace, ref.name), { ...ref, namespace }, policy);
}

async function observePassword(
  context: UserContext,
  account: LldapAccount | undefined,
  key: () => Promise<PasswordKey>,
): Promise<Observed['password']> {
  const policy = context.resource.spec.passwordPolicy;
  if (policy === 'Ignore' || (policy === 'InitialOnly' && account && hasPassword(account))) return undefined;
  return { state: await readPassword(context), key: await key() };
}

async function apply(step: Step, context: UserContext): Promise<void> {
  const { io, resource, draft, policy } = context;
  const id = foldId(resource.spec.username);
  switch (step.do) {
    case 'create': {
      const account = await io.lldap.createUser(creation(resource.spec, markFor(resource, 'created', policy)));
      Object.assign(draft, { uuid: account.uuid, origin: 'created' });
      context.created = true;
      return;
    }
    case 'update':
      await io.lldap.updateUser(id, step.change);
      await verifyWritten(context);
      return;
    case 'verifyOrSetPassword':
    case 'setPassword':
      return setPassword(step, context);
    case 'delete':
      return io.lldap.deleteUser(id);
  }
}

/** A password is tried once, and again only if the Secret, lldap's date or the installation's key has changed. */
async function preview(step: Step, context: UserContext): Promise<string | undefined> {
  if (step.do === 'create') return 'create the user';
  if (step.do === 'delete') return undefined;
  if (step.do === 'update') return `change ${changedFields(step.change)}`;
  if (step.do === 'verifyOrSetPassword' && (await tryPassword(step, context))) return undefined;
  context.conditions.PasswordSynced = { status: 'False', reason: 'WouldChange', message: REASONS.WouldChange };
  return 'set the password';
}

async function tryPassword({ key, password, modifiedAt }: PasswordStep, { io, resource, draft }: UserContext): Promise<boolean> {
  const id = foldId(resource.spec.username);
  const hash = passwordHash(key, id, password);
  const known = draft.passwordTried;
  if (known?.hash === hash && known.modifiedAt === modifiedAt) return known.fits;
  const fits = await io.passwords.verify(id, password);
  draft.passwordTried = { hash, fits, ...(modifiedAt && { modifiedAt }) };
  return fits;
}

async function setPassword(step: PasswordStep, context: UserContext): Promise<void> {
  const { io, resource, draft, checkpoint } = context;
  const id = foldId(resource.spec.username);
  const isRight = step.do === 'verifyOrSetPassword' && (await io.passwords.verify(id, step.password));
  // After a check, the date from before it: somebody else may have set another password meanwhile.
  const modifiedAt = isRight ? step.modifiedAt : await set();
  if (draft.uuid !== undefined) draft.passwordHash = passwordHash(step.key, draft.uuid, step.password);
  // The next reconcile compares it with lldap's date, which changes when somebody else sets the password.
  if (modifiedAt !== undefined) draft.passwordModifiedAt = modifiedAt;

  async function set(): Promise<string | undefined> {
    checkpoint();
    await io.passwords.set(id, step.password);
    const account = await verifyWritten(context, async (replaced) => {
      if (markOf(replaced)?.uid !== resource.metadata.uid) await disablePassword(io, id);
    });
    // Before that read, somebody with a session may have set another password. Nobody has a session of a new account.
    const isOurs = context.created || (await io.passwords.verify(id, step.password));
    return account && isOurs ? attribute(account, 'password_modified_date') : undefined;
  }
}

/**
 * Reads the account after a write. lldap has no preconditions and a write names the user by id, so it may have reached
 * the account of another resource with that username.
 *
 * @param undo reverts a write to the wrong account that its owner would not overwrite
 * @throws Failure if the account was replaced; resources that claim the name are enqueued
 */
async function verifyWritten(context: UserContext, undo?: (replaced: LldapAccount) => Promise<void>): Promise<LldapAccount | undefined> {
  const { io, resource, draft } = context;
  const account = await io.lldap.user(foldId(resource.spec.username));
  if (!account || account.uuid === draft.uuid) return account;
  await undo?.(account);
  await enqueueDependents(io, () => resourcesClaiming(io, resource, declaredName(resource)));
  throw new Failure(
    'Unavailable',
    'LldapUnavailable',
    `The user ${account.id} was replaced in lldap during the reconcile. The operator will look at it again.`,
  );
}

/**
 * Makes up for what an earlier reconcile may have written to the account that replaced ours, if lldap's answer was lost
 * or the process died: a password that works there although it is our Secret's is disabled, and resources that claim the
 * name are enqueued. Done once, since the draft then forgets our account.
 */
async function handOver(context: UserContext, { account, owner }: Pick<Observed, 'account' | 'owner'>): Promise<void> {
  const { io, resource, draft, policy, checkpoint } = context;
  if (!account || !owner || draft.uuid === undefined || draft.uuid === account.uuid) return;
  const isOurs = !(authorize(owner, account.id, resource.metadata.namespace, resource.kind, policy) instanceof Failure);
  if (isOurs) return;
  const state = resource.spec.passwordPolicy === 'Ignore' ? undefined : await readPassword(context);
  if (state && !(state instanceof Failure) && (await io.passwords.verify(account.id, state.password))) {
    checkpoint();
    await disablePassword(io, account.id);
  }
  const isAsked = await enqueueDependents(io, () => resourcesClaiming(io, resource, declaredName(resource)));
  if (!isAsked) return;
  // Not deleted, so that an attempt after a conflict does not find them in the status again.
  Object.assign(draft, { uuid: undefined, passwordHash: undefined, passwordModifiedAt: undefined });
}

/** Sets a random password where one that was meant for another account works. The owner's reconcile sets its own. */
function disablePassword(io: Io, id: string): Promise<void> {
  return io.passwords.set(id, randomBytes(32).toString('base64url'));
}
