import { type Broker, BrokerError } from '../../shared/events/broker.ts';
import type { EventTarget, OperatorEvent } from '../../shared/events/parse.ts';
import { MalformedEvent } from '../../shared/events/parse.ts';
import { timestamp } from '../../shared/platform/clock.ts';
import { FUNCTION_OF } from '../support/functions.ts';
import type { FunctionName, Process } from './process.ts';
import { context, type Fault, type Faulty, type Scheduler } from './scheduler.ts';

/** An event on its way to a function. */
export interface Delivery {
  readonly seq: number;
  readonly to: FunctionName;
  readonly path: '/' | '/dead-letter';
  readonly event: OperatorEvent;
  /** Deliveries that failed. */
  tries: number;
  /** Not delivered before, in milliseconds. */
  due: number;
  readonly errorCode?: number;
}

/** A request that a function has and did not answer yet. */
export interface InFlight {
  readonly delivery: Delivery;
  readonly process: Process;
  readonly gone: AbortController;
}

const TIMEOUT_MS = 10_000;
/** As `knative/` says. */
const RETRIES = 5;
const REQUEUE_RETRIES = 8;
const BACKOFF_MS = 500;

/** The asynchronous broker in memory: Triggers, retries and dead letters, as measured on the real one. */
export class BrokerDouble {
  queue: Delivery[] = [];
  inFlight = new Set<InFlight>();
  /** Every requeue event that was accepted, as `key notBefore`. */
  readonly requeues = new Set<string>();
  /** Told of every answer that a function gave. */
  onAnswered: (flight: InFlight, status: number) => void = () => undefined;
  readonly #scheduler: Scheduler;
  readonly #unforeseen: (error: unknown) => void;

  /** @param unforeseen told of what a handler throws that is no refusal of the event */
  constructor(scheduler: Scheduler, unforeseen: (error: unknown) => void) {
    this.#scheduler = scheduler;
    this.#unforeseen = unforeseen;
  }

  /** The way of one process to it. */
  of(process: Process): Broker {
    const post = (event: OperatorEvent) =>
      this.#scheduler.call<void>(process, {
        service: 'broker',
        what: `post ${event.what}`,
        limitMs: TIMEOUT_MS,
        carryOut: () => this.post(event),
        faults: FAULTS,
      });
    // By its own clock, as every event that a process makes.
    const now = () => timestamp(this.#scheduler.clockOf(process).now());
    return {
      reconcile: (target, { notBefore, redelivered = 0 } = {}) => post(reconcileEvent(target, notBefore, redelivered)),
      requeue: (target, notBefore, redelivered = 0) => post({ what: 'requeue', target, notBefore, time: now(), redelivered }),
      startup: (mode) => post({ what: 'startup', mode }),
    };
  }

  /** Accepts an event; its Trigger knows where it goes. */
  post(event: OperatorEvent): void {
    if (event.what === 'requeue') this.requeues.add(`${nameOf(event.target)} ${event.notBefore}`);
    this.queue.push({ seq: this.#scheduler.nextSeq(), to: functionOf(event), path: '/', event, tries: 0, due: this.#scheduler.now });
  }

  /** What may be delivered now. */
  get ready(): Delivery[] {
    return this.queue.filter(({ due }) => due <= this.#scheduler.now);
  }

  /** When more than now may be delivered. */
  get next(): number {
    const { now } = this.#scheduler;
    return this.queue.reduce((next, { due }) => (due > now ? Math.min(next, due) : next), Number.POSITIVE_INFINITY);
  }

  deliver(delivery: Delivery, process: Process): void {
    this.queue.splice(this.queue.indexOf(delivery), 1);
    const flight: InFlight = { delivery, process, gone: new AbortController() };
    this.inFlight.add(flight);
    const { event, errorCode } = delivery;
    const target = event.what === 'resource' || event.what === 'reconcile' ? event.target : undefined;
    const handler = process.handlers[delivery.path];
    if (!handler) throw new Error(`${process.name} has no ${delivery.path}`);
    const request = {
      signal: flight.gone.signal,
      stopping: process.stopping.signal,
      representation: false,
      ...(errorCode && { errorCode }),
    };
    context
      .run({ process, target, attempt: undefined }, () => handler(event, request))
      .then(
        ({ status }) => {
          this.#answered(flight, status);
          this.onAnswered(flight, status);
        },
        (error: unknown) => {
          if (!(error instanceof MalformedEvent)) this.#unforeseen(error);
          this.#answered(flight, error instanceof MalformedEvent ? 400 : 500);
        },
      );
  }

  /** The process is no more: its requests end without an answer. */
  disconnect(process: Process): void {
    for (const flight of [...this.inFlight].filter((f) => f.process === process)) this.#answered(flight, 500);
  }

  /** The dispatcher gives a request up and delivers its event again, though the first may still be at work. */
  giveUp(flight: InFlight): void {
    flight.gone.abort();
    this.#answered(flight, 500);
  }

  /** The dispatcher dies: nothing of what it had is delivered, ever. */
  die(): void {
    this.queue = [];
    for (const { gone } of this.inFlight) gone.abort();
    this.inFlight.clear();
  }

  #answered(flight: InFlight, status: number): void {
    if (!this.inFlight.delete(flight) || status < 300) return;
    const { delivery } = flight;
    const isRequeue = delivery.to === 'requeue';
    if (status >= 500 && delivery.tries < (isRequeue ? REQUEUE_RETRIES : RETRIES)) {
      delivery.due = this.#scheduler.now + BACKOFF_MS * 2 ** delivery.tries;
      delivery.tries++;
      this.queue.push(delivery);
      return;
    }
    if (isRequeue) return;
    const { event } = delivery;
    this.queue.push({
      seq: this.#scheduler.nextSeq(),
      to: 'requeue',
      path: '/dead-letter',
      event,
      tries: 0,
      due: this.#scheduler.now,
      errorCode: status,
    });
  }
}

/** As it is after its way over the broker. */
function reconcileEvent(target: EventTarget, notBefore: string | undefined, redelivered: number): OperatorEvent {
  if (target.kind === 'Secret') return { what: 'secret', namespace: target.namespace, name: target.name, redelivered };
  return { what: 'reconcile', target, redelivered, ...(notBefore !== undefined && { notBefore }) };
}

function functionOf(event: OperatorEvent): FunctionName {
  switch (event.what) {
    case 'requeue':
      return 'requeue';
    case 'startup':
      return 'startup';
    case 'secret':
      return 'user';
    default:
      return FUNCTION_OF[event.target.kind];
  }
}

/** As resources are keyed, too. */
export function nameOf({ kind, namespace, name }: EventTarget): string {
  return `${kind} ${namespace}/${name}`;
}

const refuse = (): never => {
  throw new BrokerError('The broker did not accept the event.');
};
const FAULTS = Object.fromEntries(
  (['refused', 'lost', 'unanswered', 'busy', 'broken', 'denied', 'odd'] as const).map(
    (fault): [Fault, { done: boolean; answer: () => void }] => [
      fault,
      { done: fault === 'unanswered' || fault === 'broken', answer: refuse },
    ],
  ),
) as Faulty<void>;
