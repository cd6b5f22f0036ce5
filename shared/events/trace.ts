import { AsyncLocalStorage } from 'node:async_hooks';
import { randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

/** W3C Trace Context: what came in with a request goes on with every event and call that it leads to. */
const PASSED_ON = ['traceparent', 'tracestate', 'baggage'] as const;
const TRACEPARENT = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}/;

const storage = new AsyncLocalStorage<Record<string, string>>();

/** Runs `work` under the trace of a request; one that carries none starts its own. */
export function withTrace<T>(headers: IncomingHttpHeaders, work: () => Promise<T>): Promise<T> {
  const incoming: Record<string, string> = {};
  for (const name of PASSED_ON) {
    const value = headers[name];
    if (typeof value === 'string') incoming[name] = value;
  }
  return storage.run(TRACEPARENT.test(incoming.traceparent ?? '') ? incoming : { traceparent: newTraceparent() }, work);
}

/** The headers to send on. */
export function traceHeaders(): Record<string, string> {
  return storage.getStore() ?? { traceparent: newTraceparent() };
}

function newTraceparent(): string {
  return `00-${randomBytes(16).toString('hex')}-${randomBytes(8).toString('hex')}-00`;
}
