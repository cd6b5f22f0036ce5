import { runReconciling } from '../../shared/bootstrap.ts';
import { createEngine } from '../../shared/engine/engine.ts';
import { kindHandler } from '../../shared/engine/event-handler.ts';
import { membershipKind } from './kind.ts';

await runReconciling('membership', ({ config, io }) => ({ '/': kindHandler('LldapMembership', createEngine(membershipKind, io, config)) }));
