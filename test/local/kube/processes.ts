/**
 * Child processes that never outlive this one, however it ends, SIGKILL included: a small shell beside them reads from
 * a pipe that closes when we are gone, then kills them and removes their folder. It is detached, as they are, so that
 * Ctrl-C in a terminal reaches this process alone and the order of things stays ours.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { open, readFile } from 'node:fs/promises';
import { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const GUARD = `trap '' INT TERM HUP
while read -r line; do pids=$line; done
[ -z "$pids" ] || kill -9 $pids
for _ in 1 2 3 4 5; do rm -rf -- "$0" && break; sleep 0.2; done`;

const STOPS_WITHIN_MS = 20_000;

export interface Daemon {
  /** Undefined while it runs; then why it doesn't, for people. */
  ended(): string | undefined;
  /** The last lines that it wrote. */
  lastWords(): Promise<string>;
  /** Sends SIGTERM, waits for the end, and sends SIGKILL when that takes too long. */
  stop(): Promise<void>;
}

/** Daemons in a folder of their own, which vanishes together with them. */
export class ProcessGroup {
  readonly #guard: ChildProcess;
  readonly #running = new Set<number>();

  /** @param directory exists, belongs to this group alone and is removed at the end */
  constructor(directory: string) {
    this.#guard = spawn('sh', ['-c', GUARD, directory], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
    // Nothing here keeps a finished test run from exiting: the guard tidies up then.
    this.#guard.unref();
    if (this.#guard.stdin instanceof Socket) this.#guard.stdin.unref();
  }

  /** Starts a program whose output goes to the file `log`. */
  async start(command: string, args: string[], log: string): Promise<Daemon> {
    const output = await open(log, 'a', 0o600);
    try {
      const child = spawn(command, args, { detached: true, stdio: ['ignore', output.fd, output.fd] });
      await once(child, 'spawn');
      child.unref();
      return this.#watch(child, command, log);
    } finally {
      await output.close();
    }
  }

  /** Kills what runs and removes the folder. */
  async end(): Promise<void> {
    this.#guard.ref();
    const gone = this.#guard.exitCode === null ? once(this.#guard, 'exit') : undefined;
    this.#guard.stdin?.end();
    await gone;
  }

  #watch(child: ChildProcess, command: string, log: string): Daemon {
    const pid = child.pid ?? 0;
    const exited = once(child, 'exit');
    const ended = () =>
      child.exitCode === null && child.signalCode === null ? undefined : `exit code ${child.exitCode ?? child.signalCode}`;
    const lastWords = async () => (await readFile(log, 'utf8')).trimEnd().split('\n').slice(-5).join('\n');
    this.#running.add(pid);
    this.#tellGuard();
    child.once('exit', () => {
      this.#running.delete(pid);
      this.#tellGuard();
    });
    const stop = async () => {
      if (ended() !== undefined) return;
      child.ref();
      child.kill('SIGTERM');
      const patience = new AbortController();
      await Promise.race([
        exited,
        sleep(STOPS_WITHIN_MS, undefined, { signal: patience.signal }).then(
          () => child.kill('SIGKILL'),
          () => undefined,
        ),
      ]);
      patience.abort();
      await exited;
    };
    return { ended: () => (ended() === undefined ? undefined : `${command}: ${ended()}`), lastWords, stop };
  }

  /** The whole truth each time: a pid that is free again must not be killed later. */
  #tellGuard(): void {
    if (this.#guard.stdin?.writable) this.#guard.stdin.write(`${[...this.#running].join(' ')}\n`);
  }
}
