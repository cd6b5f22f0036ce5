import { runReconciling } from '../../shared/function.ts';
import { startupHandler } from './handler.ts';
import { createRuns } from './run.ts';

await runReconciling('startup', ({ config, log, io }) => ({ '/': startupHandler(createRuns(io, config), log) }));
