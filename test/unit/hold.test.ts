import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { createHolds, type Requeue } from '../../functions/requeue/hold.ts';
import { timestamp } from '../../shared/clock.ts';
import { type Broker, BrokerError } from '../../shared/events/broker.ts';
import { createLog } from '../../shared/log.ts';
import type { Answer } from '../../shared/server.ts';
import { FakeClock } from '../fake-clock.ts';

const DONE: Answer = { status: 204 };
const AGAIN: Answer = { status: 503, message: 'stopping; deliver again' };

/** Holds over a clock that a test moves; what is posted is written down with the second in which it was. */
function bench(most = 1000) {
  const clock = new FakeClock();
  const start = clock.now();
  const posted: string[] = [];
  const lines: string[] = [];
  let fails: Error | undefined;
  const broker = {
    reconcile: async (target, options = {}) => {
      if (fails) throw fails;
      posted.push(`${target.name} at ${(clock.now() - start) / 1000} s: ${JSON.stringify(options)}`);
    },
  } as Broker;
  const holds = createHolds({ broker, clock, log: createLog('debug', (line) => lines.push(line)) }, most);
  const stopping = new AbortController();
  const requeue = (name: string, seconds: number, more: Partial<Requeue> = {}): Requeue => ({
    target: { kind: 'LldapUser', namespace: 'team', name },
    notBefore: timestamp(start + seconds * 1000),
    redelivered: 0,
    ...more,
  });
  /** Asks and notes the answer when it comes. */
  const hold = (asked: Requeue, signal = new AbortController().signal) => {
    const holding: { answer?: Answer; done: Promise<void> } = { done: Promise.resolve() };
    holding.done = holds.hold(asked, { signal, stopping: stopping.signal }).then((answer) => {
      holding.answer = answer;
    });
    return holding;
  };
  return {
    clock,
    posted,
    lines,
    holds,
    stopping,
    requeue,
    hold,
    /** What the broker does from now on. */
    fail: (error: Error) => {
      fails = error;
    },
  };
}

describe('functions/requeue/hold', () => {
  it('posts a reconcile event when it is due, not before, and answers then', async () => {
    const { clock, posted, holds, requeue, hold } = bench();
    const held = hold(requeue('alice', 30));
    await clock.advance(29_999);
    assert.deepEqual([posted, held.answer, holds.size], [[], undefined, 1]);
    await clock.advance(1);
    assert.deepEqual(posted, ['alice at 30 s: {"notBefore":"2026-03-01T12:00:30.000Z","redelivered":0}']);
    assert.deepEqual([held.answer, holds.size], [DONE, 0]);
  });

  it('posts at once what is due already', async () => {
    const { posted, requeue, hold } = bench();
    await hold(requeue('alice', -30)).done;
    await hold(requeue('bob', 0)).done;
    assert.deepEqual(
      posted.map((text) => text.split(':')[0]),
      ['alice at 0 s', 'bob at 0 s'],
    );
  });

  it('passes on the time as it was written, and how often the event was redelivered', async () => {
    const { posted, requeue, hold } = bench();
    await hold(requeue('alice', 0, { notBefore: '2026-03-01T13:00:00+01:00', redelivered: 3 })).done;
    assert.deepEqual(posted, ['alice at 0 s: {"notBefore":"2026-03-01T13:00:00+01:00","redelivered":3}']);
  });

  it('holds nothing longer than 330 s, whatever the event says', async () => {
    const { clock, posted, requeue, hold } = bench();
    const far = hold(requeue('alice', 331));
    const farther = hold(requeue('bob', 400 * 365 * 86_400));
    await clock.advance(329_999);
    assert.equal(posted.length, 0);
    await clock.advance(1);
    assert.deepEqual(
      posted.map((text) => text.split(':')[0]),
      ['alice at 330 s', 'bob at 330 s'],
    );
    assert.deepEqual([far.answer, farther.answer], [DONE, DONE]);
  });

  describe('an exact repetition', () => {
    it('is answered at once and leads to no second event', async () => {
      const { clock, posted, requeue, hold } = bench();
      hold(requeue('alice', 30));
      const again = hold(requeue('alice', 30));
      await again.done;
      assert.deepEqual(again.answer, DONE);
      await clock.advance(30_000);
      assert.equal(posted.length, 1);
    });

    it('is held again after the first has been posted', async () => {
      const { clock, posted, requeue, hold } = bench();
      hold(requeue('alice', 30));
      await clock.advance(30_000);
      await hold(requeue('alice', 30)).done;
      assert.equal(posted.length, 2);
    });

    const others: Record<string, Partial<Requeue>> = {
      'at another time': { notBefore: '2026-03-01T12:00:30.001Z' },
      'of another name': { target: { kind: 'LldapUser', namespace: 'team', name: 'bob' } },
      'of another namespace': { target: { kind: 'LldapUser', namespace: 'other', name: 'alice' } },
      'of another kind': { target: { kind: 'LldapGroup', namespace: 'team', name: 'alice' } },
    };
    for (const [name, more] of Object.entries(others)) {
      it(`is not one ${name}`, async () => {
        const { clock, posted, requeue, hold } = bench();
        hold(requeue('alice', 30));
        hold(requeue('alice', 30, more));
        await clock.advance(30_001);
        assert.equal(posted.length, 2);
      });
    }
  });

  describe('a process that is told to stop', () => {
    it('lets go of everything at once, for the broker to deliver it again', async () => {
      const { clock, posted, holds, stopping, requeue, hold } = bench();
      const held = [hold(requeue('alice', 30)), hold(requeue('bob', 300))];
      stopping.abort();
      await turn();
      assert.deepEqual(
        held.map(({ answer }) => answer),
        [AGAIN, AGAIN],
      );
      await clock.advance(400_000);
      assert.deepEqual([posted, holds.size], [[], 0]);
    });

    it('takes nothing more', async () => {
      const { stopping, posted, requeue, hold } = bench();
      stopping.abort();
      const late = hold(requeue('alice', -1));
      await late.done;
      assert.deepEqual([late.answer, posted], [AGAIN, []]);
    });
  });

  it('forgets an event whose sender has gone, and holds it when it comes again', async () => {
    const { clock, posted, holds, requeue, hold } = bench();
    const sender = new AbortController();
    const first = hold(requeue('alice', 30), sender.signal);
    sender.abort();
    await first.done;
    assert.deepEqual([first.answer?.status, holds.size], [503, 0]);
    hold(requeue('alice', 30));
    await clock.advance(30_000);
    assert.equal(posted.length, 1);
  });

  describe('what the broker does not take', () => {
    it('is asked for again', async () => {
      const { clock, lines, holds, fail, requeue, hold } = bench();
      fail(new BrokerError('The broker answered 503 to an event.'));
      const held = hold(requeue('alice', 30));
      await clock.advance(30_000);
      assert.deepEqual([held.answer, holds.size], [{ status: 503, message: 'the broker did not take the reconcile event' }, 0]);
      assert.match(lines.join(''), /"level":"error".*"name":"alice","reason":"The broker answered 503 to an event\."/);
    });

    it('for a reason that nobody foresaw is an error', async () => {
      const { fail, holds, requeue, hold } = bench();
      fail(new TypeError('unforeseen'));
      await assert.rejects(hold(requeue('alice', 0)).done, { message: 'unforeseen' });
      assert.equal(holds.size, 0);
    });
  });

  describe('as many as it may hold', () => {
    it('lets go of one more, which the sweep then picks up, and says so', async () => {
      const { clock, posted, lines, requeue, hold } = bench(2);
      const held = [hold(requeue('alice', 10)), hold(requeue('bob', 20))];
      const third = hold(requeue('carol', 30));
      await third.done;
      assert.deepEqual(third.answer, DONE);
      assert.match(lines.join(''), /"level":"warn","message":"too many requests are held; left one to the sweep".*"name":"carol"/);
      await clock.advance(20_000);
      assert.deepEqual(
        held.map(({ answer }) => answer),
        [DONE, DONE],
      );
      assert.equal(posted.length, 2);
    });

    it('lets go of the one that is due last', async () => {
      const { clock, posted, lines, holds, requeue, hold } = bench(2);
      const late = hold(requeue('late', 300));
      hold(requeue('soon', 10));
      hold(requeue('sooner', 5));
      await late.done;
      assert.deepEqual([late.answer, holds.size], [DONE, 2]);
      assert.match(lines.join(''), /left one to the sweep".*"name":"late"/);
      await clock.advance(400_000);
      assert.deepEqual(
        posted.map((text) => text.split(':')[0]),
        ['sooner at 5 s', 'soon at 10 s'],
      );
    });

    it('has room again when one is done', async () => {
      const { clock, posted, requeue, hold } = bench(1);
      hold(requeue('alice', 10));
      await clock.advance(10_000);
      hold(requeue('bob', 20));
      await clock.advance(10_000);
      assert.equal(posted.length, 2);
    });

    it('a repetition takes no room', async () => {
      const { clock, posted, requeue, hold } = bench(1);
      hold(requeue('alice', 10));
      for (let i = 0; i < 10; i++) hold(requeue('alice', 10));
      await clock.advance(10_000);
      assert.equal(posted.length, 1);
    });

    it('a thousand forged events with a far time keep no retry from its own', async () => {
      const { clock, posted, requeue, hold } = bench(1000);
      hold(requeue('before', 60));
      for (let i = 0; i < 1000; i++) hold(requeue(`forged-${i}`, 86_400 * (i + 1)));
      for (let i = 0; i < 10; i++) hold(requeue(`after-${i}`, 30));
      await clock.advance(60_000);
      assert.deepEqual(
        posted.map((text) => text.split(':')[0]),
        [...Array.from({ length: 10 }, (_, i) => `after-${i} at 30 s`), 'before at 60 s'],
      );
    });

    it('nor do they when they came first', async () => {
      const { clock, posted, requeue, hold } = bench(1000);
      for (let i = 0; i < 2000; i++) hold(requeue(`forged-${i}`, 86_400 + i));
      for (let i = 0; i < 1000; i++) hold(requeue(`real-${i}`, 300));
      await clock.advance(300_000);
      assert.equal(posted.filter((text) => text.startsWith('real-')).length, 1000);
    });
  });
});
