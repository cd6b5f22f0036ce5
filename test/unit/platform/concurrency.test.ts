import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { createLimiter, once, shareRead } from '../../../shared/platform/concurrency.ts';

describe('shared/platform/concurrency', () => {
  describe('a limiter', () => {
    it('lets callers in, in the order of their coming, as others leave', async () => {
      const limit = createLimiter(2);
      const gates = Array.from({ length: 5 }, () => Promise.withResolvers<void>());
      const begun: number[] = [];
      const all = gates.map(({ promise }, i) =>
        limit(async () => {
          begun.push(i);
          await promise;
          return i;
        }),
      );
      await turn();
      assert.deepEqual(begun, [0, 1]);
      gates[1]?.resolve();
      await turn();
      assert.deepEqual(begun, [0, 1, 2]);
      for (const gate of gates) gate.resolve();
      assert.deepEqual(await Promise.all(all), [0, 1, 2, 3, 4]);
      assert.deepEqual(begun, [0, 1, 2, 3, 4]);
    });

    it('hands an error to its own caller, and its place to the next', async () => {
      const limit = createLimiter(1);
      const failing = limit(async () => {
        throw new Error('mine');
      });
      const thrown = limit(() => {
        throw new Error('at once');
      });
      await assert.rejects(failing, { message: 'mine' });
      await assert.rejects(thrown, { message: 'at once' });
      assert.equal(await limit(async () => 'next'), 'next');
    });

    it('never lets in more than it may, and leaves nobody waiting', async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.scheduler(),
          fc.integer({ min: 1, max: 4 }),
          fc.array(fc.boolean(), { maxLength: 12 }),
          async (s, most, fails) => {
            const limit = createLimiter(most);
            let inside = 0;
            const work = (fail: boolean) =>
              limit(async () => {
                inside++;
                assert.ok(inside <= most);
                await s.schedule(Promise.resolve());
                inside--;
                if (fail) throw new Error('mine');
              });
            const outcomes = Promise.allSettled(fails.map(work));
            await s.waitFor(outcomes);
            assert.deepEqual(
              (await outcomes).map(({ status }) => status === 'rejected'),
              fails,
            );
          },
        ),
      );
    });
  });

  describe('a shared read', () => {
    /** A read whose end the test decides. */
    function reads() {
      const begun: PromiseWithResolvers<string>[] = [];
      const share = shareRead(() => {
        const read = Promise.withResolvers<string>();
        begun.push(read);
        return read.promise;
      });
      return { begun, share };
    }

    it('serves all who ask while another is under way, and was read wholly after they asked', async () => {
      const { begun, share } = reads();
      const first = share();
      const [second, third] = [share(), share()];
      assert.equal(begun.length, 1);
      begun[0]?.resolve('old');
      assert.equal(await first, 'old');
      await turn();
      assert.equal(begun.length, 2);
      const fourth = share();
      begun[1]?.resolve('new');
      assert.deepEqual(await Promise.all([second, third]), ['new', 'new']);
      await turn();
      begun[2]?.resolve('newer');
      assert.equal(await fourth, 'newer');
      assert.equal(begun.length, 3);
    });

    it('is read again for who asks when none is under way', async () => {
      const { begun, share } = reads();
      for (const value of ['a', 'b']) {
        const read = share();
        begun.at(-1)?.resolve(value);
        assert.equal(await read, value);
      }
    });

    it('that fails fails those who share it, and not the next', async () => {
      const { begun, share } = reads();
      const first = share();
      const second = share();
      begun[0]?.reject(new Error('lost'));
      await assert.rejects(first, { message: 'lost' });
      await turn();
      begun[1]?.resolve('found');
      assert.equal(await second, 'found');
    });

    for (let steps = 0; steps < 8; steps++) {
      it(`is not made twice at once for who asks ${steps} steps after another has ended, while others wait`, async () => {
        const { begun, share } = reads();
        const calls = [share(), share()];
        begun[0]?.resolve('old');
        for (let step = 0; step < steps; step++) await Promise.resolve();
        calls.push(share());
        await turn();
        assert.ok(begun.length <= 2, 'two reads at once');
        for (let i = 1; i < 3; i++) {
          begun[i]?.resolve('new');
          await turn();
        }
        assert.equal((await Promise.all(calls)).length, 3);
      });
    }

    it('is never made twice at once, nor begun before its caller asked', async () => {
      await fc.assert(
        fc.asyncProperty(fc.scheduler(), fc.integer({ min: 1, max: 12 }), async (s, callers) => {
          let [time, reading] = [0, 0];
          const share = shareRead(async () => {
            const begunAt = ++time;
            reading++;
            assert.equal(reading, 1, 'two reads at once');
            await s.schedule(Promise.resolve(), 'read');
            reading--;
            return begunAt;
          });
          const call = async () => {
            const askedAt = time++;
            assert.ok((await share()) > askedAt, 'a read that began before it was asked for');
          };
          const calls = Array.from({ length: callers }, (_, i) => s.schedule(Promise.resolve(), `call ${i}`).then(call));
          await s.waitFor(Promise.all(calls));
        }),
      );
    });
  });

  describe('once', () => {
    it('is made by the first who asks, and shared with all others', async () => {
      let made = 0;
      const make = once(async () => ++made);
      assert.deepEqual(await Promise.all([make(), make()]), [1, 1]);
      assert.equal(await make(), 1);
    });

    it('forgets a failure, so that the next caller tries again', async () => {
      let made = 0;
      const make = once(async () => {
        made++;
        if (made === 1) throw new Error('not yet');
        return made;
      });
      const [one, other] = [make(), make()];
      await assert.rejects(one, { message: 'not yet' });
      await assert.rejects(other, { message: 'not yet' });
      assert.equal(await make(), 2);
    });
  });
});
