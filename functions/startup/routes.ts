import type { Reconciling, Routes } from '../../shared/bootstrap.ts';
import { MalformedEvent, type SweepMode } from '../../shared/events/parse.ts';
import type { EventHandler } from '../../shared/service/server.ts';
import type { Log } from '../../shared/telemetry/log.ts';
import { createRuns, type Summary } from './run.ts';

export function routes({ config, log, io }: Reconciling): Routes {
  return { '/': startupHandler(createRuns(io, config), log) };
}

/**
 * Answers a startup event. Through the broker, a run answers 204 even if it found problems, because the CronJob repeats
 * sweeps anyway. Only a run of mode `full` that could not post every event answers 503, so that the broker delivers it again.
 */
export function startupHandler(run: (mode: SweepMode, stopping: AbortSignal) => Promise<Summary>, log: Log): EventHandler {
  return async (event, { representation, stopping }) => {
    if (event.what !== 'startup') throw new MalformedEvent(`a ${event.what} event is not for the function startup`);
    const summary = await run(event.mode, stopping);
    log.info('startup finished', { ...summary });
    const failed = { status: 503, message: summary.problems.join('; ') } as const;
    if (representation) return summary.ok ? { status: 200, body: summary } : { ...failed, body: summary };
    return event.mode === 'full' && !summary.asked ? failed : { status: 204 };
  };
}
