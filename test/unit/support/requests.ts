import assert from 'node:assert/strict';
import type { IncomingHttpHeaders } from 'node:http';
import { MalformedEvent, type OperatorEvent, parseEvent } from '../../../shared/events/parse.ts';

/** Requests that carry events, for the tests of their reading. */

export const RECONCILE = 'com.lukidoescode.lldap-operator.reconcile';
export const REQUEUE = 'com.lukidoescode.lldap-operator.requeue';
export const STARTUP = 'com.lukidoescode.lldap-operator.startup';
export const UPDATE = 'dev.knative.apiserver.resource.update';
export const SECRET = 'dev.knative.apiserver.ref.update';
export const DUE = '2026-03-01T12:00:00.000Z';

export type Attributes = Record<string, unknown>;

export const ALICE = { kind: 'LldapUser', apiversion: 'lldap-operator.lukidoescode.com/v1alpha1', namespace: 'team', name: 'alice' };
export const TARGET = { kind: 'LldapUser', namespace: 'team', name: 'alice' } as const;
export const required = { specversion: '1.0', id: '1', source: '/test', type: RECONCILE };

/** An undefined attribute is left out. */
export function binary(attributes: Attributes, data?: unknown, headers: IncomingHttpHeaders = {}): OperatorEvent {
  const all = Object.entries({ ...required, ...ALICE, ...attributes }).filter(([, value]) => value !== undefined);
  const body =
    data === undefined
      ? Buffer.alloc(0)
      : Buffer.isBuffer(data)
        ? data
        : Buffer.from(typeof data === 'string' ? data : JSON.stringify(data));
  const contentType = data === undefined ? {} : { 'content-type': 'application/json' };
  return parseEvent({ ...contentType, ...Object.fromEntries(all.map(([name, value]) => [`ce-${name}`, String(value)])), ...headers }, body);
}

export function structured(attributes: Attributes, contentType = 'application/cloudevents+json'): OperatorEvent {
  return parseEvent({ 'content-type': contentType }, Buffer.from(JSON.stringify({ ...required, ...ALICE, ...attributes })));
}

/** The message with which an event is refused. */
export function refusal(parse: () => OperatorEvent): string {
  try {
    parse();
  } catch (error) {
    assert.ok(error instanceof MalformedEvent, String(error));
    return error.message;
  }
  return 'accepted';
}
