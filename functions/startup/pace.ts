import type { SweepMode } from '../../shared/events/parse.ts';
import type { Clock } from '../../shared/platform/clock.ts';

/** Between the end of a run and the start of the next. */
const MIN_PAUSE_MS = 5_000;

/**
 * Paces the runs of startup, since whoever reaches its address can ask for them:
 *
 * 1. One at a time. Everybody who asks before a run begins shares it, whatever their modes.
 * 2. After any run, a pause of 5 s; after `full` or `drift`, before the next of these two, one as long as the run took:
 *    full reconciles of everything fill half of the time at most, and hold up no sweep.
 * 3. When the process is told to stop, no pause: what is asked for runs at once.
 */
export function paceRuns<T>(
  clock: Clock,
  run: (modes: ReadonlySet<SweepMode>) => Promise<T>,
): (mode: SweepMode, stopping?: AbortSignal) => Promise<T> {
  let next: { modes: Set<SweepMode>; outcome: Promise<T> } | undefined;
  let pause = Promise.resolve();
  let costlyPause = pause;

  function begin(modes: Set<SweepMode>, stopping?: AbortSignal): Promise<T> {
    next = undefined;
    const started = clock.monotonic();
    const outcome = run(modes);
    const ended = outcome.catch(ignore).then(() => clock.monotonic() - started);
    const sleep = (ms: number) => clock.sleep(Math.max(MIN_PAUSE_MS, ms), stopping).catch(ignore);
    pause = ended.then(() => sleep(MIN_PAUSE_MS));
    if (modes.has('full') || modes.has('drift')) costlyPause = ended.then(sleep);
    return outcome;
  }

  return async (mode, stopping) => {
    for (let over: Promise<void> | undefined; mode !== 'sweep' && over !== costlyPause; ) {
      over = costlyPause;
      await over;
    }
    if (!next) {
      const modes = new Set<SweepMode>();
      next = { modes, outcome: pause.then(() => begin(modes, stopping)) };
    }
    next.modes.add(mode);
    return next.outcome;
  };
}

function ignore(): void {
  // A run's failure is for those who asked for it.
}
