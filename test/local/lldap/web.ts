import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type GraphqlRequest, prepare, run } from './api.ts';
import type { Auth } from './auth.ts';
import type { Directory } from './directory.ts';
import type { Asked, Fault, Faults } from './faults.ts';
import type { Records } from './records.ts';
import type { Dialect } from './texts.ts';

export interface Parts {
  directory: Directory;
  auth: Auth;
  faults: Faults;
  records: Records;
  dialect: Dialect;
}

interface Answer {
  status: number;
  body?: string;
  headers?: Record<string, string>;
}

/** What lldap reads of a body, by path; of a larger one it reads nothing and ends the connection. */
const MOST_BYTES: Record<string, number> = { '/api/graphql': 2 ** 24, '/auth/simple/login': 2 ** 21 };

/** lldap says nothing of it and closes a connection after this time without a request. */
const IDLE_MS = 4800;

/** lldap's HTTP side: health, settings, login, refresh, logout and GraphQL. */
export function createWeb(parts: Parts): Server {
  const server = createServer((request, response) => {
    parts.records.connection('http', request.socket);
    // With this header set by hand, Node does not add one that tells clients when the connection will be closed.
    response.setHeader('connection', 'keep-alive');
    answer(parts, request)
      .then((reply) => {
        // lldap refuses these before it has read the body, and closes the connection without having said so.
        if (reply === TOO_LARGE) response.once('finish', () => request.socket.destroySoon());
        if (typeof reply === 'object' && reply.status === 401 && request.url === '/api/graphql')
          response.once('finish', () => request.socket.end());
        finish(response, reply);
      })
      .catch((error: unknown) => finish(response, { status: 500, body: String(error) }));
  });
  server.keepAliveTimeout = IDLE_MS;
  server.keepAliveTimeoutBuffer = 0;
  server.on('timeout', closeIfIdle);
  return server;
}

/** Where this process stood still meanwhile, a request may lie there that was sent long before the time was over. */
function closeIfIdle(socket: Socket): void {
  const { bytesRead } = socket;
  setImmediate(() => {
    if (socket.bytesRead === bytesRead) socket.destroy();
  });
}

/** `undefined`: no answer, ever. `reset`: the connection ends instead. */
type Reply = Answer | 'reset' | undefined;

const TOO_LARGE: Answer = { status: 413, body: 'The payload is too large' };

function finish(response: ServerResponse, reply: Reply): void {
  if (reply === undefined) return;
  if (reply === 'reset') {
    response.socket?.resetAndDestroy();
    return;
  }
  response.writeHead(reply.status, { 'content-type': 'text/plain', ...reply.headers });
  response.end(reply.body);
}

async function answer(parts: Parts, request: IncomingMessage): Promise<Reply> {
  const path = new URL(request.url ?? '/', 'http://lldap').pathname;
  if (Number(request.headers['content-length']) > (MOST_BYTES[path] ?? Number.POSITIVE_INFINITY)) return TOO_LARGE;
  const body = await read(request);
  if (path === '/api/graphql') return await graphql(parts, request, body);
  const route = ROUTES[`${request.method} ${path}`];
  if (route === undefined) return { status: 404, body: 'No such file or directory (os error 2)' };
  const fault = await parts.faults.meet([{ operation: route.operation }]);
  const instead = faulty(fault);
  if (instead !== 'go on') return instead;
  const reply = route.answer(parts, request, body);
  parts.records.add({ protocol: 'http', operation: route.operation, mutation: false, outcome: String(reply.status) });
  return fault?.kind === 'drop' ? 'reset' : reply;
}

const ROUTES: Record<string, { operation: string; answer: (parts: Parts, request: IncomingMessage, body: string) => Answer }> = {
  'GET /health': { operation: 'health', answer: () => ({ status: 200 }) },
  'GET /settings': { operation: 'settings', answer: () => json({ password_reset_enabled: false }) },
  'POST /auth/simple/login': { operation: 'login', answer: login },
  'GET /auth/refresh': { operation: 'refresh', answer: refresh },
  'GET /auth/logout': { operation: 'logout', answer: logout },
};

function login({ auth }: Parts, request: IncomingMessage, body: string): Answer {
  if (!request.headers['content-type']?.startsWith('application/json')) return { status: 400, body: 'Content type error' };
  const given = parsed(body);
  if (!isLogin(given)) return { status: 400, body: 'Json deserialize error: missing field' };
  const tokens = auth.login(given.username, Buffer.from(given.password));
  if (tokens === undefined) return { status: 401, body: `\`Authentication error for user "${given.username}"\`` };
  return json(tokens);
}

function refresh({ auth }: Parts, request: IncomingMessage): Answer {
  const given = request.headers['refresh-token'];
  if (given === undefined) return { status: 401, body: '`Authentication error Missing refresh token`' };
  const token = auth.refresh(String(given));
  return token === undefined ? { status: 401, body: '`Authentication error Invalid refresh token`' } : json({ token });
}

function logout({ auth }: Parts, request: IncomingMessage): Answer {
  const given = request.headers['refresh-token'];
  if (given === undefined) return { status: 401, body: '`Authentication error Missing refresh token`' };
  auth.logout(String(given));
  return { status: 200 };
}

async function graphql(parts: Parts, request: IncomingMessage, body: string): Promise<Reply> {
  const given = parsed(body);
  const prepared = isGraphql(given) ? prepare(given) : undefined;
  const asked: Asked[] = prepared !== undefined && 'asked' in prepared ? prepared.asked : [{ operation: 'graphql' }];
  const fault = await parts.faults.meet(asked);
  const instead = faulty(fault, body);
  if (instead !== 'go on') return instead;

  const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1];
  if (token === undefined) return { status: 401, headers: { 'www-authenticate': 'Bearer' } };
  const caller = parts.auth.verify(token);
  if (typeof caller === 'string') return { status: 401, body: caller };
  if (request.method !== 'POST') return { status: 405, headers: { allow: 'POST' } };
  if (!request.headers['content-type']?.startsWith('application/json')) return { status: 400, body: 'Content type error' };
  if (!isGraphql(given) || prepared === undefined) return { status: 400, body: 'Json deserialize error' };
  if ('errors' in prepared) return json({ errors: prepared.errors }, 400);

  const result = await run(given, { ...parts, caller });
  if (fault?.kind === 'drop') return 'reset';
  // A variable that does not fit is found before anything is carried out.
  if (!('data' in result)) return json(result, 400);
  // One failure takes the whole answer with it, though the other fields were carried out.
  return json(result.errors === undefined ? { data: result.data } : { data: null, errors: result.errors });
}

/** What a fault answers instead of carrying the request out. */
function faulty(fault: Fault | undefined, body = ''): Reply | 'go on' {
  switch (fault?.kind) {
    case 'hang':
      return undefined;
    case 'status':
      return {
        status: fault.status,
        body: `<html><h1>${fault.status}</h1><pre>${body}</pre></html>`,
        headers: { 'content-type': 'text/html' },
      };
    case 'brokenJson':
      return { status: 200, body: '{"data":{"result":{"id', headers: { 'content-type': 'application/json' } };
    case 'text':
      return json({ data: null, errors: [{ message: fault.text.replaceAll('{request}', () => body) }] });
    default:
      return 'go on';
  }
}

function json(value: unknown, status = 200): Answer {
  return { status, body: JSON.stringify(value), headers: { 'content-type': 'application/json' } };
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

function isLogin(value: unknown): value is { username: string; password: string } {
  return has(value, 'username') && has(value, 'password') && typeof value.username === 'string' && typeof value.password === 'string';
}

function isGraphql(value: unknown): value is GraphqlRequest {
  return has(value, 'query') && typeof value.query === 'string';
}

function has<Key extends string>(value: unknown, key: Key): value is Record<Key, unknown> {
  return typeof value === 'object' && value !== null && key in value;
}

async function read(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}
