import type { AttributeDefinition, LldapAccount, LldapGroupAccount, LldapGroupRef } from './api.ts';

/** JSON schemas of lldap's answers; additional fields are allowed. The bounds are far above real values. */

export type Definition = Omit<AttributeDefinition, 'type'> & { attributeType: 'STRING' | 'INTEGER' | 'JPEG_PHOTO' | 'DATE_TIME' };

/** Every operation is asked under the alias `result`. */
interface Answer<T> {
  data: { result: T };
}

/** Each validator's name, and the type that it guarantees. */
export interface Answers {
  isLoginAnswer: { token: string; refreshToken: string };
  isRefreshAnswer: { token: string };
  isClaims: { exp: number; iat: number; groups: string[] };
  isErrorAnswer: { errors: [{ message: string }, ...unknown[]] };
  isVersionAnswer: Answer<string>;
  isUserAnswer: Answer<LldapAccount>;
  isUsersAnswer: Answer<LldapAccount[]>;
  isGroupAnswer: Answer<LldapGroupAccount>;
  isGroupsAnswer: Answer<LldapGroupAccount[]>;
  isGroupNamesAnswer: Answer<LldapGroupRef[]>;
  isSchemaAnswer: Answer<{ userSchema: { attributes: Definition[] }; groupSchema: { attributes: Definition[] } }>;
  isSuccessAnswer: Answer<{ ok: boolean }>;
}

/** On SQLite, lldap does not limit names. One odd name must not make a whole list unreadable. */
const name = { type: 'string', maxLength: 100_000 };
/** lldap's own limit for a request is 16 MiB. */
const text = { type: 'string', maxLength: 20_000_000 };
const token = { type: 'string', minLength: 1, maxLength: 100_000 };
const uuid = { type: 'string', minLength: 1, maxLength: 100 };
const flag = { type: 'boolean' };
const seconds = { type: 'number', minimum: 0 };

const object = (properties: Record<string, object>) => ({ type: 'object', required: Object.keys(properties), properties });
const list = (items: object) => ({ type: 'array', items });
/** GraphQL may return a result and errors together, which is no success. */
const answer = (result: object) => {
  const { properties, ...rest } = object({ data: object({ result }) });
  return { ...rest, properties: { ...properties, errors: { type: ['array', 'null'], maxItems: 0 } } };
};

const attributes = list(object({ name, value: list(text) }));
const groupFields = { id: { type: 'integer', minimum: -2_147_483_648, maximum: 2_147_483_647 }, uuid, displayName: name };
const group = object({ ...groupFields, attributes });
const user = object({
  id: name,
  email: name,
  uuid,
  attributes,
  groups: list(object(groupFields)),
});
const definitions = object({
  attributes: list(
    object({
      name,
      attributeType: { enum: ['STRING', 'INTEGER', 'JPEG_PHOTO', 'DATE_TIME'] },
      isList: flag,
      isVisible: flag,
      isEditable: flag,
      isHardcoded: flag,
      isReadonly: flag,
    }),
  ),
});

export const SCHEMAS: Record<keyof Answers, object> = {
  isLoginAnswer: object({ token, refreshToken: token }),
  isRefreshAnswer: object({ token }),
  isClaims: object({ exp: seconds, iat: seconds, groups: list(name) }),
  isErrorAnswer: object({ errors: { type: 'array', minItems: 1, items: object({ message: text }) } }),
  isVersionAnswer: answer(name),
  isUserAnswer: answer(user),
  isUsersAnswer: answer(list(user)),
  isGroupAnswer: answer(group),
  isGroupsAnswer: answer(list(group)),
  isGroupNamesAnswer: answer(list(object(groupFields))),
  isSchemaAnswer: answer(object({ userSchema: definitions, groupSchema: definitions })),
  isSuccessAnswer: answer(object({ ok: flag })),
};

/** Counts lengths in code units, which needs no library at run time and no loop over an avatar. ajv warns that the option is old. */
export const AJV_OPTIONS = { unicode: false, logger: false } as const;
