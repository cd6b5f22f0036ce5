import assert from 'node:assert/strict';
import { newAttribute, newGroup, newUser, rejects, useTarget, valuesOf } from './target.ts';

describe("lldap's users", () => {
  const target = useTarget();

  it('are found by id whatever its case, and have it in lower case', async () => {
    const id = await newUser(target);
    const upper = id.toUpperCase();
    assert.equal((await target.client.user(upper))?.id, id);
    assert.deepEqual(
      (await target.client.usersById([upper, target.unique()])).map((user) => user.id),
      [id],
    );
    await target.client.updateUser(upper, { displayName: 'by another case' });
    assert.deepEqual(valuesOf(await target.client.user(id), 'display_name'), ['by another case']);
  });

  it('come back from their creation as they are then', async () => {
    const id = target.unique();
    target.later(() => target.client.deleteUser(id));
    const name = await newAttribute(target, 'User');
    const created = await target.client.createUser({
      id: id.toUpperCase(),
      email: `${id}@Example.com`,
      displayName: 'A B',
      firstName: 'A',
      lastName: '',
      attributes: [{ name, value: ['v'] }],
    });
    assert.deepEqual(created, await target.client.user(id));
    assert.deepEqual([created.id, created.email, created.groups], [id, `${id}@Example.com`, []]);
    assert.deepEqual(
      ['mail', 'display_name', 'first_name', 'last_name', name].map((each) => valuesOf(created, each)),
      [[`${id}@Example.com`], ['A B'], ['A'], undefined, ['v']],
    );
    assert.deepEqual(valuesOf(created, 'uuid'), [created.uuid]);
  });

  it('have no password at first, which the equal dates say', async () => {
    const id = await newUser(target);
    const user = await target.client.user(id);
    assert.ok(valuesOf(user, 'creation_date')?.[0]?.endsWith('+00:00'));
    assert.deepEqual(valuesOf(user, 'password_modified_date'), valuesOf(user, 'creation_date'));
  });

  it('get another uuid when they are made again, and keep it when they change', async () => {
    const id = await newUser(target);
    const first = await target.client.user(id);
    await target.client.updateUser(id, { displayName: 'x' });
    assert.equal((await target.client.user(id))?.uuid, first?.uuid);
    await target.client.deleteUser(id);
    const again = await target.client.createUser({ id, email: `${id}@example.com` });
    assert.notEqual(again.uuid, first?.uuid);
  });

  it('are refused when the id or the e-mail is taken, whatever the case', async () => {
    const [id, other] = [await newUser(target), await newUser(target)];
    const free = target.unique();
    const create = (user: { id: string; email: string }) => rejects(target.client.createUser(user), 'exists');
    assert.match((await create({ id: id.toUpperCase(), email: `${free}@example.com` })).message, /of this id/);
    assert.match((await create({ id: free, email: `${id}@EXAMPLE.com` })).message, /e-mail/);
    // Both taken: SQLite names the e-mail, others the id.
    await create({ id, email: `${id}@example.com` });
    const update = await rejects(target.client.updateUser(other, { email: `${id}@EXAMPLE.com` }), 'exists');
    assert.match(update.message, /e-mail/);
    assert.equal((await target.client.user(other))?.email, `${other}@example.com`);
  });

  it('need an e-mail', async () => {
    const { error } = await target.graphql('mutation ($id: String!) { createUser(user: { id: $id }) { id } }', { id: target.unique() });
    assert.equal(error, 'Email is required when creating a new user');
  });

  it('are found by e-mail without case, and by the exact value of any attribute that is no list', async () => {
    const id = await newUser(target);
    const [name, list] = [await newAttribute(target, 'User'), await newAttribute(target, 'User', { isList: true })];
    await target.client.updateUser(id, { insertAttributes: [{ name, value: [`V-${id}`] }] });
    assert.equal((await target.client.userByEmail(`${id}@EXAMPLE.com`))?.id, id);
    assert.equal(await target.client.userByEmail(`${target.unique()}@example.com`), undefined);
    const find = (filters: object) => target.graphql('query ($filters: RequestFilter!) { users(filters: $filters) { id } }', { filters });
    const by = (field: string, value: string) => find({ eq: { field, value } });
    assert.deepEqual((await by(name, `V-${id}`)).data, { users: [{ id }] });
    assert.deepEqual((await by(name, `v-${id}`)).data, { users: [] });
    assert.equal((await by('nonsense', 'x')).error, 'Unknown request filter: nonsense');
    assert.equal((await by(list, 'x')).error, 'Equality not supported for list fields');
    assert.equal((await find({})).error, 'No field specified in request filter');
    assert.equal((await find({ memberOf: 'x', memberOfId: 1 })).error, 'Multiple fields specified in request filter');
    assert.deepEqual((await find({ any: [] })).data, { users: [] });
    assert.deepEqual((await find({ memberOf: target.unique() })).data, { users: [] });
  });

  it('are found by id in any case of ASCII letters, and of no others', async () => {
    const ascii = target.unique();
    const id = `${ascii}-É`;
    await target.client.createUser({ id: id.toUpperCase(), email: `${ascii}@example.com` });
    target.later(() => target.client.deleteUser(id));
    for (const [asked, found] of [
      [id.toUpperCase(), [id]],
      [id.toLowerCase(), []],
    ] as const) {
      assert.deepEqual(
        (await target.client.usersById([asked])).map((user) => user.id),
        found,
      );
      assert.equal((await target.client.user(asked))?.id, found[0]);
    }
  });

  it('are read by any number of ids', async () => {
    const id = await newUser(target);
    const ids = Array.from({ length: 250 }, () => target.unique());
    assert.deepEqual(
      (await target.client.usersById([...ids, id])).map((user) => user.id),
      [id],
    );
  });

  it('are read by an id that looks like part of a URL', async () => {
    const id = `${target.unique()}%41`;
    await target.client.createUser({ id, email: `${target.unique()}@example.com` });
    target.later(() => target.client.deleteUser(id));
    assert.equal((await target.client.user(id))?.id, id);
  });

  it('that are not there cannot be changed, and are read and deleted without an error by us', async () => {
    const id = target.unique();
    assert.equal(await target.client.user(id), undefined);
    await target.client.deleteUser(id);
    await rejects(target.client.updateUser(id, { displayName: 'x' }), 'notFound');
    const { error } = await target.graphql('mutation ($id: String!) { deleteUser(userId: $id) { ok } }', { id });
    assert.match(error, /^Entity not found: `No such user/);
    const update = await target.graphql('mutation ($id: String!) { updateUser(user: { id: $id, displayName: "x" }) { ok } }', { id });
    assert.equal(update.error, 'Database error: `None of the records are updated`');
  });

  it('take their e-mail and display name from the field, and first and last name from the attribute, where both are given', async () => {
    const id = target.unique();
    target.later(() => target.client.deleteUser(id));
    const attributes = ['mail', 'display_name', 'first_name', 'last_name'].map((name) => ({ name, value: [`attribute-${id}`] }));
    await target.client.createUser({ id, email: `field-${id}`, displayName: 'field', firstName: 'field', lastName: 'field', attributes });
    const user = await target.client.user(id);
    assert.deepEqual(
      ['mail', 'display_name', 'first_name', 'last_name'].map((each) => valuesOf(user, each)),
      [[`field-${id}`], ['field'], [`attribute-${id}`], [`attribute-${id}`]],
    );
  });

  it('lose a field or attribute that is set to nothing, or taken away, set or not', async () => {
    const id = await newUser(target);
    const [name, list] = [await newAttribute(target, 'User'), await newAttribute(target, 'User', { isList: true })];
    const full = { displayName: 'x', firstName: 'x', lastName: 'x', insertAttributes: [{ name, value: ['x'] }] };
    for (const emptied of [
      { displayName: '', firstName: '', lastName: '', insertAttributes: [{ name, value: [''] }] },
      { removeAttributes: ['display_name', 'first_name', 'last_name', name] },
      { removeAttributes: ['display_name', 'first_name', 'last_name', name] },
      { insertAttributes: ['display_name', 'first_name', 'last_name', name].map((each) => ({ name: each, value: [''] })) },
    ]) {
      if (!('removeAttributes' in emptied)) await target.client.updateUser(id, full);
      await target.client.updateUser(id, emptied);
      const user = await target.client.user(id);
      for (const gone of ['display_name', 'first_name', 'last_name', name])
        assert.equal(valuesOf(user, gone), undefined, `${gone} after ${JSON.stringify(emptied)}`);
    }
    await target.client.updateUser(id, { insertAttributes: [{ name: list, value: ['x'] }] });
    await target.client.updateUser(id, { insertAttributes: [{ name: list, value: [] }] });
    assert.equal(valuesOf(await target.client.user(id), list), undefined);
  });

  it('keep everything when one part of a change is refused', async () => {
    const id = await newUser(target);
    const name = await newAttribute(target, 'User', { type: 'Integer' });
    const bad = { displayName: 'x', insertAttributes: [{ name, value: ['no number'] }] };
    await rejects(target.client.updateUser(id, bad), 'refused', name);
    assert.equal(valuesOf(await target.client.user(id), 'display_name'), undefined);
  });

  it('lose no attribute that lldap keeps itself, nor the e-mail, whoever takes it away', async () => {
    const id = await newUser(target);
    await target.client.updateUser(id, { displayName: 'x' });
    const remove = async (name: string) => {
      const update = { id, removeAttributes: [name] };
      return (await target.graphql('mutation ($update: UpdateUserInput!) { updateUser(user: $update) { ok } }', { update })).error;
    };
    for (const name of ['uuid', 'user_id', 'creation_date', 'Mail', 'Display_Name'])
      assert.match(await remove(name), /^Internal error/, name);
    assert.equal(await remove('mail'), '');
    const user = await target.client.user(id);
    assert.deepEqual([valuesOf(user, 'mail'), valuesOf(user, 'display_name')], [[`${id}@example.com`], ['x']]);
  });

  it('have attributes that nobody can set', async () => {
    const id = await newUser(target);
    for (const name of ['user_id', 'uuid', 'creation_date', 'modified_date', 'password_modified_date']) {
      const value = ['2024-01-02T03:04:05Z'];
      await rejects(target.client.updateUser(id, { insertAttributes: [{ name, value }] }), 'protected', name);
    }
  });

  it('have no attribute that is not defined', async () => {
    const id = await newUser(target);
    const name = target.unique();
    const attributes = [{ name, value: ['x'] }];
    await rejects(target.client.createUser({ id: target.unique(), email: `${name}@example.com`, attributes }), 'undefinedAttribute', name);
    await rejects(target.client.updateUser(id, { insertAttributes: attributes }), 'undefinedAttribute', name);
    await rejects(target.client.updateUser(id, { removeAttributes: [name] }), 'undefinedAttribute', name);
    // LDAP's names are not GraphQL's.
    await rejects(
      target.client.updateUser(id, { insertAttributes: [{ name: 'givenName', value: ['x'] }] }),
      'undefinedAttribute',
      'givenname',
    );
  });

  it('may take away an attribute of their own that they may not set', async () => {
    const id = await newUser(target, { password: 'password of the user' });
    const name = await newAttribute(target, 'User');
    await target.client.updateUser(id, { insertAttributes: [{ name, value: ['ours'] }] });
    const { token } = JSON.parse((await target.login(id, 'password of the user')).text);
    const update = (user: object) =>
      target.graphql('mutation ($user: UpdateUserInput!) { updateUser(user: $user) { ok } }', { user: { id, ...user } }, token);
    assert.equal(
      (await update({ insertAttributes: [{ name, value: ['theirs'] }] })).error,
      `Permission denied: Attribute ${name} is not editable by regular users`,
    );
    assert.deepEqual(valuesOf(await target.client.user(id), name), ['ours']);
    assert.equal((await update({ removeAttributes: [name] })).error, '');
    assert.equal(valuesOf(await target.client.user(id), name), undefined);
  });

  it('come with their groups, of which custom attributes are left out', async () => {
    const id = await newUser(target);
    const name = await newAttribute(target, 'Group');
    const group = await newGroup(target);
    await target.client.updateGroup(group.id, { insertAttributes: [{ name, value: ['x'] }] });
    await target.client.addUserToGroup(id, group.id);
    assert.deepEqual((await target.client.user(id))?.groups, [{ id: group.id, uuid: group.uuid, displayName: group.displayName }]);
    const { text } = await target.graphql('query ($id: String!) { user(userId: $id) { groups { attributes { name } } } }', { id });
    assert.doesNotMatch(text, new RegExp(name));
  });
});
