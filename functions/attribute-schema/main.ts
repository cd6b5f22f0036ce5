import { runReconciling } from '../../shared/bootstrap.ts';
import { createEngine } from '../../shared/engine/engine.ts';
import { kindHandler } from '../../shared/engine/event-handler.ts';
import { attributeSchemaKind } from './kind.ts';

await runReconciling('attribute-schema', ({ config, io }) => ({
  '/': kindHandler('LldapAttributeSchema', createEngine(attributeSchemaKind, io, config)),
}));
