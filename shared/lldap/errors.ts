import type { HttpError } from '../platform/http.ts';
import { AnswerTooLarge, LldapError, type LldapErrorKind } from './api.ts';

/**
 * Classifies lldap's errors. Every execution error of its GraphQL API is HTTP 200 with a message and no code, and a
 * constraint error is the raw message of its database: SQLite, Postgres or MySQL. The operator's messages are its own
 * sentences, which repeat names from lldap's message, but never values.
 */

/** Each expression has at most one unbounded repetition, and is anchored if it has one, so that matching takes linear time for any text. */
interface Rule {
  text: RegExp;
  /** Must match somewhere after `text`. */
  about?: RegExp;
  kind: LldapErrorKind;
  /** `$1` stands for the attribute's name, as the pattern matched it. */
  message: string;
  /** If the text does not name it. */
  attribute?: string;
}

const NAME = '([^`\'"\\s]{1,64})';
/** Matches a database error that contains one of these. */
const database = (texts: string, flags = 's') => new RegExp(`^Database (?:transaction )?error: .*(?:${texts})`, flags);
/** The name of the constraint follows. MySQL puts the existing value before it. */
const UNIQUE = database("UNIQUE constraint failed:|violates unique constraint|' for key '");
const FOREIGN_KEY = database('FOREIGN KEY constraint failed|violates foreign key constraint|foreign key constraint fails');

const RULES: readonly Rule[] = [
  {
    text: /^Unauthorized/,
    kind: 'unauthorized',
    message: "lldap does not allow this to the operator's account: it must be in lldap_admin",
  },
  {
    text: new RegExp(`^Permission denied: Attribute ${NAME} is not editable by regular users`),
    kind: 'unauthorized',
    message: "lldap does not allow the operator's account to set attribute $1: it must be in lldap_admin",
  },

  // Reads, deletions and removals say "not found"; updates say that no record was updated; joins break a foreign key.
  { text: /^Entity not found/, kind: 'notFound', message: 'lldap does not have it' },
  { text: /^Database error: .*None of the records are updated/, kind: 'notFound', message: 'lldap does not have it' },
  { text: FOREIGN_KEY, about: /MembershipUser/, kind: 'notFound', message: 'lldap does not have the user' },
  { text: FOREIGN_KEY, about: /MembershipGroup/, kind: 'notFound', message: 'lldap does not have the group' },
  { text: FOREIGN_KEY, kind: 'notFound', message: 'lldap does not have the user or the group' },

  { text: UNIQUE, about: /email/, kind: 'exists', message: 'another user in lldap has the e-mail address' },
  { text: UNIQUE, about: /users\.user_id|users_pkey|users\.PRIMARY/, kind: 'exists', message: 'lldap has a user of this id' },
  { text: UNIQUE, about: /memberships/, kind: 'exists', message: 'the user is a member already' },
  { text: UNIQUE, about: /attribute_schema/, kind: 'exists', message: 'lldap has an attribute of this name' },
  { text: UNIQUE, about: /groups?[._-]|lowercase_display_name/, kind: 'exists', message: 'lldap has a group of this name' },
  { text: UNIQUE, kind: 'exists', message: 'lldap has it already' },

  {
    text: new RegExp(`^While deserializing attribute ${NAME}`),
    kind: 'refused',
    message: 'it cannot read the value; a picture must be a whole JPEG file',
  },
  { text: new RegExp(`^Attribute ${NAME} is not defined in the schema`), kind: 'undefinedAttribute', message: 'lldap has no attribute $1' },
  {
    text: new RegExp(`^Internal error: .*[aA]ttribute name ${NAME} doesn't exist in the (?:user |group )?schema`),
    kind: 'undefinedAttribute',
    message: 'lldap has no attribute $1',
  },
  { text: new RegExp(`^Unknown request filter: ${NAME}`), kind: 'undefinedAttribute', message: 'lldap has no attribute $1' },
  { text: /^Equality not supported for list fields/, kind: 'refused', message: 'lldap cannot search an attribute that is a list' },
  {
    text: new RegExp(`^Internal error: .*attribute '${NAME}' already exists with type`),
    kind: 'refused',
    message: 'the attribute $1 of the other target has another type, and lldap wants both alike',
  },
  { text: /^Cannot create attribute with invalid name/, kind: 'refused', message: 'lldap does not accept the name of the attribute' },
  { text: /^Email is required/, kind: 'refused', attribute: 'mail', message: 'lldap wants an e-mail address for a new user' },
  { text: database('value too long|Data too long'), kind: 'refused', message: "a value is too long for lldap's database" },
  {
    text: database('invalid byte sequence|Incorrect string value'),
    kind: 'refused',
    message: "lldap's database does not accept a character in a value",
  },

  {
    text: new RegExp(`^Permission denied: Attribute ${NAME} is read-only`),
    kind: 'protected',
    message: 'attribute $1 is read-only in lldap',
  },
  {
    text: new RegExp(`^Permission denied: Attribute ${NAME} cannot be deleted`),
    kind: 'protected',
    message: "attribute $1 is lldap's own and cannot be deleted",
  },
  { text: /^Cannot delete current user/, kind: 'protected', message: "it is the operator's own account in lldap" },
  {
    text: /^Cannot remove admin rights for current user/,
    kind: 'protected',
    message: "the operator's own account cannot leave lldap_admin",
  },
  {
    text: /^Cannot (?:delete admin group|change lldap_admin group name)/,
    kind: 'protected',
    message: 'lldap guards its group lldap_admin',
  },

  { text: database('database is locked|deadlock|lock wait timeout', 'si'), kind: 'unavailable', message: "lldap's database is locked" },
  {
    text: database('acquire connection|connection pool|connection error|communicating with database|shutting down|starting up', 'si'),
    kind: 'unavailable',
    message: 'lldap has no connection to its database',
  },
  {
    text: database('readonly database|disk is full|disk I/O error|No space left', 'si'),
    kind: 'unavailable',
    message: "lldap's database cannot be written",
  },
];

/** lldap's own texts are shorter; anything after that is a value that it repeats. */
const MAX_SCANNED_LENGTH = 1000;

/**
 * Classifies the message of a GraphQL execution error.
 *
 * @param texts all texts of the request, none of which the result's message may repeat
 */
export function textError(message: string, texts: readonly string[]): LldapError {
  const text = message.slice(0, MAX_SCANNED_LENGTH);
  for (const rule of RULES) {
    const match = rule.text.exec(text);
    if (match === null || rule.about?.test(text.slice(match[0].length)) === false) continue;
    const attribute = match[1] ?? rule.attribute;
    const shown = rule.message.replace('$1', () => attribute ?? '');
    return new LldapError(rule.kind, shown, attribute);
  }
  return new LldapError('unforeseen', `lldap answered with an error: ${excerpt(text, texts)}`);
}

/** Classifies a status other than 200. Never shows the body, which may be a proxy's page or repeat the request. */
export function statusError(status: number): LldapError {
  if (status === 401) return new LldapError('unauthenticated', 'lldap refuses the credentials of the operator');
  if (status === 400) return new LldapError('unforeseen', 'lldap does not understand the request: its version may be another (HTTP 400)');
  if (status === 413) return new LldapError('refused', 'the request is too large for lldap (HTTP 413)');
  if (status >= 300 && status < 400)
    return new LldapError(
      'unavailable',
      `lldap's address redirects (HTTP ${status}), as a login page in front of lldap does: use the address of lldap's own Service in the cluster`,
    );
  return new LldapError('unavailable', `lldap's address answers HTTP ${status}`);
}

/** Classifies a request without an answer. */
export function networkError(error: HttpError): LldapError {
  if (error.code === 'large') return new AnswerTooLarge(`lldap's answer is not read: ${error.message}`);
  return new LldapError('unavailable', `lldap does not answer: ${error.message}`);
}

/** The error for an answer that the API does not allow. */
export function answerError(what: string): LldapError {
  return new LldapError('unavailable', `lldap's address answers something else than lldap's API: ${what}`);
}

const MAX_EXCERPT_LENGTH = 200;

/** Shortens an unknown text, and removes control characters and everything that was in the request. */
function excerpt(text: string, texts: readonly string[]): string {
  // After "Got:", lldap repeats the request's variables in its own notation.
  let shown = text.replace(/\bGot:.*$/s, 'Got: …');
  for (const echo of texts.filter(({ length }) => length > 3 && length <= MAX_SCANNED_LENGTH).sort((a, b) => b.length - a.length)) {
    shown = shown.replaceAll(echo, '…').replaceAll(JSON.stringify(echo).slice(1, -1), '…');
  }
  // lldap may repeat a value shortened or folded, so no word of the request stays either. Checks only the words that are shown, since a request may be large.
  const echoes = texts.map((echo) => echo.toLowerCase());
  const isEcho = (word: string, at: number) =>
    at + word.length === MAX_EXCERPT_LENGTH || echoes.some((echo) => isOf(word.toLowerCase(), echo));
  shown = shown.slice(0, MAX_EXCERPT_LENGTH).replace(/[\p{L}\p{N}]+/gu, (word, at: number) => (isEcho(word, at) ? '…' : word));
  return shown.replace(/[\p{C}\s]+/gu, ' ').trim();
}

/** A short word counts only if it is a whole text of the request, or the message would consist of dots. */
function isOf(word: string, echo: string): boolean {
  return word.length > 3 ? echo.includes(word) : echo === word;
}
