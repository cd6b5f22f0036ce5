import { type Definitions, ownDefinitions } from './definitions.ts';

/** Everything that lldap keeps in its database: what a backup holds. */
export interface State {
  users: Map<string, User>;
  groups: Map<number, Group>;
  definitions: Definitions;
  /** Never given twice, not even after a deletion; going back to a backup takes it back too. */
  nextGroupId: number;
  /** Refresh token to user id. */
  refreshTokens: Map<string, string>;
  /** Token ids by user, so that a logout can blacklist them all. */
  tokens: Map<string, string>;
  blacklist: Set<string>;
}

export interface User {
  id: string;
  uuid: string;
  email: string;
  displayName: string | undefined;
  createdAt: string;
  modifiedAt: string;
  passwordModifiedAt: string;
  password: PasswordHash | undefined;
  /** All stored attributes, `first_name`, `last_name` and `avatar` among them. */
  attributes: Map<string, string[]>;
}

export interface Group {
  id: number;
  uuid: string;
  displayName: string;
  createdAt: string;
  modifiedAt: string;
  attributes: Map<string, string[]>;
  members: Set<string>;
}

export interface PasswordHash {
  salt: Uint8Array;
  hash: Uint8Array;
}

export function emptyState(): State {
  return {
    users: new Map(),
    groups: new Map(),
    definitions: ownDefinitions(),
    nextGroupId: 1,
    refreshTokens: new Map(),
    tokens: new Map(),
    blacklist: new Set(),
  };
}
