import { randomUUID } from 'node:crypto';
import { CloudEvent, HTTP } from 'cloudevents';
import { API_VERSION, EVENT_TYPE } from '../constants.ts';
import { createHttp, HttpError } from '../platform/http.ts';
import { inSpan } from '../telemetry/telemetry.ts';
import { traceHeaders } from '../telemetry/trace.ts';
import type { EventTarget, SweepMode } from './parse.ts';

/** Posts the operator's events. Each call resolves when the broker has accepted the event, else throws {@link BrokerError}. */
export interface Broker {
  /** Without `notBefore`, requests a full reconcile. */
  reconcile(target: EventTarget, options?: { notBefore?: string; redelivered?: number }): Promise<void>;
  /** Requests a reconcile at `notBefore` (RFC 3339). */
  requeue(target: EventTarget, notBefore: string, redelivered?: number): Promise<void>;
  startup(mode: SweepMode): Promise<void>;
}

/** The broker did not accept an event. The message is one line. */
export class BrokerError extends Error {
  override name = 'BrokerError';
}

const TIMEOUT_MS = 10_000;
/** The broker's ingress closes idle connections after 10 s. */
const KEEP_ALIVE_MS = 8_000;

/**
 * @param url the broker's address, path included
 * @param source this function's name, for the events' `source`
 * @param tokenFile a file with a token for the broker
 */
export function createBroker(url: string, source: string, tokenFile?: string | undefined): Broker {
  const http = createHttp({ timeoutMs: TIMEOUT_MS, keepAliveMs: KEEP_ALIVE_MS, maxSockets: 16, tokenFile });
  const post = async (type: string, extra: Record<string, unknown>): Promise<void> => {
    const event = new CloudEvent({ id: randomUUID(), source: `/lldap-operator/${source}`, type, ...extra });
    const message = HTTP.binary(event);
    const body = typeof message.body === 'string' ? message.body : undefined;
    const attributes = { 'cloudevents.event_id': event.id, 'cloudevents.event_source': event.source, 'cloudevents.event_type': type };
    await inSpan(`CloudEvents Create ${type}`, { kind: 'producer', attributes }, async (span) => {
      const headers = { ...(message.headers as Record<string, string>), ...traceHeaders() };
      const answer = await http.request({ method: 'POST', url, headers, body }).catch((error: unknown) => {
        throw error instanceof HttpError ? new BrokerError(`The broker did not accept the event: ${error.message}`) : error;
      });
      span.set({ 'http.response.status_code': answer.status });
      if (answer.status < 200 || answer.status > 299)
        throw new BrokerError(`The broker answered ${answer.status} to an event of type ${type}.`);
    });
  };
  return {
    reconcile: (target, { notBefore, redelivered } = {}) =>
      post(EVENT_TYPE.reconcile, { ...extensions(target, redelivered), ...(notBefore && { notbefore: notBefore }) }),
    requeue: (target, notBefore, redelivered) => post(EVENT_TYPE.requeue, { ...extensions(target, redelivered), notbefore: notBefore }),
    startup: (mode) => post(EVENT_TYPE.startup, { data: { mode }, datacontenttype: 'application/json' }),
  };
}

function extensions(target: EventTarget, redelivered: number | undefined): Record<string, unknown> {
  return { ...target, apiversion: target.kind === 'Secret' ? 'v1' : API_VERSION, ...(redelivered && { redelivered: String(redelivered) }) };
}
