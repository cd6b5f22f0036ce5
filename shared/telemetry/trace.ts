import { AsyncLocalStorage } from 'node:async_hooks';
import { randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { spanHeaders } from './telemetry.ts';

/** W3C Trace Context: what came in with a request goes on with every event and call that it leads to. */
const PASSED_ON = ['traceparent', 'tracestate', 'baggage'] as const;
const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}/;

const storage = new AsyncLocalStorage<Record<string, string>>();

/** Runs `work` under the trace of a request; one that carries none starts its own. */
export function withTrace<T>(headers: IncomingHttpHeaders, work: (trace: Record<string, string>) => Promise<T>): Promise<T> {
  const incoming: Record<string, string> = {};
  for (const name of PASSED_ON) {
    const value = headers[name];
    if (typeof value === 'string') incoming[name] = value;
  }
  const trace = TRACEPARENT.test(incoming.traceparent ?? '') ? incoming : { traceparent: newTraceparent() };
  return storage.run(trace, () => work(trace));
}

/** The headers to send on: of the active span where spans are recorded, else as they came. */
export function traceHeaders(): Record<string, string> {
  return spanHeaders() ?? storage.getStore() ?? { traceparent: newTraceparent() };
}

/** The ids that a log line carries; empty outside of a request. */
export function traceIds(): { trace_id?: string; span_id?: string } {
  const [, trace_id, span_id] = TRACEPARENT.exec((spanHeaders() ?? storage.getStore())?.traceparent ?? '') ?? [];
  return trace_id && span_id ? { trace_id, span_id } : {};
}

function newTraceparent(): string {
  return `00-${randomBytes(16).toString('hex')}-${randomBytes(8).toString('hex')}-00`;
}
