import { setTimeout as sleep } from 'node:timers/promises';
import type { CloudEvent } from './cloudevent.ts';

/** What goes wrong on real brokers, on demand. The newest fault that matches an event is the one that it meets. */

export type Matches = (event: CloudEvent) => boolean;
/** Sends an event to the Triggers. @returns whether all took it */
export type Dispatch = (event: CloudEvent) => Promise<boolean>;
/** Ends the fault. Events that it still holds go on. */
export type Undo = () => void;

interface Fault {
  matches: Matches;
  act(event: CloudEvent, dispatch: Dispatch): Promise<boolean>;
}

interface Handover {
  watching: 'neither' | 'both';
  over: Promise<void>;
}

interface Held {
  event: CloudEvent;
  dispatch: Dispatch;
  done(result: boolean): void;
  failed(error: unknown): void;
}

export class Faults {
  readonly #faults: Fault[] = [];
  readonly #refusals: { matches: Matches; answer: number | 'reset' }[] = [];
  readonly #handovers: Handover[] = [];

  /** Accepted, and then gone: as when the dispatcher dies. */
  drop(matches: Matches): Undo {
    return add(this.#faults, { matches, act: async () => true });
  }

  /** Each event is delivered `times` times, at once. */
  repeat(matches: Matches, times = 2): Undo {
    const act = async (event: CloudEvent, dispatch: Dispatch) => {
      const results = await Promise.all(Array.from({ length: times }, () => dispatch(event)));
      return results.every(Boolean);
    };
    return add(this.#faults, { matches, act });
  }

  delay(matches: Matches, ms: number): Undo {
    const act = async (event: CloudEvent, dispatch: Dispatch) => {
      await sleep(ms);
      return dispatch(event);
    };
    return add(this.#faults, { matches, act });
  }

  /** Holds events until there are `count`, then delivers them last first, each when the one before is answered. */
  reorder(matches: Matches, count: number): Undo {
    const held: Held[] = [];
    const act = (event: CloudEvent, dispatch: Dispatch) =>
      new Promise<boolean>((done, failed) => {
        held.push({ event, dispatch, done, failed });
        if (held.length >= count) void lastFirst(held);
      });
    const remove = add(this.#faults, { matches, act });
    return () => {
      remove();
      void lastFirst(held);
    };
  }

  /** The ingress answers with this status, or cuts the connection, instead of taking the event. */
  refuse(matches: Matches, answer: number | 'reset'): Undo {
    return add(this.#refusals, { matches, answer });
  }

  /** How the ingress refuses this event, if it does. */
  refusal(event: CloudEvent): number | 'reset' | undefined {
    return this.#refusals.findLast(({ matches }) => matches(event))?.answer;
  }

  /**
   * Adapters of sources that are replaced while this lasts: none watches before it ends, and what the old one has not sent is lost;
   * or both watch until it ends.
   */
  handover(watching: Handover['watching']): Undo {
    const { promise: over, resolve } = Promise.withResolvers<void>();
    const remove = add(this.#handovers, { watching, over });
    return () => {
      remove();
      resolve();
    };
  }

  /** @param signal ends the fault for this one */
  atHandover(signal: AbortSignal): Handover | undefined {
    const fault = this.#handovers.at(-1);
    if (!fault) return undefined;
    const aborted = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
    return { ...fault, over: Promise.race([fault.over, aborted]) };
  }

  /** Lets an accepted event meet its fault, or go on. */
  meet(event: CloudEvent, dispatch: Dispatch): Promise<boolean> {
    return this.#faults.findLast(({ matches }) => matches(event))?.act(event, dispatch) ?? dispatch(event);
  }
}

/** How each one ends is told to whoever sent it. */
async function lastFirst(held: Held[]): Promise<void> {
  for (const { event, dispatch, done, failed } of held.splice(0).reverse()) await dispatch(event).then(done, failed);
}

function add<T>(list: T[], item: T): Undo {
  list.push(item);
  return () => {
    const index = list.indexOf(item);
    if (index >= 0) list.splice(index, 1);
  };
}
