import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { createQueue, type Hints, type Request } from '../../shared/reconcile/queue.ts';

type Result = 'good' | 'again later';
const SETTLED = new AbortController().signal;

/** A queue whose passes the test ends, one by one. */
function bench(limit = 32) {
  const begun: { key: string; hints: Hints; signal: AbortSignal; end: PromiseWithResolvers<Result> }[] = [];
  const queue = createQueue<Result>(
    limit,
    (key, hints, signal) => {
      const end = Promise.withResolvers<Result>();
      begun.push({ key, hints, signal, end });
      return end.promise;
    },
    (result) => result === 'again later',
  );
  const submit = (request: Partial<Request> = {}, key = 'a') => queue.submit(key, { signal: SETTLED, ...request });
  const end = async (pass: number, result: Result = 'good') => {
    const { end: ended } = begun[pass] ?? assert.fail(`pass ${pass} has not begun`);
    ended.resolve(result);
    await turn();
  };
  const asked = () => begun.map(({ hints }) => `${hints.full ? 'full' : 'plain'} ${[...hints.notBefore].sort().join()}`.trim());
  return { queue, begun, submit, end, asked };
}

describe('shared/reconcile/queue', () => {
  describe('one pass at a time for each key', () => {
    it('makes a pass for an event, and answers it with the result', async () => {
      const { queue, submit, end, asked } = bench();
      const first = submit({ full: true });
      await end(0);
      assert.deepEqual(await first, { result: 'good' });
      assert.deepEqual(asked(), ['full']);
      assert.equal(queue.size, 0);
    });

    it('answers events at once while their key is at work, and makes one more pass for all of them before the first is answered', async () => {
      const { queue, submit, end, asked } = bench();
      let answered = false;
      const first = submit({ notBefore: 'one' }).then((answer) => {
        answered = true;
        return answer;
      });
      assert.deepEqual(await Promise.all([submit({ notBefore: 'two' }), submit(), submit({ full: true })]), Array(3).fill('collapsed'));
      await end(0);
      assert.deepEqual([asked(), answered], [['plain one', 'full two'], false]);
      await end(1);
      assert.deepEqual(await first, { result: 'good' });
      assert.equal(asked().length, 2);
      assert.equal(queue.size, 0);
    });

    it('works on other keys meanwhile', async () => {
      const { begun, submit, end } = bench();
      const both = [submit({}, 'a'), submit({}, 'b')];
      assert.deepEqual(
        begun.map(({ key }) => key),
        ['a', 'b'],
      );
      await end(1);
      await end(0);
      assert.deepEqual(await Promise.all(both), [{ result: 'good' }, { result: 'good' }]);
    });

    it('works on no more keys at once than it may, and answers events of those that wait at once, too', async () => {
      const { begun, submit, end, asked } = bench(1);
      const [first, second] = [submit({}, 'a'), submit({}, 'b')];
      assert.equal(await submit({ full: true }, 'b'), 'collapsed');
      assert.equal(begun.length, 1);
      await end(0);
      await end(1);
      assert.deepEqual(await Promise.all([first, second]), [{ result: 'good' }, { result: 'good' }]);
      assert.deepEqual(asked(), ['plain', 'full']);
    });
  });

  describe('an event whose sender has gone', () => {
    it('gives its place to the next, which is answered when the work is done', async () => {
      const { begun, submit, end } = bench();
      const gone = new AbortController();
      const [next, third] = [new AbortController(), new AbortController()];
      const first = submit({ signal: gone.signal });
      gone.abort();
      const second = submit({ signal: next.signal });
      assert.equal(await submit({ signal: third.signal }), 'collapsed');
      await end(0);
      assert.deepEqual(
        begun.map(({ signal }) => signal),
        [gone.signal, next.signal],
      );
      await end(1);
      assert.deepEqual(await Promise.all([first, second]), [{ result: 'good' }, { result: 'good' }]);
    });

    it('gives its place while its key waits for a turn, too', async () => {
      const { begun, submit, end } = bench(1);
      const gone = new AbortController();
      const other = submit({}, 'other');
      const first = submit({ signal: gone.signal });
      gone.abort();
      const second = submit();
      await end(0);
      assert.deepEqual([begun[1]?.key, begun[1]?.signal.aborted], ['a', false]);
      await end(1);
      assert.deepEqual(await Promise.all([other, first, second]), Array(3).fill({ result: 'good' }));
    });
  });

  describe('what events asked for is kept', () => {
    it('until a pass has ended well, if one could not write what it had to', async () => {
      const { queue, submit, end, asked } = bench();
      const first = submit({ full: true, notBefore: 'one' });
      assert.equal(await submit({ notBefore: 'two' }), 'collapsed');
      await end(0, 'again later');
      assert.deepEqual(await first, { result: 'again later' });
      assert.equal(queue.size, 1);
      const again = submit();
      await end(1);
      assert.deepEqual(await again, { result: 'good' });
      assert.deepEqual(asked(), ['full one', 'full one,two']);
      assert.equal(queue.size, 0);
    });

    it('until a pass has ended well, if one failed', async () => {
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

    it('and no longer: the pass after that starts afresh', async () => {
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
      const first = submit({ needless: () => false });
      await end(0, 'again later');
      await first;
      assert.equal(queue.size, 0);
    });
  });

  describe('an event that has become needless, like the echo of a pass’s own write', () => {
    it('makes no further pass', async () => {
      const { queue, submit, end, asked } = bench();
      let written = false;
      const first = submit();
      assert.equal(await submit({ needless: () => written }), 'collapsed');
      written = true;
      await end(0);
      assert.deepEqual(await first, { result: 'good' });
      assert.equal(asked().length, 1);
      assert.equal(queue.size, 0);
    });

    it('does not keep others from theirs', async () => {
      const { submit, end, asked } = bench();
      const first = submit();
      await submit({ needless: () => true });
      await submit({ needless: () => false });
      await end(0);
      await end(1);
      await first;
      assert.equal(asked().length, 2);
    });
  });

  for (let steps = 0; steps < 10; steps++) {
    it(`an event that comes ${steps} steps after the end of a pass is not forgotten`, async () => {
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
      {
        key: fc.constantFrom('a', 'b', 'c'),
        full: fc.boolean(),
        notBefore: fc.boolean(),
        gone: fc.constantFrom('never', 'before', 'later'),
      },
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
  gone: 'never' | 'before' | 'later';
}

interface Asked extends Event {
  at: number;
  id: string;
  collapsed?: boolean;
}

/** Plays events and ends of passes in an order that the scheduler makes up; afterwards, an event for each key, and all ends well. */
async function play(s: fc.Scheduler, limit: number, events: Event[], ends: fc.Stream<string>): Promise<void> {
  let time = 0;
  let calm = false;
  const passes: { key: string; began: number; ended: number; hints: Hints; good: boolean }[] = [];
  const atWork = new Set<string>();
  const asked: Asked[] = [];
  const queue = createQueue<Result>(
    limit,
    async (key, hints) => {
      assert.ok(!atWork.has(key), 'two passes of one key at once');
      atWork.add(key);
      assert.ok(atWork.size <= limit, 'more passes at once than there may be');
      const pass = { key, began: time++, ended: Number.POSITIVE_INFINITY, hints, good: false };
      passes.push(pass);
      await s.schedule(Promise.resolve(), `end of ${key}`);
      atWork.delete(key);
      pass.ended = time++;
      const end = calm ? 'good' : ends.next().value;
      if (end === 'throws') throw new Error('unforeseen');
      pass.good = end === 'good';
      return end as Result;
    },
    (result) => result === 'again later',
  );

  const submit = async (event: Event, id: string): Promise<void> => {
    const sender = new AbortController();
    if (event.gone === 'before') sender.abort();
    if (event.gone === 'later') void s.schedule(Promise.resolve(), `sender of ${id} goes`).then(() => sender.abort());
    const one: Asked = { ...event, id, at: time++ };
    asked.push(one);
    const request = { signal: sender.signal, ...(event.full && { full: true }), ...(event.notBefore && { notBefore: id }) };
    const outcome = await queue.submit(event.key, request).catch((error: Error) => assert.equal(error.message, 'unforeseen'));
    one.collapsed = outcome === 'collapsed';
  };

  await s.waitFor(
    Promise.all(events.map((event, i) => s.schedule(Promise.resolve(), `event ${i}`).then(() => submit(event, `event ${i}`)))),
  );
  for (const one of asked.filter(({ collapsed }) => collapsed)) {
    // Or the event that it relied on was not answered well, and comes again.
    const seenTo = passes.some((p) => p.key === one.key && (p.began > one.at || (p.ended > one.at && !p.good)));
    assert.ok(seenTo, `${one.id} was answered, and no pass came after it`);
  }
  calm = true;
  const last = [...new Set(events.map(({ key }) => key))].map((key) =>
    submit({ key, full: false, notBefore: false, gone: 'never' }, `last ${key}`),
  );
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
