import {
  Agent,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type RequestListener,
  request,
  type Server,
  type ServerResponse,
} from 'node:http';

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

/** An answer without a body. */
export function answer(status: number, headers: Answer['headers'] = {}): Answer {
  return { status, headers, body: Buffer.alloc(0) };
}

/** A request as its server sees it, complete. */
export interface Call {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
  /** Aborted when the caller gives up. */
  signal: AbortSignal;
}

export type Handler = (call: Call) => Promise<Answer>;

/** When a caller gives up: at a signal, as the end of a process does it, or when the answer takes too long. */
export interface Patience {
  signal?: AbortSignal;
  timeoutMs?: number;
}

/** The answer took longer than {@link Patience} allows. */
export class TimedOut extends Error {}

/** Connections are kept: ten thousand events would use up this machine's ports otherwise. */
const agent = new Agent({ keepAlive: true });

/**
 * One request, never repeated.
 * @throws the connection's error when there is no complete answer, {@link TimedOut}, or the signal's reason
 */
export function send(method: string, url: string, headers: OutgoingHttpHeaders, body: Buffer, patience: Patience = {}): Promise<Answer> {
  const { hostname, port, pathname, search } = new URL(url);
  return patiently(patience, (signal) => {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const options = { method, hostname, port, path: `${pathname}${search}`, agent, headers: { ...headers, 'content-length': body.length } };
    const outgoing = request(options, (incoming) => {
      readBody(incoming).then((answer) => resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, body: answer }), reject);
    });
    signal.addEventListener('abort', () => outgoing.destroy());
    outgoing.on('error', reject);
    outgoing.end(body);
    return promise;
  });
}

/** @param work is told by its signal when nobody waits for it any more */
export function patiently<T>({ signal, timeoutMs }: Patience, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const end = new AbortController();
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const giveUp = (reason: unknown) => {
    reject(reason);
    end.abort(reason);
  };
  const aborted = () => giveUp(signal?.reason);
  if (signal?.aborted) return Promise.reject(signal.reason);
  signal?.addEventListener('abort', aborted);
  const timer = timeoutMs === undefined ? undefined : setTimeout(() => giveUp(new TimedOut(`no answer within ${timeoutMs} ms`)), timeoutMs);
  const done = () => {
    signal?.removeEventListener('abort', aborted);
    clearTimeout(timer);
  };
  work(end.signal).then(resolve, reject).finally(done);
  return promise;
}

/** @throws Error when the other side goes away in the middle */
export function readBody(message: IncomingMessage): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const chunks: Buffer[] = [];
  message.on('data', (chunk: Buffer) => chunks.push(chunk));
  message.on('end', () => resolve(Buffer.concat(chunks)));
  message.on('error', reject);
  message.on('close', () => reject(new Error('the body ended early')));
  return promise;
}

/** What a handler throws to cut the caller's connection. */
export class Reset extends Error {
  readonly code = 'ECONNRESET';
}

/** A server's listener. The connection is destroyed where the handler throws, and anything but {@link Reset} goes to `failed`. */
export function listener(handle: Handler, failed: (error: unknown) => void): RequestListener {
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const caller = new AbortController();
    response.once('close', () => {
      if (!response.writableFinished) caller.abort();
    });
    try {
      const body = await readBody(request);
      const { method = 'GET', url: path = '/', headers } = request;
      const answer = await handle({ method, path, headers, body, signal: caller.signal });
      if (!caller.signal.aborted) response.writeHead(answer.status, answer.headers).end(answer.body);
    } catch (error) {
      // A caller that went away is no fault of ours.
      if (!caller.signal.aborted && !(error instanceof Reset)) failed(error);
      response.destroy();
    }
  };
  return (request, response) => void serve(request, response);
}

/** Stops listening and cuts what is open. */
export function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
