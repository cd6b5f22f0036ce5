import assert from 'node:assert/strict';
import fc from 'fast-check';
import * as groups from '../../functions/group/plan.ts';
import * as users from '../../functions/user/plan.ts';
import { MARK_ATTRIBUTE } from '../../shared/constants.ts';
import type { AttributeType, AttributeValue } from '../../shared/kube/resources.ts';
import type { AttributeDefinition } from '../../shared/lldap/api.ts';
import { foldId } from '../../shared/lldap/names.ts';
import { checkAttributes, type Definitions } from '../../shared/rules/attributes.ts';
import { JPEG } from '../local/lldap/jpeg.ts';
import { group as groupResource, policy, user as userResource } from '../unit/support/examples.ts';
import { newAttribute, newUser, useTarget } from './target.ts';

/** What differs in a spec from what lldap answers may be written once; a second full reconcile finds nothing to write. */
describe('what a spec asks for', () => {
  const target = useTarget();
  const owner = { who: 'self', origin: 'created', marked: true } as const;
  const runs = { numRuns: 150 };

  const userSteps = async (spec: Partial<ReturnType<typeof userResource>['spec']> & { username: string }, definitions: Definitions) => {
    const account = await target.client.user(foldId(spec.username));
    assert.ok(account);
    const resource = userResource({ spec: { passwordPolicy: 'Ignore', ...spec } });
    const made = users.plan({ resource, draft: {}, policy: policy() }, { account, owner, definitions });
    assert.ok('steps' in made);
    return made.steps;
  };
  /** What two full reconciles write, one after the other. */
  const writeUser = async (spec: Parameters<typeof userSteps>[0], definitions: Definitions) => {
    const first = await userSteps(spec, definitions);
    for (const step of first) if (step.do === 'update') await target.client.updateUser(foldId(spec.username), step.change);
    return [first, await userSteps(spec, definitions)] as const;
  };

  it("is not written again: a user's e-mail and names, whatever is in them", async () => {
    const id = await newUser(target);
    const name = fc.option(TEXT, { nil: undefined });
    const spec = fc.record({
      email: fc.constantFrom('@Example.com', '@EXAMPLE.com', '@exämple.com'),
      displayName: name,
      firstName: name,
      lastName: name,
    });
    await fc.assert(
      fc.asyncProperty(spec, async ({ email, ...names }) => {
        const [, again] = await writeUser({ username: id.toUpperCase(), email: id + email, ...defined(names) }, new Map());
        assert.deepEqual(again, []);
      }),
      runs,
    );
  });

  it("is not written again: a user's and a group's attributes of every type, in every spelling that we accept", async () => {
    const id = await newUser(target);
    const email = `${id}@example.com`;
    const names = await define();
    for (const [name, type] of names) await newAttribute(target, 'Group', { name, type, isList: name.includes('list') });
    const schema = await target.client.schema();
    const [ofUsers, ofGroups] = [byName(schema.User), byName(schema.Group)];
    const displayName = target.unique();
    const group = await target.client.createGroup({ displayName });
    target.later(() => target.client.deleteGroup(group.id));

    const writeGroup = async (attributes: AttributeValue[]) => {
      const found = await target.client.group(group.id);
      assert.ok(found);
      const resource = groupResource({ spec: { displayName, attributes } });
      const made = groups.plan({ resource, draft: {}, policy: policy() }, { group: found, owner, definitions: ofGroups });
      assert.ok('steps' in made);
      for (const step of made.steps) if (step.do === 'update') await target.client.updateGroup(step.id, step.change);
      return made.steps;
    };
    const tried = { accepted: 0, refused: 0 };
    await fc.assert(
      fc.asyncProperty(attributesOf(names), async (attributes) => {
        const refused = checkAttributes(attributes, ofUsers) !== undefined;
        tried[refused ? 'refused' : 'accepted'] += 1;
        if (refused) return;
        assert.deepEqual((await writeUser({ username: id, email, attributes }, ofUsers))[1], []);
        await writeGroup(attributes);
        assert.deepEqual(await writeGroup(attributes), []);
        await target.client.deleteUser(id);
        await target.client.createUser(
          users.creation({ username: id, email, attributes }, { name: MARK_ATTRIBUTE, value: ['v1;main;team/alice;created'] }),
        );
        assert.deepEqual(await userSteps({ username: id, email, attributes }, ofUsers), []);
      }),
      runs,
    );
    assert.ok(tried.accepted > 30 && tried.refused > 5, JSON.stringify(tried));
  });

  /** An attribute of users of each type, and a list of it; and the mark. */
  async function define(): Promise<Map<string, AttributeType>> {
    const { User } = await target.client.schema();
    if (User.every(({ name }) => name !== MARK_ATTRIBUTE)) await newAttribute(target, 'User', { name: MARK_ATTRIBUTE });
    const names = new Map<string, AttributeType>();
    for (const type of ['String', 'Integer', 'DateTime', 'JpegPhoto'] as const)
      for (const isList of [false, true])
        names.set(await newAttribute(target, 'User', { name: `${target.unique()}${isList ? '-list' : ''}`, type, isList }), type);
    return names;
  }
});

/** Postgres stores no NUL. */
const TEXT = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 20 }).map((text) => text.replaceAll('\0', '')),
  fc.constantFrom('', ' ', ' a  b ', 'a\n', 'ÄΩ😀', 'A\u030a', '\u00c5', '"\\', '5', '05'),
);

const INTEGER = fc.oneof(
  fc
    .tuple(fc.constantFrom('', '+', '-'), fc.nat({ max: 3 }), fc.bigInt({ min: 0n, max: 2n ** 63n }))
    .map(([sign, zeros, number]) => `${sign}${'0'.repeat(zeros)}${number}`),
  fc.constantFrom('-0', '+0', '9223372036854775807', '-9223372036854775808', '9223372036854775808', '5.0', ' 5', '', '٣'),
);

const two = (max: number) => fc.nat({ max }).map((number) => String(number).padStart(2, '0'));
const TIME = fc.oneof(
  fc
    .record({
      year: fc.oneof(fc.nat({ max: 9999 }), fc.constantFrom(0, 1, 4, 1900, 2000, 9999)).map((year) => String(year).padStart(4, '0')),
      month: fc.oneof(two(12), fc.constantFrom('01', '02', '12')),
      day: fc.oneof(two(31), fc.constantFrom('01', '29', '31')),
      between: fc.constantFrom('T', 't', ' '),
      hour: two(24),
      minute: two(60),
      second: two(60),
      fraction: fc.oneof(fc.constant(''), fc.stringMatching(/^\.\d{1,12}$/)),
      zone: fc.oneof(
        fc.constantFrom('Z', 'z', '+00:00', '-00:00'),
        fc.tuple(fc.constantFrom('+', '-'), two(24), two(60)).map(([s, h, m]) => `${s}${h}:${m}`),
      ),
    })
    .map((t) => `${t.year}-${t.month}-${t.day}${t.between}${t.hour}:${t.minute}:${t.second}${t.fraction}${t.zone}`),
  fc.constantFrom(
    '2016-12-31T23:59:60Z',
    '9999-12-31T23:59:59-05:00',
    '0000-01-01T00:00:00+00:01',
    '10000-01-01T00:00:00Z',
    '2024-01-02',
    '',
  ),
);

const PICTURE_BYTES = Buffer.from(JPEG, 'base64');
const PICTURE = fc
  .tuple(
    fc.oneof(fc.constant(PICTURE_BYTES), fc.constant(PICTURE_BYTES.subarray(0, -2))),
    fc.uint8Array({ maxLength: 3 }),
    fc.constantFrom(
      (text: string) => text,
      (text: string) => text.replace(/=+$/, ''),
      (text: string) => `${text}\n`,
      (text: string) => text.replace(/.{76}/g, '$&\n'),
      (text: string) => `data:image/jpeg;base64,${text}`,
      (text: string) => text.replaceAll('/', '_'),
      (text: string) => text.replace(/A==$/, 'B=='),
    ),
  )
  .map(([picture, more, spelt]) => spelt(Buffer.concat([picture, more]).toString('base64')));

const VALUES: Record<AttributeType, fc.Arbitrary<string>> = { String: TEXT, Integer: INTEGER, DateTime: TIME, JpegPhoto: PICTURE };

/** Some of the attributes, in any case, with no value, one or several. */
function attributesOf(names: ReadonlyMap<string, AttributeType>): fc.Arbitrary<AttributeValue[]> {
  const attribute = fc.constantFrom(...names).chain(([name, type]) =>
    fc.record({
      name: fc.constantFrom(name, name.toUpperCase()),
      value: fc.oneof(
        { weight: 6, arbitrary: fc.array(VALUES[type], { minLength: 1, maxLength: name.includes('list') ? 3 : 1 }) },
        { weight: 1, arbitrary: fc.constantFrom<string[]>([], [''], ['', '']) },
      ),
    }),
  );
  return fc.uniqueArray(attribute, { minLength: 1, maxLength: 3, selector: ({ name }) => name.toLowerCase() });
}

function byName(definitions: readonly AttributeDefinition[]): Definitions {
  return new Map(definitions.map((definition) => [definition.name, definition]));
}

function defined<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never;
}
