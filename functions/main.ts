import { enableCompileCache } from 'node:module';

/** The image's one command: starts the function that its argument names. */

// Compiled code beside the bundles, made at the first start: where that is read-only, the image brings it along, from another place.
enableCompileCache({ directory: `${import.meta.dirname}/.cache`, portable: true });

const name = process.argv[2] ?? '';
const functions: Record<string, () => Promise<unknown>> = {
  user: () => import('./user/main.ts'),
  group: () => import('./group/main.ts'),
  membership: () => import('./membership/main.ts'),
  'attribute-schema': () => import('./attribute-schema/main.ts'),
  startup: () => import('./startup/main.ts'),
  requeue: () => import('./requeue/main.ts'),
  'call-startup': () => import('./call-startup/main.ts'),
};

const start = Object.hasOwn(functions, name) ? functions[name] : undefined;
if (start) await start();
else {
  process.stderr.write(`"${name}" is no function: name one of ${Object.keys(functions).join(', ')}.\n`);
  process.exitCode = 1;
}
