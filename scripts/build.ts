import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type BuildOptions, build, type Plugin } from 'esbuild';
import { standaloneValidators } from '../shared/lldap/build-validators.ts';
import { BUNDLE } from './bundle-options.ts';

/** Bundles each function into `dist/`, so that a cold start reads few files and only the code that it uses. */

/** Generates the validators with ajv, because compiling them at each start would take longer than anything else. */
const validators: Plugin = {
  name: 'validators',
  setup: ({ onLoad }) => {
    onLoad({ filter: /shared\/lldap\/validate\.ts$/ }, async () => ({
      contents: await standaloneValidators(),
      resolveDir: join(import.meta.dirname, '..'),
    }));
  },
};

/** Removes what client-node imports and nothing here calls: its models and its HTTP client, a megabyte in every cold start. */
const unused: Plugin = {
  name: 'unused',
  setup: ({ onLoad, onResolve }) => {
    onLoad({ filter: /client-node\/dist\/gen\/index\.js$/ }, () => ({ contents: stub('createConfiguration', 'ServerConfiguration') }));
    onResolve({ filter: /^undici$/ }, ({ importer }) =>
      importer.includes('/client-node/') ? { path: 'undici', namespace: 'unused' } : undefined,
    );
    onLoad({ filter: /^undici$/, namespace: 'unused' }, () => ({ contents: stub('Agent', 'ProxyAgent') }));
  },
};

/** An ES import of `node:http` reads all of its exports, some of which load HTTP/2 and fetch. A `require` does not. */
const required: Plugin = {
  name: 'required',
  setup: ({ onLoad, onResolve }) => {
    onResolve({ filter: /^(node:)?https?$/ }, ({ path, kind }) =>
      kind === 'import-statement' ? { path: path.replace(/^(node:)?/, 'node:'), namespace: 'required' } : undefined,
    );
    onLoad({ filter: /.*/, namespace: 'required' }, ({ path }) => ({ contents: `module.exports = require('${path}');` }));
  },
};

function stub(...names: string[]): string {
  return names
    .map((name) => `export class ${name} { constructor() { throw new Error('${name} is not part of this bundle'); } }`)
    .join('\n');
}

const options: BuildOptions = {
  ...BUNDLE,
  entryPoints: [{ in: 'functions/main.ts', out: 'main' }],
  outdir: 'dist',
  chunkNames: 'chunks/[name]-[hash]',
  legalComments: 'linked',
  plugins: [validators, unused, required],
};

// Chunks are named by their content; the folder's other files belong to a release.
await rm('dist/chunks', { recursive: true, force: true });
await build(options);
