import { runReconciling } from '../../shared/bootstrap.ts';
import { createEngine } from '../../shared/engine/engine.ts';
import { kindHandler } from '../../shared/engine/event-handler.ts';
import { groupKind } from './kind.ts';

await runReconciling('group', ({ config, io }) => ({ '/': kindHandler('LldapGroup', createEngine(groupKind, io, config)) }));
