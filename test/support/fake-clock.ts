import { setImmediate as turn } from 'node:timers/promises';
import type { Clock } from '../../shared/platform/clock.ts';

interface Sleeper {
  until: number;
  wake(): void;
}

/** A clock that stands still until a test moves it; whoever sleeps is enqueued when its time is reached, not before. */
export class FakeClock implements Clock {
  #now: number;
  readonly #sleepers = new Set<Sleeper>();

  /** @param start RFC 3339 */
  constructor(start = '2026-03-01T12:00:00.000Z') {
    this.#now = Date.parse(start);
  }

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#now;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const stop = () => {
        this.#sleepers.delete(sleeper);
        reject(signal?.reason);
      };
      const sleeper: Sleeper = {
        until: this.#now + ms,
        wake: () => {
          this.#sleepers.delete(sleeper);
          signal?.removeEventListener('abort', stop);
          resolve();
        },
      };
      this.#sleepers.add(sleeper);
      if (signal?.aborted) stop();
      else signal?.addEventListener('abort', stop, { once: true });
    });
  }

  /** How many sleep. */
  get sleeping(): number {
    return this.#sleepers.size;
  }

  /** Moves on, waking each sleeper at its own time, and lets what follows from that happen. */
  async advance(ms: number): Promise<void> {
    const target = this.#now + ms;
    await turn();
    for (let next = this.#next(target); next; next = this.#next(target)) {
      this.#now = Math.max(this.#now, next.until);
      next.wake();
      await turn();
    }
    this.#now = target;
  }

  #next(target: number): Sleeper | undefined {
    return [...this.#sleepers].filter(({ until }) => until <= target).sort((a, b) => a.until - b.until)[0];
  }
}
