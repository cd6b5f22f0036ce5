/** lldap's error texts, as observed; those of its database differ by the database. */

export type Dialect = 'sqlite' | 'postgres';

/** An operation that lldap answers with an error text and without any effect. */
export class Refusal extends Error {
  override name = 'Refusal';
}

interface DatabaseTexts {
  userExists: string;
  emailExists: string;
  emailExistsOnUpdate: string;
  groupExists: string;
  groupExistsOnRename: string;
  memberExists: string;
  noUserToJoin: string;
  noGroupToJoin: string;
  attributeExists: (target: 'user' | 'group') => string;
}

const sqlite = (code: number, text: string, prefix = 'Database error') =>
  `${prefix}: \`Execution Error: error returned from database: (code: ${code}) ${text}\``;
const postgres = (text: string, prefix = 'Database error') => `${prefix}: \`Query Error: error returned from database: ${text}\``;
const duplicate = (constraint: string) => `duplicate key value violates unique constraint "${constraint}"`;
const foreign = (constraint: string) => `insert or update on table "memberships" violates foreign key constraint "${constraint}"`;
const TRANSACTION = 'Database transaction error';

export const DATABASE_TEXTS: Record<Dialect, DatabaseTexts> = {
  sqlite: {
    userExists: sqlite(1555, 'UNIQUE constraint failed: users.user_id'),
    emailExists: sqlite(2067, 'UNIQUE constraint failed: users.lowercase_email'),
    emailExistsOnUpdate: sqlite(2067, 'UNIQUE constraint failed: users.lowercase_email'),
    groupExists: sqlite(2067, 'UNIQUE constraint failed: groups.lowercase_display_name'),
    groupExistsOnRename: sqlite(2067, 'UNIQUE constraint failed: groups.lowercase_display_name'),
    memberExists: sqlite(2067, 'UNIQUE constraint failed: memberships.user_id, memberships.group_id', TRANSACTION),
    noUserToJoin: sqlite(787, 'FOREIGN KEY constraint failed', TRANSACTION),
    noGroupToJoin: sqlite(787, 'FOREIGN KEY constraint failed', TRANSACTION),
    attributeExists: (target) => sqlite(1555, `UNIQUE constraint failed: ${target}_attribute_schema.${target}_attribute_schema_name`),
  },
  postgres: {
    userExists: postgres(duplicate('users_pkey')),
    emailExists: postgres(duplicate('unique-user-lower-email')),
    emailExistsOnUpdate: postgres(duplicate('unique-user-email')),
    groupExists: postgres(duplicate('unique-group-id')),
    groupExistsOnRename: postgres(duplicate('groups_display_name_key')),
    memberExists: postgres(duplicate('unique-memberships'), TRANSACTION),
    noUserToJoin: postgres(foreign('MembershipUserForeignKey'), TRANSACTION),
    noGroupToJoin: postgres(foreign('MembershipGroupForeignKey'), TRANSACTION),
    attributeExists: (target) => postgres(duplicate(`${target}_attribute_schema_pkey`)),
  },
};

export const NONE_UPDATED = 'Database error: `None of the records are updated`';
export const TOO_MANY_FILTERS =
  'Database error: `Query Error: error returned from database: (code: 1) Expression tree is too large (maximum depth 1000)`';
export const notFound = (what: string) => `Entity not found: \`${what}\``;
export const notDefined = (name: string) => `Attribute ${name} is not defined in the schema`;
export const badValue = (name: string) => `While deserializing attribute ${name}`;
export const readOnly = (name: string) => `Permission denied: Attribute ${name} is read-only`;
export const notEditable = (name: string) => `Permission denied: Attribute ${name} is not editable by regular users`;
