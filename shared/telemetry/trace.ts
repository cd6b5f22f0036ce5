import { AsyncLocalStorage } from 'node:async_hooks';
import { randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { spanHeaders } from './telemetry.ts';

/** W3C Trace Context: passes the trace of a request on to every event and call that it leads to. */
const PASSED_ON = ['traceparent', 'tracestate', 'baggage'] as const;
const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}/;

const storage = new AsyncLocalStorage<Record<string, string>>();

/** Runs `work` in the trace of a request, or in a new one if the request has none. */
export function withTrace<T>(headers: IncomingHttpHeaders, work: (trace: Record<string, string>) => Promise<T>): Promise<T> {
  const incoming: Record<string, string> = {};
  for (const name of PASSED_ON) {
    const value = headers[name];
    if (typeof value === 'string') incoming[name] = value;
  }
  const trace = TRACEPARENT.test(incoming.traceparent ?? '') ? incoming : { traceparent: newTraceparent() };
  return storage.run(trace, () => work(trace));
}

/** The headers to pass on: those of the active span if spans are recorded, else those of the request. */
export function traceHeaders(): Record<string, string> {
  return spanHeaders() ?? storage.getStore() ?? { traceparent: newTraceparent() };
}

/** The ids for a log line; empty outside of a request. */
export function traceIds(): { trace_id?: string; span_id?: string } {
  const [, trace_id, span_id] = TRACEPARENT.exec((spanHeaders() ?? storage.getStore())?.traceparent ?? '') ?? [];
  return trace_id && span_id ? { trace_id, span_id } : {};
}

function newTraceparent(): string {
  return `00-${randomBytes(16).toString('hex')}-${randomBytes(8).toString('hex')}-00`;
}
