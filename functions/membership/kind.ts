import type { ReconcileContext } from '../../shared/engine/context.ts';
import type { Kind } from '../../shared/engine/kind.ts';
import type { AttributeTarget, Joined, LldapGroup, LldapMembership, LldapUser, ResourceOf } from '../../shared/kube/resources.ts';
import type { LldapAccount, LldapGroupAccount, LldapGroupRef } from '../../shared/lldap/api.ts';
import { foldGroupName, hasGroupName, isBuiltInGroup } from '../../shared/lldap/names.ts';
import { enqueueDependents, targetOf } from '../../shared/lookup/dependents.ts';
import { mayRetain } from '../../shared/rules/consent.ts';
import { notReady } from '../../shared/rules/failure.ts';
import { isMembershipStale } from '../../shared/rules/membership-state.ts';
import { markOf } from '../../shared/rules/owner-mark.ts';
import { isPrivileged, type Policy } from '../../shared/rules/policy.ts';
import { claimsName, isDeleting, isObserved, isReady } from '../../shared/rules/predicates.ts';
import { REASONS } from '../../shared/rules/reasons.ts';
import { declaredName, membershipKeys, refOf, virtualGroupName } from '../../shared/rules/resource-names.ts';
import { type Judgement, judge } from './consent.ts';
import {
  isClaiming,
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

type MembershipContext = ReconcileContext<'LldapMembership'>;
type Io = MembershipContext['io'];

/** What one of the two names stands for. */
interface Dependency<R, O> {
  /** As lldap has it. */
  object?: O | undefined;
  /** The Ready resource that declares the name, or the one that the object's mark names: it may not have recorded the object yet. */
  resource?: R | undefined;
  /** Why the membership must wait. */
  missing?: string;
}

interface Judged {
  group: LldapGroupAccount;
  admission: Judgement;
}

interface Dependencies {
  user: Dependency<LldapUser, LldapAccount>;
  group: Dependency<LldapGroup, LldapGroupAccount>;
  /** The group, if a resource of another namespace owns it. */
  othersGroup: LldapGroupAccount | undefined;
}

/** Memberships: one user in one group. They only add members; others' members stay. */
export const membershipKind: Kind<'LldapMembership', Dependencies, Observed, Step> = {
  name: 'LldapMembership',
  recover,
  refuse,
  async isUnchanged({ io, policy, resource, draft }) {
    const { userKey } = membershipKeys(resource);
    const joined = draft.joined;
    if (!joined) return false;
    const [users, groups, joinedGroups] = await Promise.all([
      io.lookup.claiming('LldapUser', userKey),
      groupsClaiming(io, resource, policy.operatorNamespace),
      io.lookup.recording('LldapGroup', joined.groupUuid),
    ]);
    return !isMembershipStale(resource, { users, groups, joinedGroups });
  },
  hasDependencies: () => true,
  async findDependencies(context) {
    const { io, policy, resource } = context;
    const { userName, groupName } = resource.spec;
    const { userKey } = membershipKeys(resource);
    const recorded = await leaveRevoked(context);
    const known = recorded.find((judged) => hasGroupName(judged.group, groupName))?.group;
    // First, since a membership that the group's owner does not admit must not tell whether the user exists.
    const group = await findDependency(context, {
      kind: 'LldapGroup',
      known: isBuiltInGroup(groupName) ? undefined : (known ?? (await io.lookup.groupSeen(groupName))),
      claimants: () => groupsClaiming(io, resource, policy.operatorNamespace),
      read: (declaring) => io.lookup.groupNamed(groupName, declaring?.status?.groupId),
      what: `the group ${groupName}`,
      missing: noGroup(groupName),
    });
    const othersGroup = await requireConsent(context, group, recorded);
    const account = await io.lldap.user(userKey);
    const user = await findDependency(context, {
      kind: 'LldapUser',
      known: account,
      claimants: () => io.lookup.claiming('LldapUser', userKey),
      read: async () => undefined,
      what: `the user ${userName}`,
      missing: noUser(userName),
    });
    // Report both at once, not one after the other.
    const missing = [user, group].flatMap((found) => found.missing ?? []);
    if (missing.length > 0) throw notReady('DependencyNotReady', missing.join(' '));
    return { user, group, othersGroup };
  },
  async observe(context, { user, group: { object: group, resource }, othersGroup }) {
    const { io } = context;
    const { groupName } = context.resource.spec;
    const account = user.object;
    const declared: AttributeTarget[] = [...(user.resource ? ['User' as const] : []), ...(resource ? ['Group' as const] : [])];
    if (declared.length < 2)
      context.conditions.DependenciesReady = { status: 'True', reason: 'FoundInLldap', message: REASONS.FoundInLldap };
    const isConfirmed = account && group && isMember(account, group);
    if (isConfirmed && (!isBuiltInGroup(groupName) || isOwnedByPrivileged(account, context.policy))) delete context.draft.joining;
    // Somebody deleted the object in lldap; its own resource creates it again.
    const vanished = [
      ...(user.resource && !account ? [user.resource] : []),
      ...(resource && !group && !isBuiltInGroup(groupName) ? [resource] : []),
    ].filter(() => !isObserved(context.resource));
    await enqueueDependents(io, async () => vanished.map(targetOf));
    return {
      account,
      group,
      declared,
      vanished,
      ...(othersGroup && { othersGroup }),
      ...(account && (await findFormerGroup(context, account, group))),
    };
  },
  plan,
  async observeDeletion(context, onlyCreated) {
    if (onlyCreated) await undoJoin(context);
    const account = await context.io.lldap.user(membershipKeys(context.resource).userKey);
    if (!account) return {};
    const recorded = await findFormerGroup(context, account, undefined);
    if (recorded.formerGroup || onlyCreated) return { account, ...recorded };
    // An earlier reconcile may have joined the group and died before it recorded that.
    const named = account.groups.find((g) => foldGroupName(g.displayName) === membershipKeys(context.resource).groupKey);
    const group = named && (await context.io.lldap.group(named.id));
    // It has not joined a group whose owner does not admit it.
    if (group?.uuid !== named?.uuid || !group || !(await judge(context, group)).admitted) return { account };
    return { account, ...(await withClaims(context, account, group)) };
  },
  async mayRetain({ io, resource, draft, policy }) {
    const { groupKey } = membershipKeys(resource);
    const owners = draft.joined ? io.lookup.recording('LldapGroup', draft.joined.groupUuid) : io.lookup.claiming('LldapGroup', groupKey);
    return mayRetain(resource, await owners, policy);
  },
  planDeletion,
  async apply(step, context) {
    const { io, resource, draft, policy } = context;
    if (step.do !== 'leave') return join(step, context);
    await io.lldap.removeUserFromGroup(step.user.id, step.group.id);
    delete draft.joined;
    // A membership that was created meanwhile may have found the user still in the group.
    const pair = { userId: step.user.id, groupName: step.group.displayName };
    await enqueueDependents(io, async () => (await membershipsClaiming(io, resource, pair, policy)).map(targetOf));
  },
  describe: (step) => DESCRIPTIONS[step.do],
  preview: async (step) => PREVIEWS[step.do],
  findDependents: async () => [],
};

const DESCRIPTIONS: Record<Step['do'], string> = {
  join: 'added the user to the group',
  record: 'recorded that the user is in the group',
  leave: 'removed the user from the group',
};
const PREVIEWS: Record<Step['do'], string | undefined> = {
  join: 'add the user to the group',
  record: undefined,
  leave: 'remove the user from the group that it joined before',
};

/**
 * Joins a group. lldap has no preconditions and a join names the user by id, so by then a tenant may have created that
 * user again, and would become an administrator. A join of a built-in group is therefore written ahead and checked
 * afterwards: an account that it must not have reached is removed again, here or in the next reconcile. A join of another
 * namespace's group is written ahead, too: its owner may decide otherwise meanwhile, and then finds the membership by it.
 */
async function join({ do: what, user, group, joined, othersGroup }: JoinStep, context: MembershipContext): Promise<void> {
  const { io, draft, policy } = context;
  const isGuarded = isBuiltInGroup(group.displayName);
  draft.joining = joined;
  if (isGuarded || othersGroup) await context.writeAhead();
  if (othersGroup) await confirmConsent(context, othersGroup);
  if (what === 'join') {
    // Also if lldap does not answer, since it may have carried the join out.
    context.created = true;
    await io.lldap.addUserToGroup(user.id, group.id);
  }
  const account = isGuarded ? await io.lldap.user(user.id) : undefined;
  if (account && !(account.uuid === user.uuid && isOwnedByPrivileged(account, policy))) {
    await io.lldap.removeUserFromGroup(user.id, group.id);
    delete draft.joining;
    throw notPrivileged(context.resource, account, policy);
  }
  draft.joined = joined;
  delete draft.joining;
}

async function recover(context: MembershipContext): Promise<void> {
  await undoJoin(context);
  if (context.resource.spec.suspend) await leaveRevoked(context);
}

/**
 * Removes a member whom the owner of a recorded group no longer admits. A resource that is suspended, or whose names mean
 * something else by now, is no exception.
 *
 * @returns the recorded groups, unless any namespace may join them
 */
async function leaveRevoked(context: MembershipContext): Promise<Judged[]> {
  const { draft, policy, resource } = context;
  const judged: Judged[] = [];
  if (isPrivileged(policy, resource.metadata.namespace)) return judged;
  for (const field of ['joined', 'joining'] as const) {
    const record = draft[field];
    const known = judged.find(({ group }) => group.uuid === record?.groupUuid);
    const found = record && (known ?? (await judgeRecorded(context, record)));
    if (!record || !found) continue;
    if (!known) judged.push(found);
    if (found.admission.admitted || !found.admission.revoked) continue;
    await leaveGroup(context, record, found.group);
    delete draft[field];
  }
  return judged;
}

async function judgeRecorded(context: MembershipContext, { groupId, groupUuid }: Joined): Promise<Judged | undefined> {
  const group = await context.io.lldap.group(groupId);
  if (group?.uuid !== groupUuid || isBuiltInGroup(group.displayName)) return undefined;
  return { group, admission: await judge(context, group) };
}

async function leaveGroup(context: MembershipContext, { userUuid }: Joined, group: LldapGroupAccount): Promise<void> {
  const { io, resource } = context;
  const account = await io.lldap.user(membershipKeys(resource).userKey);
  if (account?.uuid !== userUuid || !isMember(account, group) || (await isClaimedByOthers(context, account, group))) return;
  context.checkpoint();
  await io.lldap.removeUserFromGroup(account.id, group.id);
  context.did.push(DESCRIPTIONS.leave);
}

/** A group's owner that has decided otherwise may have looked for its memberships before this one's status told of the join. */
async function confirmConsent(context: MembershipContext, group: LldapGroupAccount): Promise<void> {
  const admission = await judge(context, group);
  if (admission.admitted) return;
  delete context.draft.joining;
  throw admission.failure;
}

/**
 * Removes an account that a join of a built-in group reached although it was meant for another one, unless a privileged
 * namespace owns the account. `joining` stays in the status until a join is confirmed: the request of a process that
 * died may still arrive. After that, `joined` says for which account it was; another one without a mark stays, since a
 * person may have created it and put it there.
 */
async function undoJoin(context: MembershipContext): Promise<void> {
  const { io, draft, policy, resource } = context;
  const record = draft.joining ?? (context.full || !isReady(resource) ? draft.joined : undefined);
  if (!record || !isBuiltInGroup(resource.spec.groupName) || refuse(resource, policy)) return;
  const account = await io.lldap.user(membershipKeys(resource).userKey);
  if (!account || isOwnedByPrivileged(account, policy)) return;
  const isIntended = !draft.joining && (account.uuid === record.userUuid || !markOf(account));
  const reached = account.groups.find((g) => g.id === record.groupId && g.uuid === record.groupUuid);
  if (isIntended || !reached || account.id === policy.operatorLogin) return;
  context.checkpoint();
  await io.lldap.removeUserFromGroup(account.id, reached.id);
  context.did.push(DESCRIPTIONS.leave);
}

/**
 * @returns the group, if a resource of another namespace owns it
 * @throws Failure if the group's owner does not admit the membership
 */
async function requireConsent(
  context: MembershipContext,
  { object, resource }: Dependencies['group'],
  recorded: readonly Judged[],
): Promise<LldapGroupAccount | undefined> {
  if (!object || isBuiltInGroup(context.resource.spec.groupName)) return undefined;
  const known = recorded.find(({ group }) => group === object);
  const admission = known?.admission ?? (await judge(context, object, { known: resource }));
  if (!admission.admitted) throw admission.failure;
  return admission.isOthers ? object : undefined;
}

/** The groups that declare the membership's group name. Only its virtual group declares a built-in group's name. */
async function groupsClaiming(io: Io, { spec }: LldapMembership, operatorNamespace: string): Promise<LldapGroup[]> {
  if (!isBuiltInGroup(spec.groupName)) return io.lookup.claiming('LldapGroup', foldGroupName(spec.groupName));
  const virtual = await io.lookup.get('LldapGroup', operatorNamespace, virtualGroupName(spec.groupName));
  if (virtual) return [virtual];
  throw notReady('DependencyNotReady', `The virtual group for ${spec.groupName} does not exist yet. The startup function creates it.`);
}

/**
 * Finds what one of the two names stands for. Ready as soon as one resource that declares the name is. A resource that
 * is not Ready is waited for only while lldap has no such object, or has that resource's own: a resource that declares
 * another's name and never becomes Ready blocks nobody.
 *
 * Usually the object's mark names the Ready resource. Only otherwise are the resources that declare the name listed: the
 * API server reads all resources of the kind for such a list.
 *
 * @param name.known the object, if it could be read by what is known of it
 * @param name.read otherwise finds the object, given the Ready resource that declares the name
 */
async function findDependency<K extends 'LldapUser' | 'LldapGroup', O extends LldapAccount | LldapGroupAccount>(
  context: MembershipContext,
  name: {
    kind: K;
    known: O | undefined;
    claimants(): Promise<ResourceOf[K][]>;
    read(resource: ResourceOf[K] | undefined): Promise<O | undefined>;
    what: string;
    missing: string;
  },
): Promise<Dependency<ResourceOf[K], O>> {
  const isServing = (r: LldapUser | LldapGroup) => isReady(r) && !isDeleting(r);
  const marked = await findMarkedResource(context, name.kind, name.known);
  if (marked && isServing(marked)) return { object: name.known, resource: marked };
  const claiming = (await name.claimants()).filter(claimsName);
  const ready = claiming.find(isServing);
  const object = name.known ?? (await name.read(ready));
  if (ready) return { object, resource: ready };
  const waiting = claiming.find((r) => !object || isOwnObject(r, object, context.policy));
  if (waiting)
    return {
      object,
      missing: `The ${waiting.kind} ${refOf(waiting)}, which declares ${name.what}, is not Ready. See its status for the reason.`,
    };
  if (!object) return { missing: name.missing };
  return { object, resource: name.known ? marked : await findMarkedResource(context, name.kind, object) };
}

/** Whether a resource created or adopted an object. A built-in group belongs to its virtual group and has no mark. */
function isOwnObject(resource: LldapUser | LldapGroup, object: LldapAccount | LldapGroupAccount, { instance }: Policy): boolean {
  const mark = markOf(object);
  return (
    resource.status?.uuid === object.uuid ||
    (mark?.instance === instance && `${mark.namespace}/${mark.name}` === refOf(resource)) ||
    (resource.kind === 'LldapGroup' && isBuiltInGroup(resource.spec.displayName))
  );
}

/**
 * The resource that an object's mark names, if it declares the membership's name: it may have created the object and not
 * recorded that yet.
 */
async function findMarkedResource<K extends 'LldapUser' | 'LldapGroup'>(
  { io, policy, resource }: MembershipContext,
  kind: K,
  object: LldapAccount | LldapGroupAccount | undefined,
): Promise<ResourceOf[K] | undefined> {
  const mark = object && markOf(object);
  if (mark?.instance !== policy.instance) return undefined;
  const { userKey, groupKey } = membershipKeys(resource);
  const named = await io.lookup.get(kind, mark.namespace, mark.name);
  const isMatch = named && claimsName(named) && declaredName(named) === (kind === 'LldapUser' ? userKey : groupKey);
  return isMatch ? named : undefined;
}

/** The group that was joined before or may have been, if it is not `group` and the user is still a member. */
async function findFormerGroup(
  context: MembershipContext,
  account: LldapAccount,
  group: LldapGroupRef | undefined,
): Promise<Pick<Observed, 'formerGroup' | 'isFormerGroupClaimed'>> {
  const joined = context.draft.joined ?? context.draft.joining;
  if (!joined || joined.userUuid !== account.uuid || joined.groupUuid === group?.uuid) return {};
  const former = account.groups.find((g) => g.id === joined.groupId && g.uuid === joined.groupUuid);
  return former ? withClaims(context, account, former) : {};
}

async function withClaims(
  context: MembershipContext,
  account: LldapAccount,
  formerGroup: LldapGroupRef,
): Promise<Pick<Observed, 'formerGroup' | 'isFormerGroupClaimed'>> {
  return { formerGroup, isFormerGroupClaimed: await isClaimedByOthers(context, account, formerGroup) };
}

/** Whether another membership that the group's owner admits declares a pair. */
async function isClaimedByOthers(
  context: MembershipContext,
  account: LldapAccount,
  { id, uuid, displayName }: LldapGroupRef,
): Promise<boolean> {
  const { io, resource, policy } = context;
  const claiming = await membershipsClaiming(io, resource, { userId: account.id, groupName: displayName }, policy);
  if (claiming.length === 0) return false;
  const group = await io.lldap.group(id);
  if (group?.uuid !== uuid) return false;
  for (const namespace of new Set(claiming.map(({ metadata }) => metadata.namespace)))
    if ((await judge(context, group, { namespace })).admitted) return true;
  return false;
}

/**
 * Other memberships that declare a pair, by the current names of both in lldap. None may be missed: those whose status has
 * no key yet are among those that are not Ready.
 */
async function membershipsClaiming(
  io: Io,
  self: LldapMembership,
  pair: { userId: string; groupName: string },
  policy: Policy,
): Promise<LldapMembership[]> {
  // In this order: one whose first status is written meanwhile is in both.
  const unrecorded = (await io.lookup.unreadyMemberships()).filter((m) => m.status?.userKey === undefined);
  const recorded = await io.lookup.select('LldapMembership', { 'status.userKey': pair.userId });
  return [...recorded, ...unrecorded].filter((m) => isClaiming(m, self, pair, policy));
}
