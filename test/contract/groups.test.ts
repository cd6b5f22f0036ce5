import assert from 'node:assert/strict';
import { newAttribute, newGroup, newUser, rejects, useTarget, valuesOf } from './target.ts';

describe("lldap's groups", () => {
  const target = useTarget();

  it('come back from their creation as they are then', async () => {
    const name = await newAttribute(target, 'Group');
    const displayName = `${target.unique()} Ä`;
    const created = await target.client.createGroup({ displayName, attributes: [{ name, value: ['v'] }] });
    target.later(() => target.client.deleteGroup(created.id));
    assert.deepEqual(created, await target.client.group(created.id));
    assert.equal(created.displayName, displayName);
    assert.deepEqual(valuesOf(created, name), ['v']);
    assert.deepEqual(
      (await target.client.groups()).find(({ id }) => id === created.id),
      created,
    );
  });

  it('are refused when the name is taken, whatever the case of any letter', async () => {
    const first = await newGroup(target, `${target.unique()} Ä`);
    const other = await newGroup(target);
    for (const displayName of [first.displayName, first.displayName.toUpperCase(), first.displayName.toLowerCase()]) {
      assert.match((await rejects(target.client.createGroup({ displayName }), 'exists')).message, /group of this name/);
    }
    const rename = await rejects(target.client.updateGroup(other.id, { displayName: first.displayName.toUpperCase() }), 'exists');
    assert.match(rename.message, /group of this name/);
  });

  it('keep id and uuid under another name', async () => {
    const group = await newGroup(target);
    for (const displayName of [target.unique(), group.displayName.toUpperCase()]) {
      await target.client.updateGroup(group.id, { displayName });
      const renamed = await target.client.group(group.id);
      assert.deepEqual([renamed?.displayName, renamed?.uuid], [displayName, group.uuid]);
    }
  });

  it('never get an id that another one had', async () => {
    const first = await newGroup(target);
    await target.client.deleteGroup(first.id);
    const again = await newGroup(target, first.displayName);
    assert.ok(again.id > first.id);
    assert.notEqual(again.uuid, first.uuid);
  });

  it('that are not there cannot be changed, and are read and deleted without an error by us', async () => {
    const { id } = await newGroup(target);
    await target.client.deleteGroup(id);
    await target.client.deleteGroup(id);
    assert.equal(await target.client.group(id), undefined);
    await rejects(target.client.updateGroup(id, { displayName: target.unique() }), 'notFound');
    const { error } = await target.graphql('mutation ($id: Int!) { deleteGroup(groupId: $id) { ok } }', { id });
    assert.match(error, /^Entity not found: `No such group/);
  });

  it('lose an attribute that is set to nothing or taken away, where lldap itself would store an empty text', async () => {
    const group = await newGroup(target);
    const name = await newAttribute(target, 'Group');
    for (const change of [{ insertAttributes: [{ name, value: [''] }] }, { removeAttributes: [name] }, { removeAttributes: [name] }]) {
      await target.client.updateGroup(group.id, { insertAttributes: [{ name, value: ['x'] }] });
      await target.client.updateGroup(group.id, change);
      assert.equal(valuesOf(await target.client.group(group.id), name), undefined);
    }
    const update = { id: group.id, insertAttributes: [{ name, value: [''] }] };
    await target.graphql('mutation ($update: UpdateGroupInput!) { updateGroup(group: $update) { ok } }', { update });
    assert.deepEqual(valuesOf(await target.client.group(group.id), name), ['']);
  });

  it('have attributes that nobody can set, and none that is not defined', async () => {
    const group = await newGroup(target);
    const name = target.unique();
    const insert = (attribute: string, value: string) =>
      target.client.updateGroup(group.id, { displayName: name, insertAttributes: [{ name: attribute, value: [value] }] });
    await rejects(insert('uuid', 'x'), 'protected', 'uuid');
    await rejects(insert('group_id', '5'), 'protected', 'group_id');
    await rejects(insert(name, 'x'), 'undefinedAttribute', name);
    await rejects(target.client.updateGroup(group.id, { removeAttributes: [name] }), 'undefinedAttribute', name);
    const attributes = [{ name, value: ['x'] }];
    await rejects(target.client.createGroup({ displayName: name, attributes }), 'undefinedAttribute', name);
    assert.equal((await target.client.group(group.id))?.displayName, group.displayName);
  });

  it('take a member once, which we do not count as an error', async () => {
    const [id, group] = [await newUser(target), await newGroup(target)];
    await target.client.addUserToGroup(id, group.id);
    await target.client.addUserToGroup(id.toUpperCase(), group.id);
    const add = 'mutation ($id: String!, $group: Int!) { addUserToGroup(userId: $id, groupId: $group) { ok } }';
    const { error } = await target.graphql(add, { id, group: group.id });
    assert.match(error, /^Database transaction error: .*memberships/s);
    assert.deepEqual(
      (await target.client.user(id))?.groups.map((its) => its.id),
      [group.id],
    );
  });

  it('take nobody who is not there, and nobody is taken into what is not there', async () => {
    const [id, group] = [await newUser(target), await newGroup(target)];
    await rejects(target.client.addUserToGroup(target.unique(), group.id), 'notFound');
    await target.client.deleteGroup(group.id);
    await rejects(target.client.addUserToGroup(id, group.id), 'notFound');
  });

  it('let go who is no member, which we do not count as an error', async () => {
    const [id, group] = [await newUser(target), await newGroup(target)];
    await target.client.addUserToGroup(id, group.id);
    await target.client.removeUserFromGroup(id.toUpperCase(), group.id);
    assert.deepEqual((await target.client.user(id))?.groups, []);
    await target.client.removeUserFromGroup(id, group.id);
    await target.client.removeUserFromGroup(target.unique(), group.id);
    await target.client.removeUserFromGroup(id, 2_000_000_000);
    const remove = 'mutation ($id: String!, $group: Int!) { removeUserFromGroup(userId: $id, groupId: $group) { ok } }';
    const { error } = await target.graphql(remove, { id, group: group.id });
    assert.match(error, /^Entity not found: `No such membership/);
  });

  it('lose their members with the user, and users their groups with the group', async () => {
    const [id, other, group] = [await newUser(target), await newUser(target), await newGroup(target)];
    const members = async () => {
      const { data } = await target.graphql('query ($id: Int!) { group(groupId: $id) { users { id } } }', { id: group.id });
      return data;
    };
    await target.client.addUserToGroup(id, group.id);
    await target.client.addUserToGroup(other, group.id);
    await target.client.deleteUser(id);
    assert.deepEqual(await members(), { group: { users: [{ id: other }] } });
    await target.client.deleteGroup(group.id);
    assert.deepEqual((await target.client.user(other))?.groups, []);
  });

  it('built in are there', async () => {
    const names = (await target.client.groups()).map(({ displayName }) => displayName);
    assert.deepEqual((await target.client.groupNames()).map(({ displayName }) => displayName).sort(), names.toSorted());
    for (const name of ['lldap_admin', 'lldap_password_manager', 'lldap_strict_readonly']) assert.ok(names.includes(name), name);
  });

  it('go to one of many that ask for the same name at once', async () => {
    const displayName = target.unique();
    const attempts = await Promise.allSettled(Array.from({ length: 20 }, () => newGroup(target, displayName)));
    assert.equal(attempts.filter(({ status }) => status === 'fulfilled').length, 1);
    for (const attempt of attempts) if (attempt.status === 'rejected') assert.equal(attempt.reason.kind, 'exists');
  });
});
