import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const SCRIPT = `trap '' INT TERM HUP
while read -r line; do pids=$line; done
[ -z "$pids" ] || kill -9 $pids
rm -rf -- "$0"`;

/**
 * Sees to it that nothing started here outlives this process, however that ends: a small shell reads from a pipe that
 * closes with it, then kills what still runs and removes the folder.
 */
class Guard {
  /** For whatever is to vanish with this process. */
  readonly directory = mkdtempSync(join(tmpdir(), 'local-knative-'));
  readonly #shell: ChildProcess;
  readonly #pids = new Set<number>();

  constructor() {
    this.#shell = spawn('sh', ['-c', SCRIPT, this.directory], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
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

  /** All of them each time: a pid that is free again must not be killed later. */
  #tell(): void {
    this.#shell.stdin?.write(`${[...this.#pids].join(' ')}\n`);
  }
}

let guard: Guard | undefined;

/** The one guard of this process. */
export function theGuard(): Guard {
  guard ??= new Guard();
  return guard;
}
