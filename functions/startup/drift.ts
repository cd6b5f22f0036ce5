import type { Plan } from '../../shared/engine/kind.ts';
import type { KindName, LldapGroup, LldapMembership, LldapUser, ResourceOf } from '../../shared/kube/resources.ts';
import { AnswerTooLarge, type AttributeDefinition, type LldapAccount, type LldapGroupAccount } from '../../shared/lldap/api.ts';
import { foldGroupName, foldId } from '../../shared/lldap/names.ts';
import type { Io } from '../../shared/lookup/io.ts';
import { attribute, type Mark, markOf } from '../../shared/rules/owner-mark.ts';
import type { Owner } from '../../shared/rules/ownership.ts';
import { isPasswordManaged } from '../../shared/rules/password.ts';
import type { Policy } from '../../shared/rules/policy.ts';
import { isObserved, isSteady } from '../../shared/rules/predicates.ts';
import { declaredName, isVirtual, membershipKeys } from '../../shared/rules/resource-names.ts';
import * as schemas from '../attribute-schema/plan.ts';
import * as groups from '../group/plan.ts';
import * as users from '../user/plan.ts';
import type { Inventory } from './unsettled.ts';

/**
 * The resources in steady state that differ from lldap. Reads few and small answers: users in filters of at most 100 ids
 * (the plain list would block the server), groups and definitions in one list each.
 */
export async function findDrifted(io: Io, policy: Policy, inventory: Inventory): Promise<ResourceOf[KindName][]> {
  const steady = {
    users: inventory.LldapUser.filter(isSteady),
    groups: inventory.LldapGroup.filter((g) => isSteady(g) && !isVirtual(g, policy.operatorNamespace)),
    memberships: inventory.LldapMembership.filter(isSteady),
  };
  const ids = new Set([...steady.users.map(declaredName), ...steady.memberships.map((m) => membershipKeys(m).userKey)]);
  const accounts = new Map((await io.lldap.usersById([...ids])).map((account) => [foldId(account.id), account]));
  const existing = await readGroups(io, steady.groups);
  const groupsByUuid = new Map(existing.map((g) => [g.uuid, g]));
  const groupsByName = new Map(existing.map((g) => [foldGroupName(g.displayName), g]));
  const schema = await io.lldap.schema();
  const definitions = { User: byName(schema.User), Group: byName(schema.Group) };

  const userDrifted = (resource: LldapUser): boolean => {
    const account = accounts.get(declaredName(resource));
    if (!account || isOthers(resource, account)) return true;
    const observed = { account, owner: ownerByMark(resource, markOf(account)), definitions: definitions.User };
    return differs(users.plan(inputOf(resource, policy), observed)) || passwordDrifted(resource, account);
  };
  const groupDrifted = (resource: LldapGroup): boolean => {
    const group = isObserved(resource) ? groupsByName.get(declaredName(resource)) : groupsByUuid.get(resource.status?.uuid ?? '');
    if (!group || (!isObserved(resource) && group.id !== resource.status?.groupId) || isOthers(resource, group)) return true;
    return differs(
      groups.plan(inputOf(resource, policy), { group, owner: ownerByMark(resource, markOf(group)), definitions: definitions.Group }),
    );
  };
  const memberDrifted = (resource: LldapMembership): boolean => {
    const { userKey, groupKey } = membershipKeys(resource);
    const joined = resource.status?.joined;
    const account = accounts.get(userKey);
    if (isObserved(resource)) return !account?.groups.some((g) => foldGroupName(g.displayName) === groupKey);
    return account?.uuid !== joined?.userUuid || !account?.groups.some((g) => g.id === joined?.groupId && g.uuid === joined?.groupUuid);
  };
  const schemaDrifted = (resource: ResourceOf['LldapAttributeSchema']): boolean => {
    const definition = schema[resource.spec.target].find((a) => a.name === declaredName(resource));
    return differs(schemas.plan(inputOf(resource, policy), { definition }));
  };
  // Scans, because attribute values may be large: only one page of them is in memory.
  const drifted = new Set([
    ...(await io.lookup.scan('LldapUser', (u) => isSteady(u) && userDrifted(u) && u.metadata.uid)),
    ...(await io.lookup.scan('LldapGroup', (g) => isSteady(g) && groupDrifted(g) && g.metadata.uid)),
  ]);
  return [
    ...inventory.LldapAttributeSchema.filter((s) => isSteady(s) && schemaDrifted(s)),
    ...[...steady.users, ...steady.groups].filter(({ metadata }) => drifted.has(metadata.uid)),
    ...steady.memberships.filter(memberDrifted),
  ];
}

/** In one list, or one by one if attributes make that too large; without groups that are too large alone. */
async function readGroups(io: Io, resources: readonly LldapGroup[]): Promise<LldapGroupAccount[]> {
  if (resources.length === 0) return [];
  const unlessTooLarge = (error: unknown): undefined => {
    if (!(error instanceof AnswerTooLarge)) throw error;
  };
  const all = await io.lookup.groups().catch(unlessTooLarge);
  if (all) return all;
  const groups: LldapGroupAccount[] = [];
  for (const { status } of resources) {
    const group = status?.groupId === undefined ? undefined : await io.lldap.group(status.groupId).catch(unlessTooLarge);
    if (group) groups.push(group);
  }
  return groups;
}

function inputOf<R extends ResourceOf[KindName]>(resource: R, policy: Policy) {
  return { resource, draft: (resource.status ?? {}) as NonNullable<R['status']>, policy };
}

function differs(plan: Plan<unknown>): boolean {
  return 'rejected' in plan || plan.steps.length > 0;
}

/** Whether somebody else set the password, by lldap's date: this costs no password operation. */
function passwordDrifted(resource: LldapUser, account: LldapAccount): boolean {
  const { spec, status } = resource;
  const known = isObserved(resource) ? status?.passwordTried?.modifiedAt : status?.passwordModifiedAt;
  return isPasswordManaged(spec) && attribute(account, 'password_modified_date') !== known;
}

/** Enough to find a difference: a missing or foreign mark is one itself, and the reconcile decides about it. */
function ownerByMark(resource: ResourceOf[KindName], mark: Mark | undefined): Owner {
  return { who: 'self', origin: mark?.origin ?? 'created', marked: mark?.uid === resource.metadata.uid };
}

/** Under Observe, a foreign mark is the only difference that no plan contains. */
function isOthers(resource: LldapUser | LldapGroup, object: LldapAccount | LldapGroupAccount): boolean {
  const mark = markOf(object);
  return isObserved(resource) && mark !== undefined && mark.uid !== resource.metadata.uid;
}

function byName(definitions: readonly AttributeDefinition[]): Map<string, AttributeDefinition> {
  return new Map(definitions.map((d) => [d.name, d]));
}
