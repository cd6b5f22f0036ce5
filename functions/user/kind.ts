import { randomBytes } from 'node:crypto';
import { MARK_ATTRIBUTE, PASSWORD_KEY_SECRET } from '../../shared/constants.ts';
import type { Finding } from '../../shared/engine/conditions.ts';
import type { Work } from '../../shared/engine/context.ts';
import type { Kind } from '../../shared/engine/kind.ts';
import type { LldapAccount } from '../../shared/lldap/api.ts';
import { foldId } from '../../shared/lldap/names.ts';
import { findDefinitions } from '../../shared/lookup/attribute-definitions.ts';
import { contenders, joinedBy, wake } from '../../shared/lookup/dependents.ts';
import type { Io } from '../../shared/lookup/io.ts';
import { findOwner } from '../../shared/lookup/owner.ts';
import { once } from '../../shared/platform/concurrency.ts';
import type { Definitions } from '../../shared/rules/attributes.ts';
import { Failure, invalid } from '../../shared/rules/failure.ts';
import { attribute, markOf, ownerText } from '../../shared/rules/owner-mark.ts';
import { markFor } from '../../shared/rules/ownership.ts';
import {
  isPasswordManaged,
  type PasswordKey,
  type PasswordState,
  passwordFrom,
  passwordHash,
  readPasswordKey,
  sameHash,
} from '../../shared/rules/password.ts';
import { isReady } from '../../shared/rules/predicates.ts';
import { declaredName } from '../../shared/rules/resource-names.ts';
import { everSet, type PasswordStep } from './password-plan.ts';
import { creation, type Observed, plan, planDeletion, type Step } from './plan.ts';

type UserWork = Work<'LldapUser'>;

/** So long after the key was replaced, as a cluster's backup may do, every process knows the new one. */
const KEY_SERVES_MS = 300_000;

function createKeyReader(io: Io): () => Promise<PasswordKey> {
  const make = () => once(async () => readPasswordKey(await io.kube.secret(await io.kube.namespace(), PASSWORD_KEY_SECRET)));
  let [read, since] = [make(), io.clock.now()];
  return () => {
    const now = io.clock.now();
    if (now - since >= KEY_SERVES_MS) [read, since] = [make(), now];
    return read();
  };
}

/** Users: an account in lldap, its attributes, and its password. */
export function userKind(io: Io): Kind<'LldapUser', Definitions, Observed, Step> {
  const passwordKey = createKeyReader(io);
  return {
    name: 'LldapUser',
    refuse: ({ spec }, policy) =>
      foldId(spec.username) === policy.operatorLogin
        ? invalid(
            'Protected',
            `spec.username: ${spec.username} is the account that the operator logs in with; no resource may own it. Remove this one.`,
          )
        : undefined,
    async unchanged(work) {
      const { spec } = work.resource;
      if (!isPasswordManaged(spec)) return true;
      const state = await readPassword(work);
      const uuid = work.draft.uuid;
      if (state instanceof Failure || uuid === undefined) return false;
      return sameHash(work.draft.passwordHash, passwordHash(await passwordKey(), uuid, state.password));
    },
    hasDependencies: ({ spec }) => (spec.attributes?.length ?? 0) > 0,
    depend: findDefinitions,
    async observe(work, definitions, sought) {
      const found = await observeAccount(work);
      await handOver(work, found);
      const emailHolder = sought ? await findEmailHolder(work) : undefined;
      const password = await observePassword(work, found.account, passwordKey);
      work.findings.PasswordSynced = UNCHECKED;
      return { ...found, definitions, ...(emailHolder && { emailHolder }), ...(password && { password }) };
    },
    plan,
    async observeDeletion(work, onlyMade) {
      const found = await observeAccount(work);
      return { definitions: new Map(), ...(!onlyMade || found.account?.uuid === work.draft.uuid ? found : {}) };
    },
    planDeletion,
    apply,
    describe: (step) => DESCRIPTIONS[step.do],
    async dependants({ io, resource, draft }, { becameReady, gone }) {
      const name = declaredName(resource);
      if (gone) return [...(await joinedBy(io, { userKey: name }, () => true)), ...(await contenders(io, resource, name))];
      if (!becameReady && resource.status?.uuid === draft.uuid) return [];
      return joinedBy(io, { userKey: name }, (m) => !isReady(m) || m.status?.joined?.userUuid !== draft.uuid);
    },
  };
}

const UNCHECKED: Finding = { status: 'Unknown', reason: 'PasswordUnchecked', message: 'The pass ended before it came to the password.' };

const DESCRIPTIONS: Record<Step['do'], string> = {
  create: 'created the user',
  update: 'updated the user',
  setPassword: 'set the password',
  verifyOrSetPassword: 'checked the password, and set it unless it worked',
  delete: 'deleted the user',
};

async function observeAccount({ io, resource, policy }: UserWork): Promise<Pick<Observed, 'account' | 'owner'>> {
  const account = await io.lldap.user(foldId(resource.spec.username));
  if (!account) return {};
  const object = { uuid: account.uuid, name: foldId(account.id), mark: markOf(account) };
  return { account, owner: await findOwner(io.lookup, resource, object, policy.instance) };
}

async function findEmailHolder({ io, resource }: UserWork): Promise<Observed['emailHolder']> {
  const holder = await io.lldap.userByEmail(resource.spec.email);
  return holder && { id: holder.id, owner: ownerText('LldapUser', holder) };
}

async function readPassword({ io, resource, policy }: UserWork): Promise<PasswordState> {
  const ref = resource.spec.passwordSecretRef;
  if (!ref)
    return invalid('InvalidValue', 'spec.passwordSecretRef is missing; name a Secret and its key, or set passwordPolicy to Ignore.');
  const { namespace } = resource.metadata;
  return passwordFrom(await io.kube.secret(namespace, ref.name), { ...ref, namespace }, policy);
}

async function observePassword(
  work: UserWork,
  account: LldapAccount | undefined,
  key: () => Promise<PasswordKey>,
): Promise<Observed['password']> {
  const policy = work.resource.spec.passwordPolicy;
  if (policy === 'Ignore' || (policy === 'InitialOnly' && account && everSet(account))) return undefined;
  return { state: await readPassword(work), key: await key() };
}

async function apply(step: Step, work: UserWork): Promise<void> {
  const { io, resource, draft, policy } = work;
  const id = foldId(resource.spec.username);
  switch (step.do) {
    case 'create': {
      const account = await io.lldap.createUser(creation(resource.spec, markFor(resource, 'created', policy)));
      Object.assign(draft, { uuid: account.uuid, origin: 'created' });
      work.made = true;
      return;
    }
    case 'update': {
      await io.lldap.updateUser(id, step.change);
      const isMarked = step.change.insertAttributes?.some(({ name }) => name === MARK_ATTRIBUTE);
      await readWritten(work, async () => {
        if (isMarked) await io.lldap.updateUser(id, { removeAttributes: [MARK_ATTRIBUTE] });
      });
      return;
    }
    case 'verifyOrSetPassword':
    case 'setPassword':
      return setPassword(step, work);
    case 'delete':
      return io.lldap.deleteUser(id);
  }
}

async function setPassword(step: PasswordStep, work: UserWork): Promise<void> {
  const { io, resource, draft, checkpoint } = work;
  const id = foldId(resource.spec.username);
  const isRight = step.do === 'verifyOrSetPassword' && (await io.passwords.verify(id, step.password));
  // The date before, since somebody else may have set another password since; the date after, of one that we set.
  const modifiedAt = isRight ? step.modifiedAt : await set();
  if (draft.uuid !== undefined) draft.passwordHash = passwordHash(step.key, draft.uuid, step.password);
  // lldap's date tells later whether somebody else set the password.
  if (modifiedAt !== undefined) draft.passwordModifiedAt = modifiedAt;

  async function set(): Promise<string | undefined> {
    checkpoint();
    await io.passwords.set(id, step.password);
    const account = await readWritten(work, async (replaced) => {
      // Nobody can log in with a password that was meant for another account; the owner's reconcile sets its own.
      if (markOf(replaced)?.uid !== resource.metadata.uid) await io.passwords.set(id, randomBytes(32).toString('base64url'));
    });
    return account && attribute(account, 'password_modified_date');
  }
}

/**
 * The account after a write. lldap has no preconditions and writes go by id: by the time of the write the account may have
 * been replaced by another resource's of that username.
 *
 * @param undo takes back what went to the wrong account
 * @throws Failure where it was replaced; the owner is asked for a full reconcile
 */
async function readWritten(work: UserWork, undo: (replaced: LldapAccount) => Promise<void>): Promise<LldapAccount | undefined> {
  const { io, resource, draft } = work;
  const account = await io.lldap.user(foldId(resource.spec.username));
  if (!account || account.uuid === draft.uuid) return account;
  await undo(account);
  await wake(io, () => contenders(io, resource, declaredName(resource)));
  throw new Failure(
    'Unavailable',
    'LldapUnavailable',
    `The user ${account.id} was replaced in lldap during the pass; it is looked at again by itself.`,
  );
}

/** What a pass of ours that died may have written to the account that took the place of ours is for its owner to set right. */
async function handOver({ io, resource, draft }: UserWork, { account, owner }: Pick<Observed, 'account' | 'owner'>): Promise<void> {
  if (owner?.who !== 'other' || draft.uuid === undefined || draft.uuid === account?.uuid) return;
  await wake(io, () => contenders(io, resource, declaredName(resource)));
  delete draft.uuid;
  delete draft.passwordHash;
  delete draft.passwordModifiedAt;
}
