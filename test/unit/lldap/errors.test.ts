import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import { LldapError, type LldapErrorKind } from '../../../shared/lldap/api.ts';
import { networkError, statusError, textError } from '../../../shared/lldap/errors.ts';
import { ldapError } from '../../../shared/lldap/ldap-errors.ts';
import { HttpError } from '../../../shared/platform/http.ts';

const sqlite = (text: string) => `Database error: \`Execution Error: error returned from database: ${text}\``;
const postgres = (text: string) => `Database error: \`Query Error: error returned from database: ${text}\``;
const mysql = (text: string) => `Database error: \`Execution Error: error returned from database: ${text}\``;
const inTransaction = (text: string) => text.replace('Database error', 'Database transaction error');
const duplicate = (constraint: string) => postgres(`duplicate key value violates unique constraint "${constraint}"`);
const foreignKey = (constraint: string) =>
  inTransaction(postgres(`insert or update on table "memberships" violates foreign key constraint "${constraint}"`));

const TEXTS: [text: string, kind: LldapErrorKind, message: RegExp, attribute?: string][] = [
  [sqlite('(code: 1555) UNIQUE constraint failed: users.user_id'), 'exists', /user of this id/],
  [duplicate('users_pkey'), 'exists', /user of this id/],
  [mysql("1062 (23000): Duplicate entry 'bob' for key 'users.PRIMARY'"), 'exists', /user of this id/],
  [mysql("1062 (23000): Duplicate entry 'email' for key 'users.PRIMARY'"), 'exists', /user of this id/],
  [sqlite('(code: 2067) UNIQUE constraint failed: users.lowercase_email'), 'exists', /e-mail/],
  [duplicate('unique-user-lower-email'), 'exists', /e-mail/],
  [duplicate('unique-user-email'), 'exists', /e-mail/],
  [mysql("1062 (23000): Duplicate entry 'b@x' for key 'users.unique-user-email'"), 'exists', /e-mail/],
  [sqlite('(code: 2067) UNIQUE constraint failed: groups.lowercase_display_name'), 'exists', /group of this name/],
  [duplicate('unique-group-id'), 'exists', /group of this name/],
  [duplicate('groups_display_name_key'), 'exists', /group of this name/],
  [mysql("1062 (23000): Duplicate entry 'x' for key 'groups.display_name'"), 'exists', /group of this name/],
  [inTransaction(sqlite('(code: 2067) UNIQUE constraint failed: memberships.user_id, memberships.group_id')), 'exists', /member already/],
  [inTransaction(duplicate('unique-memberships')), 'exists', /member already/],
  [sqlite('(code: 1555) UNIQUE constraint failed: user_attribute_schema.user_attribute_schema_name'), 'exists', /attribute of this name/],
  [duplicate('group_attribute_schema_pkey'), 'exists', /attribute of this name/],
  [mysql("1062 (23000): Duplicate entry 'x' for key 'PRIMARY'"), 'exists', /already/],

  ['Entity not found: `nosuch`', 'notFound', /does not have it/],
  ["Entity not found: `No such user: 'x'`", 'notFound', /does not have it/],
  ["Entity not found: `No such membership: 'u' -> 4`", 'notFound', /does not have it/],
  ['Database error: `None of the records are updated`', 'notFound', /does not have it/],
  [inTransaction(sqlite('(code: 787) FOREIGN KEY constraint failed')), 'notFound', /the user or the group/],
  [foreignKey('MembershipUserForeignKey'), 'notFound', /the user$/],
  [foreignKey('MembershipGroupForeignKey'), 'notFound', /the group$/],
  [
    inTransaction(
      mysql(
        '1452 (23000): Cannot add or update a child row: a foreign key constraint fails (`l`.`memberships`, CONSTRAINT `MembershipUserForeignKey` FOREIGN KEY (`user_id`))',
      ),
    ),
    'notFound',
    /the user$/,
  ],

  ['While deserializing attribute birthday', 'refused', /cannot read the value; a picture must be/, 'birthday'],
  ['Email is required when creating a new user', 'refused', /e-mail/, 'mail'],
  ['Cannot create attribute with invalid name. Valid characters: a-z. Invalid chars found: _', 'refused', /name of the attribute/],
  ["Internal error: `A user attribute 'x' already exists with type Integer, …`", 'refused', /another type/, 'x'],
  [postgres('value too long for type character varying(255)'), 'refused', /too long/],
  [mysql("1406 (22001): Data too long for column 'display_name' at row 1"), 'refused', /too long/],
  [postgres('invalid byte sequence for encoding "UTF8": 0x00'), 'refused', /character/],
  ['Equality not supported for list fields', 'refused', /list/],

  ['Attribute nope is not defined in the schema', 'undefinedAttribute', /no attribute nope/, 'nope'],
  ["Internal error: `User attribute name nope doesn't exist in the schema, …`", 'undefinedAttribute', /no attribute nope/, 'nope'],
  ["Internal error: `Group attribute name nope doesn't exist in the schema, …`", 'undefinedAttribute', /no attribute nope/, 'nope'],
  ["Internal error: `Attribute name nope doesn't exist in the group schema, …`", 'undefinedAttribute', /no attribute nope/, 'nope'],
  ['Unknown request filter: k8s-owner', 'undefinedAttribute', /no attribute k8s-owner/, 'k8s-owner'],

  ['Permission denied: Attribute uuid is read-only', 'protected', /read-only/, 'uuid'],
  ['Permission denied: Attribute avatar cannot be deleted', 'protected', /cannot be deleted/, 'avatar'],
  ['Cannot delete current user', 'protected', /own account/],
  ['Cannot remove admin rights for current user', 'protected', /own account/],
  ['Cannot delete admin group', 'protected', /lldap_admin/],
  ['Cannot change lldap_admin group name', 'protected', /lldap_admin/],

  ['Unauthorized user creation', 'unauthorized', /lldap_admin/],
  ['Permission denied: Attribute x is not editable by regular users', 'unauthorized', /lldap_admin/, 'x'],

  [postgres('(code: 5) database is locked'), 'unavailable', /locked/],
  [mysql('1213 (40001): Deadlock found when trying to get lock; try restarting transaction'), 'unavailable', /locked/],
  ['Database error: `Failed to acquire connection from pool: Connection pool timed out`', 'unavailable', /no connection to its database/],
  [sqlite('(code: 8) attempt to write a readonly database'), 'unavailable', /cannot be written/],

  ['Something new', 'unforeseen', /Something new/],
  // A name that looks like another error stays what it is.
  ["Entity not found: `No such user: 'unique constraint failed: users.user_id'`", 'notFound', /does not have it/],
];

describe('what lldap says becomes a kind of error', () => {
  for (const [text, kind, message, attribute] of TEXTS) {
    it(`${text.slice(0, 140)} → ${kind}`, () => {
      const error = textError(text, []);
      assert.deepEqual([error.kind, error.attribute], [kind, attribute]);
      assert.match(error.message, message);
    });
  }

  const statuses: [status: number, kind: LldapErrorKind][] = [
    [302, 'unavailable'],
    [400, 'unforeseen'],
    [401, 'unauthenticated'],
    [403, 'unavailable'],
    [404, 'unavailable'],
    [408, 'unavailable'],
    [413, 'refused'],
    [429, 'unavailable'],
    [500, 'unavailable'],
    [502, 'unavailable'],
    [503, 'unavailable'],
  ];
  for (const [status, kind] of statuses) {
    it(`HTTP ${status} → ${kind}`, () => assert.equal(statusError(status).kind, kind));
  }

  it('no answer → unavailable', () => {
    assert.equal(networkError(new HttpError('timeout', 'no answer within 10 ms')).kind, 'unavailable');
  });

  const coded = (code: number | string, message = '') => Object.assign(new Error(message), { code });
  const ldap: [what: string, error: unknown, kind: LldapErrorKind][] = [
    ['49 on our bind', coded(49), 'unauthenticated'],
    ['50', coded(50), 'unauthorized'],
    ['1 with EntityNotFound', coded(1, 'requesting groups: EntityNotFound("x")'), 'notFound'],
    ['1 with something else', coded(1, 'panic'), 'unforeseen'],
    ['34', coded(34), 'refused'],
    ['64', coded(64), 'refused'],
    ['52', coded(52), 'unavailable'],
    ['53', coded(53), 'unforeseen'],
    ['a refused connection', coded('ECONNREFUSED'), 'unavailable'],
    ['a certificate that is not trusted', coded('DEPTH_ZERO_SELF_SIGNED_CERT'), 'unavailable'],
    ['no connection in time', new Error('Connection timeout'), 'unavailable'],
    ['no answer in time', new Error('ExtendedRequest: Operation timed out'), 'unavailable'],
    ['no answer to a bind', new Error('BindRequest: Operation timed out'), 'unavailable'],
    ['a lost connection', new Error('Connection closed before message response was received.'), 'unavailable'],
  ];
  for (const [what, thrown, kind] of ldap) {
    it(`LDAP: ${what} → ${kind}`, () => assert.equal(ldapError(thrown).kind, kind));
  }
});

describe('a text of any length', () => {
  const NEUTRAL = [' ', 'a', '\n', "'", '`'];
  const HOSTILE = [...TEXTS.map(([text]) => text), 'Got: ', "Duplicate entry 'x' for key 'y'", 'Database error: `'];
  const long = (part: string, length: number) => part.repeat(Math.ceil(length / part.length));
  /** Ends only where the time grows no faster than the text. */
  const read = (text: string, padding: string) => {
    const texts = [padding.slice(0, 1000)];
    for (const space of [/^/, / /, / (?=[^ ]*$)/])
      textError(
        text.replace(space, () => ` ${padding} `),
        texts,
      );
    return textError(text + padding, texts).kind;
  };

  it('is understood by its start', () => {
    for (const part of NEUTRAL) for (const [text, kind] of TEXTS) assert.equal(read(text, long(part, 10_000)), kind, text);
  });

  it('is gone through once, whatever is repeated before it, in it and behind it', function () {
    this.timeout(600_000);
    for (const part of HOSTILE) for (const [text] of TEXTS) read(text, long(part, 10_000));
    for (const [text] of TEXTS) read(text, long(text, 10_000_000));
  });
});

describe('a text that the operator does not know', () => {
  const secret = 'Tr0ub4dor&3 "quoted"\nline';
  const shown = (text: string, texts: string[]) => textError(text, texts);

  for (const [what, text] of [
    ['as it is', `Boom: ${secret}!`],
    ['as JSON', `Boom: ${JSON.stringify({ value: secret })}!`],
    ['in another case', `Boom: ${secret.toUpperCase()}!`],
    ['cut', `Boom: ${secret.slice(0, 9)}`],
    ['in its variables', `Variable "$user" got invalid value. Got: {"value": ["${secret}"]}. Details`],
    ['after a long introduction', `${'x '.repeat(500)}${secret}`],
  ] as const) {
    it(`never brings back what was asked: ${what}`, () => {
      const error = shown(text, ['id', secret]);
      assert.ok(error instanceof LldapError);
      assert.doesNotMatch(inspect(error, { depth: 9, showHidden: true }) + JSON.stringify(error), /tr0ub4|quoted|line\b(?!:)/i);
    });
  }

  it('never ends in the start of a word of the request', () => {
    for (let before = 190; before <= 200; before++) assert.doesNotMatch(shown(`${'-'.repeat(before)} ${secret}`, [secret]).message, /Tr/);
  });

  it('is shown as far as it helps', () => {
    assert.equal(shown('Boom: the user bob is odd', ['bob']).message, 'lldap answered with an error: Boom: the user … is odd');
    const { message } = shown(`Boom${'!'.repeat(5000)}\u0000\u001b[31m`, []);
    assert.ok(message.length < 300);
    assert.doesNotMatch(message, /\p{Cc}/u);
  });

  it('costs little, however much was asked', () => {
    const error = shown('x '.repeat(1_000_000), ['y'.repeat(10_000_000), ...Array.from({ length: 1000 }, (_, i) => `value ${i}`)]);
    assert.equal(error.kind, 'unforeseen');
  });
});
