import type { AttributeTarget, AttributeType, AttributeValue } from '../kube/resources.ts';
import { type Clock, systemClock } from '../platform/clock.ts';
import { createHttp, type Http } from '../platform/http.ts';
import type { Log } from '../telemetry/log.ts';
import { type AttributeDefinition, type LldapAccount, type LldapClient, LldapError, type LldapErrorKind } from './api.ts';
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
  /** Read anew for each login. */
  credentials: () => Promise<Credentials>;
  /** For each request, the wait for a free connection included. */
  timeoutMs?: number;
  /** Requests to lldap at once; others wait. More only queue in lldap, which has one thread. */
  maxConcurrentRequests?: number;
  log: Log;
}

/** lldap closes a connection that was idle for 4.7 s. */
const KEEP_ALIVE_MS = 4000;
/** More in one filter is slow, and some thousands end lldap's process. */
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

/** The same over a given way to lldap, whose requests are relative to its address, and a given time. */
export function createLldapClientOver(
  http: Http,
  { credentials, log, clock }: Pick<LldapClientOptions, 'credentials' | 'log'> & { clock: Clock },
): LldapClient {
  const session = createSession({ http, credentials, log, clock });
  const call = createCall({ http, session, log });
  const usersWith = (filters: object) => call(OPERATIONS.users, { filters });

  return {
    async user(id) {
      // lldap decodes this one argument as a part of a URL.
      return await undefinedIf('notFound', call(OPERATIONS.user, { userId: id.replaceAll('%', '%25') }));
    },
    async usersById(ids) {
      const found: LldapAccount[] = [];
      for (let i = 0; i < ids.length; i += IDS_PER_REQUEST) {
        const any = ids.slice(i, i + IDS_PER_REQUEST).map((id) => equals('id', foldId(id)));
        found.push(...(await usersWith({ any })));
      }
      return found;
    },
    async userByEmail(email) {
      return (await usersWith(equals('email', email)))[0];
    },
    async group(id) {
      return await undefinedIf('notFound', call(OPERATIONS.group, { groupId: id }));
    },
    groups: () => call(OPERATIONS.groups),
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

/** The answer, or undefined where lldap says that what was asked for is not there, or is so already. */
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

/** No value, and one empty text, mean that the attribute is not set; lldap, asked to, would store either on some objects. */
function isEmpty({ value }: AttributeValue): boolean {
  return value.length === 0 || (value.length === 1 && value[0] === '');
}

function changes(insert: AttributeValue[] = [], remove: string[] = []) {
  return {
    insertAttributes: insert.filter((attribute) => !isEmpty(attribute)),
    removeAttributes: [...remove, ...insert.filter(isEmpty).map(({ name }) => name)].map(foldId),
  };
}

/** A new user's field that is empty is left out, since lldap stores some of them as an attribute with an empty value. */
function withoutEmpty<T extends object>(fields: T): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ''));
}
