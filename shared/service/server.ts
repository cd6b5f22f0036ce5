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
import { ConfigError } from './settings.ts';

/** A function's answer to an event. {@link serve} lists how the broker handles it. */
export type Answer =
  | { status: 204 }
  /** For people who call a function directly with `Prefer: return=representation`. */
  | { status: 200; body: unknown }
  | { status: 400 | 500 | 503; message: string; body?: unknown };

export interface EventContext {
  /** Aborted when the caller closes the connection. */
  signal: AbortSignal;
  /** Aborted when the process is told to stop. */
  stopping: AbortSignal;
  /** Whether the caller requests the result of the reconcile. */
  representation: boolean;
  /** Why the broker could not deliver the event, for a dead letter. */
  errorCode?: number;
}

export type EventHandler = (event: OperatorEvent, context: EventContext) => Promise<Answer>;

/** An object may have 1.5 MB. A larger body is answered with 413. */
const MAX_BODY_SIZE = '2mb';
/** Longer than the 90 s for which the broker keeps idle connections, so that it never uses one that is being closed. */
const KEEP_ALIVE_MS = 95_000;
/** After it is told to stop, the server keeps unused connections open for this long, for requests that are on their way. */
const LINGER_MS = 1_000;

/**
 * Serves CloudEvents as a Knative function.
 *
 * 1. A success is 204 without body or `ce-*` header, because the broker treats a 2xx with any other body as failed.
 * 2. An error's body is one short line, because more than 768 bytes crash the in-memory channel's dispatcher.
 * 3. A malformed event gets 4xx, which the broker does not retry. It redelivers after 5xx.
 * 4. The health endpoints answer everybody, and depend on nothing but the process.
 * 5. After SIGTERM, requests under way finish. Then the process ends with 0, whatever connections clients keep open.
 *
 * @param routes path to handler
 * @param authenticate called before anything else of a request is read
 * @returns once the server listens; `closed` resolves when it has stopped
 * @throws ConfigError if the port is taken or not allowed
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
    // For every answer, errors included: a connection that stays open would keep the process running.
    for (const response of open) if (!response.headersSent) response.set('connection', 'close');
    server.close();
    // To Node, a connection is not idle before its first request, and a closed server waits for that for ever.
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
  /** Number of requests under way. */
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
    // After the last answer, the pod may be stopped, and unsent telemetry lost.
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
  // The request object lives until it is answered. Free the body, because thousands of events may wait.
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

/** The status of an error whose message is for the caller (`expose`, as in the body parser's errors); an API server's error is not. */
function statusOf(error: unknown): number | undefined {
  const { expose, status } = (error ?? {}) as { expose?: unknown; status?: unknown };
  return expose === true && typeof status === 'number' ? status : undefined;
}

/** Of an error's body; see contract 2. */
const MAX_ERROR_BYTES = 300;

function toLine(message: string): string {
  return `${truncateBytes(message.replace(/\s+/g, ' '), MAX_ERROR_BYTES)}\n`;
}
