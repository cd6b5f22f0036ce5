import { type Caller, type Role, roleOf } from './auth.ts';
import { type Definition, define, fold, type Target, undefine } from './definitions.ts';
import type { Directory, GroupInput, GroupUpdate, UserInput, UserUpdate } from './directory.ts';
import { predicate, type RequestFilter } from './filters.ts';
import type { Group, User } from './state.ts';
import { type Dialect, Refusal } from './texts.ts';

const OK = { ok: true };
/** lldap guards the group that happens to have this id, whatever its name. */
const ADMIN_GROUP = 1;

/** What each field of the GraphQL API does for one caller. */
export function resolvers(directory: Directory, dialect: Dialect, caller: Caller) {
  const role = roleOf(caller);
  const mayWrite = (what: string) => {
    if (role !== 'admin') throw new Refusal(`Unauthorized ${what}`);
  };
  const mayRead = (what: string, isOwn = false) => {
    if (role === 'regular' && !isOwn) throw new Refusal(`Unauthorized access to ${what}`);
  };
  const view = viewer(directory, role);

  return {
    apiVersion: () => '1.0',
    user({ userId }: { userId: string }) {
      const id = fold(decoded(userId));
      mayRead('user data', id === caller.id);
      return view.user(directory.user(id));
    },
    users({ filters }: { filters?: RequestFilter | null }) {
      mayRead('user list');
      const passes = filters == null ? () => true : predicate(filters, directory);
      return [...directory.state.users.values()].filter(passes).sort(by('id')).map(view.user);
    },
    group({ groupId }: { groupId: number }) {
      mayRead('group data', directory.state.groups.get(groupId)?.members.has(caller.id));
      return view.group(directory.group(groupId));
    },
    groups() {
      mayRead('group list');
      return [...directory.state.groups.values()].sort(by('displayName')).map(view.group);
    },
    schema() {
      return { userSchema: { attributes: view.definitions('user') }, groupSchema: { attributes: view.definitions('group') } };
    },

    createUser({ user }: { user: UserInput }) {
      mayWrite('user creation');
      return view.user(directory.createUser(user));
    },
    updateUser({ user }: { user: UserUpdate }) {
      if (fold(user.id) !== caller.id) mayWrite('user update');
      directory.updateUser(user, { onlyEditable: role !== 'admin' });
      return OK;
    },
    deleteUser({ userId }: { userId: string }) {
      mayWrite('user deletion');
      if (fold(userId) === caller.id) throw new Refusal('Cannot delete current user');
      directory.deleteUser(userId);
      return OK;
    },
    createGroup({ name }: { name: string }) {
      mayWrite('group creation');
      return view.group(directory.createGroup({ displayName: name }));
    },
    createGroupWithDetails({ request }: { request: GroupInput }) {
      mayWrite('group creation');
      return view.group(directory.createGroup(request));
    },
    updateGroup({ group }: { group: GroupUpdate }) {
      mayWrite('group update');
      if (group.id === ADMIN_GROUP && group.displayName != null) throw new Refusal('Cannot change lldap_admin group name');
      directory.updateGroup(group);
      return OK;
    },
    deleteGroup({ groupId }: { groupId: number }) {
      mayWrite('group deletion');
      if (groupId === ADMIN_GROUP) throw new Refusal('Cannot delete admin group');
      directory.deleteGroup(groupId);
      return OK;
    },
    addUserToGroup({ userId, groupId }: Member) {
      mayWrite('group membership modification');
      directory.addMember(userId, groupId);
      return OK;
    },
    removeUserFromGroup({ userId, groupId }: Member) {
      mayWrite('group membership modification');
      if (groupId === ADMIN_GROUP && fold(userId) === caller.id) throw new Refusal('Cannot remove admin rights for current user');
      directory.removeMember(userId, groupId);
      return OK;
    },
    addUserAttribute: (added: Omit<Definition, 'isHardcoded' | 'isReadonly'>) => add('user', added),
    addGroupAttribute: (added: Omit<Definition, 'isHardcoded' | 'isReadonly'>) => add('group', added),
    deleteUserAttribute: ({ name }: { name: string }) => remove('user', name),
    deleteGroupAttribute: ({ name }: { name: string }) => remove('group', name),
  };

  function add(target: Target, added: Omit<Definition, 'isHardcoded' | 'isReadonly'>) {
    mayWrite('attribute creation');
    define(directory.state.definitions, target, added, dialect);
    return OK;
  }

  function remove(target: Target, name: string) {
    mayWrite('attribute deletion');
    undefine(directory.state.definitions, target, name);
    directory.dropValues(target, fold(name));
    return OK;
  }
}

/** lldap decodes this one argument as a part of a URL, and leaves a lone `%` as it is. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replace(/%(?![0-9a-f]{2})/gi, '%25'));
  } catch {
    throw new Refusal('Invalid user parameter');
  }
}

interface Member {
  userId: string;
  groupId: number;
}

function by<Key extends string>(key: Key) {
  return (a: Record<Key, string>, b: Record<Key, string>) => (a[key].toLowerCase() < b[key].toLowerCase() ? -1 : 1);
}

/** Users and groups as the API shows them; fields that cost something, or lead in circles, are made when asked for. */
function viewer(directory: Directory, role: Role) {
  const isShown = (target: Target, name: string) =>
    role !== 'regular' || directory.state.definitions[target].get(name)?.isVisible !== false;
  const shown = (target: Target, own: Record<string, string | undefined>, stored: Map<string, string[]>) =>
    [
      ...Object.entries(own).flatMap(([name, value]): [string, string[]][] => (value === undefined ? [] : [[name, [value]]])),
      ...[...stored].sort(([a], [b]) => (a < b ? -1 : 1)),
    ]
      .filter(([name]) => isShown(target, name))
      .map(([name, value]) => ({ name, value, schema: directory.state.definitions[target].get(name) }));

  const user = (it: User) => ({
    id: it.id,
    email: it.email,
    displayName: it.displayName ?? '',
    firstName: it.attributes.get('first_name')?.[0] ?? '',
    lastName: it.attributes.get('last_name')?.[0] ?? '',
    avatar: it.attributes.get('avatar')?.[0],
    creationDate: `${it.createdAt}Z`,
    uuid: it.uuid,
    attributes: () =>
      shown(
        'user',
        {
          creation_date: utc(it.createdAt),
          display_name: it.displayName,
          mail: it.email,
          modified_date: utc(it.modifiedAt),
          password_modified_date: utc(it.passwordModifiedAt),
          user_id: it.id,
          uuid: it.uuid,
        },
        it.attributes,
      ),
    // Here a group comes without its custom attributes.
    groups: () =>
      directory
        .groupsOf(it.id)
        .sort(by('displayName'))
        .map((its) => groupWith(its, new Map())),
  });

  const groupWith = (it: Group, attributes: Map<string, string[]>) => ({
    id: it.id,
    displayName: it.displayName,
    creationDate: `${it.createdAt}Z`,
    uuid: it.uuid,
    attributes: () =>
      shown(
        'group',
        {
          creation_date: utc(it.createdAt),
          display_name: it.displayName,
          group_id: String(it.id),
          modified_date: utc(it.modifiedAt),
          uuid: it.uuid,
        },
        attributes,
      ),
    users: () => [...it.members].sort().map((id) => user(directory.user(id))),
  });

  return {
    user,
    group: (it: Group) => groupWith(it, it.attributes),
    definitions: (target: Target) =>
      [...directory.state.definitions[target].values()].filter(({ name }) => isShown(target, name)).sort(by('name')),
  };
}

function utc(timestamp: string): string {
  return `${timestamp}+00:00`;
}
