import { runReconciling } from '../../shared/bootstrap.ts';
import { startupHandler } from './routes.ts';
import { createRuns } from './run.ts';

await runReconciling('startup', ({ config, log, io }) => ({ '/': startupHandler(createRuns(io, config), log) }));
