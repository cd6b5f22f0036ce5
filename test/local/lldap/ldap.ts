import type { Socket } from 'node:net';
import { Ber, BerReader, BerWriter } from 'ldapts';
import { type Caller, roleOf } from './auth.ts';
import { fold } from './definitions.ts';
import type { Directory } from './directory.ts';
import type { Asked, Fault } from './faults.ts';
import type { Parts } from './web.ts';

/** lldap's LDAP side, as far as passwords need it: bind, the root entry, Password Modify (RFC 3062), Modify of `userPassword`. */

const SEQUENCE = 0x30;
const BIND = 0x60;
const UNBIND = 0x42;
const SEARCH = 0x63;
const MODIFY = 0x66;
const EXTENDED = 0x77;
const PASSWORD_MODIFY = '1.3.6.1.4.1.4203.1.11.1';
/** lldap drops a connection that sends more in one message. */
const MOST_BYTES = 60_000;

/** A result code and its message. */
type Result = [code: number, message: string];

interface Request {
  messageId: number;
  type: number;
  reader: BerReader;
}

/** Serves one connection until either side ends it. */
export function serveLdap(parts: Parts, baseDn: string, socket: Socket): void {
  const session: Session = { ...parts, baseDn, caller: undefined };
  let received: Buffer = Buffer.alloc(0);
  let work = Promise.resolve();
  socket.on('error', () => socket.destroy());
  socket.on('data', (chunk) => {
    received = Buffer.concat([received, chunk]);
    for (let size = sizeOf(received); size <= received.length; size = sizeOf(received)) {
      const message = received.subarray(0, size);
      received = received.subarray(size);
      // One after the other: a bind decides who the next operation is from.
      work = work.then(() => serve(session, socket, message)).catch(() => void socket.destroy());
    }
    if (received.length > MOST_BYTES || (received.length > 0 && received[0] !== SEQUENCE)) socket.destroy();
  });
}

interface Session extends Parts {
  baseDn: string;
  /** After a failed bind on a bound connection the one before stays. */
  caller: Caller | undefined;
}

async function serve(session: Session, socket: Socket, message: Buffer): Promise<void> {
  session.records.connection('ldap', socket);
  const request = readRequest(message);
  if (request === undefined || request.type === UNBIND) {
    socket.end();
    return;
  }
  const { asked, carryOut } = understand(session, request);
  const fault = await session.faults.meet([asked]);
  if (fault?.kind === 'hang' || socket.destroyed) return;
  const result = instead(fault) ?? carryOut();
  session.records.add({
    protocol: 'ldap',
    ...asked,
    mutation: ['passwordModify', 'modify'].includes(asked.operation),
    outcome: String(result[0]),
  });
  if (fault?.kind === 'drop') socket.resetAndDestroy();
  else if (asked.operation === 'search' && result[0] === 0)
    socket.write(Buffer.concat([rootEntry(request, session.baseDn), done(request, result)]));
  else socket.write(done(request, result));
}

function instead(fault: Fault | undefined): Result | undefined {
  return fault?.kind === 'text' ? [1, fault.text] : undefined;
}

function understand(session: Session, { type, reader }: Request): { asked: Asked; carryOut: () => Result } {
  if (type === BIND) {
    reader.readInt();
    const dn = reader.readString() ?? '';
    const password = reader.readString(0x80, true) ?? Buffer.alloc(0);
    return { asked: { operation: 'bind', ...idIn(dn) }, carryOut: () => bind(session, dn, password) };
  }
  if (type === SEARCH) {
    const base = reader.readString() ?? '';
    const isRoot = base === '' && reader.readEnumeration() === 0;
    const refusal: Result =
      session.caller === undefined ? [50, 'No user currently bound'] : [53, 'Unsupported operation: this is no directory'];
    return { asked: { operation: 'search' }, carryOut: () => (isRoot ? [0, ''] : refusal) };
  }
  if (type === MODIFY) {
    const dn = reader.readString() ?? '';
    const changes = readChanges(reader);
    return { asked: { operation: 'modify', ...idIn(dn) }, carryOut: () => modify(session, dn, changes) };
  }
  const oid = type === EXTENDED ? reader.readString(0x80) : undefined;
  if (oid !== PASSWORD_MODIFY) {
    return { asked: { operation: 'other' }, carryOut: () => [53, `Unsupported extended operation: ${oid ?? 'none'}`] };
  }
  const given = readPasswordModify(reader.readString(0x81, true) ?? Buffer.alloc(0));
  return { asked: { operation: 'passwordModify', ...idIn(given.dn ?? '') }, carryOut: () => passwordModify(session, given) };
}

function bind(session: Session, dn: string, password: Buffer): Result {
  if (dn === '') return [48, 'Anonymous bind not allowed'];
  const userId = userIn(dn, session.baseDn);
  if (typeof userId !== 'string') return [64, userId.problem];
  const caller = session.auth.caller(userId, password);
  if (caller === undefined) return [49, ''];
  session.caller = caller;
  return [0, ''];
}

function passwordModify({ caller, auth, directory, baseDn }: Session, { dn, password }: { dn?: string; password?: Buffer }): Result {
  if (caller === undefined) return [50, 'No user currently bound'];
  if (dn === undefined || password === undefined) return [19, 'Missing either user_id or password'];
  const userId = userIn(dn, baseDn);
  if (typeof userId !== 'string') return [34, `Invalid username: ${userId.problem}`];
  if (!isUtf8(password)) return [2, 'The password is not UTF-8'];
  const refusal = refusePassword(caller, userId, directory);
  if (refusal) return refusal;
  if (!directory.state.users.has(userId)) return [1, `Internal error while requesting user's groups: EntityNotFound("${userId}")`];
  auth.setPassword(userId, password);
  return [0, ''];
}

/** Everybody may set his own, an administrator all, a password manager those of all but administrators. */
function refusePassword(caller: Caller, userId: string, directory: Directory): Result | undefined {
  const role = roleOf(caller);
  const isAdmin = directory.groupsOf(userId).some(({ displayName }) => displayName === 'lldap_admin');
  if (userId === caller.id || role === 'admin' || (role === 'passwordManager' && !isAdmin)) return undefined;
  return [50, `User \`${caller.id}\` cannot modify the password of user \`${userId}\``];
}

/** As administrators and users of other tools set passwords; what comes before a change that is refused stays. */
function modify({ caller, auth, directory, baseDn }: Session, dn: string, changes: Change[]): Result {
  if (caller === undefined) return [50, 'No user currently bound'];
  const userId = userIn(dn, baseDn);
  if (typeof userId !== 'string') return [34, `Invalid username: ${userId.problem}`];
  const role = roleOf(caller);
  if (userId !== caller.id && role === 'regular') return [50, `User \`${caller.id}\` cannot modify user \`${userId}\``];
  if (!directory.state.users.has(userId)) return [1, `Internal error while requesting user's groups: EntityNotFound("${userId}")`];
  for (const { operation, attribute, values } of changes) {
    if (fold(attribute) !== 'userpassword' || operation !== REPLACE) return [53, `Unsupported operation for \`${attribute}\``];
    const refusal = refusePassword(caller, userId, directory);
    if (refusal) return refusal;
    const [password, ...more] = values;
    if (password === undefined || more.length > 0) return [21, `Wrong number of values for password attribute: ${values.length}`];
    auth.setPassword(userId, password);
  }
  return [0, ''];
}

/** lldap splits a DN at each `,` and `=`, without any escaping, and trims the parts. */
function userIn(dn: string, baseDn: string): string | { problem: string } {
  const parts = fold(dn)
    .split(',')
    .map((part) => part.split('=').map((side) => side.trim()));
  if (parts.some(({ length }) => length !== 2)) return { problem: 'Missing DN value' };
  const [[attribute = '', name = ''] = [], ou, ...base] = parts;
  if (base.map((part) => part.join('=')).join(',') !== baseDn) return { problem: 'Not a subtree of the base tree' };
  if (!['uid', 'cn'].includes(attribute) || ou?.join('=') !== 'ou=people') {
    return { problem: `Unexpected DN format. Got "${fold(dn)}", expected: "uid=id,ou=people,${baseDn}"` };
  }
  return name;
}

function idIn(dn: string): { id?: string } {
  const id = /^\s*(?:uid|cn)\s*=\s*([^,]*?)\s*,/i.exec(dn)?.[1];
  return id === undefined ? {} : { id: fold(id) };
}

function isUtf8(bytes: Buffer): boolean {
  return Buffer.from(bytes.toString()).equals(bytes);
}

/** How long the first message is, header included; infinite while its header is not there, or is none. */
function sizeOf(bytes: Buffer): number {
  const [tag, first] = bytes;
  if (tag !== SEQUENCE || first === undefined) return Number.POSITIVE_INFINITY;
  if (first < 0x80) return 2 + first;
  const count = first & 0x7f;
  return count === 0 || count > 4 || bytes.length < 2 + count ? Number.POSITIVE_INFINITY : 2 + count + bytes.readUIntBE(2, count);
}

function readRequest(message: Buffer): Request | undefined {
  const reader = new BerReader(message);
  reader.readSequence();
  const messageId = reader.readInt();
  const type = reader.readSequence();
  return messageId === null || type === null ? undefined : { messageId, type, reader };
}

function readPasswordModify(value: Buffer): { dn?: string; password?: Buffer } {
  const reader = new BerReader(value);
  if (reader.readSequence() === null) return {};
  const given: { dn?: string; password?: Buffer } = {};
  for (let tag = reader.peek(); tag !== null; tag = reader.peek()) {
    const bytes = reader.readString(tag, true) ?? Buffer.alloc(0);
    if (tag === 0x80) given.dn = bytes.toString();
    if (tag === 0x82) given.password = bytes;
  }
  return given;
}

const REPLACE = 2;

interface Change {
  operation: number | null;
  attribute: string;
  values: Buffer[];
}

function readChanges(reader: BerReader): Change[] {
  const changes: Change[] = [];
  reader.readSequence();
  while (reader.remain > 0) {
    reader.readSequence();
    const operation = reader.readEnumeration();
    reader.readSequence();
    const change: Change = { operation, attribute: reader.readString() ?? '', values: [] };
    reader.readSequence(Ber.Set | 0x20);
    const end = reader.offset + reader.length;
    while (reader.offset < end) change.values.push(reader.readString(Ber.OctetString, true) ?? Buffer.alloc(0));
    changes.push(change);
  }
  return changes;
}

const ANSWERS: Record<number, number> = { [BIND]: 0x61, [SEARCH]: 0x65, [MODIFY]: 0x67, [EXTENDED]: 0x78 };

function done({ messageId, type }: Request, [code, message]: Result): Buffer {
  const writer = new BerWriter();
  writer.startSequence();
  writer.writeInt(messageId);
  writer.startSequence(ANSWERS[type] ?? 0x78);
  writer.writeEnumeration(code);
  writer.writeString('');
  writer.writeString(message);
  writer.endSequence();
  writer.endSequence();
  return writer.buffer;
}

function rootEntry({ messageId }: Request, baseDn: string): Buffer {
  const writer = new BerWriter();
  writer.startSequence();
  writer.writeInt(messageId);
  writer.startSequence(0x64);
  writer.writeString('');
  writer.startSequence();
  for (const [name, value] of [
    ['objectClass', 'top'],
    ['vendorName', 'stand-in for LLDAP'],
    ['supportedLDAPVersion', '3'],
    ['supportedExtension', PASSWORD_MODIFY],
    ['defaultNamingContext', baseDn],
  ] as const) {
    writer.startSequence();
    writer.writeString(name);
    writer.startSequence(Ber.Set | 0x20);
    writer.writeString(value);
    writer.endSequence();
    writer.endSequence();
  }
  writer.endSequence();
  writer.endSequence();
  writer.endSequence();
  return writer.buffer;
}
