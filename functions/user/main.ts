import { runReconciling } from '../../shared/bootstrap.ts';
import { createEngine } from '../../shared/engine/engine.ts';
import { kindHandler } from '../../shared/engine/event-handler.ts';
import { userKind } from './kind.ts';
import { reconcileUsersOf } from './secret-events.ts';

await runReconciling('user', ({ config, io }) => ({
  '/': kindHandler('LldapUser', createEngine(userKind(io), io, config), reconcileUsersOf(io, config.instance)),
}));
