import { type Broker, BrokerError } from '../../shared/events/broker.ts';
import type { OperatorEvent } from '../../shared/events/parse.ts';
import type { Clock } from '../../shared/platform/clock.ts';
import type { Answer, EventContext } from '../../shared/service/server.ts';
import type { Log } from '../../shared/telemetry/log.ts';
import { gauge } from '../../shared/telemetry/telemetry.ts';

export type Requeue = Omit<Extract<OperatorEvent, { what: 'requeue' }>, 'what'>;

interface Held extends Requeue {
  /** Milliseconds since the epoch, by this process's clock. */
  due: number;
  /** Ends the hold, by its reason: `early` posts the event at once, `left` leaves it to the sweep. */
  released: AbortController;
}

type Context = Pick<EventContext, 'signal' | 'stopping'>;

/** Milliseconds: longer than the longest delay with its jitter, shorter than the Trigger's timeout. */
const MAX_HOLD_MS = 330_000;
/** Of one resource: its retry, one that a newer generation made stale, and a dead letter. */
const MAX_PER_RESOURCE = 3;

/**
 * Holds requests open until they are due, then posts their reconcile events: Knative has no delayed delivery, and
 * a request under way is the only thing that keeps a pod.
 *
 * 1. One hold for each resource and due time: an exact repetition is answered at once, and displaces nothing.
 * 2. The wait is the difference between `notBefore` and the event's own `time`, whatever this process's clock says, and
 *    at most 330 s. An event that is delivered again is held anew.
 * 3. When the process is told to stop, 503 at once: the broker brings the event to the next one.
 * 4. One resource has three places. A fourth event takes the oldest's, whose reconcile event is posted at once: forged
 *    events can make a retry early, as a forged reconcile event does, but never late.
 * 5. Above `most` held requests, the latest of the namespace that holds most is answered and left to the sweep, which
 *    finds its time in the resource's status. So no namespace displaces the retries of one that holds fewer.
 */
export function createDelayQueue(io: { broker: Broker; clock: Clock; log: Log }, most: number) {
  /** The oldest first. */
  const held = new Set<Held>();

  function release(own: Held, how: 'early' | 'left'): void {
    held.delete(own);
    own.released.abort(how);
  }

  /** Lets go of the latest of the namespace that holds most. */
  function leaveOne(): void {
    const shares = Object.values(Object.groupBy(held, ({ target }) => target.namespace)).filter((share) => share !== undefined);
    const largest = Math.max(...shares.map(({ length }) => length));
    const candidates = shares.filter(({ length }) => length === largest).flat();
    const last = candidates.reduce((a, b) => (b.due > a.due ? b : a));
    release(last, 'left');
    io.log.warn('too many delayed retries; left one to the sweep', { ...last.target, held: held.size });
  }

  async function wait({ target, notBefore, redelivered, due, released }: Held, context: Context): Promise<Answer> {
    const ms = Math.min(due - io.clock.now(), MAX_HOLD_MS);
    try {
      if (ms > 0) {
        const sleep = io.clock.sleep(ms, AbortSignal.any([released.signal, context.signal, context.stopping]));
        await sleep.catch((reason: unknown) => {
          if (reason !== 'early') throw reason;
        });
      }
      await io.broker.reconcile(target, { notBefore, redelivered });
      return { status: 204 };
    } catch (error) {
      if (released.signal.reason === 'left') return { status: 204 };
      if (context.signal.aborted || context.stopping.aborted) return { status: 503, message: 'stopping; deliver again' };
      if (!(error instanceof BrokerError)) throw error;
      io.log.error('the broker did not take a reconcile event', { ...target, reason: error.message });
      return { status: 503, message: 'the broker did not take the reconcile event' };
    }
  }

  return {
    async hold(requeue: Requeue, context: Context): Promise<Answer> {
      const { kind, namespace, name } = requeue.target;
      const places = [...held].filter(({ target: t }) => t.name === name && t.namespace === namespace && t.kind === kind);
      if (places.some(({ notBefore }) => notBefore === requeue.notBefore)) return { status: 204 };
      if (context.stopping.aborted) return { status: 503, message: 'stopping; deliver again' };
      const due = io.clock.now() + Date.parse(requeue.notBefore) - Date.parse(requeue.time);
      const own: Held = { ...requeue, due, released: new AbortController() };
      held.add(own);
      for (const oldest of places.slice(0, 1 - MAX_PER_RESOURCE)) release(oldest, 'early');
      if (held.size > most) leaveOne();
      gauge('lldap_operator.requeue.held', [{ value: held.size }]);
      return await wait(own, context).finally(() => {
        held.delete(own);
        gauge('lldap_operator.requeue.held', [{ value: held.size }]);
      });
    },
    get size(): number {
      return held.size;
    },
  };
}
