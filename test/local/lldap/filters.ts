import { fold } from './definitions.ts';
import type { Directory } from './directory.ts';
import type { User } from './state.ts';
import { Refusal, TOO_MANY_FILTERS } from './texts.ts';
import { normalised } from './values.ts';

export interface RequestFilter {
  any?: RequestFilter[] | null;
  all?: RequestFilter[] | null;
  not?: RequestFilter | null;
  eq?: { field: string; value: string } | null;
  memberOf?: string | null;
  memberOfId?: number | null;
}

const MOST_ON_SQLITE = 497;

/** Whether a user passes a filter of the `users` query; wrong filters are refused before any user is looked at. */
export function predicate(filter: RequestFilter, directory: Directory): (user: User) => boolean {
  const given = Object.entries(filter).filter(([, value]) => value !== null && value !== undefined);
  if (given.length > 1) throw new Refusal('Multiple fields specified in request filter');
  if (given.length === 0) throw new Refusal('No field specified in request filter');
  if (filter.any != null) {
    if (filter.any.length > MOST_ON_SQLITE) throw new Refusal(TOO_MANY_FILTERS);
    const parts = filter.any.map((part) => predicate(part, directory));
    return (user) => parts.some((part) => part(user));
  }
  if (filter.all != null) {
    const parts = filter.all.map((part) => predicate(part, directory));
    return (user) => parts.every((part) => part(user));
  }
  if (filter.not != null) {
    const part = predicate(filter.not, directory);
    return (user) => !part(user);
  }
  if (filter.eq != null) return equality(filter.eq, directory);
  const { memberOf, memberOfId } = filter;
  return (user) =>
    directory.groupsOf(user.id).some(({ id, displayName }) => id === memberOfId || displayName.toLowerCase() === memberOf?.toLowerCase());
}

/** Ids are compared without the case of ASCII letters, e-mails without that of any, everything else with it. */
function equality({ field: given, value }: { field: string; value: string }, directory: Directory): (user: User) => boolean {
  const field = fold(given);
  const own = OWN_FIELDS[field];
  if (own !== undefined) return (user) => own(user) === (own === id ? fold(value) : own === email ? value.toLowerCase() : value);
  if (LDAP_FIELDS.has(field)) throw new Refusal('Ldap fields not supported in request filter');
  if (field === 'memberof' || field === 'ismemberof') return predicate({ memberOf: value }, directory);
  const found = directory.state.definitions.user.get(ALIASES[field] ?? field);
  if (found === undefined) throw new Refusal(`Unknown request filter: ${given}`);
  if (found.isList) throw new Refusal('Equality not supported for list fields');
  const [wanted] = normalised(found.name, found.attributeType, false, [value]);
  return (user) => user.attributes.get(found.name)?.[0] === wanted;
}

const id = (user: User) => user.id;
const email = (user: User) => user.email.toLowerCase();
const displayName = (user: User) => user.displayName;
const uuid = (user: User) => user.uuid;
const created = (user: User) => user.createdAt;
const modified = (user: User) => user.modifiedAt;
const passwordModified = (user: User) => user.passwordModifiedAt;

const OWN_FIELDS: Record<string, (user: User) => string | undefined> = {
  id,
  uid: id,
  user_id: id,
  mail: email,
  email,
  display_name: displayName,
  displayname: displayName,
  cn: displayName,
  uuid,
  creation_date: created,
  modified_date: modified,
  password_modified_date: passwordModified,
};
const LDAP_FIELDS = new Set(['objectclass', 'dn', 'distinguishedname', 'entrydn']);
const ALIASES: Record<string, string> = {
  firstname: 'first_name',
  givenname: 'first_name',
  lastname: 'last_name',
  sn: 'last_name',
  jpegphoto: 'avatar',
};
