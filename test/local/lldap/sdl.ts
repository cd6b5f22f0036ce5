/** lldap's GraphQL types, with those parts left out that the operator and its tests have no use for. */
export const SDL = `
scalar DateTime

enum AttributeType { STRING INTEGER JPEG_PHOTO DATE_TIME }

type AttributeSchema {
  name: String!
  attributeType: AttributeType!
  isList: Boolean!
  isVisible: Boolean!
  isEditable: Boolean!
  isHardcoded: Boolean!
  isReadonly: Boolean!
}
type AttributeList { attributes: [AttributeSchema!]! }
type Schema { userSchema: AttributeList! groupSchema: AttributeList! }
type AttributeValue { name: String! value: [String!]! schema: AttributeSchema! }
type Success { ok: Boolean! }

type User {
  id: String!
  email: String!
  displayName: String!
  firstName: String!
  lastName: String!
  avatar: String
  creationDate: DateTime!
  uuid: String!
  attributes: [AttributeValue!]!
  groups: [Group!]!
}
type Group {
  id: Int!
  displayName: String!
  creationDate: DateTime!
  uuid: String!
  attributes: [AttributeValue!]!
  users: [User!]!
}

input EqualityConstraint { field: String! value: String! }
input RequestFilter {
  any: [RequestFilter!]
  all: [RequestFilter!]
  not: RequestFilter
  eq: EqualityConstraint
  memberOf: String
  memberOfId: Int
}
input AttributeValueInput { name: String! value: [String!]! }
input CreateUserInput {
  id: String!
  email: String
  displayName: String
  firstName: String
  lastName: String
  avatar: String
  attributes: [AttributeValueInput!]
}
input UpdateUserInput {
  id: String!
  email: String
  displayName: String
  firstName: String
  lastName: String
  avatar: String
  removeAttributes: [String!]
  insertAttributes: [AttributeValueInput!]
}
input CreateGroupInput { displayName: String! attributes: [AttributeValueInput!] }
input UpdateGroupInput {
  id: Int!
  displayName: String
  removeAttributes: [String!]
  insertAttributes: [AttributeValueInput!]
}

type Query {
  apiVersion: String!
  user(userId: String!): User!
  users(filters: RequestFilter): [User!]!
  group(groupId: Int!): Group!
  groups: [Group!]!
  schema: Schema!
}

type Mutation {
  createUser(user: CreateUserInput!): User!
  updateUser(user: UpdateUserInput!): Success!
  deleteUser(userId: String!): Success!
  createGroup(name: String!): Group!
  createGroupWithDetails(request: CreateGroupInput!): Group!
  updateGroup(group: UpdateGroupInput!): Success!
  deleteGroup(groupId: Int!): Success!
  addUserToGroup(userId: String!, groupId: Int!): Success!
  removeUserFromGroup(userId: String!, groupId: Int!): Success!
  addUserAttribute(name: String!, attributeType: AttributeType!, isList: Boolean!, isVisible: Boolean!, isEditable: Boolean!): Success!
  addGroupAttribute(name: String!, attributeType: AttributeType!, isList: Boolean!, isVisible: Boolean!, isEditable: Boolean!): Success!
  deleteUserAttribute(name: String!): Success!
  deleteGroupAttribute(name: String!): Success!
}
`;
