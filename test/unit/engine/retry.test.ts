import assert from 'node:assert/strict';
import fc from 'fast-check';
import { delayOf, nextRetry } from '../../../shared/engine/retry.ts';
import type { Category, Retry } from '../../../shared/kube/resources.ts';

const NOW = Date.parse('2026-03-01T12:00:00.000Z');
const RETRIED: Category[] = ['Unavailable', 'Unauthenticated', 'NotReady', 'Taken', 'Bug'];
/** The middle of the jitter: none. */
const MIDDLE = 0.5;

/** When each of the first attempts after a failure at noon is due, in seconds after noon. */
function schedule(category: Category, attempts: number, maxMs = 300_000): number[] {
  const due: number[] = [];
  let previous: Retry | undefined;
  let now = NOW;
  for (let i = 0; i < attempts; i++) {
    const next = nextRetry({ category, previous, now, maxMs, random: MIDDLE });
    assert.ok(next);
    previous = next;
    now = Date.parse(next.nextTime);
    due.push((now - NOW) / 1000);
  }
  return due;
}

describe('shared/engine/retry', () => {
  const quick = [5, 15, 45, 105, 405, 705, 1005];
  const schedules: Record<string, [Category, number[]]> = {
    'what lldap could not do is tried again quickly at first, then every five minutes': ['Unavailable', quick],
    'what waits for something is tried again quickly at first, then every five minutes': ['NotReady', quick],
    'what somebody else has is tried again quickly at first, then every five minutes': ['Taken', quick],
    'what nobody foresaw is tried again quickly at first, then every five minutes': ['Bug', quick],
    'refused credentials are tried again after a minute, then every five': ['Unauthenticated', [60, 360, 660, 960]],
  };
  for (const [name, [category, due]] of Object.entries(schedules)) {
    it(name, () => assert.deepEqual(schedule(category, due.length), due));
  }

  it('Invalid is not retried', () => {
    assert.equal(nextRetry({ category: 'Invalid', previous: undefined, now: NOW, maxMs: 300_000, random: MIDDLE }), undefined);
    assert.equal(delayOf('Invalid', 1), undefined);
    assert.equal(delayOf('Invalid', 9), undefined);
  });

  it('names the time, the attempt and the category', () => {
    assert.deepEqual(nextRetry({ category: 'NotReady', previous: undefined, now: NOW, maxMs: 300_000, random: MIDDLE }), {
      nextTime: '2026-03-01T12:00:05.000Z',
      attempts: 1,
      category: 'NotReady',
    });
  });

  it('counts on while the category stays, and starts afresh with another', () => {
    const previous: Retry = { nextTime: '2026-03-01T12:00:00.000Z', attempts: 4, category: 'Unavailable' };
    const next = (category: Category) => nextRetry({ category, previous, now: NOW, maxMs: 300_000, random: MIDDLE });
    assert.deepEqual(next('Unavailable'), { nextTime: '2026-03-01T12:05:00.000Z', attempts: 5, category: 'Unavailable' });
    assert.deepEqual(next('Taken'), { nextTime: '2026-03-01T12:00:05.000Z', attempts: 1, category: 'Taken' });
  });

  it('counts on after an attempt whose event the broker did not accept', () => {
    const previous: Retry = { attempts: 2, category: 'Unavailable' };
    assert.deepEqual(nextRetry({ category: 'Unavailable', previous, now: NOW, maxMs: 300_000, random: MIDDLE }), {
      nextTime: '2026-03-01T12:00:30.000Z',
      attempts: 3,
      category: 'Unavailable',
    });
  });

  it('the installation may shorten the longest wait', () => {
    assert.deepEqual(schedule('Unavailable', 6, 20_000), [5, 15, 35, 55, 75, 95]);
    assert.deepEqual(schedule('Unauthenticated', 2, 20_000), [20, 40]);
    assert.deepEqual(schedule('NotReady', 3, 1_000), [1, 2, 3]);
  });

  it('moves by a tenth either way and no more, whatever the attempt', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...RETRIED),
        fc.integer({ min: 0, max: 1000 }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        fc.integer({ min: 1, max: 300 }).map((s) => s * 1000),
        (category, before, random, maxMs) => {
          const previous = before === 0 ? undefined : { attempts: before, category: category };
          const next = nextRetry({ category, previous, now: NOW, maxMs, random });
          assert.ok(next);
          const delay = Math.min(delayOf(category, before + 1) ?? Number.NaN, maxMs);
          const wait = Date.parse(next.nextTime) - NOW;
          // Times are written in whole milliseconds, cut off.
          assert.ok(wait >= Math.floor(delay * 0.9) && wait <= delay * 1.1, `${wait} ms for ${delay}`);
          assert.equal(next.attempts, before + 1);
        },
      ),
    );
  });

  it('never waits longer than a request can be held', () => {
    const next = nextRetry({
      category: 'Unavailable',
      previous: { attempts: 9, category: 'Unavailable' },
      now: NOW,
      maxMs: 300_000,
      random: 1 - 2 ** -53,
    });
    assert.equal(Date.parse(next?.nextTime ?? '') - NOW <= 330_000, true);
  });
});
