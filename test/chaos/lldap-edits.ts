import { FINALIZER, MARK_ATTRIBUTE } from '../../shared/constants.ts';
import type { AnyResource } from './kube-double.ts';
import { ADMIN } from './lldap-double.ts';
import { lower } from './ownership-oracle.ts';
import type { Steps } from './schedule.ts';
import type { World } from './world.ts';

type Touching =
  | 'newUser'
  | 'newGroup'
  | 'editUser'
  | 'renameGroup'
  | 'removeUser'
  | 'removeGroup'
  | 'join'
  | 'leave'
  | 'mark'
  | 'password'
  | 'define'
  | 'undefine';

/** What people do in lldap by hand, and what goes back to a backup. */
export const HANDS: Steps<World, Touching | 'backup' | 'restore'> = {
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
      made(world, uuid);
    });
  },
  newGroup(world, { displayName }) {
    byHand(world, (directory) => made(world, directory.createGroup({ displayName }).uuid));
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
      world.possession.forget(uuid);
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
      world.possession.forget();
      for (const { kind, uuid } of world.history.current.objects) if (kind === `Lldap${target}`) world.ledger.objects.add(uuid);
    });
  },
};

function made({ ledger, possession }: World, uuid: string): void {
  ledger.objects.add(uuid);
  possession.madeByHand(uuid);
}

/** What lldap refuses does not happen. */
export function byHand(world: World, work: Parameters<World['lldap']['byHand']>[0], managed = true): void {
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

function restoreLldap(world: World): void {
  world.lldap.byHand((directory) => {
    directory.state = structuredClone(world.backups.lldap);
  });
  world.possession.forget();
  world.ledger.keepAll(world.history.current.objects, world.definitions(), world.pairs());
  world.needsFull = true;
  world.count('lldap: restored');
}

function restoreKube(world: World, bare: boolean): void {
  const backup = world.backups.kube;
  world.isRestored = true;
  const before = world.history.current;
  const resources = backup.resources.map((r) => (bare ? asNew(world, r) : r));
  world.kube.restore(resources, backup.secrets);
  world.possession.back(world.kube.resources.values());
  world.history.note(false);
  // Without the finalizer no search by mark is made: a group that is renamed before its first reconcile leaves the old one.
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
