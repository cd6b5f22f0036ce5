import { type Broker, BrokerError } from '../../shared/events/broker.ts';
import type { OperatorEvent } from '../../shared/events/parse.ts';
import type { Clock } from '../../shared/platform/clock.ts';
import type { Answer, EventContext } from '../../shared/service/server.ts';
import type { Log } from '../../shared/telemetry/log.ts';
import { gauge } from '../../shared/telemetry/telemetry.ts';

export type Requeue = Omit<Extract<OperatorEvent, { what: 'requeue' }>, 'what'>;

interface DelayedRetry extends Requeue {
  /** Milliseconds since the epoch, by this process's clock. */
  due: number;
  /** Ends the delay, by its reason: `early` posts the event at once, `dropped` leaves the resource to the sweep. */
  released: AbortController;
}

type Context = Pick<EventContext, 'signal' | 'stopping'>;

/** Longer than the longest delay with its jitter, shorter than the Trigger's timeout. */
const MAX_DELAY_MS = 330_000;
/** A resource's retry, one that a newer generation made stale, and a dead letter. */
const MAX_RETRIES_PER_RESOURCE = 3;

/**
 * Delays retries: keeps each request open until its event is due, then posts the reconcile event. Knative has no
 * delayed delivery, and only an open request keeps a pod running.
 *
 * 1. One request per resource and due time is delayed: a repetition is answered at once and displaces nothing.
 * 2. The delay is the difference between `notBefore` and the event's own `time`, whatever this process's clock says, and
 *    at most 330 s. An event that is delivered again is delayed again.
 * 3. When the process is told to stop, it answers 503 at once, and the broker delivers the event to the next process.
 * 4. At most three retries of one resource are delayed. A fourth event takes the place of the oldest, whose reconcile
 *    event is posted at once: a forged event can make a retry early, as a forged reconcile event does, but never late.
 * 5. Above `maxRetries`, the queue answers the latest retry of the namespace with the most retries, and leaves it to the
 *    sweep, which finds its time in the resource's status. So no namespace displaces the retries of one with fewer.
 */
export function createDelayQueue(io: { broker: Broker; clock: Clock; log: Log }, maxRetries: number) {
  /** The oldest first. */
  const delayed = new Set<DelayedRetry>();

  function release(own: DelayedRetry, how: 'early' | 'dropped'): void {
    delayed.delete(own);
    own.released.abort(how);
  }

  /** Drops the latest retry of the namespace that has most. */
  function releaseLatest(): void {
    const shares = Object.values(Object.groupBy(delayed, ({ target }) => target.namespace)).filter((share) => share !== undefined);
    const largest = Math.max(...shares.map(({ length }) => length));
    const candidates = shares.filter(({ length }) => length === largest).flat();
    const last = candidates.reduce((a, b) => (b.due > a.due ? b : a));
    release(last, 'dropped');
    io.log.warn('too many delayed retries; released the last one to the sweep', { ...last.target, delayed: delayed.size });
  }

  async function wait({ target, notBefore, redelivered, due, released }: DelayedRetry, context: Context): Promise<Answer> {
    const ms = Math.min(due - io.clock.now(), MAX_DELAY_MS);
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
      if (released.signal.reason === 'dropped') return { status: 204 };
      if (context.signal.aborted || context.stopping.aborted) return { status: 503, message: 'stopping; deliver the event again' };
      if (!(error instanceof BrokerError)) throw error;
      io.log.error('the broker did not accept a reconcile event', { ...target, reason: error.message });
      return { status: 503, message: 'the broker did not accept the reconcile event' };
    }
  }

  return {
    async delay(requeue: Requeue, context: Context): Promise<Answer> {
      const { kind, namespace, name } = requeue.target;
      const places = [...delayed].filter(({ target: t }) => t.name === name && t.namespace === namespace && t.kind === kind);
      if (places.some(({ notBefore }) => notBefore === requeue.notBefore)) return { status: 204 };
      if (context.stopping.aborted) return { status: 503, message: 'stopping; deliver the event again' };
      const due = io.clock.now() + Date.parse(requeue.notBefore) - Date.parse(requeue.time);
      const own: DelayedRetry = { ...requeue, due, released: new AbortController() };
      delayed.add(own);
      for (const oldest of places.slice(0, 1 - MAX_RETRIES_PER_RESOURCE)) release(oldest, 'early');
      if (delayed.size > maxRetries) releaseLatest();
      gauge('lldap_operator.requeue.delayed', [{ value: delayed.size }]);
      return await wait(own, context).finally(() => {
        delayed.delete(own);
        gauge('lldap_operator.requeue.delayed', [{ value: delayed.size }]);
      });
    },
    get size(): number {
      return delayed.size;
    },
  };
}
