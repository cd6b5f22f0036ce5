import type { Reconciling, Routes } from '../../shared/bootstrap.ts';
import { createEngine } from '../../shared/engine/engine.ts';
import { kindHandler } from '../../shared/engine/event-handler.ts';
import { userKind } from './kind.ts';
import { reconcileUsersOf } from './secret-events.ts';

export function routes({ config, io }: Reconciling): Routes {
  return { '/': kindHandler('LldapUser', createEngine(userKind(io), io, config), reconcileUsersOf(io)) };
}
