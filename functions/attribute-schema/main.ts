import { runReconciling } from '../../shared/function.ts';
import { createEngine } from '../../shared/reconcile/engine.ts';
import { kindHandler } from '../../shared/reconcile/handler.ts';
import { attributeSchemaKind } from './kind.ts';

await runReconciling('attribute-schema', ({ config, io }) => ({
  '/': kindHandler('LldapAttributeSchema', createEngine(attributeSchemaKind, io, config)),
}));
