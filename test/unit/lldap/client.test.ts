import assert from 'node:assert/strict';
import type { LldapClient } from '../../../shared/lldap/api.ts';
import { createLldapClientOver } from '../../../shared/lldap/client.ts';
import { HttpError, type HttpRequest } from '../../../shared/platform/http.ts';
import { createLog } from '../../../shared/telemetry/log.ts';
import { FakeClock } from '../../support/fake-clock.ts';

interface Asked {
  operationName: string;
  query: string;
  variables: unknown;
}

/** Over an lldap that answers every operation with this result or error, or with what `result` makes of it. */
function bench(result: unknown = { ok: true }) {
  const operations: [name: string, variables: unknown][] = [];
  const closed: string[] = [];
  const http = {
    request: async ({ url, body = '' }: HttpRequest) => {
      if (url === '/auth/simple/login') return { status: 200, headers: {}, text: '{"token":"t","refreshToken":"r"}' };
      const asked: Asked = JSON.parse(body);
      operations.push([asked.operationName, asked.variables]);
      const made: unknown = typeof result === 'function' ? result(asked) : result;
      const answer = made instanceof Error ? { errors: [{ message: made.message }] } : { data: { result: made } };
      return { status: 200, headers: {}, text: JSON.stringify(answer) };
    },
    close: () => void closed.push('closed'),
  };
  const credentials = async () => ({ username: 'admin', password: 'admin-password' });
  const client = createLldapClientOver(http, { credentials, log: createLog('error'), clock: new FakeClock() });
  return { client, operations, closed };
}

/** The ids in a filter of users. */
const idsOf = (variables: unknown) =>
  (variables as { filters: { any: { eq: { value: string } }[] } }).filters.any.map(({ eq }) => eq.value);
const user = (id: string) => ({ id, email: `${id}@example.com`, uuid: `uuid-${id}`, attributes: [], groups: [] });
const filled = { name: 'desk', value: ['4'] };
const EMPTY = [
  { name: 'Phone', value: [] },
  { name: 'title', value: [''] },
];
const texts = { name: 'nicknames', value: ['', 'al'] };

describe('the client of lldap', () => {
  for (const [count, requests] of [
    [0, []],
    [1, [1]],
    [100, [100]],
    [101, [100, 1]],
    [250, [100, 100, 50]],
  ] as const) {
    it(`asks for ${count} users in filters of at most a hundred`, async () => {
      const { client, operations } = bench([user('alice')]);
      const found = await client.usersById(Array.from({ length: count }, (_, i) => `User-${i}`));
      assert.equal(found.length, requests.length);
      const filters = operations.map(([, variables]) => (variables as { filters: { any: object[] } }).filters.any);
      assert.deepEqual(
        [...new Set(operations.map(([name]) => name)), filters.map(({ length }) => length)],
        count ? ['users', requests] : [[]],
      );
      assert.deepEqual(
        filters.flat(),
        Array.from({ length: count }, (_, i) => ({ eq: { field: 'id', value: `user-${i}` } })),
      );
    });
  }

  it('reads the users beside one whose account is too large, in smaller filters', async () => {
    const { client, operations } = bench(({ variables }: Asked) => {
      const ids = idsOf(variables);
      if (ids.includes('large')) throw new HttpError('large', 'the answer is too large');
      return ids.map(user);
    });
    const found = await client.usersById(['a', 'b', 'large', 'c', 'd']);
    assert.deepEqual(
      found.map(({ id }) => id),
      ['a', 'b', 'c', 'd'],
    );
    assert.deepEqual(
      operations.map(([, variables]) => idsOf(variables).length),
      [5, 3, 2, 1, 2],
    );
  });

  it('lists the names of groups without their attributes, which one tenant may make large', async () => {
    const crew = { id: 7, uuid: 'uuid-crew', displayName: 'Crew' };
    const queries: string[] = [];
    const { client } = bench(({ query }: Asked) => {
      queries.push(query);
      return [crew];
    });
    assert.deepEqual(await client.groupNames(), [crew]);
    assert.doesNotMatch(queries.join(), /attributes/);
  });

  it('finds the first user with an e-mail address, or none', async () => {
    const { client, operations } = bench([user('alice'), user('bob')]);
    assert.equal((await client.userByEmail('Alice@example.com'))?.id, 'alice');
    assert.deepEqual(operations, [['users', { filters: { eq: { field: 'email', value: 'Alice@example.com' } } }]]);
    assert.equal(await bench([]).client.userByEmail('alice@example.com'), undefined);
  });

  const group = { id: 7, uuid: 'uuid-crew', displayName: 'Crew', attributes: [] };
  const definition = { name: 'desk', isList: false, isVisible: true, isEditable: false };
  const writes: Record<
    string,
    [write: (client: LldapClient) => Promise<unknown>, operation: string, variables: unknown, result?: unknown]
  > = {
    'a new user is written without what is empty, which lldap would store': [
      (client) =>
        client.createUser({ id: 'alice', email: 'a@example.com', firstName: '', lastName: 'B', attributes: [filled, ...EMPTY, texts] }),
      'createUser',
      { user: { id: 'alice', email: 'a@example.com', lastName: 'B', attributes: [filled, texts] } },
      user('alice'),
    ],
    'a user without attributes may be new': [
      (client) => client.createUser({ id: 'alice', email: 'a@example.com' }),
      'createUser',
      { user: { id: 'alice', email: 'a@example.com', attributes: [] } },
      user('alice'),
    ],
    'a user loses what is set to nothing, and gets the rest': [
      (client) => client.updateUser('alice', { firstName: '', insertAttributes: [filled, ...EMPTY, texts], removeAttributes: ['Avatar'] }),
      'updateUser',
      { user: { id: 'alice', firstName: '', insertAttributes: [filled, texts], removeAttributes: ['avatar', 'phone', 'title'] } },
    ],
    'a user whose attributes stay keeps them': [
      (client) => client.updateUser('alice', { email: 'b@example.com' }),
      'updateUser',
      { user: { id: 'alice', email: 'b@example.com', insertAttributes: [], removeAttributes: [] } },
    ],
    'a new group is written without what is empty': [
      (client) => client.createGroup({ displayName: 'Crew', attributes: [filled, ...EMPTY] }),
      'createGroupWithDetails',
      { request: { displayName: 'Crew', attributes: [filled] } },
      group,
    ],
    'a group without attributes may be new': [
      (client) => client.createGroup({ displayName: 'Crew' }),
      'createGroupWithDetails',
      { request: { displayName: 'Crew', attributes: [] } },
      group,
    ],
    'a group loses what is set to nothing, and gets the rest': [
      (client) => client.updateGroup(7, { displayName: 'New', insertAttributes: [filled, ...EMPTY] }),
      'updateGroup',
      { group: { id: 7, displayName: 'New', insertAttributes: [filled], removeAttributes: ['phone', 'title'] } },
    ],
    'an attribute of users is defined': [
      (client) => client.addAttribute('User', { ...definition, type: 'JpegPhoto' }),
      'addUserAttribute',
      { ...definition, attributeType: 'JPEG_PHOTO' },
    ],
    'an attribute of groups is defined': [
      (client) => client.addAttribute('Group', { ...definition, type: 'DateTime' }),
      'addGroupAttribute',
      { ...definition, attributeType: 'DATE_TIME' },
    ],
    'an attribute of users is deleted': [(client) => client.deleteAttribute('User', 'desk'), 'deleteUserAttribute', { name: 'desk' }],
    'an attribute of groups is deleted': [(client) => client.deleteAttribute('Group', 'desk'), 'deleteGroupAttribute', { name: 'desk' }],
    'a member joins': [(client) => client.addUserToGroup('alice', 7), 'addUserToGroup', { userId: 'alice', groupId: 7 }],
    'a member leaves': [(client) => client.removeUserFromGroup('alice', 7), 'removeUserFromGroup', { userId: 'alice', groupId: 7 }],
    'a user is deleted': [(client) => client.deleteUser('alice'), 'deleteUser', { userId: 'alice' }],
    'a group is deleted': [(client) => client.deleteGroup(7), 'deleteGroup', { groupId: 7 }],
  };
  for (const [what, [write, operation, variables, result]] of Object.entries(writes)) {
    it(what, async () => {
      const { client, operations } = bench(result);
      assert.deepEqual(await write(client), result);
      assert.deepEqual(operations, [[operation, variables]]);
    });
  }

  it('reads a user and a group by id, also one that looks like part of a URL', async () => {
    const users = bench(user('a%2fb'));
    assert.deepEqual(await users.client.user('a%2fb'), user('a%2fb'));
    assert.deepEqual(users.operations, [['user', { userId: 'a%252fb' }]]);
    const groups = bench(group);
    assert.deepEqual(await groups.client.group(7), group);
    assert.deepEqual(groups.operations, [['group', { groupId: 7 }]]);
  });

  it('reads all groups', async () => {
    const { client, operations } = bench([group]);
    assert.deepEqual([await client.groups(), operations], [[group], [['groups', {}]]]);
  });

  it('reads all definitions of attributes, with their types as resources have them', async () => {
    const types = { STRING: 'String', INTEGER: 'Integer', JPEG_PHOTO: 'JpegPhoto', DATE_TIME: 'DateTime' };
    const flags = { isList: false, isVisible: true, isEditable: false, isHardcoded: false, isReadonly: true };
    const define = (field: string) =>
      Object.entries(types).map((type) => ({ name: 'a', ...flags, [field]: type[field === 'type' ? 1 : 0] }));
    const attributes = define('attributeType');
    const { client } = bench({ userSchema: { attributes }, groupSchema: { attributes: attributes.slice(2) } });
    assert.deepEqual(await client.schema(), { User: define('type'), Group: define('type').slice(2) });
  });

  const NOT_FOUND = 'Entity not found: `x`';
  const EXISTS =
    'Database transaction error: `Execution Error: error returned from database: (code: 2067) UNIQUE constraint failed: memberships.user_id`';
  const NO_ATTRIBUTE = 'Attribute desk is not defined in the schema';
  const alreadySo: Record<string, [error: string, call: (client: LldapClient) => Promise<unknown>]> = {
    'a user that is not there': [NOT_FOUND, (client) => client.user('bob')],
    'a group that is not there': [NOT_FOUND, (client) => client.group(8)],
    'the deletion of a user that is not there': [NOT_FOUND, (client) => client.deleteUser('bob')],
    'the deletion of a group that is not there': [NOT_FOUND, (client) => client.deleteGroup(8)],
    'the joining of a member': [EXISTS, (client) => client.addUserToGroup('bob', 8)],
    'the removal of who is no member': [NOT_FOUND, (client) => client.removeUserFromGroup('bob', 8)],
    'the deletion of an attribute that is not there': [NO_ATTRIBUTE, (client) => client.deleteAttribute('User', 'desk')],
  };
  for (const [what, [error, call]] of Object.entries(alreadySo)) {
    it(`takes ${what} for no error, but another failure for one`, async () => {
      assert.equal(await call(bench(new Error(error)).client), undefined);
      await assert.rejects(call(bench(new Error('Unforeseen')).client), { name: 'LldapError', kind: 'unforeseen' });
    });
  }

  it('closes all connections when it is closed', () => {
    const { client, closed } = bench();
    client.close();
    assert.deepEqual(closed, ['closed']);
  });
});
