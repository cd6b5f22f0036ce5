import { MARK_ATTRIBUTE } from '../../shared/constants.ts';
import type { Joined, KindName, LldapMembership, ResourceOf } from '../../shared/kube/resources.ts';
import { consent, mayKeep } from './consent-oracle.ts';
import type { Moment } from './history.ts';
import type { AnyResource } from './kube-double.ts';
import { ADMIN, type Identity } from './lldap-double.ts';
import {
  declares,
  isBuiltIn,
  isLooking,
  isPrivileged,
  isStalled,
  lower,
  mayDelete,
  mayTakeAway,
  mayWrite,
  type RuleBook,
  readMark,
  refOf,
} from './ownership-oracle.ts';

/** Which mutations of lldap a resource may lead to: what it asks for, on what is its own. */

export type Fields = Record<string, unknown>;
interface Values {
  name: string;
  value: string[];
}

/** Of what is not there any more, lldap changes nothing; and whoever is in no group, nobody takes out. */
export function isVain(operation: string, variables: Fields, moment: Moment): boolean {
  const { user, group, userId, groupId } = variables as { user?: Fields; group?: Fields; userId?: unknown; groupId?: unknown };
  if (operation.startsWith('create')) return false;
  const aboutUser = user?.id ?? userId;
  const aboutGroup = group?.id ?? groupId;
  const named = userNamed(moment, String(aboutUser));
  const ofId = groupOf(moment, aboutGroup);
  if (operation === 'removeUserFromGroup' && !named?.memberOf.includes(ofId?.name ?? '')) return true;
  return (aboutUser !== undefined && named === undefined) || (aboutGroup !== undefined && ofId === undefined);
}

/** What a reconcile may have seen: lldap at one moment, and the resources at that or a later one. */
export function anyView(moments: readonly Moment[], holds: (moment: Moment) => boolean): boolean {
  if (moments.some(holds)) return true;
  return moments.some(({ objects }, i) => moments.slice(i + 1).some((later) => later.objects !== objects && holds({ ...later, objects })));
}

export function pairOf({ userId, groupId }: Fields, moment: Moment): string {
  return `${userNamed(moment, String(userId))?.uuid}|${groupOf(moment, groupId)?.uuid}`;
}

export const userNamed = (moment: Moment, id: string) => moment.objects.find((o) => o.kind === 'LldapUser' && o.name === lower(id));
export const groupOf = (moment: Moment, id: unknown) => moment.objects.find((o) => o.kind === 'LldapGroup' && o.groupId === id);

/** The user or group that is updated or deleted. */
export function objectOf(operation: string, variables: Fields, moment: Moment): Identity | undefined {
  if (!/^(update|delete)(User|Group)$/.test(operation)) return undefined;
  const { user, group, userId, groupId } = variables as { user?: Fields; group?: Fields; userId?: unknown; groupId?: unknown };
  return operation.endsWith('User') ? userNamed(moment, String(user?.id ?? userId)) : groupOf(moment, group?.id ?? groupId);
}

export function passwordAsked({ spec, metadata }: ResourceOf['LldapUser'], moment: Moment): string | undefined {
  const ref = spec.passwordSecretRef;
  const data = ref && moment.secrets.get(`${metadata.namespace}/${ref.name}`)?.data?.[ref.key];
  return data === undefined ? undefined : Buffer.from(data, 'base64').toString();
}

/** Was it right at that moment? */
type Rule = (variables: Fields, self: AnyResource, moment: Moment, book: RuleBook, done: ReadonlySet<string>) => boolean;

export const RULES: Record<string, Rule> = {
  createUser: ({ user }, self, _moment, book) => {
    const { id, attributes, ...fields } = user as Fields & { attributes: Values[] };
    return (
      isLive(self, 'LldapUser') &&
      declares(self) === id &&
      asks(self, { ...fields, insertAttributes: attributes }, book, { origin: 'created' })
    );
  },
  updateUser: ({ user }, self, moment, book) => {
    const { id, ...change } = user as Fields & { id: string };
    const object = userNamed(moment, id);
    if (!object || !isLive(self, 'LldapUser') || declares(self) !== id) return false;
    return mayWrite(object, self, moment, book) && asks(self, change, book, { uuid: object.uuid });
  },
  deleteUser: ({ userId }, self, moment, book) => {
    const object = userNamed(moment, String(userId));
    return object === undefined || (isGoing(self) && mayDelete(object, self, moment, book));
  },
  createGroupWithDetails: ({ request }, self, _moment, book) => {
    const { attributes, ...fields } = request as Fields & { attributes: Values[] };
    return (
      isLive(self, 'LldapGroup') &&
      !isBuiltIn(declares(self)) &&
      asks(self, { ...fields, insertAttributes: attributes }, book, { origin: 'created' })
    );
  },
  updateGroup: ({ group }, self, moment, book) => {
    const { id, ...change } = group as Fields;
    const object = groupOf(moment, id);
    if (!object || !isLive(self, 'LldapGroup')) return false;
    return mayWrite(object, self, moment, book) && asks(self, change, book, { uuid: object.uuid });
  },
  deleteGroup: ({ groupId }, self, moment, book) => {
    const object = groupOf(moment, groupId);
    return object === undefined || (isGoing(self) && mayDelete(object, self, moment, book));
  },
  addUserToGroup: ({ userId, groupId }, self, moment, book) => {
    const user = userNamed(moment, String(userId));
    const group = groupOf(moment, groupId);
    return user !== undefined && group !== undefined && isLive(self, 'LldapMembership') && mayJoin(self, user, group, moment, book);
  },
  removeUserFromGroup: (variables, self, moment, book, done) => {
    const user = userNamed(moment, String(variables.userId));
    const group = groupOf(moment, variables.groupId);
    if (!user || !group || self.kind !== 'LldapMembership') return false;
    return mayRemove(self, user, group, moment, book, done.has(`${self.metadata.uid} ${pairOf(variables, moment)}`));
  },
  addUserAttribute: (definition, self) => isLive(self, 'LldapAttributeSchema') && defines(self, 'User', definition),
  addGroupAttribute: (definition, self) => isLive(self, 'LldapAttributeSchema') && defines(self, 'Group', definition),
  deleteUserAttribute: ({ name }, self, moment, book, done) => mayUndefine(self, 'User', String(name), moment, book, done),
  deleteGroupAttribute: ({ name }, self, moment, book, done) => mayUndefine(self, 'Group', String(name), moment, book, done),
};

const isGoing = (self: AnyResource) => self.metadata.deletionTimestamp !== undefined;

function isLive<K extends KindName>(self: AnyResource, kind: K): self is ResourceOf[K] & AnyResource {
  return self.kind === kind && !isGoing(self) && !self.spec.suspend && !isLooking(self);
}

/**
 * Whether each field and attribute of a change is what the spec names, or the resource's own mark.
 *
 * @param uuid of the object that is there, which the mark must name; none for one that is to be made
 */
function asks(self: AnyResource, change: Fields, book: RuleBook, { uuid = '', origin = '' }): boolean {
  const {
    insertAttributes = [],
    removeAttributes = [],
    ...fields
  } = change as Fields & {
    insertAttributes?: Values[];
    removeAttributes?: string[];
  };
  const spec = self.spec as unknown as Fields & { attributes?: Values[] };
  const named = (name: string) => spec.attributes?.find((a) => lower(a.name) === lower(name))?.value;
  const isOwnMark = ({ name, value }: Values) => {
    const mark = readMark(value[0], uuid);
    const isSelf = mark?.ref === refOf(self) && mark.uid === self.metadata.uid && value[0]?.endsWith(`;${uuid || mark.uid}`);
    return name === MARK_ATTRIBUTE && isSelf && mark.instance === book.instance && (!origin || mark.origin === origin);
  };
  return (
    Object.entries(fields).every(([field, value]) => spec[field] === value) &&
    insertAttributes.every((a) => isOwnMark(a) || JSON.stringify(named(a.name)) === JSON.stringify(a.value)) &&
    removeAttributes.every((name) => named(name)?.every((value) => value === ''))
  );
}

/** The group is the one of the declared name, or the one that a resource of that name has. */
function mayJoin(self: LldapMembership, user: Identity, group: Identity, moment: Moment, book: RuleBook): boolean {
  if (declares(self) !== `${user.name} in ${lower(group.name)}` && !isRecordedAs(group, lower(self.spec.groupName), moment)) return false;
  if (lower(self.spec.userName) !== user.name) return false;
  if (!isBuiltIn(group.name) && !isBuiltIn(self.spec.groupName)) return consent(group, self.metadata.namespace, moment, book) === 'yes';
  const mark = readMark(user.mark, user.uuid);
  return isPrivileged(self.metadata.namespace, book) && mark?.instance === book.instance && isPrivileged(mark.namespace, book);
}

function isRecordedAs(group: Identity, name: string, moment: Moment): boolean {
  return [...moment.resources.values()].some((r) => r.kind === 'LldapGroup' && declares(r) === name && r.status?.uuid === group.uuid);
}

function mayRemove(self: LldapMembership, user: Identity, group: Identity, moment: Moment, book: RuleBook, joinedIt: boolean): boolean {
  if (user.name === ADMIN && lower(group.name) === 'lldap_admin') return false;
  if (isGoing(self) && (self.spec.deletionPolicy === 'Retain' || isLooking(self)) && mayKeep(self, group, moment, book)) return false;
  if (!isPrivileged(self.metadata.namespace, book) && isBuiltIn(group.name)) return false;
  if (isStray(self, user, group, book)) return true;
  const isOfBoth = (record: Joined | undefined) => record?.userUuid === user.uuid && record.groupUuid === group.uuid;
  const isNamed = declares(self) === `${user.name} in ${lower(group.name)}`;
  const answer = consent(group, self.metadata.namespace, moment, book);
  const hasJoined = joinedIt || isOfBoth(self.status?.joined) || isOfBoth(self.status?.joining);
  if (!hasJoined && !(isGoing(self) && isNamed && answer === 'yes')) return false;
  // Whoever is where the name says leaves by a deletion, or by the decision of the group's owner.
  if (!isGoing(self) && (isNamed || isLooking(self)) && answer !== 'out') return false;
  return !isClaimed(self, user, group, moment, book);
}

/** Whom a join reached that was meant for the account before is taken out, by whichever process, unless a person may have put him there. */
function isStray({ spec, status }: LldapMembership, user: Identity, group: Identity, book: RuleBook): boolean {
  const mark = readMark(user.mark, user.uuid);
  const isOwned = mark?.instance === book.instance && isPrivileged(mark.namespace, book);
  const record = status?.joining ?? (mark && status?.joined);
  const isMeant = status?.joined?.userUuid === user.uuid && status.joined.groupUuid === group.uuid;
  return record?.groupUuid === group.uuid && isBuiltIn(group.name) && !isMeant && !isOwned && lower(spec.userName) === user.name;
}

/** Whether another membership that may, and is not going, declares the pair by the names of now. */
function isClaimed(self: AnyResource | undefined, user: Identity, group: Identity, moment: Moment, book: RuleBook): boolean {
  return [...moment.resources.values()].some(
    (r) =>
      r.kind === 'LldapMembership' &&
      r.metadata.uid !== self?.metadata.uid &&
      !isGoing(r) &&
      !isLooking(r) &&
      declares(r) === `${user.name} in ${lower(group.name)}` &&
      consent(group, r.metadata.namespace, moment, book) === 'yes',
  );
}

function defines(self: AnyResource, target: string, definition: Fields): boolean {
  if (self.kind !== 'LldapAttributeSchema') return false;
  const { isList = false, isVisible = false, isEditable = false } = self.spec;
  return (
    self.spec.target === target &&
    declares(self) === definition.name &&
    isList === definition.isList &&
    isVisible === definition.isVisible &&
    isEditable === definition.isEditable
  );
}

function mayUndefine(self: AnyResource, target: string, name: string, moment: Moment, book: RuleBook, done: ReadonlySet<string>): boolean {
  if (self.kind !== 'LldapAttributeSchema' || !isGoing(self) || isLooking(self) || self.spec.target !== target || declares(self) !== name)
    return false;
  if (self.spec.deletionPolicy === 'Retain' || !(mayTakeAway(self, book) || done.has(`${self.metadata.uid} ${name}`))) return false;
  const others = [...moment.resources.values()];
  const declared = others.some(
    (r) =>
      r.kind === self.kind &&
      r.metadata.uid !== self.metadata.uid &&
      !isGoing(r) &&
      !isStalled(r) &&
      !isLooking(r) &&
      declares(r) === name &&
      r.spec.target === target,
  );
  const used = others.some(
    (r) => r.kind === `Lldap${target}` && (r.spec as { attributes?: Values[] }).attributes?.some((a) => lower(a.name) === name),
  );
  return !declared && !used;
}
