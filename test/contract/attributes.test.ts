import assert from 'node:assert/strict';
import { MARK_ATTRIBUTE } from '../../shared/constants.ts';
import { JPEG } from '../local/lldap/jpeg.ts';
import { newAttribute, newGroup, newUser, rejects, useTarget, valuesOf } from './target.ts';

describe("lldap's attributes", () => {
  const target = useTarget();
  const plain = { type: 'String', isList: false, isVisible: true, isEditable: true } as const;

  it('are those of lldap and those that were added, with names in lower case', async () => {
    const name = await newAttribute(target, 'User', {
      name: target.unique().toUpperCase(),
      type: 'DateTime',
      isList: true,
      isEditable: true,
    });
    const { User, Group } = await target.client.schema();
    const find = (definitions: typeof User, wanted: string) => definitions.find((definition) => definition.name === wanted);
    assert.deepEqual(find(User, name.toLowerCase()), {
      name: name.toLowerCase(),
      type: 'DateTime',
      isList: true,
      isVisible: false,
      isEditable: true,
      isHardcoded: false,
      isReadonly: false,
    });
    assert.equal(find(Group, name.toLowerCase()), undefined);
    for (const own of ['avatar', 'display_name', 'first_name', 'last_name', 'mail']) {
      assert.deepEqual([find(User, own)?.isHardcoded, find(User, own)?.isEditable, find(User, own)?.isReadonly], [true, true, false], own);
    }
    for (const own of ['creation_date', 'modified_date', 'password_modified_date', 'user_id', 'uuid']) {
      assert.deepEqual([find(User, own)?.isHardcoded, find(User, own)?.isReadonly], [true, true], own);
    }
    for (const own of ['creation_date', 'modified_date', 'group_id', 'uuid']) assert.equal(find(Group, own)?.isReadonly, true, own);
  });

  it('exist once per name, whatever its case and type', async () => {
    for (const kind of ['User', 'Group'] as const) {
      const name = await newAttribute(target, kind);
      for (const type of ['String', 'Integer'] as const) {
        const again = await rejects(target.client.addAttribute(kind, { ...plain, name: name.toUpperCase(), type }), 'exists');
        assert.match(again.message, /attribute of this name/);
      }
    }
    await rejects(target.client.addAttribute('User', { ...plain, name: 'avatar' }), 'exists');
  });

  it('have the same type on users and groups', async () => {
    const name = await newAttribute(target, 'User', { type: 'Integer' });
    await rejects(target.client.addAttribute('Group', { ...plain, name }), 'refused', name);
    await newAttribute(target, 'Group', { name, type: 'Integer' });
  });

  for (const part of ['_', ' ', '.', '/']) {
    it(`may not have "${part}" in their name`, async () => {
      for (const kind of ['User', 'Group'] as const) {
        const { message } = await rejects(target.client.addAttribute(kind, { ...plain, name: `a${part}b` }), 'refused');
        assert.match(message, /name of the attribute/);
      }
    });
  }

  it("take everybody's values with them", async () => {
    const id = await newUser(target);
    const name = await newAttribute(target, 'User');
    await target.client.updateUser(id, { insertAttributes: [{ name, value: ['x'] }] });
    await target.client.deleteAttribute('User', name);
    assert.equal(valuesOf(await target.client.user(id), name), undefined);
    await newAttribute(target, 'User', { name, type: 'Integer' });
    assert.equal(valuesOf(await target.client.user(id), name), undefined);
  });

  it('that are not there are deleted without an error by us, and those of lldap not at all', async () => {
    const name = target.unique();
    for (const kind of ['User', 'Group'] as const) await target.client.deleteAttribute(kind, name);
    const { error } = await target.graphql('mutation ($name: String!) { deleteUserAttribute(name: $name) { ok } }', { name });
    assert.equal(error, `Attribute ${name} is not defined in the schema`);
    await rejects(target.client.deleteAttribute('User', 'avatar'), 'protected', 'avatar');
    await rejects(target.client.deleteAttribute('Group', 'display_name'), 'protected', 'display_name');
  });

  it('that are not visible are hidden from who has no rights, value and definition', async () => {
    const id = await newUser(target, { password: 'password of the user' });
    const [hidden, shown] = [await newAttribute(target, 'User'), await newAttribute(target, 'User', { isVisible: true })];
    await target.client.updateUser(id, { insertAttributes: [hidden, shown].map((name) => ({ name, value: ['x'] })) });
    const { token } = JSON.parse((await target.login(id, 'password of the user')).text);
    const query = `{ user(userId: "${id}") { attributes { name } } schema { userSchema { attributes { name } } } }`;
    const { text } = await target.graphql(query, {}, token);
    assert.match(text, new RegExp(`${shown}.*${shown}`, 's'));
    assert.doesNotMatch(text, new RegExp(hidden));
  });

  it('that are editable and not visible are set by a user who does not see them; others he can only clear', async () => {
    const id = await newUser(target, { password: 'password of the user' });
    const names = [await newAttribute(target, 'User', { isEditable: true }), await newAttribute(target, 'User', { isVisible: true })];
    const [blind = '', fixed = ''] = names;
    await target.client.updateUser(id, { insertAttributes: names.map((name) => ({ name, value: ['ours'] })) });
    const { token } = JSON.parse((await target.login(id, 'password of the user')).text);
    const update = async (user: object) =>
      (await target.graphql('mutation ($user: UpdateUserInput!) { updateUser(user: $user) { ok } }', { user: { id, ...user } }, token))
        .error;
    assert.equal(await update({ insertAttributes: [{ name: blind, value: ['theirs'] }] }), '');
    assert.match(await update({ insertAttributes: [{ name: fixed, value: ['theirs'] }] }), /is not editable by regular users/);
    const seen = await target.graphql(`{ user(userId: "${id}") { attributes { name } } }`, {}, token);
    assert.doesNotMatch(seen.text, new RegExp(blind));
    const written = await target.client.user(id);
    assert.deepEqual([valuesOf(written, blind), valuesOf(written, fixed)], [['theirs'], ['ours']]);
    assert.equal(await update({ insertAttributes: [{ name: fixed, value: [''] }] }), '');
    assert.equal(valuesOf(await target.client.user(id), fixed), undefined);
  });

  const stored = (type: 'String' | 'Integer' | 'JpegPhoto' | 'DateTime', isList: boolean, cases: [sent: string[], stored: string[]][]) => {
    it(`of type ${type}${isList ? ', lists,' : ''} come back in lldap's own form`, async () => {
      const id = await newUser(target);
      const name = await newAttribute(target, 'User', { type, isList });
      for (const [sent, expected] of cases) {
        await target.client.updateUser(id, { insertAttributes: [{ name, value: sent }] });
        assert.deepEqual(valuesOf(await target.client.user(id), name), expected, JSON.stringify(sent));
      }
    });
  };
  const refused = (type: 'String' | 'Integer' | 'JpegPhoto' | 'DateTime', values: string[][]) => {
    it(`of type ${type} take no other values`, async () => {
      const [id, group] = [await newUser(target), await newGroup(target)];
      const [name, on] = [await newAttribute(target, 'User', { type }), await newAttribute(target, 'Group', { type })];
      for (const value of values) {
        await rejects(target.client.updateUser(id, { insertAttributes: [{ name, value }] }), 'refused', name);
        await rejects(target.client.updateGroup(group.id, { insertAttributes: [{ name: on, value }] }), 'refused', on);
        const user = { id: target.unique(), email: `${target.unique()}@example.com`, attributes: [{ name, value }] };
        await rejects(target.client.createUser(user), 'refused', name);
      }
    });
  };

  stored('String', false, [
    [['  a b  '], ['  a b  ']],
    [['ÄΩ😀'], ['ÄΩ😀']],
  ]);
  stored('String', true, [
    [
      ['b', 'a', 'c'],
      ['b', 'a', 'c'],
    ],
    [
      ['a', 'a', ''],
      ['a', 'a', ''],
    ],
    [
      ['', ''],
      ['', ''],
    ],
  ]);
  refused('String', [['a', 'b']]);
  stored('Integer', false, [
    [['+5'], ['5']],
    [['05'], ['5']],
    [['-0'], ['0']],
    [['9223372036854775807'], ['9223372036854775807']],
    [['-9223372036854775808'], ['-9223372036854775808']],
  ]);
  stored('Integer', true, [
    [
      ['3', '01', '3'],
      ['3', '1', '3'],
    ],
  ]);
  refused('Integer', [[' 5'], ['5.0'], ['1e3'], ['0x10'], ['1_000'], ['9223372036854775808'], ['1', '2']]);
  stored('DateTime', false, [
    [['2024-01-02T03:04:05Z'], ['2024-01-02T03:04:05+00:00']],
    [['2024-01-02t03:04:05z'], ['2024-01-02T03:04:05+00:00']],
    [['2024-01-02 03:04:05Z'], ['2024-01-02T03:04:05+00:00']],
    [['2024-01-02T03:04:05.000Z'], ['2024-01-02T03:04:05+00:00']],
    [['2024-01-02T03:04:05.1Z'], ['2024-01-02T03:04:05.100+00:00']],
    [['2024-01-02T03:04:05.1234Z'], ['2024-01-02T03:04:05.123400+00:00']],
    [['2024-01-02T03:04:05.1234567891Z'], ['2024-01-02T03:04:05.123456789+00:00']],
    [['2024-01-02T03:04:05+02:00'], ['2024-01-02T01:04:05+00:00']],
    [['2024-01-02T23:04:05-05:00'], ['2024-01-03T04:04:05+00:00']],
    [['2016-12-31T23:59:60Z'], ['2016-12-31T23:59:60+00:00']],
    [['0001-01-01T00:00:00Z'], ['0001-01-01T00:00:00+00:00']],
    [['0000-02-29T00:00:00Z'], ['0000-02-29T00:00:00+00:00']],
    [['2024-01-02T12:30:60.5+05:30'], ['2024-01-02T07:00:60.500+00:00']],
    // Which it does not take itself.
    [['0000-01-01T00:00:00+23:59'], ['-0001-12-31T00:01:00+00:00']],
    [['9999-12-31T23:59:59-05:00'], ['+10000-01-01T04:59:59+00:00']],
  ]);
  refused('DateTime', [
    ['2024-01-02T03:04:05'],
    ['2024-01-02'],
    ['2024-01-02T03:04Z'],
    ['2024-01-02T24:00:00Z'],
    ['2024-01-02T03:04:05+0200'],
    ['1704164645'],
    ['2024-02-30T03:04:05Z'],
    ['10000-01-01T00:00:00Z'],
    ['+10000-01-01T04:59:59+00:00'],
    ['-0001-12-31T00:01:00Z'],
    ['2024-01-02T03:04:05+24:00'],
    ['2024-01-02T03:04:05.Z'],
  ]);
  const picture = Buffer.from(JPEG, 'base64');
  const cut = (bytes: number) => picture.subarray(0, bytes).toString('base64');
  const more = Buffer.concat([picture, Buffer.from('more')]).toString('base64');
  stored('JpegPhoto', false, [
    [[JPEG], [JPEG]],
    // Without its end, and with more behind it.
    [[cut(-2)], [cut(-2)]],
    [[cut(-3)], [cut(-3)]],
    [[more], [more]],
  ]);
  refused('JpegPhoto', [
    ['iVBORw0KGgo='],
    [cut(2)],
    [cut(60)],
    [cut(-4)],
    [Buffer.concat([Buffer.from('\n'), picture]).toString('base64')],
    [more.replace(/=+$/, '')],
    [`${JPEG}====`],
    ['/9j/4AAQSkZJRh=='],
    [JPEG.replaceAll('/', '_')],
    [`data:image/jpeg;base64,${JPEG}`],
    [`${JPEG.slice(0, 40)}\n${JPEG.slice(40)}`],
  ]);

  it('with an empty text are stored by a creation, and by us left out', async () => {
    const name = await newAttribute(target, 'User');
    const [raw, ours] = [target.unique(), target.unique()];
    const user = { id: raw, email: `${raw}@example.com`, firstName: '', attributes: [{ name, value: [''] }] };
    await target.graphql('mutation ($user: CreateUserInput!) { createUser(user: $user) { id } }', { user });
    target.later(() => target.client.deleteUser(raw));
    await target.client.createUser({ ...user, id: ours, email: `${ours}@example.com` });
    target.later(() => target.client.deleteUser(ours));
    const [stored, left] = [await target.client.user(raw), await target.client.user(ours)];
    assert.deepEqual([valuesOf(stored, name), valuesOf(stored, 'first_name')], [[''], ['']]);
    assert.deepEqual([valuesOf(left, name), valuesOf(left, 'first_name')], [undefined, undefined]);
  });

  it('can mark an object with its owner in the call that makes it, hidden from people, and lose it again', async () => {
    const before = await target.client.schema();
    const hidden = { name: MARK_ATTRIBUTE, type: 'String', isList: false, isVisible: false, isEditable: false } as const;
    for (const kind of ['User', 'Group'] as const) {
      if (before[kind].some(({ name }) => name === MARK_ATTRIBUTE)) continue;
      await target.client.addAttribute(kind, hidden);
      target.later(() => target.client.deleteAttribute(kind, MARK_ATTRIBUTE));
    }
    const id = target.unique();
    const mark = `v1;contract;x/${id};created`;
    const attributes = [{ name: MARK_ATTRIBUTE, value: [mark] }];
    const user = await target.client.createUser({ id, email: `${id}@example.com`, attributes });
    target.later(() => target.client.deleteUser(id));
    const group = await target.client.createGroup({ displayName: id, attributes });
    target.later(() => target.client.deleteGroup(group.id));
    assert.deepEqual(valuesOf(user, MARK_ATTRIBUTE), [mark]);
    assert.deepEqual(valuesOf(group, MARK_ATTRIBUTE), [mark]);
    await target.client.updateUser(id, { removeAttributes: [MARK_ATTRIBUTE] });
    assert.equal(valuesOf(await target.client.user(id), MARK_ATTRIBUTE), undefined);
  });
});
