import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { open, readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { Guard } from '../guard.ts';

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
  readonly #guard: Guard;

  /** @param directory exists, belongs to this group alone and is removed at the end */
  constructor(directory: string) {
    this.#guard = new Guard(directory);
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
  end(): Promise<void> {
    return this.#guard.end();
  }

  #watch(child: ChildProcess, command: string, log: string): Daemon {
    const exited = once(child, 'exit');
    const ended = () =>
      child.exitCode === null && child.signalCode === null ? undefined : `exit code ${child.exitCode ?? child.signalCode}`;
    const lastWords = async () => (await readFile(log, 'utf8')).trimEnd().split('\n').slice(-5).join('\n');
    this.#guard.watch(child);
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
}
