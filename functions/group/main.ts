import { runReconciling } from '../../shared/function.ts';
import { createEngine } from '../../shared/reconcile/engine.ts';
import { kindHandler } from '../../shared/reconcile/handler.ts';
import { groupKind } from './kind.ts';

await runReconciling('group', ({ config, io }) => ({ '/': kindHandler('LldapGroup', createEngine(groupKind, io, config)) }));
