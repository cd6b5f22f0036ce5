import { strict as assert } from 'node:assert';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { API_GROUP } from '../../shared/constants.ts';
import { PLURALS } from '../../shared/kube/resources.ts';
import { CRD_FOLDER } from '../local/kube/crds.ts';

interface Schema {
  type: string;
  description?: string;
  enum?: string[];
  format?: string;
  maxLength?: number;
  maxItems?: number;
  properties?: Record<string, Schema>;
  items?: Schema;
  'x-kubernetes-validations'?: { rule: string; message?: string; messageExpression?: string }[];
}

interface Definition {
  metadata: { name: string };
  spec: {
    names: { kind: string; plural: string };
    versions: { schema: { openAPIV3Schema: { properties: { spec: Schema; status: Schema } } } }[];
  };
}

const definitions = Object.keys(PLURALS).map(
  (kind): Definition => parse(readFileSync(join(CRD_FOLDER, `${kind.toLowerCase()}.yaml`), 'utf8')),
);

function partsOf(definition: Definition): { spec: Schema; status: Schema } {
  const [version] = definition.spec.versions;
  assert.ok(version);
  return version.schema.openAPIV3Schema.properties;
}

/** The schema and all below it, with their paths. */
function all(path: string, schema: Schema): [string, Schema][] {
  const below = Object.entries(schema.properties ?? {}).flatMap(([name, property]) => all(`${path}.${name}`, property));
  return [[path, schema], ...below, ...(schema.items ? all(`${path}[]`, schema.items) : [])];
}

describe('the files of the kinds', () => {
  it('have the names that events and URLs are made from', () => {
    const names = definitions.map(({ metadata, spec }) => [spec.names.kind, spec.names.plural, metadata.name]);
    assert.deepEqual(
      names,
      Object.entries(PLURALS).map(([kind, plural]) => [kind, plural, `${plural}.${API_GROUP}`]),
    );
  });

  it('have the common part of the status in the same words, but for the types of conditions', () => {
    const common = definitions.map((definition) => {
      const { observedGeneration, lastHandledReconcileAt, retry, conditions } = partsOf(definition).status.properties ?? {};
      const { type: _differs, ...condition } = conditions?.items?.properties ?? {};
      return { observedGeneration, lastHandledReconcileAt, retry, conditions: { ...conditions, items: condition } };
    });
    for (const other of common) assert.deepEqual(other, common[0]);
  });

  for (const definition of definitions) {
    const { kind } = definition.spec.names;
    const schemas = Object.entries(partsOf(definition)).flatMap(([name, schema]) => all(name, schema));

    it(`bound every text and every list of an ${kind}`, () => {
      const unbounded = schemas.filter(([, { type, ...rest }]) =>
        type === 'array' ? rest.maxItems === undefined : type === 'string' && !rest.enum && !rest.format && rest.maxLength === undefined,
      );
      assert.deepEqual(unbounded, []);
    });

    it(`have a sentence for every rule of an ${kind}`, () => {
      const rules = schemas.flatMap(([, schema]) => schema['x-kubernetes-validations'] ?? []);
      assert.deepEqual(
        rules.filter(({ message, messageExpression }) => message === undefined && messageExpression === undefined),
        [],
      );
    });
  }
});
