import type { SweepMode } from '../../shared/events/parse.ts';
import type { Clock } from '../../shared/platform/clock.ts';

/** From the end of a run to the start of the next. */
const MIN_PAUSE_MS = 5_000;

/**
 * Paces the runs of startup, since everybody who reaches its address can request them:
 *
 * 1. One run at a time. All requests before a run begins share it, whatever their modes.
 * 2. A pause of 5 s follows each run. Between two runs of mode `full` or `drift`, the pause is also as long as the first of
 *    them took: full reconciles of everything take at most half of the time, and delay no sweep.
 * 3. When the process is told to stop, requested runs begin at once.
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
  // Its requests get the failure.
}
