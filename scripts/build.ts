import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
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

/** What packages import and nothing here calls. Most of it would run at every cold start. */
const UNUSED = [
  // client-node's models, a megabyte, and its HTTP client.
  './gen/index.js',
  'undici',
  // express's charsets, query strings and static files: a body here is bytes or JSON, and no path has a query.
  'iconv-lite',
  'qs',
  'send',
  'serve-static',
];
/** All media types of the functions' answers, of the 2,500 that express would sort at every start. */
const MEDIA_TYPES = ['application/json', 'text/plain'];

/** Replaces {@link UNUSED} by what throws when it is used. */
const unused: Plugin = {
  name: 'unused',
  setup: ({ onLoad, onResolve }) => {
    onResolve({ filter: /./ }, ({ path }) => (UNUSED.includes(path) ? { path, namespace: 'unused' } : undefined));
    onLoad({ filter: /./, namespace: 'unused' }, ({ path }) => ({
      contents: `const fail = () => { throw new Error('${path} is not part of this bundle'); }; module.exports = new Proxy(fail, { get: fail });`,
    }));
    onLoad({ filter: /mime-db\/db\.json$/ }, async ({ path }) => {
      const types = JSON.parse(await readFile(path, 'utf8'));
      return { contents: JSON.stringify(Object.fromEntries(MEDIA_TYPES.map((type) => [type, types[type]]))), loader: 'json' };
    });
  },
};

const BUILTIN_IMPORT = /\bimport(\{[^}]*\}|\*as [\w$]+ | [\w$]+ )from"([^"./][^"]*)"/g;

/**
 * Gets Node's own modules without an ES import, which reads all exports of a module and makes Node load what is behind them:
 * HTTP/2 and fetch for `node:http`, workers for `node:util`.
 */
function withoutBuiltinImports(code: string): string {
  return code.replace(BUILTIN_IMPORT, (_, names: string, module: string) => {
    const binding = names.startsWith('{') ? names.replaceAll(' as ', ':') : names.replace('*as', '');
    return `var ${binding}=process.getBuiltinModule("${module}")`;
  });
}

const options: BuildOptions = {
  ...BUNDLE,
  entryPoints: [{ in: 'functions/main.ts', out: 'main' }],
  outdir: 'dist',
  chunkNames: 'chunks/[name]-[hash]',
  legalComments: 'linked',
  plugins: [validators, unused],
};

// Chunks are named by their content; the folder's other files belong to a release.
await rm('dist/chunks', { recursive: true, force: true });
await mkdir('dist/chunks', { recursive: true });
const { outputFiles } = await build({ ...options, write: false });
for (const { path, text } of outputFiles) await writeFile(path, path.endsWith('.mjs') ? withoutBuiltinImports(text) : text);
