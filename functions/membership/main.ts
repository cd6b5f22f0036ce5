import { runReconciling } from '../../shared/function.ts';
import { createEngine } from '../../shared/reconcile/engine.ts';
import { kindHandler } from '../../shared/reconcile/handler.ts';
import { membershipKind } from './kind.ts';

await runReconciling('membership', ({ config, io }) => ({ '/': kindHandler('LldapMembership', createEngine(membershipKind, io, config)) }));
