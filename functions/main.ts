import { enableCompileCache } from 'node:module';

/** The image's command: starts the function that its argument names. */

// Compiled code beside the bundles, written at the first start. The image contains it, since its file system is read-only.
enableCompileCache({ directory: `${import.meta.dirname}/.cache`, portable: true });

const name = process.argv[2] ?? '';
if (name === 'call-startup') await import('./call-startup/main.ts');
else {
  const { FUNCTIONS } = await import('./all.ts');
  if (Object.hasOwn(FUNCTIONS, name)) await FUNCTIONS[name]?.();
  else {
    process.stderr.write(`"${name}" is not a function: give one of ${[...Object.keys(FUNCTIONS), 'call-startup'].join(', ')}.\n`);
    process.exitCode = 1;
  }
}
