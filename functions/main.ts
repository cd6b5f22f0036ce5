import { enableCompileCache } from 'node:module';

/** The image's command: starts the function that its argument names. */

// Compiled code beside the bundles, written at the first start. The image contains it, since its file system is read-only.
enableCompileCache({ directory: `${import.meta.dirname}/.cache`, portable: true });

const name = process.argv[2] ?? '';
const bootstrap = () => import('../shared/bootstrap.ts');
const functions: Record<string, () => Promise<unknown>> = {
  user: async () => (await bootstrap()).runReconciling(name, (await import('./user/routes.ts')).routes),
  group: async () => (await bootstrap()).runReconciling(name, (await import('./group/routes.ts')).routes),
  membership: async () => (await bootstrap()).runReconciling(name, (await import('./membership/routes.ts')).routes),
  'attribute-schema': async () => (await bootstrap()).runReconciling(name, (await import('./attribute-schema/routes.ts')).routes),
  startup: async () => (await bootstrap()).runReconciling(name, (await import('./startup/routes.ts')).routes),
  requeue: async () => (await bootstrap()).runFunction(name, (await import('./requeue/routes.ts')).routes),
  'call-startup': () => import('./call-startup/main.ts'),
};

const start = Object.hasOwn(functions, name) ? functions[name] : undefined;
if (start) await start();
else {
  process.stderr.write(`"${name}" is not a function: give one of ${Object.keys(functions).join(', ')}.\n`);
  process.exitCode = 1;
}
