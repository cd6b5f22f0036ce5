import { FINALIZER, MARK_ATTRIBUTE, REQUESTED_AT } from '../../shared/constants.ts';
import type { LldapAttributeSchema, LldapGroup, LldapMembership, LldapUser } from '../../shared/kube/resources.ts';
import { fold } from '../local/lldap/definitions.ts';
import type { Group, User } from '../local/lldap/state.ts';
import { nameOf } from './broker-double.ts';
import { consent } from './consent-oracle.ts';
import { type AnyResource, resourceKey } from './kube-double.ts';
import { ADMIN, type Identity } from './lldap-double.ts';
import { passwordAsked } from './mutation-oracle.ts';
import {
  declares,
  isBuiltIn,
  isLetGo,
  isLooking,
  isPrivileged as isPrivilegedNamespace,
  isStalled,
  isVirtual,
  lower,
  readMark,
  recordedUuid,
  refOf,
} from './ownership-oracle.ts';
import { justified } from './reason-checks.ts';
import { Violation, type World } from './world.ts';

/**
 * What the operator promises, and what it does not.
 *
 * At every call, whatever goes wrong (`invariants.ts`):
 * 1. lldap is written to only for a resource, only after its finalizer stands, and only what its spec asked for when the
 *    pass read it, on an object that was its own, or free for it to take, at some moment of that reconcile.
 * 2. lldap's own groups and the operator's login are never changed; nothing from an ordinary namespace makes an
 *    administrator, or touches one.
 * 3. No password is written that lldap has already, none that is not the Secret's, none against the policy.
 * 4. There is one status write for each attempt, and none names a retry whose event the broker has not accepted.
 *
 * In the end, which is the first sweep that starts 8 minutes or more after the last fault:
 * 5. Every generation and every request was seen to; what is Ready is so in lldap, to the last attribute and password.
 * 6. What is not Ready says truly why, and has exactly one live retry if it can help itself.
 * 7. Nothing is in lldap twice, or left there by who is gone, unless a resource was told to keep it.
 * 8. Looking at everything again writes nothing.
 * 9. What was told to stay stays, under its name, until a resource that declares this name takes it over.
 * 10. Nobody is in a built-in group whom neither a person nor a privileged resource put there.
 * 11. Only namespaces that a group's owner selects add members to it. Whom its field does not select leaves, and nobody
 *     else does; a membership that is not selected keeps nobody there.
 * 12. What is under Observe writes nothing, owns what a mark says alone, and tells after a look whether it is as in lldap.
 *
 * Faults are: any call to the API server, lldap (HTTP and LDAP) or the broker failing before or after it was carried
 * out; events lost, repeated, late, in another order, forged; the death of processes, of the broker's dispatcher and of
 * the source, at any await; processes frozen, rolled out, up to three at once; tokens ended, the operator's password
 * changed, its rights lost; other controllers' writes.
 *
 * Not promised, since no code could keep it, or none that is worth its cost:
 * - A write of a process that died, if it reaches lldap after others have gone on: lldap has no preconditions. A run of
 *   startup in the mode drift or full mends it. What it makes for a resource that is gone stays there, with its mark.
 * - What people do in lldap, and what a backup brings back, is found by a run of the mode full (drift: of what is
 *   settled), and what follows from that by the next sweep.
 * - Where clocks differ, the bound grows by as much; and a retry's event may come before the status that names it, so
 *   that the next sweep is the retry. So it is, too, where requeue holds all that it may.
 * - Nobody tells who waits for an e-mail address or a group's name that it is free: the next attempt finds out, 5.5
 *   minutes later at most.
 * - Two that adopt one object at the same moment both say Ready until the next sweep; the mark says who has it.
 * - Where two processes set one user's password at the same moment, it may be set once more.
 * - A membership whose user is deleted, or whose group is deleted or renamed, before its first status is found by the sweep.
 * - A join stays that reaches lldap when its membership is gone, if the process is dead or dies before it looks again.
 * - A definition is kept if the answer to its creation was lost.
 * - What became Ready stays so while something that it names turns unready; the next full look says so. A suspended
 *   resource says that it is, and no more.
 * - What a reconcile made in vain, as another process made it too or the resource is gone, stays if lldap fails each of the four
 *   attempts to take it back; the log says so.
 * - A cluster that goes back to a backup of before a group's finalizer, where the group is renamed before its first
 *   pass, leaves the group of the old name. So does one that goes back during a reconcile whose status write then fails.
 *
 * Throws a {@link Violation} with the first sentence that does not hold.
 */
export function checkEnd(world: World, { swept = true, looked = false }: { swept?: boolean; looked?: boolean } = {}): void {
  for (const resource of world.kube.resources.values()) {
    if (isVirtual(resource, world.book)) checkVirtual(world, resource);
    else if (!isLetGo(resource) && (swept || !isLeftToSweep(world, resource)) && (looked || !isLooking(resource)))
      checkResource(world, resource);
  }
  checkObjects(world);
  checkRetries(world);
}

/**
 * Only the sweep looks again at what a person must help, at two that think that one object is theirs, at a membership
 * that nobody could find when its user or group changed, and at one whose group no longer says who may join.
 */
function isLeftToSweep(world: World, resource: AnyResource): boolean {
  const { kube, unfound } = world;
  if (unfound.has(resource.metadata.uid) || (resource.kind === 'LldapMembership' && answerTo(world, resource) === 'no')) return true;
  const uuid = recordedUuid(resource);
  return isStalled(resource) || (uuid !== undefined && kube.all(resource.kind).filter((r) => recordedUuid(r) === uuid).length > 1);
}

function demand(holds: boolean, sentence: string, about: string): void {
  if (!holds) throw new Violation(`${sentence}: ${about}`);
}

const ready = (r: AnyResource) => r.status?.conditions?.find((c) => c.type === 'Ready');

function checkResource(world: World, resource: AnyResource): void {
  const { metadata, spec, status } = resource;
  const condition = ready(resource);
  const about = `${resource.kind} ${refOf(resource)} ${JSON.stringify({ spec, status, deleted: metadata.deletionTimestamp })}`;
  demand(status?.observedGeneration === metadata.generation, 'every generation was seen to', about);
  demand(condition?.observedGeneration === metadata.generation, 'Ready speaks of the generation that is there', about);
  if (spec.suspend) {
    demand(condition?.reason === 'Suspended' && !status?.retry, 'what is suspended says so', about);
    return;
  }
  const token = metadata.annotations?.[REQUESTED_AT];
  demand(token === undefined || token === status?.lastHandledReconcileAt, 'every request was handled', about);
  if (condition?.status === 'True') checkReady(world, resource, about);
  else checkNotReady(world, resource, about);
}

function checkReady(world: World, resource: AnyResource, about: string): void {
  demand(resource.metadata.deletionTimestamp === undefined, 'what is being deleted is not Ready', about);
  demand(isLooking(resource) || (resource.metadata.finalizers?.includes(FINALIZER) ?? false), 'what is Ready has the finalizer', about);
  demand(!resource.status?.retry, 'what is Ready has no retry', about);
  demand(holds(world, resource), 'what is Ready is so in lldap', `${about} ${shown(world)}`);
}

function checkNotReady(world: World, resource: AnyResource, about: string): void {
  const condition = ready(resource);
  demand(condition?.status === 'False', 'Ready is True or False', about);
  const isHeld = resource.metadata.deletionTimestamp !== undefined;
  demand(!isHeld || condition?.reason === 'AttributeInUse', 'nothing but an attribute in use holds a deletion back', about);
  demand(justified(world, resource, condition?.reason ?? ''), 'what is not Ready says truly why', `${about} ${shown(world)}`);
}

/** lldap as a violation shows it. */
export function shown({ lldap }: World): string {
  const { users, groups } = lldap.state;
  const list = (attributes: Map<string, string[]>) => Object.fromEntries(attributes);
  return JSON.stringify({
    users: [...users.values()].map((u) => ({ id: u.id, uuid: u.uuid, email: u.email, name: u.displayName, ...list(u.attributes) })),
    groups: [...groups.values()].map((g) => ({
      id: g.id,
      uuid: g.uuid,
      name: g.displayName,
      members: [...g.members],
      ...list(g.attributes),
    })),
  });
}

function checkVirtual({ lldap }: World, resource: AnyResource): void {
  if (resource.kind !== 'LldapGroup') return;
  const group = [...lldap.state.groups.values()].find((g) => lower(g.displayName) === declares(resource));
  if (!group) return;
  const { status } = resource;
  const right = status?.groupId === group.id && status.uuid === group.uuid && ready(resource)?.status === 'True';
  demand(right, 'a virtual group says where its built-in one is', `${refOf(resource)} ${JSON.stringify(status)}`);
}

/** Whether lldap holds what a spec asks for. */
export function holds(world: World, resource: AnyResource): boolean {
  switch (resource.kind) {
    case 'LldapUser':
      return holdsUser(world, resource);
    case 'LldapGroup':
      return holdsGroup(world, resource);
    case 'LldapMembership':
      return holdsMembership(world, resource);
    case 'LldapAttributeSchema':
      return holdsDefinition(world, resource);
  }
}

function holdsUser(world: World, resource: LldapUser): boolean {
  const user = world.lldap.state.users.get(declares(resource));
  const { spec, status } = resource;
  if (!user || !(isLooking(resource) || (status?.uuid === user.uuid && isMarkedFor(user, resource)))) return false;
  const fields =
    user.email === spec.email &&
    [
      [spec.displayName, user.displayName],
      [spec.firstName, user.attributes.get('first_name')?.[0]],
      [spec.lastName, user.attributes.get('last_name')?.[0]],
    ].every(([want, have]) => want === undefined || want === (have ?? ''));
  return fields && hasAttributes(user.attributes, spec.attributes) && hasPassword(world, resource, user);
}

function hasPassword(world: World, resource: LldapUser, user: User): boolean {
  switch (resource.spec.passwordPolicy) {
    case 'Ignore':
      return true;
    case 'InitialOnly':
      return user.password !== undefined;
    default: {
      const asked = passwordAsked(resource, world.history.current);
      return asked !== undefined && world.lldap.hasPassword(user.id, asked);
    }
  }
}

function holdsGroup(world: World, resource: LldapGroup): boolean {
  const recorded = groupBy(world, ({ uuid }) => uuid === resource.status?.uuid);
  const group = recorded ?? (isLooking(resource) ? groupBy(world, (g) => lower(g.displayName) === declares(resource)) : undefined);
  if (!group || !(isLooking(resource) || (group.id === resource.status?.groupId && isMarkedFor(group, resource)))) return false;
  return group.displayName === resource.spec.displayName && hasAttributes(group.attributes, resource.spec.attributes);
}

function holdsMembership(world: World, resource: LldapMembership): boolean {
  const user = world.lldap.state.users.get(fold(resource.spec.userName));
  const group = groupBy(world, ({ displayName }) => lower(displayName) === lower(resource.spec.groupName));
  if (!user || !group?.members.has(user.id)) return false;
  const joined = resource.status?.joined;
  if (isLooking(resource)) return true;
  if (['no', 'out'].includes(answerTo(world, resource) ?? '')) return false;
  return joined?.userUuid === user.uuid && joined.groupUuid === group.uuid && joined.groupId === group.id;
}

/** What the owner of the group that a membership names says to it. */
export function answerTo({ history, book }: World, { spec, metadata }: LldapMembership): ReturnType<typeof consent> | undefined {
  const { current } = history;
  const group = current.objects.find((o) => o.kind === 'LldapGroup' && lower(o.name) === lower(spec.groupName));
  return group && consent(group, metadata.namespace, current, book);
}

function holdsDefinition(world: World, { spec }: LldapAttributeSchema): boolean {
  const definition = world.lldap.state.definitions[spec.target === 'User' ? 'user' : 'group'].get(fold(spec.attributeName));
  const type = { String: 'STRING', Integer: 'INTEGER', JpegPhoto: 'JPEG_PHOTO', DateTime: 'DATE_TIME' }[spec.attributeType];
  return (
    definition?.attributeType === type &&
    definition.isList === (spec.isList ?? false) &&
    definition.isVisible === (spec.isVisible ?? false) &&
    definition.isEditable === (spec.isEditable ?? false)
  );
}

export function groupBy({ lldap }: World, is: (group: Group) => boolean): Group | undefined {
  for (const group of lldap.state.groups.values()) if (is(group)) return group;
  return undefined;
}

function isMarkedFor({ attributes, uuid }: User | Group, resource: AnyResource): boolean {
  const mark = readMark(attributes.get('k8s-owner')?.[0], uuid);
  const origin = resource.kind === 'LldapUser' || resource.kind === 'LldapGroup' ? resource.status?.origin : undefined;
  return mark?.ref === refOf(resource) && mark.uid === resource.metadata.uid && mark.origin === origin;
}

function hasAttributes(have: Map<string, string[]>, want: { name: string; value: string[] }[] = []): boolean {
  return want.every(({ name, value }) => {
    const meant = value.filter((v, _i, all) => all.length > 1 || v !== '');
    const stored = have.get(lower(name)) ?? [];
    return JSON.stringify(meant.map(plainNumber)) === JSON.stringify(stored.map(plainNumber));
  });
}

const plainNumber = (value: string) => (/^[+-]?\d+$/.test(value) ? String(BigInt(value.replace('+', ''))) : value);

/** Nothing is doubled, nothing is left behind. */
function checkObjects(world: World): void {
  const all = [...world.kube.resources.values()];
  for (const object of world.history.current.objects) {
    if (object.name === ADMIN || (object.kind === 'LldapGroup' && isBuiltIn(object.name)) || world.ledger.objects.has(object.uuid))
      continue;
    const asked = all.some((r) => r.kind === object.kind && isAbout(r, object));
    demand(asked, 'nothing is left in lldap that no resource asks for', `${object.kind} ${object.name} (${object.mark})`);
  }
  for (const pair of world.pairs())
    demand(isPairAsked(world, all, pair), 'no membership is left that no resource asks for', textOf(world, pair));
  for (const { displayName, uuid, members } of world.lldap.state.groups.values())
    for (const id of isBuiltIn(displayName) ? members : [])
      demand(
        id === ADMIN || isPrivileged(world, all, id, uuid),
        'nobody is in a built-in group whom neither a person nor a privileged resource put there',
        `${id} in ${displayName} ${shown(world)}`,
      );
  for (const definition of world.definitions()) {
    const [target, name] = definition.split(' ');
    const asked = all.some((r) => r.kind === 'LldapAttributeSchema' && r.spec.target === target && declares(r) === name);
    demand(asked || world.ledger.definitions.has(definition), 'no definition is left that no resource asks for', definition);
  }
}

/** A person put the user there, or both the membership and the account are a privileged namespace's. */
function isPrivileged(world: World, all: AnyResource[], id: string, groupUuid: string): boolean {
  const user = world.lldap.state.users.get(id);
  if (!user || world.ledger.pairs.has(`${user.uuid}|${groupUuid}`)) return true;
  const group = world.history.current.objects.find(({ uuid }) => uuid === groupUuid);
  const isAsked = all.some(
    (r) =>
      r.kind === 'LldapMembership' &&
      isPrivilegedNamespace(r.metadata.namespace, world.book) &&
      (declares(r) === `${id} in ${lower(group?.name ?? '')}` || r.status?.joined?.userUuid === user.uuid),
  );
  const mark = readMark(user.attributes.get(MARK_ATTRIBUTE)?.[0], user.uuid);
  // Whose mark a person changed, nobody knows any more.
  const isOwned = world.ledger.objects.has(user.uuid) || (mark !== undefined && isPrivilegedNamespace(mark.namespace, world.book));
  return isAsked && isOwned;
}

function isAbout(resource: AnyResource, object: Identity): boolean {
  if (resource.kind !== 'LldapUser' && resource.kind !== 'LldapGroup') return false;
  if (isLooking(resource)) return readMark(object.mark, object.uuid)?.ref === refOf(resource);
  const isStillItsOwn = readMark(object.mark, object.uuid)?.ref === refOf(resource) && ready(resource)?.status !== 'True';
  return declares(resource) === lower(object.name) || resource.status?.uuid === object.uuid || isStillItsOwn;
}

function isPairAsked(world: World, all: AnyResource[], pair: string): boolean {
  if (world.ledger.pairs.has(pair)) return true;
  const [userUuid, groupUuid] = pair.split('|');
  const { objects } = world.history.current;
  const user = objects.find((o) => o.uuid === userUuid);
  const group = objects.find((o) => o.uuid === groupUuid);
  return all.some((r) => {
    if (r.kind !== 'LldapMembership') return false;
    const answer = group && consent(group, r.metadata.namespace, world.history.current, world.book);
    const joined = r.status?.joined ?? r.status?.joining;
    const isRecorded = joined?.userUuid === userUuid && joined?.groupUuid === groupUuid;
    // Whoever has joined stays until the group's owner decides.
    if (isRecorded && (isLooking(r) || ready(r)?.status !== 'True')) return answer !== 'out';
    if (isLooking(r)) return false;
    return declares(r) === `${user?.name} in ${lower(group?.name ?? '')}` && (answer === 'yes' || (isRecorded && answer !== 'out'));
  });
}

function textOf({ history }: World, pair: string): string {
  return pair
    .split('|')
    .map((uuid) => history.current.objects.find((o) => o.uuid === uuid)?.name)
    .join(' in ');
}

/** Whoever waits has exactly one retry that is alive, and no other has any. */
function checkRetries(world: World): void {
  for (const resource of world.kube.resources.values()) {
    const retry = resource.status?.retry;
    if (!retry || isVirtual(resource, world.book) || isLetGo(resource)) continue;
    const about = `${resource.kind} ${refOf(resource)} ${JSON.stringify(retry)}`;
    const alive = heldFor(world, resource, retry.nextTime);
    demand(alive <= 1, 'no resource has more than one live retry', `${about}: ${alive}`);
    demand(alive === 1 || world.mayLetGo, 'whoever waits has a live retry', about);
  }
}

/** How many events stand for one retry. */
function heldFor({ broker }: World, resource: AnyResource, notBefore: string | undefined): number {
  const events = [...broker.queue, ...[...broker.inFlight].map(({ delivery }) => delivery)].map(({ event }) => event);
  return events.filter(
    (e) => (e.what === 'requeue' || e.what === 'reconcile') && e.notBefore === notBefore && nameOf(e.target) === resourceKey(resource),
  ).length;
}
