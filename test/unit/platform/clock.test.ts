import assert from 'node:assert/strict';
import { systemClock, timestamp } from '../../../shared/platform/clock.ts';
import { FakeClock } from '../../support/fake-clock.ts';

describe('shared/platform/clock', () => {
  it('writes times in UTC with milliseconds', () => {
    assert.equal(timestamp(Date.parse('2026-03-01T13:00:00.5+01:00')), '2026-03-01T12:00:00.500Z');
    assert.equal(timestamp(Date.parse('2026-03-01T12:00:00Z') + 0.9), '2026-03-01T12:00:00.000Z');
  });

  const clocks = { 'the system clock': systemClock, 'the clock of tests': new FakeClock() };
  for (const [name, clock] of Object.entries(clocks)) {
    describe(name, () => {
      it('ends a sleep with the reason of the signal that ends it', async () => {
        const controller = new AbortController();
        const sleep = clock.sleep(3_600_000, controller.signal);
        controller.abort(new Error('enough'));
        await assert.rejects(sleep, { message: 'enough' });
      });

      it('does not begin a sleep whose signal has ended already', async () => {
        await assert.rejects(clock.sleep(3_600_000, AbortSignal.abort(new Error('before'))), { message: 'before' });
      });
    });
  }

  it('lets the system clock sleep and wake, with a signal and without', async () => {
    await systemClock.sleep(1);
    await systemClock.sleep(1, new AbortController().signal);
  });

  it('measures deadlines by a clock that only grows', () => {
    const before = systemClock.monotonic();
    assert.ok(systemClock.monotonic() >= before);
  });

  it('wakes the sleepers of a test each at its own time, in their order', async () => {
    const clock = new FakeClock('2026-01-01T00:00:00.000Z');
    const woken: string[] = [];
    for (const seconds of [30, 10, 20]) void clock.sleep(seconds * 1000).then(() => woken.push(`${seconds} at ${timestamp(clock.now())}`));
    await clock.advance(9_999);
    assert.deepEqual(woken, []);
    await clock.advance(10_001);
    assert.deepEqual(woken, ['10 at 2026-01-01T00:00:10.000Z', '20 at 2026-01-01T00:00:20.000Z']);
    assert.equal(clock.sleeping, 1);
  });
});
