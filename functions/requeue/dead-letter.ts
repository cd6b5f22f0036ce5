import { delayOf } from '../../shared/engine/retry.ts';
import { type Broker, BrokerError } from '../../shared/events/broker.ts';
import type { EventTarget, OperatorEvent } from '../../shared/events/parse.ts';
import { type Clock, timestamp } from '../../shared/platform/clock.ts';
import type { Answer, EventContext } from '../../shared/service/server.ts';
import type { Log } from '../../shared/telemetry/log.ts';

/** Of one event; after that, only the sweep finds its resource. */
const MAX_REDELIVERIES = 10;
/** Not about the event, but from a proxy in front of the function, or about the sender (while an installation starts to require tokens). */
const TEMPORARY_STATUSES = new Set([401, 403, 404, 408, 409, 429]);

/**
 * Handles an event that the broker could not deliver, because a function was not there or could not write its status.
 * Drops it if a function refused it (4xx), if it is for startup, which runs again anyway, or if it was redelivered too
 * often. Otherwise posts one requeue event. Answers at once.
 */
export async function handleDeadLetter(
  io: { broker: Broker; clock: Clock; log: Log },
  event: OperatorEvent,
  { errorCode }: Pick<EventContext, 'errorCode'>,
): Promise<Answer> {
  const undelivered = redeliveryOf(event);
  const refused = errorCode !== undefined && errorCode >= 400 && errorCode < 500 && !TEMPORARY_STATUSES.has(errorCode);
  if (!undelivered || refused || undelivered.count > MAX_REDELIVERIES) {
    io.log.warn('dropped an undeliverable event', { what: event.what, errorCode, ...undelivered?.target });
    return { status: 204 };
  }
  const delay = delayOf('Unavailable', undelivered.count) ?? 0;
  try {
    await io.broker.requeue(undelivered.target, timestamp(io.clock.now() + delay), undelivered.count);
    return { status: 204 };
  } catch (error) {
    if (!(error instanceof BrokerError)) throw error;
    return { status: 503, message: 'the broker did not accept the requeue event' };
  }
}

function redeliveryOf(event: OperatorEvent): { target: EventTarget; count: number } | undefined {
  switch (event.what) {
    case 'startup':
      return undefined;
    case 'secret':
      return { target: { kind: 'Secret', namespace: event.namespace, name: event.name }, count: event.redelivered + 1 };
    case 'resource':
      return { target: event.target, count: 1 };
    default:
      return { target: event.target, count: event.redelivered + 1 };
  }
}
