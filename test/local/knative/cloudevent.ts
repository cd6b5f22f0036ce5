import type { IncomingHttpHeaders } from 'node:http';
import type { Attributes } from './cesql.ts';
import { isRecord } from './fields.ts';

/** An event on its way: its attributes, its data and the few HTTP headers that a broker carries along. */
export interface CloudEvent {
  attributes: Attributes;
  contentType: string | undefined;
  data: Buffer;
  carried: Record<string, string>;
}

/** What the real ingress answers with 400. */
export class MalformedEvent extends Error {}

const REQUIRED = ['id', 'source', 'type'];
const CARRIED = /^(x-request-id|x-b3-.+|knative-.+|traceparent|tracestate|baggage)$/;
const TIME = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/;

/**
 * Binary and structured mode. Extension names are lowered, structured numbers and booleans become strings, and
 * version 0.3 is let through: all as measured.
 * @throws MalformedEvent
 */
export function readEvent(headers: IncomingHttpHeaders, body: Buffer): CloudEvent {
  const contentType = headers['content-type'];
  const event = /^application\/cloudevents/i.test(contentType ?? '') ? structured(contentType ?? '', body) : binary(headers, body);
  return { ...event, attributes: checked(event.attributes), carried: carriedHeaders(headers) };
}

/** Whether headers alone claim to be a CloudEvent, complete or not: how a broker tells a reply from a plain answer. */
export function looksLikeEvent(headers: IncomingHttpHeaders): boolean {
  return headers['ce-specversion'] !== undefined || /^application\/cloudevents\+json/i.test(headers['content-type'] ?? '');
}

/** The event in binary mode, as the broker sends everything. */
export function eventHeaders(event: CloudEvent): Record<string, string> {
  const headers: Record<string, string> = { ...event.carried };
  for (const [name, value] of Object.entries(event.attributes)) headers[`ce-${name}`] = onTheWire(value);
  if (event.contentType !== undefined) headers['content-type'] = event.contentType;
  return headers;
}

export function withAttributes(event: CloudEvent, attributes: Record<string, string>): CloudEvent {
  return { ...event, attributes: { ...event.attributes, ...attributes } };
}

export function withoutAttribute(event: CloudEvent, name: string): CloudEvent {
  const { [name]: _, ...attributes } = event.attributes;
  return { ...event, attributes };
}

/** RFC 3339 in UTC. Go writes nanoseconds; a clock of milliseconds has none to write. */
export function timestamp(): string {
  return new Date().toISOString();
}

function binary(headers: IncomingHttpHeaders, data: Buffer): Omit<CloudEvent, 'carried'> {
  const attributes: Record<string, string> = {};
  for (const [header, value] of Object.entries(headers)) {
    if (header.startsWith('ce-') && value !== undefined) attributes[header.slice(3)] = String(value);
  }
  return { attributes, contentType: headers['content-type'], data };
}

function structured(contentType: string, body: Buffer): Omit<CloudEvent, 'carried'> {
  if (!/^application\/cloudevents\+json\s*(;|$)/i.test(contentType)) throw new MalformedEvent(`${contentType} is not one event in JSON`);
  const { data, data_base64: base64, datacontenttype, ...rest } = parsed(body);
  const attributes: Record<string, string> = {};
  for (const [name, value] of Object.entries(rest)) attributes[name.toLowerCase()] = scalar(name, value);
  const declared = datacontenttype === undefined ? undefined : scalar('datacontenttype', datacontenttype);
  if (typeof base64 === 'string') return { attributes, contentType: declared, data: Buffer.from(base64, 'base64') };
  if (data === undefined) return { attributes, contentType: declared, data: Buffer.alloc(0) };
  const asText = typeof data === 'string' && declared !== undefined && !/[/+]json\b/.test(declared);
  return { attributes, contentType: declared ?? 'application/json', data: Buffer.from(asText ? data : JSON.stringify(data)) };
}

function parsed(body: Buffer): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(body.toString());
    if (isRecord(value)) return value;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new MalformedEvent('the body is not one JSON object');
}

function scalar(name: string, value: unknown): string {
  if (typeof value === 'string' || typeof value === 'boolean' || Number.isInteger(value)) return String(value);
  throw new MalformedEvent(`${name} is neither a string, a boolean nor an integer`);
}

function checked(attributes: Attributes): Attributes {
  if (!['1.0', '0.3'].includes(attributes.specversion ?? '')) throw new MalformedEvent(`specversion ${attributes.specversion}`);
  const missing = REQUIRED.find((name) => !attributes[name]);
  if (missing !== undefined) throw new MalformedEvent(`${missing} is missing or empty`);
  const odd = Object.keys(attributes).find((name) => !/^[a-z0-9]+$/.test(name));
  if (odd !== undefined) throw new MalformedEvent(`${odd} is not an attribute's name`);
  if (/[\s<>]|%(?![0-9a-f]{2})/i.test(attributes.source ?? '')) throw new MalformedEvent('source is not a URI reference');
  if (attributes.time !== undefined && !TIME.test(attributes.time)) throw new MalformedEvent('time is not RFC 3339');
  return attributes;
}

/** Authorization and every other header stays behind. */
function carriedHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const entries = Object.entries(headers).filter(([name]) => CARRIED.test(name));
  return Object.fromEntries(entries.map(([name, value]) => [name, String(value)]));
}

/** Node writes headers as Latin-1; the bytes of UTF-8, as Go writes them. What came as bytes goes on as it came. */
function onTheWire(value: string): string {
  return /[^\0-\xff]/.test(value) ? Buffer.from(value).toString('latin1') : value;
}
