import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const SCRIPT = `trap '' INT TERM HUP
while read -r line; do pids=$line; done
[ -z "$pids" ] || kill -9 $pids
for _ in 1 2 3 4 5; do rm -rf -- "$0" && break; sleep 0.2; done`;

/**
 * Sees to it that nothing it watches outlives this process, however that ends, SIGKILL included: a small shell reads
 * from a pipe that closes with this process, then kills what still runs and removes the folder. It is detached, so that
 * Ctrl-C in a terminal reaches this process alone and the order of things stays ours.
 */
export class Guard {
  /** For whatever is to vanish with this process. */
  readonly directory: string;
  readonly #shell: ChildProcess;
  readonly #pids = new Set<number>();

  /** @param directory exists, belongs to this guard alone and is removed at the end */
  constructor(directory: string) {
    this.directory = directory;
    this.#shell = spawn('sh', ['-c', SCRIPT, directory], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
    // Nothing here keeps a finished test run from exiting: the shell tidies up then.
    this.#shell.unref();
    if (this.#shell.stdin instanceof Socket) this.#shell.stdin.unref();
  }

  watch(child: ChildProcess): void {
    const { pid } = child;
    if (pid === undefined) return;
    this.#pids.add(pid);
    this.#tell();
    child.once('exit', () => {
      this.#pids.delete(pid);
      this.#tell();
    });
  }

  /** Kills what runs and removes the folder. */
  async end(): Promise<void> {
    this.#shell.ref();
    const gone = this.#shell.exitCode === null ? once(this.#shell, 'exit') : undefined;
    this.#shell.stdin?.end();
    await gone;
  }

  /** All of them each time: a pid that is free again must not be killed later. */
  #tell(): void {
    if (this.#shell.stdin?.writable) this.#shell.stdin.write(`${[...this.#pids].join(' ')}\n`);
  }
}

let guard: Guard | undefined;

/** The guard of what belongs to this process alone. */
export function theGuard(): Guard {
  guard ??= new Guard(mkdtempSync(join(tmpdir(), 'local-knative-')));
  return guard;
}
