import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type BuildOptions, build, type Plugin } from 'esbuild';
import { standaloneValidators } from '../shared/lldap/build-validators.ts';

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

/**
 * Removes what packages import and nothing here calls: client-node's models and HTTP client, axios's adapters for fetch,
 * HTTP/2 and forms. Each would load a part of Node, or a megabyte, in every cold start.
 */
const unused: Plugin = {
  name: 'unused',
  setup: ({ onLoad, onResolve }) => {
    onLoad({ filter: /client-node\/dist\/gen\/index\.js$/ }, () => ({ contents: stub('createConfiguration', 'ServerConfiguration') }));
    onLoad({ filter: /axios\/lib\/adapters\/fetch\.js$/ }, () => ({
      contents: 'export const getFetch = () => false; export default false;',
    }));
    onLoad({ filter: /axios\/lib\/utils\.js$/ }, async ({ path }) => ({
      contents: replaced(await readFile(path, 'utf8'), 'G.FormData', 'undefined'),
    }));
    const stubs = [
      { from: 'client-node', name: 'undici', contents: stub('Agent', 'ProxyAgent') },
      { from: 'axios', name: 'http2', contents: 'export default { constants: {} };' },
      { from: 'axios', name: 'form-data', contents: `${stub('FormData')}\nexport default FormData;` },
    ];
    for (const { from, name, contents } of stubs) {
      const filter = new RegExp(`^${name}$`);
      onResolve({ filter }, ({ importer }) => (importer.includes(`/${from}/`) ? { path: name, namespace: `${from}-unused` } : undefined));
      onLoad({ filter, namespace: `${from}-unused` }, () => ({ contents }));
    }
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

/** @throws Error if a new version of a package lacks the text, so that somebody adapts the replacement */
function replaced(source: string, text: string, by: string): string {
  if (!source.includes(text)) throw new Error(`no ${text} in the source to be bundled`);
  return source.replaceAll(text, by);
}

const options: BuildOptions = {
  entryPoints: [{ in: 'functions/main.ts', out: 'main' }],
  outdir: 'dist',
  outExtension: { '.js': '.mjs' },
  bundle: true,
  splitting: true,
  chunkNames: 'chunks/[name]-[hash]',
  platform: 'node',
  target: 'node24',
  format: 'esm',
  minify: true,
  keepNames: true,
  legalComments: 'linked',
  banner: { js: "import { createRequire as bundleRequire } from 'node:module'; const require = bundleRequire(import.meta.url);" },
  plugins: [validators, unused, required],
  logLevel: 'warning',
};

// Chunks are named by their content; the folder's other files belong to a release.
await rm('dist/chunks', { recursive: true, force: true });
await build(options);
