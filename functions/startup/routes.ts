import type { Reconciling, Routes } from '../../shared/bootstrap.ts';
import { MalformedEvent, type SweepMode } from '../../shared/events/parse.ts';
import type { EventHandler } from '../../shared/service/server.ts';
import type { Log } from '../../shared/telemetry/log.ts';
import { createRuns, type Summary } from './run.ts';

export function routes({ config, log, io }: Reconciling): Routes {
  return { '/': startupHandler(createRuns(io, config), log) };
}

/**
 * Answers an event of startup. Through the broker there is nobody to tell what a run found, and the CronJob repeats sweeps;
 * a run of mode `full` that did not ask for every resource is repeated by nobody but the broker.
 */
export function startupHandler(run: (mode: SweepMode, stopping: AbortSignal) => Promise<Summary>, log: Log): EventHandler {
  return async (event, { representation, stopping }) => {
    if (event.what !== 'startup') throw new MalformedEvent(`events of ${event.what} are not for startup`);
    const summary = await run(event.mode, stopping);
    log.info('startup ran', { ...summary });
    const failed = { status: 503, message: summary.problems.join('; ') } as const;
    if (representation) return summary.ok ? { status: 200, body: summary } : { ...failed, body: summary };
    return event.mode === 'full' && !summary.asked ? failed : { status: 204 };
  };
}
