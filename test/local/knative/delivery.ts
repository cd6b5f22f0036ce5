import { setTimeout as sleep } from 'node:timers/promises';
import type { Addresses } from './addresses.ts';
import { type CloudEvent, eventHeaders, looksLikeEvent, MalformedEvent, readEvent, withAttributes } from './cloudevent.ts';
import type { Delivery, Trigger } from './eventing.ts';
import { type Answer, TimedOut } from './http.ts';
import { nameOf, type Story } from './story.ts';

/** From here on, `knativeerrordata` makes the in-memory dispatcher panic, and every event in flight is gone. */
const LARGEST_ERROR_BODY = 768;

export interface Deliverer {
  addresses: Addresses;
  story: Story;
  /** Ends everything under way, as the death of the dispatcher does. */
  signal: AbortSignal;
  /** The Trigger's token for an audience, where Eventing has identities. */
  tokenOf?: (trigger: Trigger, audience: string) => Promise<string>;
}

/** Where an event is brought, and whom a token for it is for. */
interface Destination {
  address: string;
  audience: string | undefined;
}

/** What a subscriber's answer comes to, in the broker's eyes. */
export type Verdict =
  | { kind: 'done' }
  | { kind: 'reply'; event: CloudEvent }
  | { kind: 'failed'; retry: boolean; why: string; error?: ErrorAttributes };

interface ErrorAttributes {
  knativeerrorcode: string;
  knativeerrordest: string;
  knativeerrordata?: string;
}

/** The gap before retry number `retry` (from 1), in ms. Linear starts with no gap at all; exponential has no cap. */
export function backoffMs({ backoffPolicy, backoffDelayMs }: Delivery, retry: number): number {
  if (backoffPolicy === undefined || backoffDelayMs === undefined) return 0;
  return backoffPolicy === 'linear' ? backoffDelayMs * (retry - 1) : backoffDelayMs * 2 ** (retry - 1);
}

/** @param destination the URI for `knativeerrordest`; `ingress` the one to blame for a reply that it refuses */
export function judge(answer: Answer, destination: string, ingress: string): Verdict {
  const { status } = answer;
  if (status >= 200 && status < 300) return judgeSuccess(answer, ingress);
  const retry = [404, 408, 409, 429].includes(status) || status >= 500;
  return { kind: 'failed', retry, why: `status ${status}`, error: errorAttributes(status, destination, answer.body) };
}

/** Success is an empty answer; an event in it is a reply; anything else counts as a failure without a code. */
function judgeSuccess(answer: Answer, ingress: string): Verdict {
  if (looksLikeEvent(answer.headers)) {
    try {
      return { kind: 'reply', event: readEvent(answer.headers, answer.body) };
    } catch (error) {
      if (!(error instanceof MalformedEvent)) throw error;
      return {
        kind: 'failed',
        retry: false,
        why: `an incomplete event as reply: ${error.message}`,
        error: errorAttributes(400, ingress, Buffer.alloc(0)),
      };
    }
  }
  if (answer.body.length === 0) return { kind: 'done' };
  return { kind: 'failed', retry: true, why: `status ${answer.status} with a body that is no event` };
}

function errorAttributes(status: number, destination: string, body: Buffer): ErrorAttributes {
  const data = body.length > 0 ? { knativeerrordata: body.subarray(0, LARGEST_ERROR_BODY).toString('base64') } : {};
  return { knativeerrorcode: String(status), knativeerrordest: destination, ...data };
}

export type Outcome = { ok: true; reply?: CloudEvent } | { ok: false };

/**
 * Brings one event to one Trigger's subscriber, with its retries, and to its dead-letter sink, with the same ones, when
 * all have failed. `ttl` rides along on the dead letter only.
 */
export async function deliver(event: CloudEvent, ttl: number, trigger: Trigger, ingress: string, deliverer: Deliverer): Promise<Outcome> {
  const { deadLetterSink, deadLetterAudience } = trigger.delivery;
  const verdict = await attempts(event, trigger, { address: trigger.subscriber, audience: trigger.audience }, ingress, deliverer);
  if (verdict.kind === 'done') return { ok: true };
  if (verdict.kind === 'reply') return { ok: true, reply: verdict.event };
  if (deadLetterSink === undefined) return lost(event, trigger, verdict.why, deliverer);
  const letter = withAttributes(event, { knativebrokerttl: String(ttl), ...verdict.error });
  const second = await attempts(letter, trigger, { address: deadLetterSink, audience: deadLetterAudience }, ingress, deliverer);
  return second.kind === 'failed' ? lost(event, trigger, `${verdict.why}; dead letter: ${second.why}`, deliverer) : { ok: true };
}

function lost(event: CloudEvent, trigger: Trigger, why: string, { story }: Deliverer): Outcome {
  story.tell({ what: 'lost', trigger: trigger.name, event: nameOf(event), why });
  return { ok: false };
}

async function attempts(event: CloudEvent, trigger: Trigger, to: Destination, ingress: string, deliverer: Deliverer): Promise<Verdict> {
  for (let attempt = 1; ; attempt += 1) {
    const verdict = await oneAttempt(event, trigger, to, ingress, deliverer, attempt);
    if (verdict.kind !== 'failed' || !verdict.retry || attempt > trigger.delivery.retry) return verdict;
    await sleep(backoffMs(trigger.delivery, attempt), undefined, { signal: deliverer.signal });
  }
}

async function oneAttempt(
  event: CloudEvent,
  trigger: Trigger,
  { address: to, audience }: Destination,
  ingress: string,
  deliverer: Deliverer,
  attempt: number,
): Promise<Verdict> {
  const { story, addresses, signal, tokenOf } = deliverer;
  const told = { trigger: trigger.name, to, event: nameOf(event), attempt };
  const started = performance.now();
  try {
    const authorization = tokenOf && audience !== undefined && { authorization: `Bearer ${await tokenOf(trigger, audience)}` };
    const headers = { ...eventHeaders(event), 'kn-namespace': trigger.namespace, prefer: 'reply', ...authorization };
    const { timeoutMs } = trigger.delivery;
    const answer = await addresses.send('POST', to, headers, event.data, { signal, ...(timeoutMs !== undefined && { timeoutMs }) });
    const verdict = judge(answer, to, ingress);
    const ms = performance.now() - started;
    if (verdict.kind === 'failed') story.tell({ what: 'undelivered', ...told, why: verdict.why, ms });
    else story.tell({ what: 'delivered', ...told, status: answer.status, ms });
    reportViolation(answer, to, trigger, story);
    return verdict;
  } catch (error) {
    if (signal.aborted || !(error instanceof Error)) throw error;
    // A timeout's dead letter tells nothing of the error; a broken connection counts as 500.
    const isLate = error instanceof TimedOut;
    const broken = isLate ? {} : { error: errorAttributes(500, to, Buffer.alloc(0)) };
    const why = isLate ? 'timeout' : error.message;
    story.tell({ what: 'undelivered', ...told, why, ms: performance.now() - started });
    return { kind: 'failed', retry: true, why, ...broken };
  }
}

/** What no function of this project may ever answer. */
function reportViolation(answer: Answer, to: string, trigger: Trigger, story: Story): void {
  const ok = answer.status >= 200 && answer.status < 300;
  const from = `${to} answered trigger ${trigger.name} with ${answer.status}`;
  if (ok && Object.keys(answer.headers).some((name) => name.startsWith('ce-')))
    story.tell({ what: 'violation', message: `${from} and ce- headers: a reply` });
  if (ok && answer.body.length > 0)
    story.tell({ what: 'violation', message: `${from} and a body of ${answer.body.length} bytes: not a success` });
  if (!ok && answer.body.length > LARGEST_ERROR_BODY && trigger.delivery.deadLetterSink !== undefined) {
    story.tell({ what: 'violation', message: `${from} and a body of ${answer.body.length} bytes: the in-memory dispatcher would crash` });
  }
}
