import type { KindName } from '../../shared/kube/resources.ts';
import { FINALIZER, MARK_ATTRIBUTE, REQUESTED_AT } from '../../shared/names.ts';
import { type AnyResource, FOREIGN_CONDITION } from './kube.ts';
import { ADMIN } from './lldap.ts';
import { createRandom, type Random } from './random.ts';
import { declares, lower } from './rules.ts';
import type { Place, Step, StepOf } from './schedule.ts';
import { LABELS, type World } from './world.ts';

type Take<S> = (world: World, step: S) => void | Promise<void>;

/** Carries out one step of a schedule; what cannot be done as things are is left out. */
export async function take(world: World, step: Step): Promise<void> {
  await (STEPS[step.do] as Take<Step>)(world, step);
  if (world.violation) throw world.violation;
}

const STEPS: { [Do in Step['do']]: Take<StepOf<Do>> } = {
  run: (world, { actions, seed }) => some(world, actions, createRandom(seed)),
  async until(world, { call }) {
    await world.runUntil(world.scheduler.now, createRandom(0), () =>
      world.scheduler.calls.some((c) => `${c.by.name}/${c.by.slot} ${c.service} ${c.what}`.includes(call)),
    );
  },
  wait: (world, { seconds, seed }) => world.runUntil(world.scheduler.now + seconds * 1000, createRandom(seed)),
  async stall(world, { seconds, seed }) {
    await world.stall(world.scheduler.now + seconds * 1000, createRandom(seed));
    world.count('time: all stand still');
  },

  fail(world, { service, fault, calls }) {
    world.failing.push({ service, fault, left: calls });
  },
  async crash(world, { after, pick, seed }) {
    const random = createRandom(seed);
    await some(world, after, random);
    const process = one(world.busy, pick);
    if (!process) return;
    world.crash(process, random);
    world.count('process: crash');
  },
  async crashLate(world, { after, pick, seed }) {
    await some(world, after, createRandom(seed));
    const process = one(world.busy, pick);
    if (!process) return;
    world.crash(process, 'late');
    world.count('process: crash, its calls arrive late');
  },
  async freeze(world, { after, pick, seed }) {
    await some(world, after, createRandom(seed));
    const process = one(world.busy, pick);
    if (!process) return;
    process.frozen = true;
    world.count('process: freeze');
  },
  thaw(world, { pick }) {
    const process = one(
      world.processes.filter((p) => p.frozen),
      pick,
    );
    if (process) process.frozen = false;
  },
  rollout(world, { name }) {
    for (const process of world.processes.filter((p) => p.name === name)) world.rollout(process);
    world.count('process: rollout');
  },
  brokerDies(world) {
    world.broker.die();
    world.count('broker: death');
  },
  sourceDown(world, { changes }) {
    world.untold += changes;
  },
  event(world, { what, pick }) {
    const { queue } = world.broker;
    const event = one(queue, pick);
    if (!event) return;
    if (what === 'drop') queue.splice(queue.indexOf(event), 1);
    if (what === 'delay') event.due = world.scheduler.now + 60_000 * (1 + (pick % 3));
    if (what === 'repeat') queue.push({ ...event, seq: world.scheduler.nextSeq() });
    world.count(`event: ${what}`);
  },
  async giveUp(world, { after, pick, seed }) {
    await some(world, after, createRandom(seed));
    const flight = one([...world.broker.inFlight], pick);
    if (!flight) return;
    world.broker.giveUp(flight);
    world.count('broker: gives a request up');
  },
  logout(world) {
    world.lldap.auth.logout(`nonsense+${ADMIN}`);
    world.count('lldap: logout');
  },
  rotate(world, { what }) {
    const { lldap } = world;
    const next = `admin-password-${world.scheduler.nextSeq()}`;
    if (what !== 'file') lldap.setPassword(ADMIN, next);
    if (what !== 'password') lldap.credentials = { username: ADMIN, password: next };
    world.count('lldap: rotation of the operator’s password');
  },
  demote(world) {
    byHand(world, (directory) => directory.removeMember(ADMIN, 1), false);
    world.count('lldap: operator demoted');
  },

  forge(world, { event }) {
    world.broker.post(event);
    world.count('event: forged');
  },
  startup(world, { mode }) {
    world.broker.post({ what: 'startup', mode });
  },

  apply(world, { kind, at, spec }) {
    const { namespace, name } = split(at);
    const current = world.kube.get(kind, namespace, name);
    if (!current) world.kube.create(kind, namespace, name, LABELS, spec);
    else if (mayBecome(current, spec)) world.kube.changeSpec(current, spec);
  },
  delete(world, { kind, at }) {
    const current = found(world, kind, at);
    if (current) world.kube.delete(current);
  },
  request(world, { kind, at, token }) {
    const current = found(world, kind, at);
    if (current) world.kube.changeMetadata(current, { annotations: { ...current.metadata.annotations, [REQUESTED_AT]: token } });
  },
  touch(world, { kind, at, what }) {
    const current = found(world, kind, at);
    if (!current) return;
    world.count('kube: another controller writes');
    const version = current.metadata.resourceVersion;
    if (what === 'annotation') world.kube.changeMetadata(current, { annotations: { ...current.metadata.annotations, audited: version } });
    else if (what === 'condition') world.kube.changeStatus(current, { ...current.status, conditions: audited(current) });
    else world.kube.changeMetadata(current, { finalizers: toggled(current.metadata.finalizers ?? [], current) });
  },
  secret(world, { at, data, labelled }) {
    if (data === null) return world.kube.deleteSecret(at);
    const { namespace, name } = split(at);
    const encoded = Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')]));
    world.kube.putSecret({ metadata: { name, namespace, labels: labelled ? LABELS : {} }, data: encoded });
  },
  backup(world, { of }) {
    if (of === 'lldap') world.backups.lldap = structuredClone(world.lldap.state);
    else world.backups.kube = { resources: [...world.kube.resources.values()], secrets: world.kube.secrets };
  },
  restore(world, { of, bare }) {
    if (of === 'lldap') restoreLldap(world);
    else restoreKube(world, bare);
  },

  newUser(world, { id, email, displayName }) {
    byHand(world, (directory) => {
      const { uuid } = directory.createUser({ id, email, ...(displayName !== undefined && { displayName }) });
      world.ledger.objects.add(uuid);
    });
  },
  newGroup(world, { displayName }) {
    byHand(world, (directory) => world.ledger.objects.add(directory.createGroup({ displayName }).uuid));
  },
  editUser(world, { id, email, displayName, shoe }) {
    const insertAttributes = shoe === undefined ? [] : [{ name: 'shoe', value: [shoe] }];
    byHand(world, (directory) => directory.updateUser({ id, email: email ?? null, displayName: displayName ?? null, insertAttributes }));
  },
  renameGroup(world, { from, to }) {
    byHand(world, (directory) => directory.updateGroup({ id: groupId(world, from), displayName: to }));
  },
  removeUser(world, { id }) {
    if (id !== ADMIN) byHand(world, (directory) => directory.deleteUser(id));
  },
  removeGroup(world, { displayName }) {
    byHand(world, (directory) => directory.deleteGroup(groupId(world, displayName)));
  },
  join(world, { user, group }) {
    byHand(world, (directory) => {
      directory.addMember(user, groupId(world, group));
      world.ledger.pairs.add(`${directory.user(user).uuid}|${directory.group(groupId(world, group)).uuid}`);
    });
  },
  leave(world, { user, group }) {
    if (user !== ADMIN) byHand(world, (directory) => directory.removeMember(user, groupId(world, group)));
  },
  mark(world, { of, name, value }) {
    byHand(world, (directory) => {
      const change =
        value === null ? { removeAttributes: [MARK_ATTRIBUTE] } : { insertAttributes: [{ name: MARK_ATTRIBUTE, value: [value] }] };
      const { uuid } = of === 'user' ? directory.user(name) : directory.group(groupId(world, name));
      if (of === 'user') directory.updateUser({ id: name, ...change });
      else directory.updateGroup({ id: groupId(world, name), ...change });
      world.ledger.objects.add(uuid);
    });
  },
  password(world, { id, password }) {
    byHand(world, () => world.lldap.setPassword(id, password));
  },
  define(world, { target, name }) {
    byHand(world, (directory) => {
      const of = target === 'User' ? 'user' : 'group';
      if (directory.state.definitions[of].has(name)) return;
      const definition = { name, attributeType: 'STRING' as const, isList: false, isVisible: true, isEditable: false };
      directory.state.definitions[of].set(name, { ...definition, isHardcoded: false, isReadonly: false });
      world.ledger.definitions.add(`${target} ${name}`);
    });
  },
  undefine(world, { target, name }) {
    byHand(world, (directory) => {
      const of = target === 'User' ? 'user' : 'group';
      directory.state.definitions[of].delete(name);
      directory.dropValues(of, name);
      if (name !== MARK_ATTRIBUTE) return;
      for (const { kind, uuid } of world.history.current.objects) if (kind === `Lldap${target}`) world.ledger.objects.add(uuid);
    });
  },
};

async function some(world: World, actions: number, random: Random): Promise<void> {
  for (let i = 0; i < actions; i++) if (!(await world.act(random))) return;
}

function one<T>(all: readonly T[], pick: number): T | undefined {
  return all[pick % Math.max(all.length, 1)];
}

/** What lldap refuses does not happen. */
function byHand(world: World, work: Parameters<World['lldap']['byHand']>[0], managed = true): void {
  try {
    world.lldap.byHand(work);
  } catch (error) {
    if (error instanceof Error && error.name === 'Refusal') return;
    throw error;
  }
  if (!managed) return;
  world.needsFull = true;
  world.count('lldap: edited by hand');
}

function groupId(world: World, displayName: string): number {
  for (const group of world.lldap.state.groups.values()) if (lower(group.displayName) === lower(displayName)) return group.id;
  return -1;
}

export function split(at: Place): { namespace: string; name: string } {
  const [namespace = '', name = ''] = at.split('/');
  return { namespace, name };
}

function found(world: World, kind: KindName, at: Place): AnyResource | undefined {
  const { namespace, name } = split(at);
  return world.kube.get(kind, namespace, name);
}

/** What the rules of the CRDs let a spec become. */
function mayBecome(current: AnyResource, spec: AnyResource['spec']): boolean {
  const next = { ...current, spec } as AnyResource;
  if (current.kind === 'LldapGroup') return true;
  if (declares(next) !== declares(current)) return false;
  if (current.kind !== 'LldapAttributeSchema' || next.kind !== 'LldapAttributeSchema') return true;
  const fixed = ({ attributeType, target, isList, isVisible, isEditable }: typeof current.spec) =>
    JSON.stringify([attributeType, target, isList, isVisible, isEditable]);
  return fixed(current.spec) === fixed(next.spec);
}

function audited({ status, metadata }: AnyResource) {
  const lastTransitionTime = metadata.creationTimestamp;
  const rest = (status?.conditions ?? []).filter((c) => c.type !== FOREIGN_CONDITION);
  const message = `at ${metadata.resourceVersion}`;
  return [...rest, { type: FOREIGN_CONDITION, status: 'True' as const, reason: 'Audited', message, lastTransitionTime }];
}

const FOREIGN_FINALIZER = 'example.com/audit';

/** To what is being deleted nobody may add one. */
function toggled(finalizers: readonly string[], { metadata }: AnyResource): string[] {
  if (finalizers.includes(FOREIGN_FINALIZER)) return finalizers.filter((f) => f !== FOREIGN_FINALIZER);
  return metadata.deletionTimestamp === undefined ? [FOREIGN_FINALIZER, ...finalizers] : [...finalizers];
}

function restoreLldap(world: World): void {
  world.lldap.byHand((directory) => {
    directory.state = structuredClone(world.backups.lldap);
  });
  world.ledger.keepAll(world.history.current.objects, world.definitions(), world.pairs());
  world.needsFull = true;
  world.count('lldap: restored');
}

function restoreKube(world: World, bare: boolean): void {
  const backup = world.backups.kube;
  world.restored = true;
  const before = world.history.current;
  const resources = backup.resources.map((r) => (bare ? asNew(world, r) : r));
  world.kube.restore(resources, backup.secrets);
  world.history.note(false);
  // Without the finalizer no search by mark is made: a group that is renamed before its first pass leaves the old one.
  for (const [key, resource] of before.resources)
    if (!world.kube.resources.get(key)?.metadata.finalizers?.includes(FINALIZER)) world.ledger.vanished(resource, before);
  world.ledger.keepAll(undefined, world.definitions(), world.pairs());
  world.needsFull = true;
  world.count('kube: restored');
}

/** As a tool that restores manifests makes it: finalizers and specs, but no status. */
function asNew(world: World, resource: AnyResource): AnyResource {
  const { status: _status, ...rest } = resource;
  const { deletionTimestamp: _deleted, ...metadata } = resource.metadata;
  return { ...rest, metadata: { ...metadata, uid: world.kube.newUid(), generation: 1 } } as AnyResource;
}
