import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { createDelayQueue, type Requeue } from '../../../../functions/requeue/delayed-retries.ts';
import { type Broker, BrokerError } from '../../../../shared/events/broker.ts';
import { timestamp } from '../../../../shared/platform/clock.ts';
import type { Answer } from '../../../../shared/service/server.ts';
import { createLog } from '../../../../shared/telemetry/log.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

const DONE: Answer = { status: 204 };
const AGAIN: Answer = { status: 503, message: 'stopping; deliver the event again' };

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
  const queue = createDelayQueue({ broker, clock, log: createLog('debug', (line) => lines.push(line)) }, most);
  const stopping = new AbortController();
  const requeue = (name: string, seconds: number, more: Partial<Requeue> = {}): Requeue => ({
    target: { kind: 'LldapUser', namespace: 'team', name },
    notBefore: timestamp(start + seconds * 1000),
    time: timestamp(clock.now()),
    redelivered: 0,
    ...more,
  });
  const elsewhere = (namespace: string, name: string, seconds: number) =>
    requeue(name, seconds, { target: { kind: 'LldapUser', namespace, name } });
  /** Asks and notes the answer when it comes. */
  const hold = (asked: Requeue, signal = new AbortController().signal) => {
    const holding: { answer?: Answer; done: Promise<void> } = { done: Promise.resolve() };
    holding.done = queue.delay(asked, { signal, stopping: stopping.signal }).then((answer) => {
      holding.answer = answer;
    });
    return holding;
  };
  return {
    clock,
    posted,
    lines,
    queue,
    stopping,
    requeue,
    elsewhere,
    /** Which was posted when. */
    times: () => posted.map((text) => text.split(':')[0]),
    hold,
    /** What the broker does from now on. */
    fail: (error: Error) => {
      fails = error;
    },
  };
}

describe('functions/requeue/delayed-retries', () => {
  it('posts a reconcile event when it is due, not before, and answers then', async () => {
    const { clock, posted, queue, requeue, hold } = bench();
    const held = hold(requeue('alice', 30));
    await clock.advance(29_999);
    assert.deepEqual([posted, held.answer, queue.size], [[], undefined, 1]);
    await clock.advance(1);
    assert.deepEqual(posted, ['alice at 30 s: {"notBefore":"2026-03-01T12:00:30.000Z","redelivered":0}']);
    assert.deepEqual([held.answer, queue.size], [DONE, 0]);
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

  describe('waits for as long as the event says, by its own time,', () => {
    // A clock that is ahead made a retry due at once, without end, and one that is behind made five seconds 330.
    for (const [who, minutes] of [
      ['ten minutes ahead of', 10],
      ['ten minutes behind', -10],
      ['a day ahead of', 24 * 60],
    ] as const) {
      it(`whether its own clock is ${who} the function's or not`, async () => {
        const { clock, times, requeue, hold } = bench();
        const sent = clock.now() - minutes * 60_000;
        const held = hold(requeue('alice', 0, { time: timestamp(sent), notBefore: timestamp(sent + 5_000) }));
        await clock.advance(4_999);
        assert.deepEqual([times(), held.answer], [[], undefined]);
        await clock.advance(1);
        assert.deepEqual([times(), held.answer], [['alice at 5 s'], DONE]);
      });
    }

    it('anew when it is delivered again', async () => {
      const { clock, times, requeue, hold } = bench();
      const event = requeue('alice', 30);
      const sender = new AbortController();
      const first = hold(event, sender.signal);
      await clock.advance(20_000);
      sender.abort();
      await first.done;
      hold(event);
      await clock.advance(30_000);
      assert.deepEqual(times(), ['alice at 50 s']);
    });
  });

  it('queue nothing longer than 330 s, whatever the event says', async () => {
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
      const { clock, posted, queue, stopping, requeue, hold } = bench();
      const held = [hold(requeue('alice', 30)), hold(requeue('bob', 300))];
      stopping.abort();
      await turn();
      assert.deepEqual(
        held.map(({ answer }) => answer),
        [AGAIN, AGAIN],
      );
      await clock.advance(400_000);
      assert.deepEqual([posted, queue.size], [[], 0]);
    });

    it('takes nothing more', async () => {
      const { stopping, posted, requeue, hold } = bench();
      stopping.abort();
      const late = hold(requeue('alice', -1));
      await late.done;
      assert.deepEqual([late.answer, posted], [AGAIN, []]);
    });
  });

  it('forgets an event whose sender has gone, and queue it when it comes again', async () => {
    const { clock, posted, queue, requeue, hold } = bench();
    const sender = new AbortController();
    const first = hold(requeue('alice', 30), sender.signal);
    sender.abort();
    await first.done;
    assert.deepEqual([first.answer?.status, queue.size], [503, 0]);
    hold(requeue('alice', 30));
    await clock.advance(30_000);
    assert.equal(posted.length, 1);
  });

  describe('what the broker does not take', () => {
    it('is asked for again', async () => {
      const { clock, lines, queue, fail, requeue, hold } = bench();
      fail(new BrokerError('The broker answered 503 to an event.'));
      const held = hold(requeue('alice', 30));
      await clock.advance(30_000);
      assert.deepEqual([held.answer, queue.size], [{ status: 503, message: 'the broker did not accept the reconcile event' }, 0]);
      assert.match(lines.join(''), /"level":"error".*"name":"alice","reason":"The broker answered 503 to an event\."/);
    });

    it('for a reason that nobody foresaw is an error', async () => {
      const { fail, queue, requeue, hold } = bench();
      fail(new TypeError('unforeseen'));
      await assert.rejects(hold(requeue('alice', 0)).done, { message: 'unforeseen' });
      assert.equal(queue.size, 0);
    });
  });

  describe('one resource', () => {
    it("has three places; a fourth event takes the oldest one's, which is posted at once rather than lost", async () => {
      const { clock, times, queue, requeue, hold } = bench();
      const held = [300, 200, 100, 250].map((seconds) => hold(requeue('alice', seconds)));
      await held[0]?.done;
      assert.deepEqual([times(), held[0]?.answer, queue.size], [['alice at 0 s'], DONE, 3]);
      await clock.advance(300_000);
      assert.deepEqual(times(), ['alice at 0 s', 'alice at 100 s', 'alice at 200 s', 'alice at 250 s']);
    });

    it("takes no other's place, however many times are forged for it, and its own retry is not late", async () => {
      const { clock, times, queue, requeue, hold } = bench(10);
      for (let i = 0; i < 7; i++) hold(requeue(`other-${i}`, 60));
      const real = hold(requeue('alice', 30));
      for (let i = 0; i < 1000; i++) hold(requeue('alice', 20 + i / 1000));
      await real.done;
      assert.deepEqual([real.answer, times()[0], queue.size], [DONE, 'alice at 0 s', 10]);
      await clock.advance(60_000);
      assert.equal(times().filter((text) => text?.startsWith('other-')).length, 7);
    });

    it('has its place again when one is done', async () => {
      const { clock, times, requeue, hold } = bench();
      for (const seconds of [10, 20, 30]) hold(requeue('alice', seconds));
      await clock.advance(10_000);
      hold(requeue('alice', 40));
      await clock.advance(30_000);
      assert.deepEqual(times(), ['alice at 10 s', 'alice at 20 s', 'alice at 30 s', 'alice at 40 s']);
    });
  });

  describe('as many as it may hold', () => {
    it('lets go of one more, which the sweep then picks up, and says so', async () => {
      const { clock, posted, lines, requeue, hold } = bench(2);
      const held = [hold(requeue('alice', 10)), hold(requeue('bob', 20))];
      const third = hold(requeue('carol', 30));
      await third.done;
      assert.deepEqual(third.answer, DONE);
      assert.match(
        lines.join(''),
        /"level":"warn","message":"too many delayed retries; released the last one to the sweep".*"name":"carol"/,
      );
      await clock.advance(20_000);
      assert.deepEqual(
        held.map(({ answer }) => answer),
        [DONE, DONE],
      );
      assert.equal(posted.length, 2);
    });

    it('lets go of the one that is due last', async () => {
      const { clock, posted, lines, queue, requeue, hold } = bench(2);
      const late = hold(requeue('late', 300));
      hold(requeue('soon', 10));
      hold(requeue('sooner', 5));
      await late.done;
      assert.deepEqual([late.answer, queue.size], [DONE, 2]);
      assert.match(lines.join(''), /released the last one to the sweep".*"name":"late"/);
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

    it('a thousand forged events with a near time, in another namespace, keep no retry from its own', async () => {
      const { clock, times, requeue, elsewhere, hold } = bench(1000);
      const before = hold(requeue('before', 5));
      const forged = Array.from({ length: 1000 }, (_, i) => hold(elsewhere('forged', `forged-${i}`, 4)));
      hold(requeue('after', 5));
      await clock.advance(5_000);
      assert.deepEqual(
        times().filter((text) => !text?.startsWith('forged')),
        ['before at 5 s', 'after at 5 s'],
      );
      assert.deepEqual(before.answer, DONE);
      assert.equal(forged.filter(({ answer }) => answer === undefined).length, 0);
    });

    it('a thousand broken resources of one namespace keep no retry of another from its own', async () => {
      const { clock, times, elsewhere, hold } = bench(1000);
      for (let i = 0; i < 1500; i++) hold(elsewhere('broken', `broken-${i}`, 30));
      for (let i = 0; i < 20; i++) hold(elsewhere('other', `other-${i}`, 300));
      for (let i = 0; i < 500; i++) hold(elsewhere('broken', `late-${i}`, 10));
      await clock.advance(300_000);
      assert.equal(times().filter((text) => text?.startsWith('other-')).length, 20);
      assert.equal(times().length, 1000);
    });

    it('it is the latest of the namespace with the most that is left to the sweep', async () => {
      const { lines, elsewhere, hold } = bench(4);
      const held = [hold(elsewhere('one', 'a', 300)), hold(elsewhere('two', 'b', 10)), hold(elsewhere('two', 'c', 30))];
      held.push(hold(elsewhere('two', 'd', 20)), hold(elsewhere('one', 'e', 200)));
      await held[2]?.done;
      assert.deepEqual(
        held.map(({ answer }) => answer),
        [undefined, undefined, DONE, undefined, undefined],
      );
      assert.match(lines.join(''), /released the last one to the sweep".*"namespace":"two","name":"c"/);
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
