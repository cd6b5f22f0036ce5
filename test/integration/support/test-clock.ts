import { setImmediate as turn } from 'node:timers/promises';
import type { Clock } from '../../../shared/platform/clock.ts';

/** A clock that stands still until a test moves it; sleeping takes no time and does not move it either. */
export class TestClock implements Clock {
  #now = Date.parse('2026-03-01T12:00:00.000Z');
  /** Milliseconds, each time that somebody slept. */
  readonly sleeps: number[] = [];

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#now;
  }

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    this.sleeps.push(ms);
    await turn();
    signal?.throwIfAborted();
  }

  advance(ms: number): void {
    this.#now += ms;
  }

  /** Moves on to an RFC 3339 time that lies ahead. */
  advanceTo(time: string): void {
    this.#now = Math.max(this.#now, Date.parse(time));
  }
}
