import { fold, type Target } from './definitions.ts';
import { emptyState, type Group, type State, type User } from './state.ts';
import { DATABASE_TEXTS, type Dialect, NONE_UPDATED, notDefined, notEditable, notFound, Refusal, readOnly } from './texts.ts';
import { normalised, timestamp, uuidOf } from './values.ts';

export interface AttributeInput {
  name: string;
  value: string[];
}

export interface UserInput {
  id: string;
  email?: string | null;
  displayName?: string | null;
  firstName?: string | null;
  lastName?: string | null;
  avatar?: string | null;
  attributes?: AttributeInput[] | null;
}

export interface UserUpdate extends Omit<UserInput, 'attributes'> {
  insertAttributes?: AttributeInput[] | null;
  removeAttributes?: string[] | null;
}

export interface GroupInput {
  displayName: string;
  attributes?: AttributeInput[] | null;
}

export interface GroupUpdate {
  id: number;
  displayName?: string | null;
  insertAttributes?: AttributeInput[] | null;
  removeAttributes?: string[] | null;
}

/** Users, groups and memberships with lldap's rules for them; knows nothing of who asks. Throws {@link Refusal}. */
export class Directory {
  state: State = emptyState();
  readonly #dialect: Dialect;

  constructor(dialect: Dialect) {
    this.#dialect = dialect;
  }

  get texts() {
    return DATABASE_TEXTS[this.#dialect];
  }

  user(id: string): User {
    const user = this.state.users.get(fold(id));
    if (user === undefined) throw new Refusal(notFound(fold(id)));
    return user;
  }

  group(id: number): Group {
    const group = this.state.groups.get(id);
    if (group === undefined) throw new Refusal(notFound(`GroupId(${id})`));
    return group;
  }

  groupsOf(userId: string): Group[] {
    return [...this.state.groups.values()].filter(({ members }) => members.has(userId));
  }

  createUser(input: UserInput): User {
    const { mail, display_name, ...attributes } = this.#values('user', inOrder(input, input.attributes ?? []));
    const email = input.email ?? mail?.[0];
    if (email === undefined) throw new Refusal('Email is required when creating a new user');
    const id = fold(input.id);
    const emailTaken = this.#emailTaken(email);
    // When both are taken, SQLite names the e-mail and Postgres the id.
    if (emailTaken && (this.#dialect === 'sqlite' || !this.state.users.has(id))) throw new Refusal(this.texts.emailExists);
    if (this.state.users.has(id)) throw new Refusal(this.texts.userExists);
    const createdAt = timestamp();
    const user: User = {
      id,
      uuid: uuidOf(id, createdAt),
      email,
      displayName: (input.displayName ?? display_name?.[0]) || undefined,
      createdAt,
      modifiedAt: createdAt,
      passwordModifiedAt: createdAt,
      password: undefined,
      attributes: new Map(Object.entries(attributes)),
    };
    this.state.users.set(id, user);
    return user;
  }

  /** @param onlyEditable by who is no administrator; taking an attribute away is not checked */
  updateUser(input: UserUpdate, { onlyEditable = false } = {}): void {
    const given = inOrder(input, input.insertAttributes ?? []);
    const { mail, display_name, ...written } = this.#values(
      'user',
      given.filter(({ value }) => !isCleared(value)),
      onlyEditable,
    );
    const cleared = given.filter(({ value }) => isCleared(value)).map(({ name }) => name);
    const removed = this.#removed('user', [...cleared, ...(input.removeAttributes ?? [])]);
    const user = this.state.users.get(fold(input.id));
    if (user === undefined) throw new Refusal(NONE_UPDATED);
    const email = input.email ?? mail?.[0];
    if (email !== undefined && this.#emailTaken(email, user)) throw new Refusal(this.texts.emailExistsOnUpdate);

    if (email !== undefined) user.email = email;
    if (removed.includes('display_name')) user.displayName = undefined;
    const displayName = input.displayName ?? display_name?.[0];
    if (displayName !== undefined) user.displayName = displayName || undefined;
    for (const name of removed) user.attributes.delete(name);
    for (const [name, value] of Object.entries(written)) user.attributes.set(name, value);
    user.modifiedAt = timestamp();
  }

  deleteUser(id: string): void {
    if (!this.state.users.delete(fold(id))) throw new Refusal(notFound(`No such user: '${fold(id)}'`));
    for (const group of this.state.groups.values()) group.members.delete(fold(id));
    for (const [token, owner] of this.state.refreshTokens) if (owner === fold(id)) this.state.refreshTokens.delete(token);
  }

  createGroup(input: GroupInput): Group {
    const attributes = this.#values('group', input.attributes ?? []);
    const id = this.state.nextGroupId;
    if (this.#dialect === 'postgres') this.state.nextGroupId += 1;
    if (this.#nameTaken(input.displayName)) throw new Refusal(this.texts.groupExists);
    if (attributes.display_name !== undefined) throw new Refusal(notStored('Group', 'display_name'));
    this.state.nextGroupId = id + 1;
    const createdAt = timestamp();
    const group: Group = {
      id,
      uuid: uuidOf(input.displayName, createdAt),
      displayName: input.displayName,
      createdAt,
      modifiedAt: createdAt,
      attributes: new Map(Object.entries(attributes)),
      members: new Set(),
    };
    this.state.groups.set(id, group);
    return group;
  }

  updateGroup(input: GroupUpdate): void {
    const isName = ({ name }: AttributeInput) => name === 'display_name';
    const inserted = input.insertAttributes ?? [];
    const { display_name, ...attributes } = this.#values(
      'group',
      inserted.filter((attribute) => !isName(attribute)),
    );
    const group = this.state.groups.get(input.id);
    if (group === undefined) throw new Refusal(NONE_UPDATED);
    const displayName = input.displayName ?? inserted.find(isName)?.value[0];
    if (displayName !== undefined && this.#nameTaken(displayName, group)) throw new Refusal(this.texts.groupExistsOnRename);
    // Under a name in another case, it is no attribute that a group stores.
    if (display_name !== undefined) throw new Refusal(notStored('Group', 'display_name'));
    const removed = this.#removed('group', input.removeAttributes ?? []);

    if (displayName !== undefined) group.displayName = displayName;
    for (const name of removed) group.attributes.delete(name);
    for (const [name, value] of Object.entries(attributes)) group.attributes.set(name, value);
    group.modifiedAt = timestamp();
  }

  deleteGroup(id: number): void {
    if (!this.state.groups.delete(id)) throw new Refusal(notFound(`No such group: '${id}'`));
  }

  addMember(userId: string, groupId: number): void {
    const group = this.state.groups.get(groupId);
    if (!this.state.users.has(fold(userId))) throw new Refusal(this.texts.noUserToJoin);
    if (group === undefined) throw new Refusal(this.texts.noGroupToJoin);
    if (group.members.has(fold(userId))) throw new Refusal(this.texts.memberExists);
    group.members.add(fold(userId));
    group.modifiedAt = timestamp();
  }

  removeMember(userId: string, groupId: number): void {
    const group = this.state.groups.get(groupId);
    if (!group?.members.delete(fold(userId))) throw new Refusal(notFound(`No such membership: '${fold(userId)}' -> ${groupId}`));
    group.modifiedAt = timestamp();
  }

  /** Deletes a definition's values; the definition itself is gone already. */
  dropValues(target: Target, name: string): void {
    const objects = target === 'user' ? this.state.users.values() : this.state.groups.values();
    for (const { attributes } of objects) attributes.delete(name);
  }

  #emailTaken(email: string, by?: User): boolean {
    return [...this.state.users.values()].some((user) => user !== by && user.email.toLowerCase() === email.toLowerCase());
  }

  #nameTaken(name: string, by?: Group): boolean {
    return [...this.state.groups.values()].some((group) => group !== by && group.displayName.toLowerCase() === name.toLowerCase());
  }

  /** The values as they will be stored; the last of two of one name wins. */
  #values(target: Target, inputs: AttributeInput[], onlyEditable = false): Record<string, string[]> {
    const values: Record<string, string[]> = {};
    for (const { name: given, value } of inputs) {
      const name = fold(given);
      const shown = target === 'user' ? name : given;
      const found = this.state.definitions[target].get(name);
      if (found === undefined) throw new Refusal(notDefined(shown));
      if (found.isReadonly) throw new Refusal(readOnly(shown));
      if (onlyEditable && !found.isEditable) throw new Refusal(notEditable(shown));
      values[name] = normalised(shown, found.attributeType, found.isList, value);
    }
    return values;
  }

  /** The e-mail and the display name are known in this spelling alone; taking away the former, or a group's name, is ignored. */
  #removed(target: Target, names: string[]): string[] {
    return names.map((given) => {
      const name = fold(given);
      if (given === 'display_name' || (given === 'mail' && target === 'user')) return name;
      const found = this.state.definitions[target].get(name);
      if (found === undefined || (found.isHardcoded && !STORED.has(name)))
        throw new Refusal(notStored(target === 'user' ? 'User' : 'Group', name));
      return name;
    });
  }
}

/** Of lldap's own attributes, those that it keeps as it keeps custom ones. */
const STORED = new Set(['avatar', 'first_name', 'last_name']);

const notStored = (which: 'User' | 'Group', name: string) =>
  `Internal error: \`${which} attribute name ${name} doesn't exist in the schema, so nothing can be done with it\``;

/** What clears an attribute of a user, whatever its type; a new user's or a group's is stored with an empty text. */
function isCleared(value: string[]): boolean {
  return value.length === 1 && value[0] === '';
}

/**
 * A user's attributes in the order in which lldap looks at them, those among them that are given as fields; where both
 * are, the attribute counts.
 */
function inOrder({ firstName, lastName, avatar }: UserInput | UserUpdate, attributes: AttributeInput[]): AttributeInput[] {
  const values = new Map<string, string[]>();
  for (const [name, value] of Object.entries({ first_name: firstName, last_name: lastName, avatar }))
    if (value != null) values.set(name, [value]);
  for (const { name, value } of attributes) values.set(fold(name), value);
  const place = (name: string) => ['mail', 'display_name'].indexOf(name) + 1 || 3;
  return [...values].map(([name, value]) => ({ name, value })).sort((a, b) => place(a.name) - place(b.name) || (a.name < b.name ? -1 : 1));
}
