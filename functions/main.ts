import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { Script } from 'node:vm';

/** The image's command: starts the function that its argument names. */

const name = process.argv[2] ?? '';
const cache = `${__dirname}/.cache/${name}`;
const loaded = new Map<string, object>();

/**
 * What the bundle requires: a module of Node, or another part of the bundle.
 *
 * A part runs with the code that V8 had compiled of it when `scripts/warm-up.ts` ran the same function. Node's own compile
 * cache contains only what is compiled before a file runs, and compiling the rest took a third of a cold start.
 */
function load(id: string): object {
  return process.getBuiltinModule(id) ?? loaded.get(id) ?? run(id);
}

function run(id: string): object {
  const filename = `${__dirname}/parts/${id}.cjs`;
  const compiled = `${cache}/${id}`;
  // The bundler escapes everything beyond ASCII.
  const script = new Script(readFileSync(filename, 'latin1'), {
    filename,
    ...(existsSync(compiled) && { cachedData: readFileSync(compiled) }),
  });
  if (process.env.WRITE_COMPILE_CACHE) {
    process.once('exit', () => {
      mkdirSync(cache, { recursive: true });
      writeFileSync(compiled, script.createCachedData());
    });
  }
  const module = { exports: {} };
  script.runInThisContext()(load, module, module.exports);
  loaded.set(id, module.exports);
  return module.exports;
}

if (name === 'call-startup') load(name);
else {
  const { FUNCTIONS } = load('functions') as typeof import('./all.ts');
  if (Object.hasOwn(FUNCTIONS, name)) void FUNCTIONS[name]?.();
  else {
    process.stderr.write(`"${name}" is not a function: give one of ${[...Object.keys(FUNCTIONS), 'call-startup'].join(', ')}.\n`);
    process.exitCode = 1;
  }
}
