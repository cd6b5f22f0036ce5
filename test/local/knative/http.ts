import { Agent, type IncomingHttpHeaders, type IncomingMessage, type OutgoingHttpHeaders, request, type Server } from 'node:http';

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

/** Connections are kept: ten thousand events over three hops each would use up this machine's ports otherwise. */
const agent = new Agent({ keepAlive: true });

/**
 * One request, never repeated.
 * @param signal aborts the connection, as the broker does at a delivery's timeout
 * @throws the connection's error when there is no complete answer
 */
export function send(method: string, url: string, headers: OutgoingHttpHeaders, body: Buffer, signal?: AbortSignal): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const options = { method, agent, headers: { ...headers, 'content-length': body.length }, ...(signal && { signal }) };
    const outgoing = request(url, options, (incoming) => {
      readBody(incoming).then((answer) => resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, body: answer }), reject);
    });
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

/** @throws Error when the other side goes away in the middle */
export async function readBody(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk);
  if (!message.complete) throw new Error('the body ended early');
  return Buffer.concat(chunks);
}

/** Stops listening and cuts what is open. */
export function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
