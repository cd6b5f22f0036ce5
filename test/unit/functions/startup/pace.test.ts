import assert from 'node:assert/strict';
import fc from 'fast-check';
import { paceRuns } from '../../../../functions/startup/pace.ts';
import type { SweepMode } from '../../../../shared/events/parse.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

const MINUTE = 60_000;

/** Runs over a clock that a test moves, each of which takes as long as the test says. */
function bench(takes: (modes: ReadonlySet<SweepMode>) => number = () => 0) {
  const clock = new FakeClock();
  const start = clock.now();
  const now = () => clock.now() - start;
  const runs: { modes: SweepMode[]; from: number; to: number }[] = [];
  const ask = paceRuns(clock, async (modes) => {
    const run = { modes: [...modes], from: now(), to: Number.POSITIVE_INFINITY };
    runs.push(run);
    await clock.sleep(takes(modes));
    run.to = now();
    return run;
  });
  return { clock, runs, ask, begun: () => runs.map(({ modes, from }) => `${modes.join('+')} at ${from / 1000} s`) };
}

const seconds = (many: number) => () => many * 1000;

describe('functions/startup/pace', () => {
  it('runs at once for who asks after a while', async () => {
    const { clock, ask, begun } = bench(seconds(1));
    for (const mode of ['sweep', 'full', 'drift'] as const) {
      void ask(mode);
      await clock.advance(5 * MINUTE);
    }
    assert.deepEqual(begun(), ['sweep at 0 s', 'full at 300 s', 'drift at 600 s']);
  });

  it('runs once for all who ask while another run is under way or has just ended, of all their modes', async () => {
    const { clock, ask, begun } = bench(seconds(2));
    void ask('sweep');
    await clock.advance(1_000);
    const shared = [ask('sweep'), ask('full')];
    await clock.advance(3_000);
    shared.push(ask('drift'), ask('full'));
    await clock.advance(MINUTE);
    assert.deepEqual(begun(), ['sweep at 0 s', 'sweep+full+drift at 7 s']);
    assert.equal(new Set(await Promise.all(shared)).size, 1);
  });

  it('lets a sweep begin 5 s after the end of the last one, however long that took', async () => {
    let takes = 1_000;
    const { clock, ask, begun } = bench(() => takes);
    void ask('sweep');
    await clock.advance(1_000);
    void ask('sweep');
    takes = 20_000;
    await clock.advance(25_000);
    void ask('sweep');
    await clock.advance(MINUTE);
    assert.deepEqual(begun(), ['sweep at 0 s', 'sweep at 6 s', 'sweep at 31 s']);
  });

  for (const [first, second] of [
    ['full', 'full'],
    ['drift', 'drift'],
    ['full', 'drift'],
    ['drift', 'full'],
  ] as const) {
    it(`lets a run of mode ${second} begin no sooner after one of mode ${first} than that took`, async () => {
      const { clock, ask, begun } = bench(seconds(120));
      void ask(first);
      await clock.advance(1_000);
      void ask(second);
      await clock.advance(10 * MINUTE);
      assert.deepEqual(begun(), [`${first} at 0 s`, `${second} at 240 s`]);
    });
  }

  it('holds up no sweep for the pause of the other modes', async () => {
    const { clock, ask, begun } = bench((modes) => (modes.has('full') ? 120_000 : 1_000));
    void ask('full');
    await clock.advance(1_000);
    void ask('full');
    void ask('sweep');
    await clock.advance(10 * MINUTE);
    assert.deepEqual(begun(), ['full at 0 s', 'sweep at 125 s', 'full at 240 s']);
  });

  it('a run that fails is paused after like any other, and fails those who asked for it alone', async () => {
    const clock = new FakeClock();
    let runs = 0;
    const ask = paceRuns(clock, async () => {
      if (++runs === 1) throw new Error('lost');
      return runs;
    });
    await assert.rejects(ask('full'), { message: 'lost' });
    const second = ask('full');
    await clock.advance(4_999);
    assert.equal(runs, 1);
    await clock.advance(1);
    assert.equal(await second, 2);
  });

  it('pauses no more once the process is told to stop', async () => {
    const { clock, ask, begun } = bench(seconds(10));
    const stopping = new AbortController();
    void ask('full', stopping.signal);
    await clock.advance(10_000);
    const waiting = ask('full', stopping.signal);
    stopping.abort();
    await clock.advance(10_000);
    assert.deepEqual(begun(), ['full at 0 s', 'full at 10 s']);
    assert.ok(await waiting);
  });

  it('nobody keeps full and drift runs going for more than half of the time, however often they ask', async () => {
    const step = fc.record({ mode: fc.constantFrom<SweepMode>('sweep', 'full', 'drift'), afterMs: fc.nat({ max: 20_000 }) });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 60 }), fc.nat({ max: 90_000 }), async (steps, costMs) => {
        const { clock, ask, runs } = bench((modes) => (modes.has('full') || modes.has('drift') ? costMs : 500));
        const answers: Promise<unknown>[] = [];
        for (const { mode, afterMs } of steps) {
          answers.push(ask(mode));
          await clock.advance(afterMs);
        }
        await clock.advance(5 * MINUTE);
        await Promise.all(answers);
        const costly = runs.filter(({ modes }) => modes.some((mode) => mode !== 'sweep'));
        const gaps = (of: typeof runs) => of.slice(1).map((run, i) => ({ run, last: of[i] ?? run }));
        for (const { run, last } of gaps(runs)) assert.ok(run.from - last.to >= 5_000);
        for (const { run, last } of gaps(costly)) assert.ok(run.from - last.to >= last.to - last.from);
      }),
      { numRuns: 100 },
    );
  });
});
