import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { listen } from '../ports.ts';
import { close, readBody } from './http.ts';

/** A subscriber inside the test process, for the tests of the local Knative itself. */

export interface Received {
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
  /** From `performance.now()`. */
  at: number;
  /** Whether the caller cut the connection before the answer. */
  aborted: boolean;
}

export interface FakeAnswer {
  status: number;
  headers?: Record<string, string>;
  body?: string;
}

export interface FakeFunction {
  url: string;
  received: Received[];
  stop(): Promise<void>;
}

/** @param answer decides each request's answer; `undefined` leaves it open */
export async function fakeFunction(
  answer: (request: Received) => FakeAnswer | undefined | Promise<FakeAnswer | undefined>,
): Promise<FakeFunction> {
  const received: Received[] = [];
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const body = (await readBody(request)).toString();
    const record: Received = { path: request.url ?? '', headers: request.headers, body, at: performance.now(), aborted: false };
    response.once('close', () => {
      record.aborted = !response.writableFinished;
    });
    received.push(record);
    const decided = await answer(record);
    if (decided) response.writeHead(decided.status, decided.headers).end(decided.body);
  };
  // Connections are kept for good: one that ends after a while meets the next request when this process was held up.
  const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    serve(request, response).catch((error: unknown) => {
      // A caller that went away in the middle is no fault of ours.
      if (request.complete) throw error;
    });
  });
  const port = await listen(server);
  return { url: `http://127.0.0.1:${port}`, received, stop: () => close(server) };
}
