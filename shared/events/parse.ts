import type { IncomingHttpHeaders } from 'node:http';
import { CloudEvent, ValidationError } from 'cloudevents';
import { API_VERSION, EVENT_TYPE } from '../constants.ts';
import { type KindName, PLURALS } from '../kube/resources.ts';
import { truncate } from '../platform/text.ts';

/** The resource of a reconcile. */
export interface Target {
  kind: KindName;
  namespace: string;
  name: string;
}

/** The object of a requeue event. For a Secret, its users are looked up when the event is due. */
export type EventTarget = Target | { kind: 'Secret'; namespace: string; name: string };

export type SweepMode = 'sweep' | 'full' | 'drift';

/** The events that the functions accept; all others are malformed. */
export type OperatorEvent =
  | { what: 'resource'; change: 'add' | 'update' | 'delete'; target: Target; object: unknown }
  | { what: 'secret'; namespace: string; name: string; redelivered: number }
  | { what: 'reconcile'; target: Target; notBefore?: string; redelivered: number }
  /** `time`: when the event was created, by the same clock as `notBefore`. */
  | { what: 'requeue'; target: EventTarget; notBefore: string; time: string; redelivered: number }
  | { what: 'startup'; mode: SweepMode };

/** The sender must correct the event. It is answered with 400 and never retried. */
export class MalformedEvent extends Error {
  override name = 'MalformedEvent';
  readonly status = 400;
  readonly expose = true;
}

const SOURCE_TYPE = /^dev\.knative\.apiserver\.(resource|ref)\.(add|update|delete)$/;
const DNS_LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const DNS_NAME = /^(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
/** Of a value that an error repeats, in UTF-16 code units. */
const MAX_QUOTED_LENGTH = 80;
/** Of the library's own message, in UTF-16 code units. */
const MAX_PROBLEM_LENGTH = 200;
/** At most nanoseconds, because delayed retries keep the text in memory. */
const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/;

/**
 * Strictly reads one CloudEvents 1.0 event in binary or structured mode.
 * Kinds are constants and names are DNS names, so nothing from an event reaches a URL unchecked.
 *
 * @throws MalformedEvent
 */
export function parseEvent(headers: IncomingHttpHeaders, body: Buffer): OperatorEvent {
  const event = toCloudEvent(headers, body);
  const source = SOURCE_TYPE.exec(event.type);
  if (source) return parseSourceEvent(event, source[1] === 'ref', source[2] as 'add' | 'update' | 'delete');
  switch (event.type) {
    case EVENT_TYPE.reconcile: {
      if (event.kind === 'Secret') return { what: 'secret', ...objectOf(event), redelivered: redeliveredOf(event) };
      const notBefore = event.notbefore === undefined ? undefined : timestampOf(event, 'notbefore');
      return { what: 'reconcile', target: targetOf(event), redelivered: redeliveredOf(event), ...(notBefore && { notBefore }) };
    }
    case EVENT_TYPE.requeue:
      return {
        what: 'requeue',
        target: requeueTarget(event),
        notBefore: timestampOf(event, 'notbefore'),
        // If the event has none, the library sets the current time.
        time: timestampOf(event, 'time'),
        redelivered: redeliveredOf(event),
      };
    case EVENT_TYPE.startup:
      return { what: 'startup', mode: modeOf(event.data) };
    default:
      throw new MalformedEvent(`the type ${quote(event.type)} is not one of this operator's`);
  }
}

function parseSourceEvent(event: CloudEvent<unknown>, reference: boolean, change: 'add' | 'update' | 'delete'): OperatorEvent {
  if (!reference) return { what: 'resource', change, target: targetOf(event), object: event.data };
  if (event.kind !== 'Secret') throw new MalformedEvent(`the kind ${quote(event.kind)} of a reference is not Secret`);
  return { what: 'secret', ...objectOf(event), redelivered: 0 };
}

function requeueTarget(event: CloudEvent<unknown>): EventTarget {
  return event.kind === 'Secret' ? { kind: 'Secret', ...objectOf(event) } : targetOf(event);
}

function targetOf(event: CloudEvent<unknown>): Target {
  const kind = event.kind;
  if (typeof kind !== 'string' || !Object.hasOwn(PLURALS, kind))
    throw new MalformedEvent(`the extension "kind" is ${quote(kind)}, not one of ${Object.keys(PLURALS).join(', ')}`);
  if (event.apiversion !== undefined && event.apiversion !== API_VERSION)
    throw new MalformedEvent(`the extension "apiversion" is ${quote(event.apiversion)}, not ${API_VERSION}`);
  return { kind: kind as KindName, ...objectOf(event) };
}

function objectOf(event: CloudEvent<unknown>): { namespace: string; name: string } {
  return {
    namespace: textOf(event, 'namespace', (text) => DNS_LABEL.test(text), "a namespace's name"),
    name: textOf(event, 'name', (text) => DNS_NAME.test(text), "an object's name"),
  };
}

function timestampOf(event: CloudEvent<unknown>, extension: string): string {
  const isTime = (text: string) => RFC3339.test(text) && !Number.isNaN(Date.parse(text));
  return textOf(event, extension, isTime, 'a time like 2026-01-31T12:00:00.000Z');
}

function textOf(event: CloudEvent<unknown>, extension: string, isValid: (text: string) => boolean, what: string): string {
  const value = event[extension];
  if (typeof value === 'string' && isValid(value)) return value;
  throw new MalformedEvent(`the extension "${extension}" is ${quote(value)}, not ${what}`);
}

function redeliveredOf(event: CloudEvent<unknown>): number {
  const value = event.redelivered ?? 0;
  const number = typeof value === 'number' || (typeof value === 'string' && /^\d{1,4}$/.test(value)) ? Number(value) : -1;
  if (Number.isInteger(number) && number >= 0) return number;
  throw new MalformedEvent(`the extension "redelivered" is ${quote(value)}, not a count`);
}

function modeOf(data: unknown): SweepMode {
  const mode = (isRecord(data) ? data.mode : undefined) ?? 'sweep';
  if (mode === 'sweep' || mode === 'full' || mode === 'drift') return mode;
  throw new MalformedEvent('the data is not {"mode": "sweep"}, "full" or "drift"');
}

/** The library accepts missing attributes, leaves JSON with a charset as text, and splits batches. So this function checks first, and the library last. */
function toCloudEvent(headers: IncomingHttpHeaders, body: Buffer): CloudEvent<unknown> {
  const contentType = headers['content-type'] ?? '';
  const mediaType = (contentType.split(';')[0] ?? '').trim().toLowerCase();
  if (mediaType.startsWith('application/cloudevents-batch')) throw new MalformedEvent('batches are not accepted: send one event a request');
  const attributes = mediaType.startsWith('application/cloudevents')
    ? structuredAttributes(mediaType, body)
    : binaryAttributes(headers, mediaType, body);
  if (attributes.specversion !== '1.0')
    throw new MalformedEvent(`the attribute "specversion" is ${quote(attributes.specversion)}, not 1.0`);
  for (const name of ['id', 'source', 'type']) {
    const value = attributes[name];
    if (typeof value !== 'string' || value.length === 0) throw new MalformedEvent(`the attribute "${name}" is missing`);
  }
  if (attributes.data !== undefined && !isRecord(attributes.data))
    throw new MalformedEvent('the data is not a JSON object such as {"mode": "full"}');
  try {
    return new CloudEvent<unknown>(attributes as { type: string; source: string });
  } catch (error) {
    throw new MalformedEvent(`not a valid CloudEvent: ${problemOf(error)}`);
  }
}

function binaryAttributes(headers: IncomingHttpHeaders, mediaType: string, body: Buffer): Record<string, unknown> {
  const attributes: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (name.startsWith('ce-') && typeof value === 'string') attributes[name.slice(3)] = decode(value);
  }
  if (Object.keys(attributes).length === 0)
    throw new MalformedEvent('no CloudEvent: send ce-* headers, or content-type application/cloudevents+json');
  if (body.length > 0) {
    if (!/^application\/(.+\+)?json$/.test(mediaType))
      throw new MalformedEvent(`the content-type ${quote(mediaType)} is not application/json`);
    attributes.data = parseJson(body);
    attributes.datacontenttype = 'application/json';
  }
  return attributes;
}

function structuredAttributes(mediaType: string, body: Buffer): Record<string, unknown> {
  if (mediaType !== 'application/cloudevents+json')
    throw new MalformedEvent(`the content-type ${quote(mediaType)} is not application/cloudevents+json`);
  const event = parseJson(body);
  if (!isRecord(event)) throw new MalformedEvent('the body is not one JSON object');
  const { data_base64, ...attributes } = event;
  if (data_base64 !== undefined) {
    if (typeof data_base64 !== 'string') throw new MalformedEvent('"data_base64" is not a string');
    attributes.data = parseJson(Buffer.from(data_base64, 'base64'));
  }
  return Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== null));
}

/** JSON is UTF-8, without a byte-order mark. */
function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body)) as unknown;
  } catch {
    throw new MalformedEvent('the body is not JSON');
  }
}

/** The HTTP binding percent-encodes header values. */
function decode(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function quote(value: unknown): string {
  return typeof value === 'string'
    ? JSON.stringify(truncate(value, MAX_QUOTED_LENGTH))
    : String(value === undefined ? 'missing' : typeof value);
}

/** The library names the attribute only in its list of errors. */
function problemOf(error: unknown): string {
  const [first] = error instanceof ValidationError ? (error.errors ?? []) : [];
  if (typeof first === 'object') return `${first.instancePath.slice(1)} ${first.message}`;
  const [line = ''] = (error instanceof Error ? error.message : String(error)).split('\n', 1);
  return truncate(line, MAX_PROBLEM_LENGTH);
}
