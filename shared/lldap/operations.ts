import type { Answers } from './schemas.ts';
import {
  isGroupAnswer,
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
  document: string;
  validate: (answer: unknown) => answer is { data: { result: Result } };
}

type ResultOf<Name extends keyof Answers> = Answers[Name] extends { data: { result: infer Result } } ? Result : never;

export type UserResult = ResultOf<'isUserAnswer'>;
export type GroupResult = ResultOf<'isGroupAnswer'>;
export type DefinitionResult = ResultOf<'isSchemaAnswer'>['userSchema']['attributes'][number];

// A user's groups come with their built-in attributes only, so their attributes are not asked for.
const USER = '{ id email uuid attributes { name value } groups { id uuid displayName } }';
const GROUP = '{ id uuid displayName attributes { name value } }';
const DEFINITIONS = '{ attributes { name attributeType isList isVisible isEditable isHardcoded isReadonly } }';
const SUCCESS = '{ ok }';
const DEFINITION = '$name: String!, $attributeType: AttributeType!, $isList: Boolean!, $isVisible: Boolean!, $isEditable: Boolean!';
const DEFINITION_ARGUMENTS = 'name: $name, attributeType: $attributeType, isList: $isList, isVisible: $isVisible, isEditable: $isEditable';
const MEMBER = '$userId: String!, $groupId: Int!';
const MEMBER_ARGUMENTS = 'userId: $userId, groupId: $groupId';

export const OPERATIONS = {
  apiVersion: query('apiVersion', '', '', '', isVersionAnswer),
  user: query('user', '$userId: String!', 'userId: $userId', USER, isUserAnswer),
  users: query('users', '$filters: RequestFilter!', 'filters: $filters', USER, isUsersAnswer),
  group: query('group', '$groupId: Int!', 'groupId: $groupId', GROUP, isGroupAnswer),
  groups: query('groups', '', '', GROUP, isGroupsAnswer),
  schema: query('schema', '', '', `{ userSchema ${DEFINITIONS} groupSchema ${DEFINITIONS} }`, isSchemaAnswer),
  createUser: mutation('createUser', '$user: CreateUserInput!', 'user: $user', USER, isUserAnswer),
  updateUser: mutation('updateUser', '$user: UpdateUserInput!', 'user: $user', SUCCESS, isSuccessAnswer),
  deleteUser: mutation('deleteUser', '$userId: String!', 'userId: $userId', SUCCESS, isSuccessAnswer),
  createGroup: mutation('createGroupWithDetails', '$request: CreateGroupInput!', 'request: $request', GROUP, isGroupAnswer),
  updateGroup: mutation('updateGroup', '$group: UpdateGroupInput!', 'group: $group', SUCCESS, isSuccessAnswer),
  deleteGroup: mutation('deleteGroup', '$groupId: Int!', 'groupId: $groupId', SUCCESS, isSuccessAnswer),
  addUserToGroup: mutation('addUserToGroup', MEMBER, MEMBER_ARGUMENTS, SUCCESS, isSuccessAnswer),
  removeUserFromGroup: mutation('removeUserFromGroup', MEMBER, MEMBER_ARGUMENTS, SUCCESS, isSuccessAnswer),
  addUserAttribute: mutation('addUserAttribute', DEFINITION, DEFINITION_ARGUMENTS, SUCCESS, isSuccessAnswer),
  addGroupAttribute: mutation('addGroupAttribute', DEFINITION, DEFINITION_ARGUMENTS, SUCCESS, isSuccessAnswer),
  deleteUserAttribute: mutation('deleteUserAttribute', '$name: String!', 'name: $name', SUCCESS, isSuccessAnswer),
  deleteGroupAttribute: mutation('deleteGroupAttribute', '$name: String!', 'name: $name', SUCCESS, isSuccessAnswer),
};

function query<Result>(name: string, variables: string, args: string, fields: string, validate: Operation<Result>['validate']) {
  return { name, mutation: false, document: document('query', name, variables, args, fields), validate } satisfies Operation<Result>;
}

function mutation<Result>(name: string, variables: string, args: string, fields: string, validate: Operation<Result>['validate']) {
  return { name, mutation: true, document: document('mutation', name, variables, args, fields), validate } satisfies Operation<Result>;
}

function document(type: string, name: string, variables: string, args: string, fields: string): string {
  const inBrackets = (text: string) => (text === '' ? '' : `(${text})`);
  return `${type} ${name}${inBrackets(variables)} { result: ${name}${inBrackets(args)} ${fields} }`;
}
