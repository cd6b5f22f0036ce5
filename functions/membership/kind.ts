import type { Work } from '../../shared/engine/context.ts';
import type { Kind } from '../../shared/engine/kind.ts';
import type { AttributeTarget, LldapGroup, LldapMembership, LldapUser } from '../../shared/kube/resources.ts';
import type { LldapAccount, LldapGroupAccount, LldapGroupRef } from '../../shared/lldap/api.ts';
import { foldGroupName, isBuiltInGroup, isNamed } from '../../shared/lldap/names.ts';
import { targetOf, wake } from '../../shared/lookup/dependents.ts';
import { recordedGroup } from '../../shared/lookup/owner.ts';
import { notReady } from '../../shared/rules/failure.ts';
import { isJoinedStale } from '../../shared/rules/membership-state.ts';
import { markOf } from '../../shared/rules/owner-mark.ts';
import type { Policy } from '../../shared/rules/policy.ts';
import { declares, isDeleting, isReady } from '../../shared/rules/predicates.ts';
import { REASONS } from '../../shared/rules/reasons.ts';
import { declaredName, membershipKeys, refOf, virtualGroupName } from '../../shared/rules/resource-names.ts';
import {
  claimants,
  isMember,
  isOwnedByPrivileged,
  type JoinStep,
  noGroup,
  notPrivileged,
  noUser,
  type Observed,
  plan,
  planDeletion,
  refuse,
  type Step,
} from './plan.ts';

type MembershipWork = Work<'LldapMembership'>;

/** The resources that declare the names, where such are Ready. */
interface Dependencies {
  user: LldapUser | undefined;
  group: LldapGroup | undefined;
}

/** Memberships: one user in one group. They add only; what nobody declares is left alone. */
export const membershipKind: Kind<'LldapMembership', Dependencies, Observed, Step> = {
  name: 'LldapMembership',
  recover,
  refuse,
  async unchanged({ io, policy, resource, draft }) {
    const { userKey } = membershipKeys(resource);
    const joined = draft.joined;
    if (!joined) return false;
    const [users, groups, joinedGroups] = await Promise.all([
      io.lookup.declaring('LldapUser', userKey),
      declaringGroups(io, resource, policy.operatorNamespace),
      io.lookup.recording('LldapGroup', joined.groupUuid),
    ]);
    return !isJoinedStale(resource, { users, groups, joinedGroups });
  },
  hasDependencies: () => true,
  async depend({ io, policy, resource }) {
    const { userName, groupName } = resource.spec;
    const { userKey } = membershipKeys(resource);
    const groups = await declaringGroups(io, resource, policy.operatorNamespace);
    if (isBuiltInGroup(groupName) && groups.length === 0)
      throw notReady('DependencyNotReady', `The virtual group for ${groupName} is not there yet; startup creates it.`);
    const users = await io.lookup.declaring('LldapUser', userKey);
    const user = await find(users, policy, `the user ${userName}`, noUser(userName), () => io.lldap.user(userKey));
    const group = await find(groups, policy, `the group ${groupName}`, noGroup(groupName), () => findGroup(io, groupName));
    // Whoever lacks both is told so at once, not one after the other.
    const lacks = [user, group].flatMap((found) => found.lacks ?? []);
    if (lacks.length > 0) throw notReady('DependencyNotReady', lacks.join(' '));
    return { user: user.declared, group: group.declared };
  },
  async observe(work, { user, group: resource }) {
    const { io } = work;
    const { groupName } = work.resource.spec;
    const account = await io.lldap.user(membershipKeys(work.resource).userKey);
    // One that records what is no more, or has another name, has not looked since, or somebody else wrote its status.
    const recorded = await recordedGroup(io, resource?.status);
    const group = recorded && isNamed(recorded, groupName) ? recorded : await findGroup(io, groupName);
    const declared: AttributeTarget[] = [];
    if (user ?? (await markedFor(work, 'LldapUser', account))) declared.push('User');
    if (resource ?? (await markedFor(work, 'LldapGroup', group))) declared.push('Group');
    if (declared.length < 2) work.findings.DependenciesReady = { status: 'True', reason: 'FoundInLldap', message: REASONS.FoundInLldap };
    if (account && group && isMember(account, group) && isOwnedByPrivileged(account, work.policy)) delete work.draft.joining;
    // Somebody deleted it in lldap: it is made again by its own resource.
    const vanished = [...(user && !account ? [user] : []), ...(resource && !group && !isBuiltInGroup(groupName) ? [resource] : [])];
    await wake(io, async () => vanished.map(targetOf));
    return {
      account,
      group,
      declared,
      vanished,
      ...(account && (await stillJoined(work, account, group))),
    };
  },
  plan,
  async observeDeletion(work, onlyMade) {
    const account = await work.io.lldap.user(membershipKeys(work.resource).userKey);
    if (!account) return {};
    const recorded = await stillJoined(work, account, undefined);
    if (recorded.left || onlyMade) return { account, ...recorded };
    // An earlier pass may have joined and died before it could record it.
    const group = account.groups.find((g) => foldGroupName(g.displayName) === membershipKeys(work.resource).groupKey);
    return { account, ...(group && (await leaving(work, account, group))) };
  },
  planDeletion,
  async apply(step, work) {
    const { io, resource, draft, policy } = work;
    if (step.do === 'join') return join(step, work);
    await io.lldap.removeUserFromGroup(step.user.id, step.group.id);
    delete draft.joined;
    // One that was created meanwhile may have found the user still in the group.
    const pair = { userId: step.user.id, groupName: step.group.displayName };
    await wake(io, async () => claimants(resource, pair, await io.lookup.all('LldapMembership'), policy).map(targetOf));
  },
  describe: (step) => DESCRIPTIONS[step.do],
  dependants: async () => [],
};

const DESCRIPTIONS: Record<Step['do'], string> = { join: 'added the user to the group', leave: 'removed the user from the group' };

/**
 * lldap has no preconditions, and a join goes by the user's id: by then a tenant may have created that user anew, and would be
 * an administrator. So a join of a built-in group is written ahead, and looked after: whom it should not have reached
 * leaves again, here or in the next pass.
 */
async function join({ user, group, joined }: JoinStep, work: MembershipWork): Promise<void> {
  const { io, draft, policy } = work;
  const isGuarded = isBuiltInGroup(group.displayName);
  if (isGuarded) {
    draft.joining = joined;
    await work.writeAhead();
  }
  await io.lldap.addUserToGroup(user.id, group.id);
  const account = isGuarded ? await io.lldap.user(user.id) : undefined;
  if (account && !(account.uuid === user.uuid && isOwnedByPrivileged(account, policy))) {
    await io.lldap.removeUserFromGroup(user.id, group.id);
    delete draft.joining;
    throw notPrivileged(work.resource, account, policy);
  }
  draft.joined = joined;
  delete draft.joining;
  work.made = true;
}

/**
 * Takes out whoever a join of a built-in group reached although it was meant for another account, unless a privileged namespace
 * owns the account that is there. What was written ahead stays until a join is confirmed: the request of a process that died may
 * still arrive.
 */
async function recover(work: MembershipWork): Promise<void> {
  const { io, draft, policy, resource } = work;
  const record = draft.joining ?? (work.full || !isReady(resource) ? draft.joined : undefined);
  if (!record || !isBuiltInGroup(resource.spec.groupName)) return;
  const account = await io.lldap.user(membershipKeys(resource).userKey);
  if (!account || isOwnedByPrivileged(account, policy)) return;
  const isMeant = !draft.joining && account.uuid === record.userUuid;
  const reached = account.groups.find((g) => g.id === record.groupId && g.uuid === record.groupUuid);
  if (isMeant || !reached || account.id === policy.operatorLogin) return;
  work.checkpoint();
  await io.lldap.removeUserFromGroup(account.id, reached.id);
  work.did.push(DESCRIPTIONS.leave);
}

/** A built-in group is declared by its virtual group alone. */
async function declaringGroups(io: MembershipWork['io'], { spec }: LldapMembership, operatorNamespace: string): Promise<LldapGroup[]> {
  if (!isBuiltInGroup(spec.groupName)) return io.lookup.declaring('LldapGroup', foldGroupName(spec.groupName));
  const virtual = await io.lookup.get('LldapGroup', operatorNamespace, virtualGroupName(spec.groupName));
  return virtual ? [virtual] : [];
}

/**
 * Ready as soon as one resource that declares the name is. One that is not Ready is waited for only while lldap has no
 * such object, or has the resource's own: whoever declares another's name and never becomes Ready holds up nobody.
 *
 * @returns neither where lldap's own object counts
 */
async function find<R extends LldapUser | LldapGroup>(
  declaring: readonly R[],
  policy: Policy,
  what: string,
  missing: string,
  read: () => Promise<LldapAccount | LldapGroupAccount | undefined>,
): Promise<{ declared?: R; lacks?: string }> {
  const serious = declaring.filter(declares);
  const ready = serious.find((r) => isReady(r) && !isDeleting(r));
  if (ready) return { declared: ready };
  const object = await read();
  const waiting = serious.find((r) => !object || isOwn(r, object, policy));
  if (waiting) return { lacks: `The ${waiting.kind} ${refOf(waiting)}, which declares ${what}, is not Ready; its own status says why.` };
  return object ? {} : { lacks: missing };
}

/** Whether an object is what a resource made or adopted; a built-in group is its virtual group's, which bears no mark. */
function isOwn(resource: LldapUser | LldapGroup, object: LldapAccount | LldapGroupAccount, { instance }: Policy): boolean {
  const mark = markOf(object);
  return (
    resource.status?.uuid === object.uuid ||
    (mark?.instance === instance && `${mark.namespace}/${mark.name}` === refOf(resource)) ||
    (resource.kind === 'LldapGroup' && isBuiltInGroup(resource.spec.displayName))
  );
}

async function findGroup(io: MembershipWork['io'], name: string): Promise<LldapGroupAccount | undefined> {
  return (await io.lookup.groups()).find((g) => isNamed(g, name));
}

/** The resource that an object's mark names, if it declares the membership's name: it may have made the object, and not told yet in its status. */
async function markedFor(
  { io, policy, resource }: MembershipWork,
  kind: 'LldapUser' | 'LldapGroup',
  object: LldapAccount | LldapGroupAccount | undefined,
): Promise<LldapUser | LldapGroup | undefined> {
  const mark = object && markOf(object);
  if (mark?.instance !== policy.instance) return undefined;
  const { userKey, groupKey } = membershipKeys(resource);
  const named: LldapUser | LldapGroup | undefined = await io.lookup.get(kind, mark.namespace, mark.name);
  const isMeant = named && declares(named) && declaredName(named) === (kind === 'LldapUser' ? userKey : groupKey);
  return isMeant ? named : undefined;
}

/** What was joined before, if it is another group than `group` and the user is still in it. */
async function stillJoined(
  work: MembershipWork,
  account: LldapAccount,
  group: LldapGroupRef | undefined,
): Promise<Pick<Observed, 'left' | 'claimed'>> {
  const joined = work.draft.joined;
  if (!joined || joined.userUuid !== account.uuid || joined.groupUuid === group?.uuid) return {};
  const left = account.groups.find((g) => g.id === joined.groupId && g.uuid === joined.groupUuid);
  return left ? leaving(work, account, left) : {};
}

async function leaving(
  { io, resource, policy }: MembershipWork,
  account: LldapAccount,
  left: LldapGroupRef,
): Promise<Pick<Observed, 'left' | 'claimed'>> {
  const pair = { userId: account.id, groupName: left.displayName };
  return { left, claimed: claimants(resource, pair, await io.lookup.all('LldapMembership'), policy).length > 0 };
}
