import { runReconciling } from '../../shared/function.ts';
import { createEngine } from '../../shared/reconcile/engine.ts';
import { kindHandler } from '../../shared/reconcile/handler.ts';
import { userKind } from './kind.ts';
import { reconcileUsersOf } from './secret.ts';

await runReconciling('user', ({ config, io }) => ({
  '/': kindHandler('LldapUser', createEngine(userKind(io), io, config), reconcileUsersOf(io, config.instance)),
}));
