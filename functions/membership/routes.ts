import type { Reconciling, Routes } from '../../shared/bootstrap.ts';
import { createEngine } from '../../shared/engine/engine.ts';
import { kindHandler } from '../../shared/engine/event-handler.ts';
import { membershipKind } from './kind.ts';

export function routes({ config, io }: Reconciling): Routes {
  return { '/': kindHandler('LldapMembership', createEngine(membershipKind, io, config)) };
}
