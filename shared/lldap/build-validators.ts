import { Ajv } from 'ajv';
import standaloneCode from 'ajv/dist/standalone/index.js';
import { AJV_OPTIONS, SCHEMAS } from './schemas.ts';

/**
 * The source of an ES module with the exports of `validate.ts`, without ajv. The build replaces that file by it.
 */
export async function standaloneValidators(): Promise<string> {
  const ajv = new Ajv({ ...AJV_OPTIONS, code: { source: true, esm: true } });
  for (const [name, schema] of Object.entries(SCHEMAS)) ajv.addSchema(schema, name);
  return standaloneCode.default(ajv, Object.fromEntries(Object.keys(SCHEMAS).map((name) => [name, name])));
}
