import type { Reconciling, Routes } from '../../shared/bootstrap.ts';
import { createEngine } from '../../shared/engine/engine.ts';
import { kindHandler } from '../../shared/engine/event-handler.ts';
import { groupKind } from './kind.ts';

export function routes({ config, io }: Reconciling): Routes {
  return { '/': kindHandler('LldapGroup', createEngine(groupKind, io, config)) };
}
