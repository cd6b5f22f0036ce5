import { MARK_ATTRIBUTE } from '../../shared/constants.ts';
import { LldapError, type LldapPasswords } from '../../shared/lldap/api.ts';
import type { Credentials } from '../../shared/lldap/session.ts';
import { type Http, type HttpAnswer, HttpError, type HttpRequest } from '../../shared/platform/http.ts';
import { Auth, type Caller } from '../local/lldap/auth.ts';
import { Directory } from '../local/lldap/directory.ts';
import { resolvers } from '../local/lldap/resolvers.ts';
import type { State } from '../local/lldap/state.ts';
import type { Process } from './process.ts';
import type { Context, Faulty, Scheduler } from './scheduler.ts';

export const ADMIN = 'admin';
const BUILT_IN = ['lldap_admin', 'lldap_password_manager', 'lldap_strict_readonly'];

/** What tells objects apart and says whose they are. */
export interface Identity {
  kind: 'LldapUser' | 'LldapGroup';
  uuid: string;
  /** A user's id, a group's display name as it is. */
  name: string;
  groupId?: number;
  mark: string | undefined;
  /** A user's groups, by display name; a group has none. */
  memberOf: readonly string[];
}

/** What lldap tells others of. */
export interface LldapListener {
  /** A process is about to change something: it can still be judged by what is there. */
  onMutation(context: Context | undefined, operation: string, variables: Record<string, unknown>): void;
  /** It was carried out. */
  onMutated(context: Context | undefined, operation: string, variables: Record<string, unknown>, result: unknown): void;
  onPassword(context: Context | undefined, userId: string, password: string): void;
  /** Something is other than it was. */
  onChange(): void;
}

/** The clients' own limits, see `shared/lldap`. */
const LIMIT_MS = 10_000;
const LDAP_LIMIT_MS = 5_000;

/**
 * lldap in memory: the stand-in's own state and rules, without HTTP and LDAP between. The operator's real client, its
 * session and its classifier of errors run over this.
 */
export class LldapDouble {
  readonly directory = new Directory('sqlite');
  readonly auth = new Auth(this.directory, 'cheap');
  /** What the file says that processes log in with. */
  credentials: Credentials = { username: ADMIN, password: 'admin-password' };
  readonly #scheduler: Scheduler;
  readonly #listener: LldapListener;
  /** Plain texts by the date of their setting, which no other has: so they survive a backup. */
  readonly #plain = new Map<string, string>();
  readonly #known = new Map<string, { caller: Caller; jti: string }>();

  constructor(scheduler: Scheduler, listener: LldapListener) {
    this.#scheduler = scheduler;
    this.#listener = listener;
    for (const name of BUILT_IN) this.directory.createGroup({ displayName: name });
    this.directory.createUser({ id: ADMIN, email: 'admin@example.com' });
    this.setPassword(ADMIN, this.credentials.password);
    this.directory.addMember(ADMIN, 1);
  }

  setPassword(userId: string, password: string): void {
    this.auth.setPassword(userId, Buffer.from(password));
    this.#plain.set(this.directory.user(userId).passwordModifiedAt, password);
  }

  plainPasswords(): Map<string, string> {
    const passwords = new Map<string, string>();
    for (const { uuid, passwordModifiedAt } of this.state.users.values()) {
      const password = this.#plain.get(passwordModifiedAt);
      if (password !== undefined) passwords.set(uuid, password);
    }
    return passwords;
  }

  get state(): State {
    return this.directory.state;
  }

  identities(): Identity[] {
    const users = [...this.state.users.values()].map(
      (user): Identity => ({
        kind: 'LldapUser',
        uuid: user.uuid,
        name: user.id,
        mark: user.attributes.get(MARK_ATTRIBUTE)?.[0],
        memberOf: this.directory.groupsOf(user.id).map((g) => g.displayName),
      }),
    );
    const groups = [...this.state.groups.values()].map(
      (group): Identity => ({
        kind: 'LldapGroup',
        uuid: group.uuid,
        name: group.displayName,
        groupId: group.id,
        mark: group.attributes.get(MARK_ATTRIBUTE)?.[0],
        memberOf: [],
      }),
    );
    return [...users, ...groups];
  }

  /** What a person does there as an administrator; a refusal is thrown. */
  byHand(work: (directory: Directory) => void): void {
    work(this.directory);
    this.#listener.onChange();
  }

  hasPassword(userId: string, password: string): boolean {
    return this.auth.caller(userId, Buffer.from(password)) !== undefined;
  }

  /** The way of one process to its HTTP side. */
  http(process: Process): Http {
    return {
      request: (request) => {
        const operation = operationOf(request);
        return this.#scheduler.call<HttpAnswer>(process, {
          service: 'lldap',
          what: operation.what,
          limitMs: LIMIT_MS,
          carryOut: (by) => this.#answer(request, operation, by),
          faults: HTTP_FAULTS,
        });
      },
      close: () => undefined,
    };
  }

  /** The way of one process to its LDAP side. */
  passwords(process: Process): LldapPasswords {
    const ask = <T>(what: string, carryOut: (by: Context | undefined) => T): Promise<T> =>
      this.#scheduler.call<T>(process, { service: 'ldap', what, limitMs: LDAP_LIMIT_MS, carryOut, faults: LDAP_FAULTS as Faulty<T> });
    const bind = () => {
      const { username, password } = this.credentials;
      if (!this.hasPassword(username, password)) throw new LldapError('unauthenticated', 'refused');
    };
    return {
      set: (userId, password) =>
        ask(`setPassword ${userId}`, (by) => {
          bind();
          if (!this.state.users.has(userId)) throw new LldapError('notFound', 'lldap does not have the user');
          this.#listener.onPassword(by, userId, password);
          this.setPassword(userId, password);
          this.#listener.onChange();
        }),
      verify: (userId, password) => ask(`verify ${userId}`, () => this.hasPassword(userId, password)),
      check: () => ask('check', bind),
      close: async () => undefined,
    };
  }

  /** The signature of a token is looked at once: it costs more than all the rest of a call. */
  #callerOf(token: string): Caller | string {
    const known = this.#known.get(token);
    if (known && !this.state.blacklist.has(known.jti)) return known.caller;
    const caller = this.auth.verify(token);
    if (typeof caller !== 'string') {
      const { jti } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as { jti: string };
      this.#known.set(token, { caller, jti });
    }
    return caller;
  }

  #answer(request: HttpRequest, asked: Asked, by: Context | undefined): HttpAnswer {
    if (request.url === '/auth/simple/login') return this.#login(JSON.parse(request.body ?? '') as Credentials);
    if (request.url === '/auth/refresh') {
      const token = this.auth.refresh(request.headers?.['refresh-token'] ?? '');
      return token === undefined ? REFUSED : answer({ token });
    }
    const caller = this.#callerOf(request.headers?.Authorization?.replace('Bearer ', '') ?? '');
    return typeof caller === 'string' ? { ...REFUSED, text: caller } : this.#graphql(asked, caller, by);
  }

  #login({ username, password }: Credentials): HttpAnswer {
    const tokens = this.auth.login(username, Buffer.from(password));
    return tokens ? answer(tokens) : REFUSED;
  }

  #graphql({ name, variables }: Asked, caller: Caller, by: Context | undefined): HttpAnswer {
    const resolve = (resolvers(this.directory, 'sqlite', caller) as unknown as Record<string, (args: unknown) => unknown>)[name];
    if (!resolve) throw new Error(`the double does not know ${name}`);
    const isMutation = MUTATION.test(name);
    try {
      if (isMutation && caller.groups.includes('lldap_admin')) this.#listener.onMutation(by, name, variables);
      const result = plain(resolve(variables));
      if (isMutation) {
        this.#listener.onChange();
        this.#listener.onMutated(by, name, variables, result);
      }
      return answer({ data: { result } });
    } catch (error) {
      if (!(error instanceof Error) || error.name !== 'Refusal') throw error;
      return answer({ data: null, errors: [{ message: error.message }] });
    }
  }
}

const REFUSED: HttpAnswer = { status: 401, text: 'refused' };

const MUTATION = /^(create|update|delete|add|remove)/;

interface Asked {
  what: string;
  name: string;
  variables: Record<string, unknown>;
}

function operationOf(request: HttpRequest): Asked {
  if (request.url !== '/api/graphql') return { what: request.url, name: '', variables: {} };
  const { operationName, variables } = JSON.parse(request.body ?? '') as { operationName: string; variables: Record<string, unknown> };
  const { id, displayName } = (variables.user ?? variables.group ?? variables.request ?? {}) as { id?: unknown; displayName?: unknown };
  const about = [id, displayName, variables.userId, variables.groupId, variables.name].filter((v) => v !== undefined);
  return { what: [operationName, ...about].join(' '), name: operationName, variables };
}

/** The fields that a selection asks for, of those that are made when asked for. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  const { attributes, groups, users: _users, ...rest } = value as Record<string, unknown>;
  return {
    ...rest,
    ...(attributes !== undefined && { attributes: typeof attributes === 'function' ? attributes().map(withoutSchema) : attributes }),
    ...(typeof groups === 'function' && {
      groups: (groups() as Record<string, unknown>[]).map(({ id, uuid, displayName }) => ({ id, uuid, displayName })),
    }),
    ...('userSchema' in rest && { userSchema: plain(rest.userSchema), groupSchema: plain(rest.groupSchema) }),
  };
}

const withoutSchema = ({ name, value }: { name: string; value: string[] }) => ({ name, value });

function answer(body: unknown): HttpAnswer {
  return { status: 200, text: JSON.stringify(body) };
}

const http = (code: 'refused' | 'timeout' | 'reset') => (): never => {
  throw new HttpError(code, `no answer (${code})`);
};
const page = (status: number, text: string) => (): HttpAnswer => ({ status, text });
const text = (message: string) => () => answer({ data: null, errors: [{ message }] });

const HTTP_FAULTS: Faulty<HttpAnswer> = {
  refused: { done: false, answer: http('refused') },
  lost: { done: false, answer: http('timeout') },
  unanswered: { done: true, answer: http('reset') },
  busy: {
    done: false,
    answer: text('Database error: `Query Error: error returned from database: (code: 5) database is locked`'),
  },
  broken: { done: true, answer: page(200, '{"data":{"result":{"id') },
  denied: { done: false, answer: page(401, 'JWT was logged out') },
  odd: { done: false, answer: text('Something that nobody foresaw') },
};

const ldap = (kind: 'unavailable' | 'unauthenticated' | 'unforeseen') => (): never => {
  throw new LldapError(kind, 'LDAP failed');
};

const LDAP_FAULTS: Faulty<never> = {
  refused: { done: false, answer: ldap('unavailable') },
  lost: { done: false, answer: ldap('unavailable') },
  unanswered: { done: true, answer: ldap('unavailable') },
  busy: { done: false, answer: ldap('unavailable') },
  broken: { done: true, answer: ldap('unavailable') },
  denied: { done: false, answer: ldap('unauthenticated') },
  odd: { done: false, answer: ldap('unforeseen') },
};
