import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import express, { type NextFunction, type Request, type Response } from 'express';
import { type OperatorEvent, parseEvent } from '../events/parse.ts';
import { truncateBytes } from '../platform/text.ts';
import type { Attributes } from '../telemetry/backend.ts';
import type { Log } from '../telemetry/log.ts';
import { flushTelemetry, inSpan } from '../telemetry/telemetry.ts';
import { withTrace } from '../telemetry/trace.ts';
import type { Authenticate } from './authentication.ts';
import { ConfigError } from './config.ts';

/** What a function answers to an event; see {@link serve} for what the broker makes of it. */
export type Answer =
  | { status: 204 }
  /** For people who call a function directly with `Prefer: return=representation`. */
  | { status: 200; body: unknown }
  | { status: 400 | 500 | 503; message: string; body?: unknown };

export interface EventContext {
  /** Aborted when the caller has gone. */
  signal: AbortSignal;
  /** Aborted when the process was told to stop. */
  stopping: AbortSignal;
  /** The caller wants to be told what was found and done. */
  representation: boolean;
  /** The dead letter's cause, when the broker sends one. */
  errorCode?: number;
}

export type EventHandler = (event: OperatorEvent, context: EventContext) => Promise<Answer>;

/** An object may be 1.5 MB; what is larger is answered 413, once. */
const MAX_BODY_SIZE = '2mb';
/** The broker keeps idle connections for 90 s and would meet a closing one. */
const KEEP_ALIVE_MS = 95_000;
/** How long after it was told to stop the server leaves connections open on which nothing was asked: what is on its way comes. */
const LINGER_MS = 1_000;

/**
 * Serves CloudEvents as a Knative function.
 *
 * 1. A success is 204 without body or `ce-*` header: any other body of a 2xx counts as a failed delivery.
 * 2. An error's body is one short line: over 768 bytes crash the in-memory channel's dispatcher.
 * 3. A malformed event gets 4xx, which the broker does not retry; 5xx it redelivers.
 * 4. Health says that the process serves, to everybody; it depends on nothing else.
 * 5. SIGTERM: what is under way finishes, then the process ends with 0, whatever connections others keep open.
 *
 * @param routes path to handler
 * @param authenticate asked before anything of a request is read
 * @returns once the server listens; `closed` resolves when it has stopped
 * @throws ConfigError when the port cannot be had
 */
export async function serve(options: {
  port: number;
  log: Log;
  routes: Record<string, EventHandler>;
  authenticate?: Authenticate;
}): Promise<{ port: number; stop(): void; closed: Promise<void> }> {
  const stopping = new AbortController();
  const serving: Serving = { stopping: stopping.signal, requests: 0 };
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  const open = new Set<Response>();
  app.use((_request, response, next) => {
    open.add(response);
    response.once('close', () => open.delete(response));
    if (stopping.signal.aborted) response.set('connection', 'close');
    next();
  });
  for (const probe of ['liveness', 'readiness']) app.get(`/health/${probe}`, (_request, response) => void response.status(200).end());
  const { authenticate } = options;
  if (authenticate) app.use((request, _response, next) => void authenticate(request.headers.authorization).then(() => next(), next));
  for (const [path, handler] of Object.entries(options.routes)) {
    app.post(path, express.raw({ type: () => true, limit: MAX_BODY_SIZE }), (request, response, next) => {
      withTrace(request.headers, (parent) => handle(request, response, handler, serving, parent)).catch(next);
    });
  }
  app.use((_request, response) => void response.status(404).type('text').end('not found'));
  app.use((error: unknown, request: Request, response: Response, _next: NextFunction) =>
    answerError(error, request, response, options.log),
  );

  const server: Server = await new Promise((resolve, reject) => {
    const listening = app.listen(options.port, (error?: NodeJS.ErrnoException) =>
      error ? reject(portError(error, options.port)) : resolve(listening),
    );
  });
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  server.headersTimeout = KEEP_ALIVE_MS + 5_000;
  server.requestTimeout = 0;
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  const closed = new Promise<void>((resolve) => server.once('close', resolve));
  const stop = () => {
    stopping.abort();
    // Whatever comes of it, also an error: a connection that is kept would keep the process.
    for (const response of open) if (!response.headersSent) response.set('connection', 'close');
    server.close();
    server.closeIdleConnections();
    // To Node a connection is not idle before its first request, and a closed server waits for that without end.
    setTimeout(() => {
      const asked = new Set([...open].map((response) => response.socket));
      for (const socket of sockets) if (!asked.has(socket)) socket.destroy();
    }, LINGER_MS).unref();
  };
  const address = server.address();
  return { port: typeof address === 'object' && address ? address.port : options.port, stop, closed };
}

function portError(error: NodeJS.ErrnoException, port: number): Error {
  if (error.code === 'EADDRINUSE') return new ConfigError(`PORT is ${port}, which another process uses: give a port that is free.`);
  if (error.code === 'EACCES') return new ConfigError(`PORT is ${port}, which this user may not open: give one above 1023.`);
  return error;
}

interface Serving {
  stopping: AbortSignal;
  /** Under way. */
  requests: number;
}

async function handle(
  request: Request,
  response: Response,
  handler: EventHandler,
  serving: Serving,
  parent: Record<string, string>,
): Promise<void> {
  serving.requests++;
  try {
    const name = `CloudEvents Process ${request.headers['ce-type'] ?? ''}`.trim();
    const answer = await inSpan(name, { kind: 'consumer', parent, attributes: attributesOf(request) }, async (span) => {
      const given = await process(request, response, handler, serving.stopping);
      span.set({ 'http.response.status_code': given.status });
      if (given.status >= 500) span.fail(String(given.status));
      return given;
    });
    // After the last answer the pod may go, and what it has not sent with it.
    if (serving.requests === 1) await flushTelemetry();
    send(response, answer);
  } finally {
    serving.requests--;
  }
}

function attributesOf(request: Request): Attributes {
  const attributes: Attributes = { 'http.request.method': 'POST', 'url.path': request.path };
  for (const [name, header] of [
    ['cloudevents.event_id', 'ce-id'],
    ['cloudevents.event_source', 'ce-source'],
    ['cloudevents.event_type', 'ce-type'],
    ['cloudevents.event_subject', 'ce-subject'],
  ] as const) {
    const value = request.headers[header];
    if (typeof value === 'string') attributes[name] = value;
  }
  return attributes;
}

async function process(request: Request, response: Response, handler: EventHandler, stopping: AbortSignal): Promise<Answer> {
  const gone = new AbortController();
  response.once('close', () => {
    if (!response.writableFinished) gone.abort();
  });
  const event = parseEvent(request.headers, Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0));
  // The request stays until it is answered; thousands of events may wait, and their bodies need not.
  request.body = undefined;
  const code = Number(request.headers['ce-knativeerrorcode']);
  return handler(event, {
    signal: gone.signal,
    stopping,
    representation: /\breturn=representation\b/.test(String(request.headers.prefer ?? '')),
    ...(Number.isInteger(code) && { errorCode: code }),
  });
}

function send(response: Response, answer: Answer): void {
  if (answer.status === 204) response.status(204).end();
  else if ('body' in answer) response.status(answer.status).json(answer.body);
  else response.status(answer.status).type('text').end(toLine(answer.message));
}

function answerError(error: unknown, request: Request, response: Response, log: Log): void {
  const status = statusOf(error);
  if (status) log.warn('refused a request', { path: request.path, status, reason: error instanceof Error ? error.message : String(error) });
  else log.error('a handler failed', { path: request.path, stack: error instanceof Error ? error.stack : String(error) });
  if (response.headersSent) return;
  const message = error instanceof Error && status ? error.message : 'internal error';
  if (status === 401) response.set('www-authenticate', 'Bearer');
  response
    .status(status ?? 500)
    .type('text')
    .end(toLine(message));
}

/** Only of errors that say, as the body parser's do, that their message is for the caller: not of an API server's answer that came through. */
function statusOf(error: unknown): number | undefined {
  const { expose, status } = (error ?? {}) as { expose?: unknown; status?: unknown };
  return expose === true && typeof status === 'number' ? status : undefined;
}

/** Of an error's body: over 768 crash the in-memory channel's dispatcher. */
const MAX_ERROR_BYTES = 300;

function toLine(message: string): string {
  return `${truncateBytes(message.replace(/\s+/g, ' '), MAX_ERROR_BYTES)}\n`;
}
