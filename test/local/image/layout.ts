/**
 * Lays out the image's file tree on this machine, by the steps of the Dockerfile and without a container engine. What differs
 * from an engine: the first stage's base image is this machine with this Node; `npm ci` is the checkout's `node_modules`; and
 * without root's rights every step runs as this user.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, cp, mkdir, mkdtemp, readFile, rm, stat, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { type Dockerfile, expand, parseDockerfile, type Stage, type Step } from './dockerfile.ts';

export interface Image {
  /** The folder that is the image's root. */
  root: string;
  env: Record<string, string>;
  entrypoint: string[];
  /** Numeric. */
  user: number;
  /** The folder in which the first stage left what it built. */
  built: string;
  remove(): Promise<void>;
}

const CONTEXT = join(import.meta.dirname, '../../..');
export const IS_ROOT = process.getuid?.() === 0;

/** @throws Error with the output of a step that fails */
export async function layOutImage(): Promise<Image> {
  const file = parseDockerfile(await readFile(join(CONTEXT, 'Dockerfile'), 'utf8'));
  const folder = await mkdtemp(join(tmpdir(), 'image-'));
  try {
    // Other users run steps and functions in it.
    await chmod(folder, 0o755);
    const builder = new Builder(folder, file);
    for (const stage of file.stages) await builder.build(stage);
    return { ...builder.result(), remove: () => removeTree(folder) };
  } catch (error) {
    await removeTree(folder);
    throw error;
  }
}

async function removeTree(folder: string): Promise<void> {
  // A read-only folder keeps what is in it from anybody but root.
  await run('chmod', ['-R', 'u+w', folder], { cwd: '/', env: {} });
  await rm(folder, { recursive: true, force: true });
}

interface Built {
  root: string;
  workdir: string;
  env: Record<string, string>;
  user: number;
  entrypoint: string[];
}

class Builder {
  readonly #folder: string;
  readonly #file: Dockerfile;
  readonly #stages = new Map<string, Built>();
  #last: Built | undefined;

  constructor(folder: string, file: Dockerfile) {
    this.#folder = folder;
    this.#file = file;
  }

  result(): Omit<Image, 'remove'> {
    const first = this.#stages.get('build');
    if (!this.#last || !first) throw new Error('the Dockerfile has no stage `build` and one after it');
    const { root, env, entrypoint, user } = this.#last;
    return { root, env, entrypoint, user, built: join(first.root, first.workdir) };
  }

  async build(stage: Stage): Promise<void> {
    const base = expand(stage.base, this.#file.args);
    const root = join(this.#folder, stage.name ?? 'image');
    await mkdir(root);
    const below = this.#stages.get(base);
    const built: Built = below ? { ...below, root } : { root, workdir: '/', env: {}, user: 0, entrypoint: [] };
    if (below) await cp(below.root, root, { recursive: true });
    else if (base === this.#file.args.NODE) await this.#lendNode(built);
    else if (base !== 'scratch') throw new Error(`nobody knows here what is in ${base}`);
    for (const step of stage.steps) await this.#take(step, built);
    if (stage.name) this.#stages.set(stage.name, built);
    this.#last = built;
  }

  /** A copy: another user may not reach the checkout's. */
  async #lendNode(built: Built): Promise<void> {
    const bin = join(this.#folder, 'bin');
    await mkdir(bin);
    await cp(process.execPath, join(bin, 'node'));
    built.env.PATH = `${bin}:/usr/bin:/bin`;
  }

  async #take(step: Step, built: Built): Promise<void> {
    const { root } = built;
    switch (step.what) {
      case 'arg':
        built.env[step.name] = step.value ?? this.#file.args[step.name] ?? '';
        return;
      case 'workdir':
        built.workdir = step.path;
        await mkdir(join(root, step.path), { recursive: true });
        return;
      case 'copy':
        for (const source of step.sources) await this.#copy(source, step, built);
        return;
      case 'run':
        return this.#run(step.command, built);
      case 'env':
        Object.assign(built.env, step.variables);
        return;
      case 'user':
        built.user = Number(step.user.split(':')[0]);
        return;
      case 'entrypoint':
        built.entrypoint = step.command;
        return;
    }
  }

  /** A folder's contents, or a file; into a folder where the target ends with a slash. */
  async #copy(source: string, { from, to }: Step & { what: 'copy' }, { root, workdir }: Built): Promise<void> {
    const stage = from ? this.#stages.get(from) : undefined;
    if (from && !stage) throw new Error(`no stage ${from} to copy from`);
    if (!stage) await allowedByDockerignore(source);
    const path = join(stage?.root ?? CONTEXT, source);
    const target = to.startsWith('/') ? join(root, to) : join(root, workdir, to);
    const isFolder = (await stat(path)).isDirectory();
    await mkdir(to.endsWith('/') ? target : dirname(target), { recursive: true });
    await cp(path, !isFolder && to.endsWith('/') ? join(target, basename(source)) : target, { recursive: true });
  }

  async #run(command: string, { root, workdir, env, user }: Built): Promise<void> {
    const cwd = join(root, workdir);
    if (command.startsWith('npm ci ')) return symlink(join(CONTEXT, 'node_modules'), join(cwd, 'node_modules'));
    const identity = IS_ROOT && user !== 0 ? { uid: user, gid: user } : {};
    await run('/bin/sh', ['-c', command], { cwd, env, ...identity });
  }
}

/** Everything is ignored but the names after an exclamation mark. */
async function allowedByDockerignore(source: string): Promise<void> {
  const lines = (await readFile(join(CONTEXT, '.dockerignore'), 'utf8')).split('\n').filter((line) => line && !line.startsWith('#'));
  if (lines[0] !== '*') throw new Error('.dockerignore does not begin with *');
  if (!lines.includes(`!${source.replace(/\/$/, '')}`)) throw new Error(`.dockerignore keeps ${source} from the engine`);
}

interface RunOptions {
  cwd: string;
  env: Record<string, string>;
  uid?: number;
  gid?: number;
}

async function run(program: string, args: string[], options: RunOptions): Promise<void> {
  const child = spawn(program, args, { ...options, env: { PATH: '/usr/bin:/bin', ...options.env }, stdio: ['ignore', 'pipe', 'pipe'] });
  const output: string[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text: string) => output.push(text));
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`${args.join(' ')}: exit code ${code}\n${output.join('')}`);
}
