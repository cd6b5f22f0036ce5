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

  const redirects = (status: number) =>
    `lldap's address redirects (HTTP ${status}), as a login page in front of lldap does: use the address of lldap's own Service in the cluster`;
  const answers = (status: number) => `lldap's address answers HTTP ${status}`;
  const statuses: [status: number, kind: LldapErrorKind, message: string][] = [
    [204, 'unavailable', answers(204)],
    [300, 'unavailable', redirects(300)],
    [302, 'unavailable', redirects(302)],
    [399, 'unavailable', redirects(399)],
    [400, 'unforeseen', 'lldap does not understand the request: its version may be another (HTTP 400)'],
    [401, 'unauthenticated', 'lldap refuses the credentials of the operator'],
    [413, 'refused', 'the request is too large for lldap (HTTP 413)'],
    ...[403, 404, 408, 429, 500, 502, 503].map((status): [number, LldapErrorKind, string] => [status, 'unavailable', answers(status)]),
  ];
  for (const [status, kind, message] of statuses) {
    it(`HTTP ${status} → ${kind}`, () => {
      const error = statusError(status);
      assert.deepEqual([error.kind, error.message], [kind, message]);
    });
  }

  it('no answer → unavailable', () => {
    const { kind, message } = networkError(new HttpError('timeout', 'no answer within 10 ms'));
    assert.deepEqual([kind, message], ['unavailable', 'lldap does not answer: no answer within 10 ms']);
  });

  const coded = (code: number | string, message = '') => Object.assign(new Error(message), { code });
  const NAME = "lldap's LDAP port does not accept the name made of the user id and the base DN";
  const RIGHTS = "lldap does not allow the operator's account to set this password: it must be in lldap_admin";
  const LOST = "the connection to lldap's LDAP port was lost";
  const SLOW = "lldap's LDAP port does not answer in time";
  const UNTRUSTED = 'DEPTH_ZERO_SELF_SIGNED_CERT';
  const ldap: [what: string, error: unknown, kind: LldapErrorKind, message: string][] = [
    ['49 on our bind', coded(49), 'unauthenticated', "lldap's LDAP port refuses the credentials of the operator"],
    ['50', coded(50), 'unauthorized', RIGHTS],
    ['1 with EntityNotFound', coded(1, 'requesting groups: EntityNotFound("x")'), 'notFound', 'lldap does not have the user'],
    ['1 with something else', coded(1, 'panic'), 'unforeseen', "lldap's LDAP port answers with an error (result 1)"],
    ['34', coded(34), 'refused', NAME],
    ['64', coded(64), 'refused', NAME],
    ['51', coded(51), 'unavailable', "lldap's LDAP port is not ready (result 51)"],
    ['52', coded(52), 'unavailable', "lldap's LDAP port is not ready (result 52)"],
    ['53', coded(53), 'unforeseen', "lldap's LDAP port answers with an error (result 53)"],
    ['a refused connection', coded('ECONNREFUSED'), 'unavailable', "no connection to lldap's LDAP port (ECONNREFUSED)"],
    ['a certificate that is not trusted', coded(UNTRUSTED), 'unavailable', `no connection to lldap's LDAP port (${UNTRUSTED})`],
    ['no connection in time', new Error('Connection timeout'), 'unavailable', "no connection to lldap's LDAP port in time"],
    ['no answer in time', new Error('ExtendedRequest: Operation timed out'), 'unavailable', SLOW],
    ['no answer to a bind', new Error('BindRequest: Operation timed out'), 'unavailable', SLOW],
    ['a lost connection', new Error('Connection closed before message response was received.'), 'unavailable', LOST],
    ['what is no error', 'Connection timeout', 'unavailable', LOST],
    ['nothing', undefined, 'unavailable', LOST],
  ];
  for (const [what, thrown, kind, message] of ldap) {
    it(`LDAP: ${what} → ${kind}`, () => {
      const error = ldapError(thrown);
      assert.deepEqual([error.kind, error.message], [kind, message]);
    });
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
    for (const text of [secret, secret.toUpperCase()])
      for (let before = 190; before <= 200; before++) assert.doesNotMatch(shown(`${'-'.repeat(before)} ${text}`, [secret]).message, / t/i);
  });

  const excerpts: Record<string, [text: string, request: string[], excerpt: string]> = {
    'without a name of the request': ['Boom: the user bob is odd', ['bob'], 'Boom: the user … is odd'],
    'without the request, which a longer text of it hides as a whole': ['Boom: <abcd-efgh>', ['abcd', 'abcd-efgh'], 'Boom: <…>'],
    'without a text of the request as JSON has it': ['Boom: <-\\"-\\"->', ['-"-"-'], 'Boom: <…>'],
    'without the longest text of the request that may be in it': ['-'.repeat(1000), ['-'.repeat(1000)], '…'],
    'with words in which a short text of the request happens to be': ['Boom: odd oddly a cat', ['odd', 'a'], 'Boom: … oddly … cat'],
    'with short words that happen to be in the request': ['Boom: this is his', ['thistle'], 'Boom: … is his'],
    'without what lldap got': ['Bad variable. Got: {"age": 42}\nat line 1', [], 'Bad variable. Got: …'],
    'in one line': ['  Boom:\n\n\tit is\u0000\u001b[31m odd \n', [], 'Boom: it is [31m odd'],
    'to its two-hundredth character': [`Boom${'!'.repeat(5000)}`, [], `Boom${'!'.repeat(196)}`],
  };
  for (const [how, [text, request, excerpt]] of Object.entries(excerpts)) {
    it(`is shown as far as it helps: ${how}`, () => {
      assert.equal(shown(text, request).message, `lldap answered with an error: ${excerpt}`);
    });
  }

  it('costs little, however much was asked', () => {
    const error = shown('x '.repeat(1_000_000), ['y'.repeat(10_000_000), ...Array.from({ length: 1000 }, (_, i) => `value ${i}`)]);
    assert.equal(error.kind, 'unforeseen');
  });
});
