import assert from 'node:assert/strict';
import { newGroup, newUser, rejects, useTarget, valuesOf } from './target.ts';

describe('lldap over GraphQL', () => {
  const target = useTarget();

  it('answers 200 with an error and no data when it cannot do what is asked', async () => {
    const { status, data, error } = await target.graphql('query ($id: String!) { user(userId: $id) { id } }', { id: target.unique() });
    assert.deepEqual([status, data], [200, null]);
    assert.match(error, /^Entity not found/);
  });

  for (const [what, query, variables] of [
    ['a query that does not end', '{ apiVersion ', {}],
    ['a field that it does not know', '{ nonsense }', {}],
    ['a missing variable', 'query ($id: String!) { user(userId: $id) { id } }', {}],
    ['a variable of another type', 'query ($id: Int!) { group(groupId: $id) { id } }', { id: '1' }],
  ] as const) {
    it(`answers 400 to ${what}`, async () => {
      const { status, error } = await target.graphql(query, variables);
      assert.equal(status, 400);
      assert.notEqual(error, '');
    });
  }

  it('carries out the mutations of one request each on its own, though one failure hides what the others did', async () => {
    const id = await newUser(target);
    const { data, error } = await target.graphql(
      `mutation ($id: String!) {
        first: updateUser(user: { id: $id, displayName: "changed" }) { ok }
        second: deleteGroup(groupId: 2000000000) { ok }
      }`,
      { id },
    );
    assert.equal(data, null);
    assert.match(error, /^Entity not found/);
    assert.deepEqual(valuesOf(await target.client.user(id), 'display_name'), ['changed']);
  });

  it('lets a user without rights read and change himself alone', async () => {
    const id = await newUser(target, { password: 'password of the user' });
    const { token } = JSON.parse((await target.login(id, 'password of the user')).text);
    const group = await newGroup(target);
    for (const [query, error] of [
      ['{ users { id } }', 'Unauthorized access to user list'],
      ['{ groups { id } }', 'Unauthorized access to group list'],
      [`{ user(userId: "${target.admin.username}") { id } }`, 'Unauthorized access to user data'],
      [`{ group(groupId: ${group.id}) { id } }`, 'Unauthorized access to group data'],
      ['mutation { createUser(user: { id: "x", email: "x@example.com" }) { id } }', 'Unauthorized user creation'],
      [`mutation { updateUser(user: { id: "${target.admin.username}" }) { ok } }`, 'Unauthorized user update'],
      [`mutation { deleteUser(userId: "${id}") { ok } }`, 'Unauthorized user deletion'],
      ['mutation { createGroup(name: "x") { id } }', 'Unauthorized group creation'],
      [`mutation { updateGroup(group: { id: ${group.id} }) { ok } }`, 'Unauthorized group update'],
      [`mutation { deleteGroup(groupId: ${group.id}) { ok } }`, 'Unauthorized group deletion'],
      [`mutation { addUserToGroup(userId: "${id}", groupId: ${group.id}) { ok } }`, 'Unauthorized group membership modification'],
      [`mutation { removeUserFromGroup(userId: "${id}", groupId: ${group.id}) { ok } }`, 'Unauthorized group membership modification'],
      ['mutation { deleteUserAttribute(name: "x") { ok } }', 'Unauthorized attribute deletion'],
    ] as const) {
      assert.equal((await target.graphql(query, {}, token)).error, error, query);
    }
    const self = `mutation { updateUser(user: { id: "${id}", displayName: "me" }) { ok } }`;
    assert.equal((await target.graphql(self, {}, token)).error, '');
    assert.equal((await target.graphql(`{ user(userId: "${id}") { displayName } }`, {}, token)).error, '');
  });

  it('guards the account that asks, and the group with id 1', async () => {
    const { username } = target.admin;
    await rejects(target.client.deleteUser(username), 'protected');
    const group = await target.client.group(1);
    assert.equal(group?.displayName, 'lldap_admin');
    await rejects(target.client.deleteGroup(1), 'protected');
    await rejects(target.client.updateGroup(1, { displayName: target.unique() }), 'protected');
    await rejects(target.client.removeUserFromGroup(username, 1), 'protected');
    assert.ok((await target.client.user(username))?.groups.some(({ id }) => id === 1));
  });

  it('passes our check', async () => {
    await target.client.check();
  });
});
