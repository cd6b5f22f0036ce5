import type { AttributeTarget, AttributeType, AttributeValue } from '../kube/resources.ts';

/** The rest of the operator's view of lldap: plain data, two clients and one error type. */

export interface LldapGroupRef {
  id: number;
  uuid: string;
  displayName: string;
}

/** A user in lldap. An attribute that is not stored is absent. */
export interface LldapAccount {
  /** ASCII lower case. */
  id: string;
  email: string;
  uuid: string;
  /** All attributes, built-in ones (`mail`, `first_name`, `creation_date`, …) among them. */
  attributes: AttributeValue[];
  groups: LldapGroupRef[];
}

export interface LldapGroupAccount extends LldapGroupRef {
  attributes: AttributeValue[];
}

export interface AttributeDefinition {
  /** ASCII lower case. */
  name: string;
  type: AttributeType;
  isList: boolean;
  isVisible: boolean;
  isEditable: boolean;
  isHardcoded: boolean;
  isReadonly: boolean;
}

export interface AttributeChange {
  insertAttributes?: AttributeValue[];
  removeAttributes?: string[];
}

export interface GroupChange extends AttributeChange {
  displayName?: string;
}

export interface AccountChange extends GroupChange {
  email?: string;
  firstName?: string;
  lastName?: string;
}

/**
 * lldap's GraphQL API. Every method throws {@link LldapError} and nothing else. After a 401, the client renews the token
 * and repeats the request once. Reads return `undefined` for an object that does not exist.
 * Writing an attribute with no value, or with one empty text, unsets it, on users and groups alike.
 */
export interface LldapClient {
  user(id: string): Promise<LldapAccount | undefined>;
  /** Any number of ids, requested in filters of at most 100. Omits users that do not exist, or are too large to be read. */
  usersById(ids: readonly string[]): Promise<LldapAccount[]>;
  /** The users with an e-mail address, compared as lldap does, ignoring case. */
  userByEmail(email: string): Promise<LldapAccount | undefined>;
  group(id: number): Promise<LldapGroupAccount | undefined>;
  /** All groups, with their attributes and without members. Costly for lldap: share the call. */
  groups(): Promise<LldapGroupAccount[]>;
  /** All groups, without attributes, which may be large. */
  groupNames(): Promise<LldapGroupRef[]>;
  schema(): Promise<Record<AttributeTarget, AttributeDefinition[]>>;
  /** Throws `exists` when the id or the e-mail is taken. */
  createUser(user: {
    id: string;
    email: string;
    displayName?: string;
    firstName?: string;
    lastName?: string;
    attributes?: AttributeValue[];
  }): Promise<LldapAccount>;
  updateUser(id: string, change: AccountChange): Promise<void>;
  /** Succeeds if the object does not exist. */
  deleteUser(id: string): Promise<void>;
  createGroup(group: { displayName: string; attributes?: AttributeValue[] }): Promise<LldapGroupAccount>;
  updateGroup(id: number, change: GroupChange): Promise<void>;
  deleteGroup(id: number): Promise<void>;
  /** Succeeds if the user is a member already. */
  addUserToGroup(userId: string, groupId: number): Promise<void>;
  /** Succeeds if the user is not a member. */
  removeUserFromGroup(userId: string, groupId: number): Promise<void>;
  /** Throws `exists` when the name is taken. */
  addAttribute(target: AttributeTarget, definition: Omit<AttributeDefinition, 'isHardcoded' | 'isReadonly'>): Promise<void>;
  /** Succeeds if the object does not exist. */
  deleteAttribute(target: AttributeTarget, name: string): Promise<void>;
  /** Checks that lldap answers, accepts the credentials, and that the account is an administrator. Throws the cause; never cached. */
  check(): Promise<void>;
  /** Closes all connections. */
  close(): void;
}

/** lldap's LDAP port, used only for passwords. Throws {@link LldapError}. */
export interface LldapPasswords {
  /** RFC 3062 Password Modify as the administrator, over one shared connection that is closed after 2 s idle. */
  set(userId: string, password: string): Promise<void>;
  /** Whether the password works, by one bind on a new connection. */
  verify(userId: string, password: string): Promise<boolean>;
  /** Connects and binds as the administrator. */
  check(): Promise<void>;
  close(): Promise<void>;
}

/** Why a call to lldap failed. */
export type LldapErrorKind =
  /** Refused, reset, timeout, 408, 5xx, database locked, an answer that is not what the API promises. */
  | 'unavailable'
  /** The administrator's credentials were refused after one fresh login. */
  | 'unauthenticated'
  /** The operator's account lacks the rights. */
  | 'unauthorized'
  /** A uniqueness rule: user id, e-mail, group name, attribute name. */
  | 'exists'
  /** The object of an update or of a join does not exist. */
  | 'notFound'
  /** lldap does not accept the value; `attribute` names it where the answer does. */
  | 'refused'
  /** lldap does not define the attribute that `attribute` names. It may be defined later. */
  | 'undefinedAttribute'
  /** lldap protects this object: the operator's login, built-in groups and attributes. */
  | 'protected'
  /** The text matches no rule. */
  | 'unforeseen';

export class LldapError extends Error {
  override name = 'LldapError';
  readonly kind: LldapErrorKind;
  readonly attribute: string | undefined;

  /** `message` is shown to people: it must not contain a secret, a token or the request's body. */
  constructor(kind: LldapErrorKind, message: string, attribute?: string) {
    super(message);
    this.kind = kind;
    this.attribute = attribute;
  }
}

/** The answer is above its operation's limit, see `operations.ts`. */
export class AnswerTooLarge extends LldapError {
  constructor(message: string) {
    super('unavailable', message);
  }
}
