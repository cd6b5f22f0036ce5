import { delayOf } from '../../shared/engine/retry.ts';
import { type Broker, BrokerError } from '../../shared/events/broker.ts';
import type { EventTarget, OperatorEvent } from '../../shared/events/parse.ts';
import { type Clock, timestamp } from '../../shared/platform/clock.ts';
import type { Answer, EventContext } from '../../shared/service/server.ts';
import type { Log } from '../../shared/telemetry/log.ts';

/** Redeliveries of one event after which the sweep alone is left. */
const AT_MOST = 10;
/** Answers that say nothing of the event: of what stands before a function, or of who delivers (while an installation begins to ask for tokens). */
const TEMPORARY = new Set([401, 403, 404, 408, 409, 429]);

/**
 * What the broker could not deliver: a function was not there, or could not write its status. Never holds.
 * Drops what a function refused (4xx), what startup repeats anyway, and what came too often; the rest becomes one
 * requeue event.
 */
export async function handleDeadLetter(
  io: { broker: Broker; clock: Clock; log: Log },
  event: OperatorEvent,
  { errorCode }: Pick<EventContext, 'errorCode'>,
): Promise<Answer> {
  const lost = redelivery(event);
  const refused = errorCode !== undefined && errorCode >= 400 && errorCode < 500 && !TEMPORARY.has(errorCode);
  if (!lost || refused || lost.count > AT_MOST) {
    io.log.warn('dropped an undeliverable event', { what: event.what, errorCode, ...lost?.target });
    return { status: 204 };
  }
  const delay = delayOf('Unavailable', lost.count) ?? 0;
  try {
    await io.broker.requeue(lost.target, timestamp(io.clock.now() + delay), lost.count);
    return { status: 204 };
  } catch (error) {
    if (!(error instanceof BrokerError)) throw error;
    return { status: 503, message: 'the broker did not take the requeue event' };
  }
}

function redelivery(event: OperatorEvent): { target: EventTarget; count: number } | undefined {
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
