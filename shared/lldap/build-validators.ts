import { Ajv } from 'ajv';
import standaloneCode from 'ajv/dist/standalone/index.js';
import { AJV_OPTIONS, SCHEMAS } from './schemas.ts';

/**
 * The source text of an ES module that exports what `validate.ts` exports, without ajv: for the build, which puts it
 * in that file's place.
 */
export async function standaloneValidators(): Promise<string> {
  const ajv = new Ajv({ ...AJV_OPTIONS, code: { source: true, esm: true } });
  for (const [name, schema] of Object.entries(SCHEMAS)) ajv.addSchema(schema, name);
  return standaloneCode.default(ajv, Object.fromEntries(Object.keys(SCHEMAS).map((name) => [name, name])));
}
