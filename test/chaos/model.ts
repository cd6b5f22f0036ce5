import type { LldapAttributeSchema, LldapGroup, LldapMembership, LldapUser } from '../../shared/kube/resources.ts';
import { FINALIZER, REQUESTED_AT } from '../../shared/names.ts';
import { fold } from '../local/lldap/definitions.ts';
import type { Group, User } from '../local/lldap/state.ts';
import { passwordAsked } from './allowed.ts';
import type { AnyResource } from './kube.ts';
import { ADMIN, type Identity } from './lldap.ts';
import { justified } from './reasons.ts';
import { declares, isBuiltIn, isVirtual, lower, readMark, refOf } from './rules.ts';
import { Violation, type World } from './world.ts';

/** What must be so in the end. Throws a {@link Violation} with the sentence that does not hold. */
export function checkEnd(world: World): void {
  for (const resource of world.kube.resources.values()) checkResource(world, resource);
  checkObjects(world);
  checkRetries(world);
}

function demand(holds: boolean, sentence: string, about: string): void {
  if (!holds) throw new Violation(`${sentence}: ${about}`);
}

const ready = (r: AnyResource) => r.status?.conditions?.find((c) => c.type === 'Ready');

function checkResource(world: World, resource: AnyResource): void {
  if (isVirtual(resource, world.book)) {
    checkVirtual(world, resource);
    return;
  }
  const { metadata, spec, status } = resource;
  const condition = ready(resource);
  const about = `${resource.kind} ${refOf(resource)} ${JSON.stringify({ spec, status, deleted: metadata.deletionTimestamp })}`;
  if (isLetGo(resource)) return;
  demand(status?.observedGeneration === metadata.generation, 'every generation was seen to', about);
  demand(condition?.observedGeneration === metadata.generation, 'Ready speaks of the generation that is there', about);
  if (spec.suspend) {
    demand(condition?.reason === 'Suspended' && !status?.retry, 'what is suspended says so', about);
    return;
  }
  const token = metadata.annotations?.[REQUESTED_AT];
  demand(token === undefined || token === status?.lastHandledReconcileAt, 'every request was handled', about);
  if (condition?.status === 'True') {
    demand(metadata.deletionTimestamp === undefined, 'what is being deleted is not Ready', about);
    demand(metadata.finalizers?.includes(FINALIZER) ?? false, 'what is Ready has the finalizer', about);
    demand(!status?.retry, 'what is Ready has no retry', about);
    demand(holds(world, resource), 'what is Ready is so in lldap', `${about} ${shown(world)}`);
    return;
  }
  demand(condition?.status === 'False', 'Ready is True or False', about);
  const isHeld = metadata.deletionTimestamp !== undefined;
  demand(!isHeld || condition?.reason === 'AttributeInUse', 'nothing but an attribute in use holds a deletion back', about);
  demand(justified(world, resource, condition?.reason ?? ''), 'what is not Ready says truly why', `${about} ${shown(world)}`);
}

/** Another's finalizer holds it, and not ours. */
const isLetGo = ({ metadata }: AnyResource) => metadata.deletionTimestamp !== undefined && !metadata.finalizers?.includes(FINALIZER);

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
  if (!user || status?.uuid !== user.uuid || !isMarkedFor(user, resource)) return false;
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
  const group = groupBy(world, ({ uuid }) => uuid === resource.status?.uuid);
  if (!group || group.id !== resource.status?.groupId || !isMarkedFor(group, resource)) return false;
  return group.displayName === resource.spec.displayName && hasAttributes(group.attributes, resource.spec.attributes);
}

function holdsMembership(world: World, resource: LldapMembership): boolean {
  const user = world.lldap.state.users.get(fold(resource.spec.userName));
  const group = groupBy(world, ({ displayName }) => lower(displayName) === lower(resource.spec.groupName));
  if (!user || !group?.members.has(user.id)) return false;
  const joined = resource.status?.joined;
  return joined?.userUuid === user.uuid && joined.groupUuid === group.uuid && joined.groupId === group.id;
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

function isMarkedFor({ attributes }: User | Group, resource: AnyResource): boolean {
  const mark = readMark(attributes.get('k8s-owner')?.[0]);
  const origin = resource.kind === 'LldapUser' || resource.kind === 'LldapGroup' ? resource.status?.origin : undefined;
  return mark?.ref === refOf(resource) && mark.origin === origin;
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
  for (const definition of world.definitions()) {
    const [target, name] = definition.split(' ');
    const asked = all.some((r) => r.kind === 'LldapAttributeSchema' && r.spec.target === target && declares(r) === name);
    demand(asked || world.ledger.definitions.has(definition), 'no definition is left that no resource asks for', definition);
  }
}

function isAbout(resource: AnyResource, object: Identity): boolean {
  if (resource.kind !== 'LldapUser' && resource.kind !== 'LldapGroup') return false;
  const isStillItsOwn = readMark(object.mark)?.ref === refOf(resource) && ready(resource)?.status !== 'True';
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
    const joined = r.status?.joined;
    const isRecorded = joined?.userUuid === userUuid && joined?.groupUuid === groupUuid && ready(r)?.status !== 'True';
    return isRecorded || declares(r) === `${user?.name} in ${lower(group?.name ?? '')}`;
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
    const alive = world.heldFor(resource, retry.nextTime);
    demand(alive <= 1, 'no resource has more than one live retry', `${about}: ${alive}`);
    demand(alive === 1 || world.mayLetGo, 'whoever waits has a live retry', about);
  }
}
