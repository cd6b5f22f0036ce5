import type { AttributeTarget, AttributeType, AttributeValue } from '../kube/resources.ts';

/** What the rest of the operator knows of lldap: plain data, a client and its one error type. */

export interface LldapGroupRef {
  id: number;
  uuid: string;
  displayName: string;
}

/** A user as lldap has it. An attribute that is not stored is absent. */
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
 * lldap's GraphQL API. Every method throws {@link LldapError} and nothing else; a 401 leads to one shared
 * fresh token and one repetition, unseen by the caller. Reads answer `undefined` for what does not exist.
 * An attribute written with no value, or with one empty text, is afterwards not set, on users and groups alike.
 */
export interface LldapClient {
  user(id: string): Promise<LldapAccount | undefined>;
  /** Any number of ids, asked in filters of at most 100. Those that do not exist are left out. */
  usersById(ids: readonly string[]): Promise<LldapAccount[]>;
  /** Whoever holds an e-mail address, compared as lldap does, without case. */
  userByEmail(email: string): Promise<LldapAccount | undefined>;
  group(id: number): Promise<LldapGroupAccount | undefined>;
  /** All groups, with their attributes and without members. Costly for lldap: share it. */
  groups(): Promise<LldapGroupAccount[]>;
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
  /** Deleting what is not there succeeds. */
  deleteUser(id: string): Promise<void>;
  createGroup(group: { displayName: string; attributes?: AttributeValue[] }): Promise<LldapGroupAccount>;
  updateGroup(id: number, change: GroupChange): Promise<void>;
  deleteGroup(id: number): Promise<void>;
  /** Joining a member succeeds. */
  addUserToGroup(userId: string, groupId: number): Promise<void>;
  /** Removing who is no member succeeds. */
  removeUserFromGroup(userId: string, groupId: number): Promise<void>;
  /** Throws `exists` when the name is taken. */
  addAttribute(target: AttributeTarget, definition: Omit<AttributeDefinition, 'isHardcoded' | 'isReadonly'>): Promise<void>;
  /** Deleting what is not there succeeds. */
  deleteAttribute(target: AttributeTarget, name: string): Promise<void>;
  /** Is lldap there, do our credentials serve, and are we an administrator? Fails with the cause; never cached. */
  check(): Promise<void>;
  /** Closes all connections. */
  close(): void;
}

/** lldap's LDAP port, used for passwords only. Throws {@link LldapError}. */
export interface LldapPasswords {
  /** RFC 3062 Password Modify as the administrator, over one shared connection that is closed after 2 s idle. */
  set(userId: string, password: string): Promise<void>;
  /** Binds once on a fresh connection: does this password work? */
  verify(userId: string, password: string): Promise<boolean>;
  /** Connects and binds as the administrator. */
  check(): Promise<void>;
  close(): Promise<void>;
}

/** Why lldap did not do what was asked; the only place where its texts become meaning. */
export type LldapErrorKind =
  /** Refused, reset, timeout, 408, 5xx, database locked, an answer that is not what the API promises. */
  | 'unavailable'
  /** The administrator's credentials were refused after one fresh login. */
  | 'unauthenticated'
  /** The operator's account lacks the rights. */
  | 'unauthorized'
  /** A uniqueness rule: user id, e-mail, group name, attribute name. */
  | 'exists'
  /** The object of an update or of a join is not there. */
  | 'notFound'
  /** lldap does not accept the value; `attribute` names it where the answer does. */
  | 'refused'
  /** lldap has no definition of the attribute that `attribute` names: it may come. */
  | 'undefinedAttribute'
  /** lldap guards this object: its own login, built-in groups and attributes. */
  | 'protected'
  /** A text that the classifier does not know. */
  | 'unforeseen';

export class LldapError extends Error {
  override name = 'LldapError';
  readonly kind: LldapErrorKind;
  readonly attribute: string | undefined;

  /** `message` is shown to people: it must hold no secret, token or request body. */
  constructor(kind: LldapErrorKind, message: string, attribute?: string) {
    super(message);
    this.kind = kind;
    this.attribute = attribute;
  }
}
