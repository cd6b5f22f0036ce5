import type { BuildOptions } from 'esbuild';

/** How a function is bundled, whatever is in it. */
export const BUNDLE: BuildOptions = {
  outExtension: { '.js': '.cjs' },
  bundle: true,
  platform: 'node',
  target: 'node24',
  // Not as ES modules: importing a module of Node reads all of its exports, which loads HTTP/2, fetch and workers.
  format: 'cjs',
  supported: { 'dynamic-import': false },
  // Not the identifiers: the log's stack traces name functions, and esbuild's own way to keep names runs at every closure.
  minifyWhitespace: true,
  minifySyntax: true,
  logLevel: 'warning',
};

/** The same for a file that `functions/main.ts` loads. */
export const PART: BuildOptions = {
  ...BUNDLE,
  // Packages make a `require` of it, for Node's own modules, which need no place to be found from.
  define: { 'import.meta.url': '"file:///"' },
  banner: { js: '(function (require, module, exports) {' },
  footer: { js: '})' },
};
