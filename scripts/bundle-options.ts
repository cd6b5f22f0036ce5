import type { BuildOptions } from 'esbuild';

/** How a function is bundled, whatever is in it. */
export const BUNDLE: BuildOptions = {
  outExtension: { '.js': '.mjs' },
  bundle: true,
  splitting: true,
  platform: 'node',
  target: 'node24',
  format: 'esm',
  // Not the identifiers: the log's stack traces name functions, and esbuild's own way to keep names runs at every closure.
  minifyWhitespace: true,
  minifySyntax: true,
  // All that a bundle requires is Node's own.
  banner: { js: 'const require = process.getBuiltinModule;' },
  logLevel: 'warning',
};
