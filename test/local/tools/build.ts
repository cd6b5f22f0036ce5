/**
 * Builds kube-apiserver, kubectl and etcd, and kn for the tests that use it, from the Go modules that `go.mod` beside this
 * file pins: once per user, into a cache outside the checkout. Needs Go and the module proxy; no C compiler, no container,
 * no cluster.
 *
 * - A first build takes some minutes and says what it is doing; after that the answer is instant.
 * - The binaries of one call appear all at once or not at all (built aside, then renamed).
 * - Each build has 100 to 200 MB and a folder of its own; what no checkout uses any more may simply be deleted.
 * - Two processes that start together build once. A builder that dies leaves nothing that has to be cleaned by hand.
 */
import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

export interface Tools {
  apiserver: string;
  etcd: string;
  kubectl: string;
}

const SOURCE = import.meta.dirname;
const MINIMUM_GO = { major: 1, minor: 26 };
const PACKAGES: Record<keyof Tools, string> = {
  apiserver: 'k8s.io/kubernetes/cmd/kube-apiserver',
  kubectl: 'k8s.io/kubernetes/cmd/kubectl',
  etcd: 'go.etcd.io/etcd/server/v3',
};
const ALL_TOOLS = Object.keys(PACKAGES) as (keyof Tools)[];
/** Knative's client, and the plugin that is its `kn event`. */
const KN_PACKAGES = ['knative.dev/client/cmd/kn', 'knative.dev/kn-plugin-event/cmd/kn-event'];
/** Without cgo the result doesn't depend on the machine's C compiler and headers, or on whether it has any. */
const ENVIRONMENT = { CGO_ENABLED: '0', GOTOOLCHAIN: 'local', GOWORK: 'off' };
const PROGRESS_EVERY_MS = 10_000;
const HEARTBEAT_EVERY_MS = 2_000;
const LOCK_IS_STALE_AFTER_MS = 15_000;

type Say = (line: string) => void;

/**
 * The paths of the binaries in the pinned versions. Builds them first if the cache does not have them.
 *
 * @param say receives a line of progress now and then during a build
 * @param wanted which of them to build
 * @throws Error with one line that says what to install, when Go is missing or too old; with the compiler's last lines, when the build fails
 */
export async function ensureTools(
  say: Say = (line) => process.stderr.write(`${line}\n`),
  wanted: readonly (keyof Tools)[] = ALL_TOOLS,
): Promise<Tools> {
  const mod = await readFile(join(SOURCE, 'go.mod'), 'utf8');
  const tools = ALL_TOOLS.filter((tool) => wanted.includes(tool));
  const nameOf = (tool: keyof Tools) => (tool === 'apiserver' ? 'kube-apiserver' : tool);
  const versionOf = (tool: keyof Tools) => pinned(mod, tool === 'etcd' ? 'go.etcd.io/etcd/server/v3' : 'k8s.io/kubernetes');
  const title = tools.map((tool) => `${nameOf(tool)} ${versionOf(tool)}`).join(', ');
  const home = await ensureBuilt({ what: 'the local API server', packages: tools.map((tool) => PACKAGES[tool]), title }, say);
  return { apiserver: join(home, 'kube-apiserver'), etcd: join(home, 'etcd'), kubectl: join(home, 'kubectl') };
}

/**
 * The path of `kn`, whose plugin for `kn event` lies beside it: with its folder on the PATH it finds it. Built like the
 * others, but only where it is asked for.
 * @throws Error as {@link ensureTools} does
 */
export async function ensureKn(say: Say = (line) => process.stderr.write(`${line}\n`)): Promise<string> {
  const mod = await readFile(join(SOURCE, 'go.mod'), 'utf8');
  return join(await ensureBuilt({ what: 'kn', packages: KN_PACKAGES, title: `kn ${pinned(mod, 'knative.dev/client')}` }, say), 'kn');
}

/** @returns the folder of the binaries */
async function ensureBuilt(program: Program, say: Say): Promise<string> {
  const recipe = await readRecipe(program);
  const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'lldap-knative-operator');
  const home = join(cache, recipe.key);
  if (existsSync(home)) return home;
  await mkdir(cache, { recursive: true });
  await withLock(`${home}.lock`, say, async () => {
    if (!existsSync(home)) await build(recipe, home, say);
  });
  return home;
}

interface Program {
  /** In a word, for people. */
  what: string;
  packages: string[];
  /** What is built, with its versions. */
  title: string;
}

interface Recipe extends Program {
  /** Names what determines the result: sources, flags, compiler, platform. */
  key: string;
  args: string[];
}

async function readRecipe(program: Program): Promise<Recipe> {
  const [go, mod, sum] = await Promise.all([
    goPlatform(),
    readFile(join(SOURCE, 'go.mod'), 'utf8'),
    readFile(join(SOURCE, 'go.sum'), 'utf8'),
  ]);
  const kubernetes = pinned(mod, 'k8s.io/kubernetes');
  const [, major = '', minor = ''] = /^v(\d+)\.(\d+)/.exec(kubernetes) ?? [];
  // An unstamped build calls itself v0.0.0-master, and kubectl then warns of version skew.
  const stamp = Object.entries({ gitVersion: kubernetes, gitMajor: major, gitMinor: minor, gitTreeState: 'clean' })
    .map(([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`)
    .join(' ');
  const args = ['build', '-mod=readonly', '-buildvcs=false', '-v', `-ldflags=-s -w ${stamp}`];
  const key = createHash('sha256')
    .update(JSON.stringify([go, args, program.packages, ENVIRONMENT, mod, sum]))
    .digest('hex')
    .slice(0, 16);
  return { ...program, key, args };
}

function pinned(mod: string, module: string): string {
  const version = new RegExp(`^\\s*(?:require )?${module.replaceAll('.', '\\.')} (v\\S+)`, 'm').exec(mod)?.[1];
  if (version === undefined) throw new Error(`test/local/tools/go.mod requires no ${module}`);
  return version;
}

/** Go's own words for its version and platform, e.g. `go1.26.8 linux amd64`. */
async function goPlatform(): Promise<string> {
  const { stdout } = await promisify(execFile)('go', ['env', 'GOVERSION', 'GOOS', 'GOARCH'], {
    env: { ...process.env, ...ENVIRONMENT },
  }).catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT')
      throw new Error(needGo('no "go" command was found on the PATH'));
    throw error;
  });
  const [version = ''] = stdout.split('\n');
  if (!isNewEnough(version)) throw new Error(needGo(`the "go" command on the PATH is ${version}`));
  return stdout.trim().replaceAll('\n', ' ');
}

/** @param version as `go env GOVERSION` says it, e.g. `go1.26.8` or `devel go1.27-abc` */
export function isNewEnough(version: string): boolean {
  const [, major = '0', minor = '0'] = /go(\d+)\.(\d+)/.exec(version) ?? [];
  if (Number(major) !== MINIMUM_GO.major) return Number(major) > MINIMUM_GO.major;
  return Number(minor) >= MINIMUM_GO.minor;
}

function needGo(finding: string): string {
  return `The local API server is built from source and needs Go ${MINIMUM_GO.major}.${MINIMUM_GO.minor} or newer: ${finding}. Install it and put it first on the PATH.`;
}

async function build(recipe: Recipe, home: string, say: Say): Promise<void> {
  await removeUnfinished(home);
  const aside = await mkdtemp(`${home}.unfinished-`);
  const started = Date.now();
  const progress = { compiled: 0, current: 'starting' };
  const line = () => `building ${recipe.title}: ${seconds(started)} s, ${progress.compiled} packages compiled, now ${progress.current}`;
  say(`building ${recipe.title} from source, which takes about ten minutes on two cores the first time`);
  const ticker = setInterval(() => say(line()), PROGRESS_EVERY_MS);
  try {
    await goBuild(recipe.what, [...recipe.args, '-o', `${aside}/`, ...recipe.packages], (output) => {
      const download = /^go: (downloading \S+)/.exec(output)?.[1];
      if (!download) progress.compiled += 1;
      progress.current = download ?? `compiling ${output}`;
    });
    // Go names a binary after its import path's last part that isn't a version.
    if (existsSync(join(aside, 'server'))) await rename(join(aside, 'server'), join(aside, 'etcd'));
    await rename(aside, home);
  } finally {
    clearInterval(ticker);
    await rm(aside, { recursive: true, force: true });
  }
  say(`built ${recipe.title} in ${seconds(started)} s, kept in ${home}`);
}

function seconds(since: number): number {
  return Math.round((Date.now() - since) / 1000);
}

/** What a builder that died left behind. Only the holder of the lock comes here. */
async function removeUnfinished(home: string): Promise<void> {
  const cache = join(home, '..');
  const prefix = `${home}.unfinished-`;
  for (const name of await readdir(cache)) {
    if (join(cache, name).startsWith(prefix)) await rm(join(cache, name), { recursive: true, force: true });
  }
}

/** Runs the compiler and hands over its output line by line (with `-v`: one package a line). */
async function goBuild(what: string, args: string[], onLine: (line: string) => void): Promise<void> {
  const child = spawn('go', args, { cwd: SOURCE, env: { ...process.env, ...ENVIRONMENT }, stdio: ['ignore', 'ignore', 'pipe'] });
  const ended = new Promise<number | null>((resolve, reject) => child.once('error', reject).once('close', resolve));
  let partial = '';
  const tail: string[] = [];
  for await (const chunk of child.stderr.setEncoding('utf8')) {
    const lines = `${partial}${chunk}`.split('\n');
    partial = lines.pop() ?? '';
    for (const text of lines) {
      tail.push(text);
      onLine(text);
    }
    tail.splice(0, tail.length - 20);
  }
  const code = await ended;
  if (code !== 0) throw new Error(`go build of ${what} failed with exit code ${code}:\n${[...tail, partial].join('\n')}`);
}

/**
 * Lets one process at a time do the work. The holder's sign of life is the lock's modification time, so a lock whose
 * holder died is taken over after a short while, and a process id that is in use again deceives nobody. Should a holder
 * that was only frozen wake up later, both build, which costs time and breaks nothing.
 */
async function withLock(lock: string, say: Say, work: () => Promise<void>): Promise<void> {
  let waiting = false;
  while (!(await acquire(lock))) {
    if (!waiting) say('waiting for another process that builds the same');
    waiting = true;
    await sleep(500);
  }
  const heartbeat = setInterval(() => {
    const now = new Date();
    // The lock of a holder that was taken for dead is gone: nothing to keep alive then.
    utimes(lock, now, now).catch(() => clearInterval(heartbeat));
  }, HEARTBEAT_EVERY_MS);
  try {
    await work();
  } finally {
    clearInterval(heartbeat);
    await rm(lock, { force: true });
  }
}

async function acquire(lock: string): Promise<boolean> {
  try {
    await writeFile(lock, `${process.pid}\n`, { flag: 'wx' });
    return true;
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
  }
  const age = await stat(lock).then(
    ({ mtimeMs }) => Date.now() - mtimeMs,
    () => 0, // released meanwhile: the next round gets it
  );
  if (age > LOCK_IS_STALE_AFTER_MS) await rm(lock, { force: true });
  return false;
}

if (import.meta.main) {
  try {
    console.log(JSON.stringify(await ensureTools(), undefined, 2));
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
}
