import { AsyncLocalStorage } from 'node:async_hooks';
import type { Target } from '../../shared/events/parse.ts';
import type { Clock } from '../../shared/platform/clock.ts';
import type { AnyResource } from './kube-double.ts';
import type { Process } from './process.ts';
import type { Random } from './random.ts';

/** What processes call. */
export type Service = 'kube' | 'lldap' | 'ldap' | 'broker';

/**
 * How a call may fail.
 * - `refused`: not carried out, and the caller knows.
 * - `lost`: not carried out, and the caller does not know.
 * - `unanswered`: carried out, but the answer is lost.
 * - `busy`: answered with an error of the server's, not carried out.
 * - `broken`: carried out, then answered with an error or with something that is no answer.
 * - `denied`: credentials or rights are refused.
 * - `odd`: an answer that nobody foresaw, or for a status one that refuses it for good.
 */
export const FAULTS = ['refused', 'lost', 'unanswered', 'busy', 'broken', 'denied', 'odd'] as const;
export type Fault = (typeof FAULTS)[number];

/** What a fault makes of a call: is it carried out, and what does the caller get? */
export type Faulty<T> = Record<Fault, { done: boolean; answer: () => T }>;

/** A request on its way, which the schedule lets arrive. */
export interface Call {
  readonly seq: number;
  readonly by: Process;
  readonly service: Service;
  /** For the reading of schedules: `PATCH /apis/…`, `updateUser`, … */
  readonly what: string;
  /** When its caller gives it up, in milliseconds. */
  readonly until: number;
  /** Carries it out and answers it, by the fault if one is given. */
  arrive(fault?: Fault): void;
  /** Carries it out for a caller that is no more. */
  arriveLate(): void;
}

/** Whose work a call is part of. */
export interface Context {
  process: Process;
  target: Target | undefined;
  attempt: Attempt | undefined;
}

/** From a reconcile's reading of its own resource to the write of its status. */
export interface Attempt {
  /** The moment of the reading, see `History`. */
  since: number;
  /** As it was read. */
  self: AnyResource | undefined;
  statusWrites: number;
  mutations: number;
}

export const context = new AsyncLocalStorage<Context>();

interface Sleeper {
  at: number;
  process: Process;
  wake(): void;
  /** Lets go of the signal: Node keeps everything that a listener of a composite signal reaches. */
  forget(): void;
}

/** Lets all that follows from what was just done happen, up to the next calls. */
export const settleMicrotasks = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** The one time of all processes, and every await of theirs that reaches out of the process. */
export class Scheduler {
  /** Milliseconds since the epoch, as a right clock shows them. */
  now = Date.parse('2026-03-01T12:00:00.000Z');
  calls: Call[] = [];
  #seq = 0;
  #sleepers: Sleeper[] = [];

  nextSeq(): number {
    return ++this.#seq;
  }

  /** Asks for something that will arrive when the schedule lets it. */
  call<T>(
    by: Process,
    request: { service: Service; what: string; limitMs: number; carryOut: (context: Context | undefined) => T; faults: Faulty<T> },
  ): Promise<T> {
    const mine = context.getStore();
    return new Promise<T>((resolve, reject) => {
      const call: Call = {
        seq: this.nextSeq(),
        by,
        service: request.service,
        what: request.what,
        until: this.now + request.limitMs,
        arrive: (fault) => {
          const how = fault && request.faults[fault];
          try {
            if (!how) return resolve(request.carryOut(mine));
            if (how.done) outcomeOf(() => request.carryOut(mine));
            resolve(how.answer());
          } catch (error) {
            reject(error);
          }
        },
        arriveLate: () => outcomeOf(() => request.carryOut(mine)),
      };
      if (by.alive) this.calls.push(call);
    });
  }

  remove(call: Call): void {
    this.calls.splice(this.calls.indexOf(call), 1);
  }

  /** What the process awaits, it awaits forever; answers the calls that were on their way. */
  cut(process: Process): Call[] {
    const cut = this.calls.filter((call) => call.by === process);
    this.calls = this.calls.filter((call) => call.by !== process);
    for (const sleeper of this.#sleepers) if (sleeper.process === process) sleeper.forget();
    this.#sleepers = this.#sleepers.filter((sleeper) => sleeper.process !== process);
    return cut;
  }

  /** At the end of a schedule. */
  close(): void {
    for (const sleeper of this.#sleepers.splice(0)) sleeper.forget();
  }

  clockOf(process: Process): Clock {
    return {
      now: () => Math.floor(this.now + process.skew),
      monotonic: () => this.now,
      sleep: (ms, signal) => this.#sleep(process, ms, signal),
    };
  }

  /** When the next sleeper wakes or the next call is given up; infinite if none does. */
  get next(): number {
    let next = Number.POSITIVE_INFINITY;
    for (const { at, process } of this.#sleepers) if (!process.frozen && at < next) next = at;
    for (const { until, by } of this.calls) if (!by.frozen && until < next) next = until;
    return next;
  }

  /** Wakes who has slept long enough, and gives up the calls that took too long; half of those were carried out. */
  fire(random: Random, gaveUp: (call: Call, done: boolean) => void): void {
    for (const sleeper of this.#sleepers.filter(({ at, process }) => at <= this.now && !process.frozen)) {
      this.#sleepers.splice(this.#sleepers.indexOf(sleeper), 1);
      sleeper.wake();
    }
    for (const call of this.calls.filter(({ until, by }) => until <= this.now && !by.frozen)) {
      const done = random.below(2) === 1;
      this.remove(call);
      gaveUp(call, done);
      call.arrive(done ? 'unanswered' : 'lost');
    }
  }

  #sleep(process: Process, ms: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const stop = () => {
        const index = this.#sleepers.indexOf(sleeper);
        if (index >= 0) this.#sleepers.splice(index, 1);
        reject(signal?.reason);
      };
      const sleeper: Sleeper = {
        at: this.now + ms,
        process,
        wake: () => {
          sleeper.forget();
          resolve();
        },
        forget: () => signal?.removeEventListener('abort', stop),
      };
      if (!process.alive) return;
      if (signal?.aborted) return stop();
      this.#sleepers.push(sleeper);
      signal?.addEventListener('abort', stop, { once: true });
    });
  }
}

/** A refusal by the server is an outcome, too; who asked for it is not there to hear it. */
function outcomeOf(work: () => unknown): void {
  try {
    work();
  } catch (error) {
    if (error instanceof Error && error.name === 'Violation') throw error;
  }
}
