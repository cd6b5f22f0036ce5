import {
  isGroupAnswer,
  isGroupNamesAnswer,
  isGroupsAnswer,
  isSchemaAnswer,
  isSuccessAnswer,
  isUserAnswer,
  isUsersAnswer,
  isVersionAnswer,
} from './validate.ts';

/** A GraphQL document with one field, aliased `result`, and the validator of its answer. */
export interface Operation<Result> {
  name: string;
  mutation: boolean;
  /** Of the answer. */
  maxBytes: number;
  document: string;
  validate: (answer: unknown) => answer is { data: { result: Result } };
}

/** One object: tenants may store megabytes in an object, and several reconciles read at the same time. */
const MAX_OBJECT_BYTES = 4 * 1024 * 1024;
/** Callers share lists, so that one is in memory. */
const MAX_LIST_BYTES = 16 * 1024 * 1024;

// lldap returns only the built-in attributes of a user's groups, so they are not requested.
const USER = '{ id email uuid attributes { name value } groups { id uuid displayName } }';
const GROUP_NAME = '{ id uuid displayName }';
const GROUP = '{ id uuid displayName attributes { name value } }';
const DEFINITIONS = '{ attributes { name attributeType isList isVisible isEditable isHardcoded isReadonly } }';
const SUCCESS = '{ ok }';
const DEFINITION = '$name: String!, $attributeType: AttributeType!, $isList: Boolean!, $isVisible: Boolean!, $isEditable: Boolean!';
const MEMBER = '$userId: String!, $groupId: Int!';

export const OPERATIONS = {
  apiVersion: query('apiVersion', '', '', isVersionAnswer),
  user: query('user', '$userId: String!', USER, isUserAnswer),
  users: query('users', '$filters: RequestFilter!', USER, isUsersAnswer, MAX_LIST_BYTES),
  group: query('group', '$groupId: Int!', GROUP, isGroupAnswer),
  groups: query('groups', '', GROUP, isGroupsAnswer, MAX_LIST_BYTES),
  groupNames: query('groups', '', GROUP_NAME, isGroupNamesAnswer, MAX_LIST_BYTES),
  schema: query('schema', '', `{ userSchema ${DEFINITIONS} groupSchema ${DEFINITIONS} }`, isSchemaAnswer),
  createUser: mutation('createUser', '$user: CreateUserInput!', USER, isUserAnswer),
  updateUser: mutation('updateUser', '$user: UpdateUserInput!', SUCCESS, isSuccessAnswer),
  deleteUser: mutation('deleteUser', '$userId: String!', SUCCESS, isSuccessAnswer),
  createGroup: mutation('createGroupWithDetails', '$request: CreateGroupInput!', GROUP, isGroupAnswer),
  updateGroup: mutation('updateGroup', '$group: UpdateGroupInput!', SUCCESS, isSuccessAnswer),
  deleteGroup: mutation('deleteGroup', '$groupId: Int!', SUCCESS, isSuccessAnswer),
  addUserToGroup: mutation('addUserToGroup', MEMBER, SUCCESS, isSuccessAnswer),
  removeUserFromGroup: mutation('removeUserFromGroup', MEMBER, SUCCESS, isSuccessAnswer),
  addUserAttribute: mutation('addUserAttribute', DEFINITION, SUCCESS, isSuccessAnswer),
  addGroupAttribute: mutation('addGroupAttribute', DEFINITION, SUCCESS, isSuccessAnswer),
  deleteUserAttribute: mutation('deleteUserAttribute', '$name: String!', SUCCESS, isSuccessAnswer),
  deleteGroupAttribute: mutation('deleteGroupAttribute', '$name: String!', SUCCESS, isSuccessAnswer),
};

function query<Result>(
  name: string,
  variables: string,
  fields: string,
  validate: Operation<Result>['validate'],
  maxBytes = MAX_OBJECT_BYTES,
) {
  return { name, mutation: false, maxBytes, document: document('query', name, variables, fields), validate } satisfies Operation<Result>;
}

function mutation<Result>(name: string, variables: string, fields: string, validate: Operation<Result>['validate']) {
  return {
    name,
    mutation: true,
    maxBytes: MAX_OBJECT_BYTES,
    document: document('mutation', name, variables, fields),
    validate,
  } satisfies Operation<Result>;
}

/** Passes each variable as the field's argument of the same name. */
function document(type: string, name: string, variables: string, fields: string): string {
  const inBrackets = (text: string) => (text === '' ? '' : `(${text})`);
  const args = variables.replace(/\$(\w+): [\w!]+/g, '$1: $$$1');
  return `${type} ${name}${inBrackets(variables)} { result: ${name}${inBrackets(args)} ${fields} }`;
}
