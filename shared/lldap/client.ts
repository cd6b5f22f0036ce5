import type { AttributeTarget, AttributeType, AttributeValue } from '../kube/resources.ts';
import { type Clock, systemClock } from '../platform/clock.ts';
import { createHttp, type Http } from '../platform/http.ts';
import type { Log } from '../telemetry/log.ts';
import { AnswerTooLarge, type AttributeDefinition, type LldapAccount, type LldapClient, LldapError, type LldapErrorKind } from './api.ts';
import { createCall, isKind } from './graphql.ts';
import { foldId } from './names.ts';
import { OPERATIONS } from './operations.ts';
import type { Definition } from './schemas.ts';
import { type Credentials, createSession } from './session.ts';

export interface LldapClientOptions {
  /** lldap's HTTP address, without a path. */
  url: string;
  /** PEM certificates to trust for https, instead of the system's. */
  ca?: string | undefined;
  /** Called for each login. */
  credentials: () => Promise<Credentials>;
  /** For each request, including the wait for a free connection. */
  timeoutMs?: number;
  /** Others wait. More would only queue in lldap, which has one thread. */
  maxConcurrentRequests?: number;
  log: Log;
}

/** lldap closes a connection after 4.7 s without a request. */
const KEEP_ALIVE_MS = 4000;
/** A filter with more ids is slow, and one with thousands crashes lldap. */
const IDS_PER_REQUEST = 100;

const TYPES: Record<Definition['attributeType'], AttributeType> = {
  STRING: 'String',
  INTEGER: 'Integer',
  JPEG_PHOTO: 'JpegPhoto',
  DATE_TIME: 'DateTime',
};

/** See {@link LldapClient}. Nothing is loaded or connected before the first call. */
export function createLldapClient(options: LldapClientOptions): LldapClient {
  const http = createHttp({
    baseURL: options.url,
    ca: options.ca,
    timeoutMs: options.timeoutMs ?? 10_000,
    maxSockets: options.maxConcurrentRequests ?? 8,
    keepAliveMs: KEEP_ALIVE_MS,
  });
  return createLldapClientOver(http, { ...options, clock: systemClock });
}

/** The same with the given HTTP client, whose requests are relative to lldap's address, and the given clock. */
export function createLldapClientOver(
  http: Http,
  { credentials, log, clock }: Pick<LldapClientOptions, 'credentials' | 'log'> & { clock: Clock },
): LldapClient {
  const session = createSession({ http, credentials, log, clock });
  const call = createCall({ http, session, log, clock });
  const usersWith = (filters: object) => call(OPERATIONS.users, { filters });
  /** Halves a batch whose answer is too large, and leaves out a user who is too large alone. */
  const usersOf = async (ids: readonly string[]): Promise<LldapAccount[]> => {
    try {
      return await usersWith({ any: ids.map((id) => equals('id', foldId(id))) });
    } catch (error) {
      if (!(error instanceof AnswerTooLarge)) throw error;
      const half = Math.ceil(ids.length / 2);
      return ids.length > 1 ? [...(await usersOf(ids.slice(0, half))), ...(await usersOf(ids.slice(half)))] : [];
    }
  };

  return {
    async user(id) {
      // lldap URL-decodes this argument, and no other.
      return await undefinedIf('notFound', call(OPERATIONS.user, { userId: id.replaceAll('%', '%25') }));
    },
    async usersById(ids) {
      const found: LldapAccount[] = [];
      for (let i = 0; i < ids.length; i += IDS_PER_REQUEST) found.push(...(await usersOf(ids.slice(i, i + IDS_PER_REQUEST))));
      return found;
    },
    async userByEmail(email) {
      return (await usersWith(equals('email', email)))[0];
    },
    async group(id) {
      return await undefinedIf('notFound', call(OPERATIONS.group, { groupId: id }));
    },
    groups: () => call(OPERATIONS.groups),
    groupNames: () => call(OPERATIONS.groupNames),
    async schema() {
      const { userSchema, groupSchema } = await call(OPERATIONS.schema);
      return { User: userSchema.attributes.map(definition), Group: groupSchema.attributes.map(definition) };
    },

    async createUser({ attributes = [], ...fields }) {
      const user = { ...withoutEmpty(fields), attributes: attributes.filter((attribute) => !isEmpty(attribute)) };
      return await call(OPERATIONS.createUser, { user });
    },
    async updateUser(id, { insertAttributes, removeAttributes, ...fields }) {
      await call(OPERATIONS.updateUser, { user: { id, ...fields, ...changes(insertAttributes, removeAttributes) } });
    },
    async deleteUser(id) {
      await undefinedIf('notFound', call(OPERATIONS.deleteUser, { userId: id }));
    },
    async createGroup({ displayName, attributes = [] }) {
      const request = { displayName, attributes: attributes.filter((attribute) => !isEmpty(attribute)) };
      return await call(OPERATIONS.createGroup, { request });
    },
    async updateGroup(id, { insertAttributes, removeAttributes, ...fields }) {
      await call(OPERATIONS.updateGroup, { group: { id, ...fields, ...changes(insertAttributes, removeAttributes) } });
    },
    async deleteGroup(id) {
      await undefinedIf('notFound', call(OPERATIONS.deleteGroup, { groupId: id }));
    },
    async addUserToGroup(userId, groupId) {
      await undefinedIf('exists', call(OPERATIONS.addUserToGroup, { userId, groupId }));
    },
    async removeUserFromGroup(userId, groupId) {
      await undefinedIf('notFound', call(OPERATIONS.removeUserFromGroup, { userId, groupId }));
    },
    async addAttribute(target, { type, ...flags }) {
      const operation = target === 'User' ? OPERATIONS.addUserAttribute : OPERATIONS.addGroupAttribute;
      await call(operation, { ...flags, attributeType: typeName(type) });
    },
    async deleteAttribute(target: AttributeTarget, name: string) {
      const operation = target === 'User' ? OPERATIONS.deleteUserAttribute : OPERATIONS.deleteGroupAttribute;
      await undefinedIf('undefinedAttribute', call(operation, { name }));
    },

    async check() {
      const groups = await session.login();
      await call(OPERATIONS.apiVersion);
      if (!groups.includes('lldap_admin')) throw new LldapError('unauthorized', "the operator's account is not in lldap_admin");
    },
    close: () => http.close(),
  };
}

/** The answer, or undefined if lldap says that the object does not exist, or already is as requested. */
async function undefinedIf<T>(kind: LldapErrorKind, call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (isKind(error, kind)) return undefined;
    throw error;
  }
}

function equals(field: string, value: string) {
  return { eq: { field, value } };
}

function definition({ attributeType, ...rest }: Definition): AttributeDefinition {
  return { ...rest, type: TYPES[attributeType] };
}

function typeName(type: AttributeType): string | undefined {
  return Object.entries(TYPES).find(([, ours]) => ours === type)?.[0];
}

/** No value, and one empty text, unset the attribute. On some objects, lldap would store either of them. */
function isEmpty({ value }: AttributeValue): boolean {
  return value.length === 0 || (value.length === 1 && value[0] === '');
}

function changes(insert: AttributeValue[] = [], remove: string[] = []) {
  return {
    insertAttributes: insert.filter((attribute) => !isEmpty(attribute)),
    removeAttributes: [...remove, ...insert.filter(isEmpty).map(({ name }) => name)].map(foldId),
  };
}

/** Omits the empty fields of a new user, some of which lldap would store as an attribute with an empty value. */
function withoutEmpty<T extends object>(fields: T): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ''));
}
