import type { Clock } from '../../shared/clock.ts';
import { type Broker, BrokerError } from '../../shared/events/broker.ts';
import type { EventTarget } from '../../shared/events/parse.ts';
import type { Log } from '../../shared/log.ts';
import type { Answer, EventContext } from '../../shared/server.ts';
import { gauge } from '../../shared/telemetry.ts';

export interface Requeue {
  target: EventTarget;
  /** RFC 3339; goes on unchanged. */
  notBefore: string;
  redelivered: number;
}

interface Held {
  target: EventTarget;
  /** Milliseconds since the epoch. */
  due: number;
  letGo: AbortController;
}

type Context = Pick<EventContext, 'signal' | 'stopping'>;

/** Milliseconds: longer than the longest delay with its jitter, shorter than the Trigger's timeout. */
const HOLD_AT_MOST = 330_000;

/**
 * Holds requests open until they are due, then posts their reconcile events: Knative has no delayed delivery, and
 * a request under way is the only thing that keeps a pod.
 *
 * 1. One hold for each key and due time: an exact repetition is answered at once, and displaces nothing.
 * 2. Whatever `notBefore` says, no hold is longer than 330 s.
 * 3. When the process is told to stop, 503 at once: the broker brings the event to the next one.
 * 4. Above `most` held requests it lets go of the one that is due last: the time stands in the resource's status, and
 *    the sweep picks it up. So forged events with a far time, however many, keep no retry from its own.
 */
export function createHolds(io: { broker: Broker; clock: Clock; log: Log }, most: number) {
  const held = new Map<string, Held>();

  async function hold({ target, notBefore, redelivered }: Requeue, context: Context, letGo: AbortSignal): Promise<Answer> {
    const wait = Math.min(Date.parse(notBefore) - io.clock.now(), HOLD_AT_MOST);
    try {
      if (wait > 0) await io.clock.sleep(wait, AbortSignal.any([letGo, context.signal, context.stopping]));
      await io.broker.reconcile(target, { notBefore, redelivered });
      return { status: 204 };
    } catch (error) {
      if (letGo.aborted) return { status: 204 };
      if (context.signal.aborted || context.stopping.aborted) return { status: 503, message: 'stopping; deliver again' };
      if (!(error instanceof BrokerError)) throw error;
      io.log.error('the broker did not take a reconcile event', { ...target, reason: error.message });
      return { status: 503, message: 'the broker did not take the reconcile event' };
    }
  }

  function letGoOfLast(): void {
    const [last] = [...held].sort(([, a], [, b]) => b.due - a.due);
    if (!last) return;
    const [key, { target, letGo }] = last;
    held.delete(key);
    letGo.abort();
    io.log.warn('too many requests are held; left one to the sweep', { ...target, held: held.size });
  }

  return {
    async hold(requeue: Requeue, context: Context): Promise<Answer> {
      const { target, notBefore } = requeue;
      const key = `${target.kind}/${target.namespace}/${target.name}/${notBefore}`;
      if (held.has(key)) return { status: 204 };
      if (context.stopping.aborted) return { status: 503, message: 'stopping; deliver again' };
      const own: Held = { target, due: Date.parse(notBefore), letGo: new AbortController() };
      held.set(key, own);
      if (held.size > most) letGoOfLast();
      gauge('lldap_operator.requeue.held', [{ value: held.size }]);
      try {
        return await hold(requeue, context, own.letGo.signal);
      } finally {
        if (held.get(key) === own) held.delete(key);
        gauge('lldap_operator.requeue.held', [{ value: held.size }]);
      }
    },
    get size(): number {
      return held.size;
    },
  };
}
