import { Agent, type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from 'node:http';
import type { Authenticate } from '../../../shared/service/authentication.ts';
import { type Answer, type EventHandler, serve } from '../../../shared/service/server.ts';
import { createLog } from '../../../shared/telemetry/log.ts';

/** Headers that make an event. */
export const EVENT = {
  'ce-specversion': '1.0',
  'ce-id': '1',
  'ce-source': '/test',
  'ce-type': 'com.lukidoescode.lldap-operator.reconcile',
  'ce-kind': 'LldapUser',
  'ce-namespace': 'team',
  'ce-name': 'alice',
};

export interface Reply {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

export interface Sent {
  method?: string;
  path?: string;
  headers?: OutgoingHttpHeaders;
  body?: string | Buffer;
  signal?: AbortSignal;
}

export interface Servers {
  /** What the test's servers have logged. */
  log(): string;
  start(handler: EventHandler, more?: Record<string, EventHandler>, authenticate?: Authenticate): ReturnType<typeof serve>;
  /** One that gives the same answer to every event. */
  answering(answer: Answer): ReturnType<typeof serve>;
  /** An event, over kept connections, unless something else is said. */
  send(port: number, sent?: Sent): Promise<Reply>;
}

/** To be called in a `describe`: servers that have stopped when a test is over. */
export function useServers(): Servers {
  const agent = new Agent({ keepAlive: true });
  const stops: (() => Promise<void>)[] = [];
  let lines: string[] = [];

  beforeEach(() => {
    lines = [];
  });
  afterEach(async () => {
    for (const stop of stops.splice(0)) await stop();
  });
  after(() => agent.destroy());

  async function start(handler: EventHandler, more: Record<string, EventHandler> = {}, authenticate?: Authenticate) {
    const log = createLog('debug', (line) => lines.push(line));
    const server = await serve({ port: 0, log, routes: { '/': handler, ...more }, ...(authenticate && { authenticate }) });
    stops.push(async () => {
      server.stop();
      await server.closed;
    });
    return server;
  }

  return {
    log: () => lines.join(''),
    start,
    answering: (answer) => start(async () => answer),
    send: (port, { method = 'POST', path = '/', headers = EVENT, body, signal } = {}) =>
      new Promise((resolve, reject) => {
        const options = { host: '127.0.0.1', port, method, path, headers, agent, ...(signal && { signal }) };
        const sent = request(options, async (response) => {
          const chunks: Buffer[] = [];
          for await (const chunk of response) chunks.push(chunk as Buffer);
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) });
        });
        sent.on('error', reject);
        sent.end(body);
      }),
  };
}

export function text({ status, body }: Reply): [status: number, body: string] {
  return [status, body.toString()];
}
