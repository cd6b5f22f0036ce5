import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { build, type Plugin } from 'esbuild';
import { standaloneValidators } from '../shared/lldap/build-validators.ts';
import { BUNDLE, PART } from './bundle-options.ts';

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
/** express's messages for its own developers, for which the package looks at the terminal and its colours. */
const SILENT_DEBUG = 'module.exports = () => () => {};';
/** All media types of the functions' answers, of the 2,500 that express would sort at every start. */
const MEDIA_TYPES = ['application/json', 'text/plain'];

/** Replaces {@link UNUSED} by what throws when it is used, and reduces what is used to what is needed. */
const unused: Plugin = {
  name: 'unused',
  setup: ({ onLoad, onResolve }) => {
    onResolve({ filter: /./ }, ({ path }) => (UNUSED.includes(path) ? { path, namespace: 'unused' } : undefined));
    onLoad({ filter: /./, namespace: 'unused' }, ({ path }) => ({
      contents: `const fail = () => { throw new Error('${path} is not part of this bundle'); }; module.exports = new Proxy(fail, { get: fail });`,
    }));
    onLoad({ filter: /\/debug\/src\/index\.js$/ }, () => ({ contents: SILENT_DEBUG }));
    onLoad({ filter: /mime-db\/db\.json$/ }, async ({ path }) => {
      const types = JSON.parse(await readFile(path, 'utf8'));
      return { contents: JSON.stringify(Object.fromEntries(MEDIA_TYPES.map((type) => [type, types[type]]))), loader: 'json' };
    });
  },
};

/** Files of their own, by the dynamic import that loads each. */
const APART: Record<string, string> = {
  '@kubernetes/client-node/dist/config.js': 'client-node',
  ldapts: 'ldapts',
  './otel.ts': 'otel',
};

const apart: Plugin = {
  name: 'apart',
  setup: ({ onResolve }) => {
    onResolve({ filter: /./ }, ({ path, kind }) =>
      kind === 'dynamic-import' && APART[path] ? { path: APART[path], external: true } : undefined,
    );
  },
};

// The compile cache goes, too: V8 compares no more than the length of what it had compiled.
for (const name of ['parts', '.cache']) await rm(`dist/${name}`, { recursive: true, force: true });
await build({ ...BUNDLE, entryPoints: ['functions/main.ts'], outdir: 'dist' });
await build({
  ...PART,
  entryPoints: {
    functions: 'functions/all.ts',
    'call-startup': 'functions/call-startup/main.ts',
    'client-node': '@kubernetes/client-node/dist/config.js',
    ldapts: 'ldapts',
    otel: 'shared/telemetry/otel.ts',
  },
  outdir: 'dist/parts',
  legalComments: 'linked',
  plugins: [validators, unused, apart],
});
