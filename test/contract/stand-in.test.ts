import assert from 'node:assert/strict';
import fc from 'fast-check';
import { LldapError } from '../../shared/lldap/api.ts';
import { textError } from '../../shared/lldap/errors.ts';
import { JPEG } from '../local/lldap/jpeg.ts';
import { type Target, tokenIn, useTarget } from './target.ts';

/**
 * The same random requests to the target, a real lldap if one is named, and to a stand-in: both must answer alike, but for
 * ids, dates and the wording of errors. What is known to differ is not asked; `test/local/lldap/server.ts` lists it.
 * `RUNS` says how many sequences are tried.
 */
describe('the stand-in', () => {
  const [target, standIn] = [useTarget(), useTarget({ standIn: true })];

  it('answers as lldap does, whatever is asked in whatever order', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(OPERATION, { minLength: 5, maxLength: 30 }), async (operations) => {
        const prefix = target.unique();
        const [there, here] = [new World(target, prefix), new World(standIn, prefix)];
        try {
          for (const operation of [...START, ...operations])
            assert.deepEqual(await here.carryOut(operation), await there.carryOut(operation), JSON.stringify(operation));
          assert.deepEqual(await here.all(), await there.all());
        } finally {
          await there.clean();
          await here.clean();
        }
      }),
      { numRuns: Number(process.env.RUNS ?? 25) },
    );
  });
});

/** `~` in a text stands for what tells one run's names from another's. */
interface Operation {
  /** Who asks: the administrator, or a user with a password. */
  by: string;
  query: string;
  variables: Record<string, unknown>;
  /** A group by name, for the variable `id` or `group.id`. */
  group?: string;
  /** Instead of a query: a new password of a user. */
  password?: string;
}

const BUILT_IN = ['lldap_admin', 'lldap_password_manager', 'lldap_strict_readonly'];
const USERS = ['~A', '~a', '~b', '~É', '~é', '~%41', '~ x'];
const GROUPS = ['~G', '~g', '~Ä', '~ä', '~ h'];
const ATTRIBUTES = ['~s', '~S', '~i', '~d', '~j', '~nope'];
const OWN_OF_USERS = [
  'first_name',
  'First_Name',
  'last_name',
  'display_name',
  'Display_Name',
  'mail',
  'Mail',
  'avatar',
  'uuid',
  'User_Id',
  'creation_date',
];
const OWN_OF_GROUPS = ['Display_Name', 'uuid', 'Group_Id', 'creation_date'];
const VALUES = [
  '',
  ' ',
  'x',
  'X',
  '5',
  '+05',
  '-0',
  '9223372036854775808',
  '2024-01-02T03:04:05.10+02:00',
  '9999-12-31T23:59:60-05:00',
  JPEG,
  JPEG.slice(0, -4),
];
const FIELDS = [
  'id',
  'Uid',
  'mail',
  'email',
  'displayname',
  'cn',
  'firstName',
  'sn',
  'givenname',
  'memberOf',
  'dn',
  'objectClass',
  ...ATTRIBUTES,
];

const user = fc.constantFrom(...USERS);
const group = fc.constantFrom(...GROUPS);
const optional = <T>(values: fc.Arbitrary<T>) => fc.option(values, { nil: undefined });
const email = fc.constantFrom('~a@x', '~A@x', '~b@x', '~É@x', '~é@x');
const text = fc.constantFrom('', 'x', '~y', 'É', ' z ');
/** Of values that fit as a rule. */
const FITTING: Record<string, string[][]> = {
  i: [['5'], ['+05', '-0'], []],
  d: [['2024-01-02T03:04:05.10+02:00'], ['9999-12-31T23:59:60-05:00']],
  j: [[JPEG], [JPEG.slice(0, -4)], ['']],
  avatar: [[JPEG], ['']],
};
const valuesFor = (name: string) =>
  fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom<string[]>(...(FITTING[name.replace('~', '')] ?? [['x'], ['~v'], ['']])) },
    { weight: 1, arbitrary: fc.constantFrom<string[]>([], ['', ''], ['a', 'b'], ...VALUES.map((one) => [one])) },
  );
/** No name twice in one request: lldap keeps one of the values, or none, depending on the request. */
const attributes = (own: string[]) => {
  const name = fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...ATTRIBUTES) }, { weight: 1, arbitrary: fc.constantFrom(...own) });
  const attribute = name.chain((its) => fc.record({ name: fc.constant(its), value: valuesFor(its) }));
  return optional(fc.uniqueArray(attribute, { maxLength: 2, selector: (its) => its.name.toLowerCase() }));
};
const names = (from: string[]) => optional(fc.array(fc.constantFrom(...from), { maxLength: 2 }));
const fields = {
  email: optional(email),
  displayName: optional(text),
  firstName: optional(text),
  lastName: optional(text),
  avatar: fc.option(fc.constantFrom(...VALUES), { nil: undefined, freq: 1 }),
};
const type = fc.constantFrom('STRING', 'INTEGER', 'DATE_TIME', 'JPEG_PHOTO');
const definition = fc.record({
  name: fc.constantFrom(...ATTRIBUTES),
  type,
  isList: fc.boolean(),
  isVisible: fc.boolean(),
  isEditable: fc.boolean(),
});

const USER = '{ id email displayName firstName lastName avatar attributes { name value } groups { displayName } }';
const GROUP = '{ displayName attributes { name value } users { id } }';
const DEFINE = '($name: String!, $type: AttributeType!, $isList: Boolean!, $isVisible: Boolean!, $isEditable: Boolean!)';
const DEFINED = '(name: $name, attributeType: $type, isList: $isList, isVisible: $isVisible, isEditable: $isEditable) { ok }';
const MEMBER = (name: string) => `mutation ($userId: String!, $id: Int!) { ${name}(userId: $userId, groupId: $id) { ok } }`;

/** What may be asked; more often what makes something that the rest can be asked about. */
const ASKED: [weight: number, query: string, variables: fc.Arbitrary<object>][] = [
  [
    5,
    `mutation ($user: CreateUserInput!) { createUser(user: $user) ${USER} }`,
    fc.record({ user: fc.record({ id: user, ...fields, attributes: attributes(OWN_OF_USERS) }) }),
  ],
  [
    5,
    'mutation ($user: UpdateUserInput!) { updateUser(user: $user) { ok } }',
    fc.record({
      user: fc.record({
        id: user,
        ...fields,
        insertAttributes: attributes(OWN_OF_USERS),
        removeAttributes: names([...ATTRIBUTES, ...OWN_OF_USERS]),
      }),
    }),
  ],
  [2, 'mutation ($id: String!) { deleteUser(userId: $id) { ok } }', fc.record({ id: user })],
  [
    3,
    `mutation ($request: CreateGroupInput!) { createGroupWithDetails(request: $request) ${GROUP} }`,
    fc.record({ request: fc.record({ displayName: group, attributes: attributes(OWN_OF_GROUPS) }) }),
  ],
  [
    3,
    'mutation ($group: UpdateGroupInput!) { updateGroup(group: $group) { ok } }',
    fc.record({
      group: fc.record({
        displayName: optional(group),
        insertAttributes: attributes(OWN_OF_GROUPS),
        removeAttributes: names([...ATTRIBUTES, ...OWN_OF_GROUPS, 'display_name']),
      }),
    }),
  ],
  [1, 'mutation ($id: Int!) { deleteGroup(groupId: $id) { ok } }', fc.constant({})],
  [4, MEMBER('addUserToGroup'), fc.record({ userId: user })],
  [2, MEMBER('removeUserFromGroup'), fc.record({ userId: user })],
  [3, `mutation ${DEFINE} { addUserAttribute${DEFINED} }`, definition],
  [3, `mutation ${DEFINE} { addGroupAttribute${DEFINED} }`, definition],
  [
    1,
    'mutation ($name: String!) { deleteUserAttribute(name: $name) { ok } }',
    fc.record({ name: fc.constantFrom(...ATTRIBUTES, ...OWN_OF_USERS) }),
  ],
  [
    1,
    'mutation ($name: String!) { deleteGroupAttribute(name: $name) { ok } }',
    fc.record({ name: fc.constantFrom(...ATTRIBUTES, ...OWN_OF_GROUPS) }),
  ],
  [2, `query ($id: String!) { user(userId: $id) ${USER} }`, fc.record({ id: user })],
  [2, `query ($id: Int!) { group(groupId: $id) ${GROUP} }`, fc.constant({})],
  [
    3,
    'query ($field: String!, $value: String!, $mine: String!) { users(filters: { all: [{ eq: { field: $field, value: $value } }, { memberOf: $mine }] }) { id } }',
    fc.record({ field: fc.constantFrom(...FIELDS), value: fc.constantFrom(...USERS, ...VALUES, '~A@X', '~É@x', ...BUILT_IN), mine: group }),
  ],
];

const OPERATION: fc.Arbitrary<Operation> = fc.oneof(
  ...ASKED.map(([weight, query, variables]) => ({
    weight,
    arbitrary: fc.record({
      by: fc.oneof({ weight: 5, arbitrary: fc.constant('') }, { weight: 1, arbitrary: fc.constantFrom('~a', '~b') }),
      query: fc.constant(query),
      variables: variables as fc.Arbitrary<Record<string, unknown>>,
      // Those of lldap itself keep their names and attributes: nothing could give them back.
      group: /(?:update|delete)Group/.test(query) ? group : fc.oneof(group, group, fc.constantFrom(...BUILT_IN)),
    }),
  })),
  { weight: 2, arbitrary: fc.record({ by: fc.constant(''), query: fc.constant(''), variables: fc.constant({}), password: user }) },
);

const asAdministrator = (query: string, variables: Record<string, unknown>): Operation => ({ by: '', query, variables });

/** Something to begin with. */
const START: Operation[] = [
  ...['~s STRING', '~i INTEGER', '~d DATE_TIME', '~j JPEG_PHOTO'].flatMap((each) => {
    const [name, type] = each.split(' ');
    const made = { name, type, isList: name === '~i', isVisible: name !== '~d', isEditable: name !== '~s' };
    return ['addUserAttribute', 'addGroupAttribute'].map((field) => asAdministrator(`mutation ${DEFINE} { ${field}${DEFINED} }`, made));
  }),
  ...['~a', '~b'].map((id) =>
    asAdministrator('mutation ($id: String!, $email: String!) { createUser(user: { id: $id, email: $email }) { id } }', {
      id,
      email: `${id}@x`,
    }),
  ),
  ...['~G', '~ä'].map((name) => asAdministrator('mutation ($name: String!) { createGroup(name: $name) { displayName } }', { name })),
  { by: '', query: '', variables: {}, password: '~a' },
];

const PASSWORD = 'password of the user';
/** What each lldap makes itself. */
const ITS_OWN = ['creation_date', 'modified_date', 'password_modified_date', 'uuid', 'group_id'];

/** One of the two, as the operations of one run see it. */
class World {
  readonly #target: Target;
  readonly #prefix: string;

  constructor(target: Target, prefix: string) {
    this.#target = target;
    this.#prefix = prefix;
  }

  async carryOut({ by, query, variables, group, password }: Operation): Promise<unknown> {
    if (password !== undefined) return await this.#setPassword(this.#named(password));
    const token = by === '' ? undefined : await this.#login(this.#named(by));
    if (token === 'none') return 'no login';
    const id =
      query.includes('$id: Int!') || query.includes('UpdateGroupInput') ? await this.#groupId(this.#named(group ?? '')) : undefined;
    const named = this.#named(variables);
    const all = query.includes('UpdateGroupInput') ? { group: { ...(named.group as object), id } } : { id, ...named };
    const { status, data, error } = await this.#target.graphql(query, all, token);
    if (error === '') return [status, plain(data)];
    const { kind, attribute, message } = textError(error, []);
    return [status, kind, attribute, kind === 'unforeseen' ? message.split(':', 2) : ''];
  }

  /** All that the run has made. */
  async all(): Promise<unknown> {
    const { data } = await this.#target.graphql(
      `{ users(filters: { any: [${USERS.map((id) => `{ eq: { field: "id", value: ${JSON.stringify(this.#named(id))} } }`)}] }) ${USER} }`,
    );
    return [plain(data), plain(await this.#groups()), await this.#definitions()];
  }

  async clean(): Promise<void> {
    const { client } = this.#target;
    for (const id of USERS) await client.deleteUser(this.#named(id));
    for (const { id } of await this.#groups()) await client.deleteGroup(id);
    for (const [of, { name }] of await this.#definitions()) await client.deleteAttribute(of, name);
  }

  #named<T>(value: T): T {
    return JSON.parse(JSON.stringify(value).replaceAll('~', this.#prefix));
  }

  async #groups(): Promise<{ id: number; displayName: string }[]> {
    const groups = (await this.#target.client.groups()).map(({ uuid: _, ...rest }) => rest);
    return groups.filter(({ displayName }) => displayName.startsWith(this.#prefix));
  }

  async #definitions() {
    const { User, Group } = await this.#target.client.schema();
    const all = [...User.map((made) => ['User', made] as const), ...Group.map((made) => ['Group', made] as const)];
    return all.filter(([, { name }]) => name.startsWith(this.#prefix));
  }

  async #groupId(name: string): Promise<number> {
    const groups = await this.#target.client.groups();
    return groups.find(({ displayName }) => displayName === name)?.id ?? 2_000_000_000;
  }

  async #login(id: string): Promise<string> {
    const { status, text } = await this.#target.login(id, PASSWORD);
    return status === 200 ? tokenIn(text) : 'none';
  }

  async #setPassword(id: string): Promise<string> {
    try {
      await this.#target.passwords.set(id, PASSWORD);
      return 'set';
    } catch (error) {
      if (error instanceof LldapError) return error.kind;
      throw error;
    }
  }
}

/** Without what each makes itself: of a password only whether one was ever set. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  const { attributes, id, ...rest } = value as { attributes?: { name: string; value: string[] }[]; id?: unknown };
  const of = (name: string) => attributes?.find((attribute) => attribute.name === name)?.value[0];
  return {
    ...Object.fromEntries(Object.entries(rest).map(([key, each]) => [key, plain(each)])),
    ...(typeof id === 'string' && { id }),
    ...(attributes && {
      hasPassword: of('password_modified_date') !== of('creation_date'),
      attributes: attributes.map((attribute) => (ITS_OWN.includes(attribute.name) ? attribute.name : attribute)),
    }),
  };
}
