import { createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { listen, listenForGood } from '../ports.ts';
import { run } from './api.ts';
import { Auth, type PasswordCost } from './auth.ts';
import { selfSigned } from './certificate.ts';
import { fold } from './definitions.ts';
import { Directory } from './directory.ts';
import { type Fault, Faults } from './faults.ts';
import { serveLdap } from './ldap.ts';
import { type Entry, Records } from './records.ts';
import type { State } from './state.ts';
import type { Dialect } from './texts.ts';
import { createWeb, type Parts } from './web.ts';

/**
 * A test double for lldap: it serves lldap's login, GraphQL and LDAP as lldap was observed to, from memory, and can be
 * made to fail. What it was told is forgotten when its process ends. The contract suite holds it to a real lldap, also
 * with random requests (`stand-in.test.ts`).
 *
 * What differs from lldap, and why it may:
 * - Error texts begin as lldap's do and hold the same names; the rest is worded anew. The classifier needs no more.
 * - A picture is not decoded: it counts when its headers are complete. lldap also wants more than one scan of a
 *   progressive one that is cut off.
 * - `display_name: []` for a group is ignored, where lldap ends the connection; an attribute that a new group has twice
 *   takes the last value, where lldap refuses it; `mail` and `uuid` cannot be defined again, as they can in lldap. The
 *   operator's CRDs allow none of these.
 * - LDAP knows what sets and tries passwords, and the root entry: no other search, no Add, Delete or Compare. A Modify of
 *   a name with upper-case letters works, where lldap ends the connection; the operator sends no Modify.
 * - GraphQL knows neither object classes nor batches, and HTTP no cookies, no GET of a query and no mail: nothing here asks for them.
 * - Lists cost what they cost here, not the square of the attributes in them, and no filter ends the process. The
 *   operator asks for at most 100 ids at once, which the contract suite does, too.
 * - Databases are told apart by their texts alone, SQLite's and Postgres's.
 */
export interface LocalLldap {
  readonly url: string;
  readonly ldapUrl: string;
  readonly ldapsUrl: string;
  /** PEM; what to trust for `ldapsUrl`. */
  readonly ca: string;
  readonly baseDn: string;
  readonly admin: { username: string; password: string };

  /** An outage: every connection ends, and nobody listens until {@link start}, which listens on the same ports. */
  stop(): Promise<void>;
  /** As lldap at its start, makes built-in groups and the administrator that are missing. */
  start(): Promise<void>;
  /** Everything that a backup of lldap's database holds. */
  snapshot(): Promise<State>;
  restore(snapshot: State): Promise<void>;

  fault(fault: Fault): Promise<void>;
  /** Ends all faults; what hangs keeps hanging. */
  heal(): Promise<void>;
  /** All that was asked since the start or {@link forget}, by anyone but {@link edit}. */
  asked(): Promise<Entry[]>;
  /** On how many connections something was asked since then. */
  sockets(): Promise<{ http: number; ldap: number }>;
  /** How many connections are open now. */
  connections(): Promise<{ http: number; ldap: number }>;
  forget(): Promise<void>;

  /** What a person does in lldap's own UI as an administrator; answers the GraphQL data, throws the error's text. */
  edit(query: string, variables?: Record<string, unknown>): Promise<Record<string, unknown>>;
  setPassword(userId: string, password: string): Promise<void>;
  /** Whether this password works. */
  check(userId: string, password: string): Promise<boolean>;
  users(): Promise<SeenUser[]>;
  groups(): Promise<SeenGroup[]>;
}

export interface SeenUser {
  id: string;
  uuid: string;
  email: string;
  displayName: string;
  hasPassword: boolean;
  passwordModifiedAt: string;
  attributes: Record<string, string[]>;
  groups: string[];
}

export interface SeenGroup {
  id: number;
  uuid: string;
  displayName: string;
  attributes: Record<string, string[]>;
  members: string[];
}

export interface LocalLldapOptions {
  admin?: { username: string; password: string };
  baseDn?: string;
  dialect?: Dialect;
  /** `real` by default. */
  passwordCost?: PasswordCost;
  /** Free ones by default. */
  ports?: { http?: number; ldap?: number; ldaps?: number };
}

const BUILT_IN = ['lldap_admin', 'lldap_password_manager', 'lldap_strict_readonly'];

/** Starts it in this process, on 127.0.0.1; `stop()` it when done. */
export async function serveLldap(options: LocalLldapOptions = {}): Promise<LocalLldap> {
  const { dialect = 'sqlite', baseDn = 'dc=example,dc=com', admin = { username: 'admin', password: 'admin-password' } } = options;
  const directory = new Directory(dialect);
  const auth = new Auth(directory, options.passwordCost ?? 'real');
  const parts: Parts = { directory, auth, faults: new Faults(), records: new Records(), dialect };
  const { key, cert } = selfSigned();
  const onLdap = (socket: Socket) => serveLdap(parts, baseDn, socket);
  const http = listener(() => createWeb(parts), options.ports?.http);
  const ldap = listener(() => createTcpServer(onLdap), options.ports?.ldap);
  const ldaps = listener(() => createTlsServer({ key, cert }, onLdap), options.ports?.ldaps);
  const listeners = [http, ldap, ldaps];

  const start = async () => {
    bootstrap(directory, auth, admin);
    for (const { open } of listeners) await open();
  };
  await start();

  return {
    url: `http://127.0.0.1:${http.port()}`,
    ldapUrl: `ldap://127.0.0.1:${ldap.port()}`,
    ldapsUrl: `ldaps://127.0.0.1:${ldaps.port()}`,
    ca: cert,
    baseDn,
    admin,
    start,
    async stop() {
      for (const { close } of listeners) await close();
    },
    async snapshot() {
      return structuredClone(directory.state);
    },
    async restore(snapshot) {
      directory.state = structuredClone(snapshot);
    },
    async fault(fault) {
      parts.faults.add(fault);
    },
    async heal() {
      parts.faults.heal();
    },
    async asked() {
      return [...parts.records.entries];
    },
    async sockets() {
      return parts.records.sockets;
    },
    async connections() {
      return { http: http.connections(), ldap: ldap.connections() + ldaps.connections() };
    },
    async forget() {
      parts.records.clear();
    },
    async edit(query, variables) {
      const caller = { id: '', groups: ['lldap_admin'] };
      const { data, errors } = await run({ query, ...(variables && { variables }) }, { directory, dialect, caller, records: undefined });
      if (errors?.[0] !== undefined) throw new Error(errors[0].message);
      return JSON.parse(JSON.stringify(data));
    },
    async setPassword(userId, password) {
      auth.setPassword(userId, Buffer.from(password));
    },
    async check(userId, password) {
      return auth.caller(userId, Buffer.from(password)) !== undefined;
    },
    async users() {
      return [...directory.state.users.values()].map((user) => ({
        id: user.id,
        uuid: user.uuid,
        email: user.email,
        displayName: user.displayName ?? '',
        hasPassword: user.password !== undefined,
        passwordModifiedAt: `${user.passwordModifiedAt}+00:00`,
        attributes: Object.fromEntries(user.attributes),
        groups: directory.groupsOf(user.id).map(({ displayName }) => displayName),
      }));
    },
    async groups() {
      return [...directory.state.groups.values()].map(({ id, uuid, displayName, attributes, members }) => ({
        id,
        uuid,
        displayName,
        attributes: Object.fromEntries(attributes),
        members: [...members],
      }));
    },
  };
}

function bootstrap(directory: Directory, auth: Auth, { username, password }: { username: string; password: string }): void {
  const named = (name: string) => [...directory.state.groups.values()].find(({ displayName }) => displayName === name);
  for (const name of BUILT_IN) if (named(name) === undefined) directory.createGroup({ displayName: name });
  const admins = named('lldap_admin');
  if (admins === undefined || admins.members.size > 0) return;
  const { id } = directory.createUser({ id: fold(username), email: '', displayName: 'Administrator' });
  auth.setPassword(id, Buffer.from(password));
  directory.addMember(id, admins.id);
}

/** A server that can be opened again on the port that it once had. */
function listener(create: () => Server, wanted = 0) {
  let server: Server | undefined;
  let port = wanted;
  const sockets = new Set<Socket>();
  return {
    port: () => port,
    connections: () => sockets.size,
    async open() {
      if (server !== undefined) return;
      const opened = create();
      opened.on('connection', (socket: Socket) => {
        sockets.add(socket);
        socket.once('close', () => sockets.delete(socket));
      });
      port = await (port === 0 ? listenForGood(opened) : listen(opened, port));
      server = opened;
    },
    async close() {
      const closed = server;
      server = undefined;
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => (closed === undefined ? resolve() : closed.close(() => resolve())));
    },
  };
}
