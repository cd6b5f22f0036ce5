import { rm } from 'node:fs/promises';
import { type BuildOptions, build, type Plugin } from 'esbuild';
import { standaloneValidators } from './shared/lldap/build-validators.ts';

/** Bundles each function into `dist/`, so that a cold start reads few files and only the code that it uses. */

/** The validators as ajv generates them: compiling them at each start would cost more than all else. */
const validators: Plugin = {
  name: 'validators',
  setup: ({ onLoad }) => {
    onLoad({ filter: /shared\/lldap\/validate\.ts$/ }, async () => ({
      contents: await standaloneValidators(),
      resolveDir: import.meta.dirname,
    }));
  },
};

/** client-node's configuration without its models and its own HTTP client, which nothing here calls. */
const slimClientNode: Plugin = {
  name: 'slim-client-node',
  setup: ({ onLoad, onResolve }) => {
    onLoad({ filter: /client-node\/dist\/gen\/index\.js$/ }, () => ({ contents: stub(['createConfiguration', 'ServerConfiguration']) }));
    onResolve({ filter: /^undici$/ }, (args) =>
      args.importer.includes('client-node') ? { path: 'undici', namespace: 'stub' } : undefined,
    );
    onLoad({ filter: /.*/, namespace: 'stub' }, () => ({ contents: stub(['Agent', 'ProxyAgent']) }));
  },
};

function stub(names: string[]): string {
  return names
    .map((name) => `export class ${name} { constructor() { throw new Error('${name} is not part of this bundle'); } }`)
    .join('\n');
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
  plugins: [validators, slimClientNode],
  logLevel: 'warning',
};

await rm('dist', { recursive: true, force: true });
await build(options);
