import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { createQueue, type Demand, type Request } from '../../../shared/engine/queue.ts';

type Result = 'good' | 'again later';

/** A queue whose passes the test ends, one by one. */
function bench(limit = 32) {
  const begun: { key: string; hints: Demand; end: PromiseWithResolvers<Result> }[] = [];
  const written = new Set<string>();
  const queue = createQueue<{ result: Result; hints: Demand }>(
    limit,
    async (key, hints) => {
      const end = Promise.withResolvers<Result>();
      begun.push({ key, hints, end });
      return { result: await end.promise, hints };
    },
    ({ result, hints }) => (result === 'again later' ? hints : undefined),
    (version) => written.has(version),
  );
  const submit = async (request: Request = {}, key = 'a') => {
    const submitted = await queue.submit(key, request);
    return submitted === 'collapsed' ? submitted : submitted.result.result;
  };
  const end = async (pass: number, result: Result = 'good') => {
    const { end: ended } = begun[pass] ?? assert.fail(`pass ${pass} has not begun`);
    ended.resolve(result);
    await turn();
  };
  const asked = () => begun.map(({ hints }) => `${hints.full ? 'full' : 'plain'} ${[...hints.notBefore].sort().join()}`.trim());
  const order = () => begun.map(({ key }) => key);
  return { queue, begun, written, submit, end, asked, order };
}

describe('shared/engine/queue', () => {
  describe('one reconcile at a time for each key', () => {
    it('makes a reconcile for an event, and answers it with the result', async () => {
      const { queue, submit, end, asked } = bench();
      const first = submit({ full: true });
      await end(0);
      assert.equal(await first, 'good');
      assert.deepEqual(asked(), ['full']);
      assert.equal(queue.size, 0);
    });

    it('makes one more reconcile for all events that come while their key is at work', async () => {
      const { queue, submit, end, asked } = bench();
      const first = submit({ notBefore: 'one' });
      const [second, third, last] = [submit({ notBefore: 'two' }), submit(), submit({ full: true })];
      assert.deepEqual(await Promise.all([second, third]), ['collapsed', 'collapsed']);
      await end(0);
      assert.equal(await first, 'good');
      await end(1);
      assert.equal(await last, 'good');
      assert.deepEqual(asked(), ['plain one', 'full two']);
      assert.equal(queue.size, 0);
    });

    it('keeps one request open for each reconcile that is still to be made, so that the process is not ended before it', async () => {
      const { submit, end } = bench();
      const first = submit();
      let isAnswered = false;
      const second = submit().then((answer) => {
        isAnswered = true;
        return answer;
      });
      await end(0);
      await first;
      assert.equal(isAnswered, false);
      await end(1);
      assert.equal(await second, 'good');
    });

    it('keeps the request open that asks for most, since only an open one comes again when the process dies', async () => {
      const { submit, end, asked } = bench(1);
      const other = submit({}, 'other');
      const retry = submit({ notBefore: 'one' });
      assert.equal(await submit(), 'collapsed');
      const full = submit({ full: true });
      assert.equal(await retry, 'collapsed');
      assert.deepEqual(await Promise.all([submit({ notBefore: 'two' }), submit()]), ['collapsed', 'collapsed']);
      const newest = submit({ full: true });
      assert.equal(await full, 'collapsed');
      await end(0);
      await end(1);
      assert.deepEqual(await Promise.all([other, newest]), ['good', 'good']);
      assert.deepEqual(asked(), ['plain', 'full one,two']);
    });

    it('works on other keys meanwhile', async () => {
      const { submit, end, order } = bench();
      const both = [submit({}, 'a'), submit({}, 'b')];
      assert.deepEqual(order(), ['a', 'b']);
      await end(1);
      await end(0);
      assert.deepEqual(await Promise.all(both), ['good', 'good']);
    });

    it('works on no more keys at once than it may', async () => {
      const { begun, submit, end, asked } = bench(1);
      const [first, second, again] = [submit({}, 'a'), submit({}, 'b'), submit({ full: true }, 'b')];
      assert.equal(await second, 'collapsed');
      assert.equal(begun.length, 1);
      await end(0);
      await end(1);
      assert.deepEqual(await Promise.all([first, again]), ['good', 'good']);
      assert.deepEqual(asked(), ['plain', 'full']);
    });

    it('lets every key have its turn, though the events for one never end', async () => {
      const { submit, end, order } = bench(1);
      const hot = [submit({}, 'hot')];
      const calm = submit({}, 'calm');
      hot.push(submit({}, 'hot'));
      await end(0);
      hot.push(submit({}, 'hot'));
      await end(1);
      assert.equal(await calm, 'good');
      await end(2);
      await Promise.all(hot);
      assert.deepEqual(order(), ['hot', 'calm', 'hot']);
    });
  });

  describe('what events asked for is kept', () => {
    it('until a reconcile has ended well, if one could not write what it had to', async () => {
      const { queue, submit, end, asked } = bench();
      const first = submit({ full: true, notBefore: 'one' });
      await end(0, 'again later');
      assert.equal(await first, 'again later');
      assert.equal(queue.size, 1);
      const again = submit({ notBefore: 'two' });
      await end(1);
      assert.equal(await again, 'good');
      assert.deepEqual(asked(), ['full one', 'full one,two']);
      assert.equal(queue.size, 0);
    });

    it('until a reconcile has ended well, if one failed', async () => {
      const { queue, begun, submit, end, asked } = bench();
      const first = submit({ notBefore: 'one' });
      begun[0]?.end.reject(new Error('unforeseen'));
      await assert.rejects(first, { message: 'unforeseen' });
      const again = submit({ notBefore: 'two' });
      await end(1);
      await again;
      assert.deepEqual(asked(), ['plain one', 'plain one,two']);
      assert.equal(queue.size, 0);
    });

    it('and no longer: the reconcile after that starts afresh', async () => {
      const { submit, end, asked } = bench();
      const first = submit({ full: true });
      await end(0);
      await first;
      const second = submit();
      await end(1);
      await second;
      assert.deepEqual(asked(), ['full', 'plain']);
    });

    it('and nothing of an event that asked for nothing, so that a failing key takes no room', async () => {
      const { queue, submit, end } = bench();
      const first = submit({ version: 'uid/1' });
      await end(0, 'again later');
      await first;
      assert.equal(queue.size, 0);
    });
  });

  describe('a thousand events for one key', () => {
    it('with forged times leave 64 of them in memory, and lose no retry: the next reconcile is full', async () => {
      const { queue, begun, submit, end } = bench();
      const first = submit();
      const real = submit({ notBefore: 'real' });
      const forged = Array.from({ length: 1_000 }, (_, i) => submit({ notBefore: `forged ${i}` }));
      await end(0);
      await end(1);
      await Promise.all([first, real, ...forged]);
      const { full, notBefore } = begun[1]?.hints ?? assert.fail('no second reconcile');
      assert.deepEqual([full, notBefore.size, notBefore.has('real')], [true, 64, true]);
      assert.equal(queue.size, 0);
    });

    it('with 64 different times demand these, and no full reconcile', async () => {
      const { begun, submit, end } = bench();
      const first = submit();
      const retries = Array.from({ length: 64 }, (_, i) => submit({ notBefore: `time ${i}` }));
      await end(0);
      await end(1);
      await Promise.all([first, ...retries]);
      assert.deepEqual([begun[1]?.hints.full, begun[1]?.hints.notBefore.size], [false, 64]);
    });

    it('with forged versions are compared 65 times at most, and lead to one more reconcile', async () => {
      let compared = 0;
      const ends: (() => void)[] = [];
      const queue = createQueue<void>(
        1,
        () => new Promise((resolve) => ends.push(resolve)),
        () => undefined,
        () => {
          compared++;
          return true;
        },
      );
      const all = Array.from({ length: 1_000 }, (_, i) => queue.submit('a', { version: `forged/${i}` }));
      ends[0]?.();
      await turn();
      ends[1]?.();
      await Promise.all(all);
      assert.deepEqual([ends.length, compared <= 65, queue.size], [2, true, 0]);
    });
  });

  describe('an event that tells of a write of this process', () => {
    it('makes no further reconcile', async () => {
      const { queue, written, submit, end, asked } = bench();
      const first = submit();
      const echo = submit({ version: 'uid/2' });
      written.add('uid/2');
      await end(0);
      assert.deepEqual(await Promise.all([first, echo]), ['good', 'collapsed']);
      assert.equal(asked().length, 1);
      assert.equal(queue.size, 0);
    });

    it('does not keep others from theirs', async () => {
      const { written, submit, end, asked } = bench();
      const first = submit();
      void submit({ version: 'uid/2' });
      const other = submit({ version: 'uid/3' });
      written.add('uid/2');
      await end(0);
      await end(1);
      await Promise.all([first, other]);
      assert.equal(asked().length, 2);
    });
  });

  for (let steps = 0; steps < 10; steps++) {
    it(`an event that comes ${steps} steps after the end of a reconcile is not forgotten`, async () => {
      const { queue, begun, submit, end } = bench();
      const first = submit();
      begun[0]?.end.resolve('good');
      for (let step = 0; step < steps; step++) await Promise.resolve();
      const second = submit({ full: true });
      await turn();
      assert.equal(begun[1]?.hints.full, true);
      await end(1);
      await Promise.all([first, second]);
      assert.equal(queue.size, 0);
    });
  }

  it('forgets nothing, never works twice on one key and never on more than it may, whatever comes when', async () => {
    const event = fc.record(
      { key: fc.constantFrom('a', 'b', 'c'), full: fc.boolean(), notBefore: fc.boolean() },
      { noNullPrototype: true },
    );
    const ends = fc.infiniteStream(fc.constantFrom('good', 'good', 'again later', 'throws'));
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), fc.integer({ min: 1, max: 3 }), fc.array(event, { minLength: 1, maxLength: 15 }), ends, play),
      { numRuns: 300 },
    );
  });
});

interface Event {
  key: string;
  full: boolean;
  notBefore: boolean;
}

interface Asked extends Event {
  at: number;
  id: string;
  collapsed?: boolean;
}

/** Plays events and ends of reconciles in an order that the scheduler makes up; afterwards, an event for each key, and all ends well. */
async function play(s: fc.Scheduler, limit: number, events: Event[], ends: fc.Stream<string>): Promise<void> {
  let time = 0;
  let calm = false;
  const passes: { key: string; began: number; ended: number; hints: Demand; good: boolean }[] = [];
  const atWork = new Set<string>();
  const asked: Asked[] = [];
  const queue = createQueue<{ end: Result; hints: Demand }>(
    limit,
    async (key, hints) => {
      assert.ok(!atWork.has(key), 'two reconciles of one key at once');
      atWork.add(key);
      assert.ok(atWork.size <= limit, 'more reconciles at once than there may be');
      const pass = { key, began: time++, ended: Number.POSITIVE_INFINITY, hints, good: false };
      passes.push(pass);
      await s.schedule(Promise.resolve(), `end of ${key}`);
      atWork.delete(key);
      pass.ended = time++;
      const end = calm ? 'good' : ends.next().value;
      if (end === 'throws') throw new Error('unforeseen');
      pass.good = end === 'good';
      return { end: end as Result, hints };
    },
    ({ end, hints }) => (end === 'again later' ? hints : undefined),
    () => false,
  );

  const submit = async (event: Event, id: string): Promise<void> => {
    const one: Asked = { ...event, id, at: time++ };
    asked.push(one);
    const request = { ...(event.full && { full: true }), ...(event.notBefore && { notBefore: id }) };
    const outcome = await queue.submit(event.key, request).catch((error: Error) => assert.equal(error.message, 'unforeseen'));
    one.collapsed = outcome === 'collapsed';
  };

  await s.waitFor(
    Promise.all(events.map((event, i) => s.schedule(Promise.resolve(), `event ${i}`).then(() => submit(event, `event ${i}`)))),
  );
  for (const one of asked.filter(({ collapsed }) => collapsed)) {
    // Or the event that it relied on was not answered well, and comes again.
    const seenTo = passes.some((p) => p.key === one.key && (p.began > one.at || (p.ended > one.at && !p.good)));
    assert.ok(seenTo, `${one.id} was answered, and no reconcile came after it`);
  }
  calm = true;
  const last = [...new Set(events.map(({ key }) => key))].map((key) => submit({ key, full: false, notBefore: false }, `last ${key}`));
  await s.waitFor(Promise.all(last));
  for (const one of asked) {
    const served = passes.some(
      (p) =>
        p.key === one.key && p.began > one.at && p.good && (p.hints.full || !one.full) && (p.hints.notBefore.has(one.id) || !one.notBefore),
    );
    assert.ok(served, `${one.id} was forgotten`);
  }
  assert.equal(queue.size, 0);
}
