import { MalformedEvent } from '../../shared/events/parse.ts';
import { runReconciling } from '../../shared/function.ts';
import { createRuns } from './run.ts';

await runReconciling('startup', ({ config, log, io }) => {
  const startup = createRuns(io, config);
  return {
    '/': async (event, { representation }) => {
      if (event.what !== 'startup') throw new MalformedEvent(`events of ${event.what} are not for startup`);
      const summary = await startup(event.mode);
      log.info('startup ran', { ...summary });
      // Through the broker there is nobody to tell, and the CronJob comes again.
      if (!representation) return { status: 204 };
      return summary.ok ? { status: 200, body: summary } : { status: 503, message: summary.problems.join('; '), body: summary };
    },
  };
});
