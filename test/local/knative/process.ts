import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { theGuard } from '../guard.ts';
import { send } from './http.ts';

/** What a process ended with. */
export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

const LOOKS_AGAIN_AFTER_MS = 15;

/** One process with its output, line by line. */
export class LocalProcess {
  readonly pid: number;
  /** Settles when the process is gone and its output is complete. */
  readonly exited: Promise<Exit>;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, onLine: (line: string) => void) {
    this.#child = child;
    this.pid = child.pid ?? 0;
    for (const stream of [child.stdout, child.stderr]) if (stream) readLines(stream, onLine);
    this.exited = once(child, 'close').then(([code, signal]: Exit[keyof Exit][]) => exitOf(code, signal));
  }

  /**
   * @param env the whole environment
   * @throws the error of the start, e.g. ENOENT
   */
  static async start(
    [program = '', ...args]: string[],
    env: Record<string, string>,
    onLine: (line: string, pid: number) => void,
  ): Promise<LocalProcess> {
    // Detached, so that Ctrl-C in a terminal reaches this process alone and the order of things stays ours.
    const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    theGuard().watch(child);
    await once(child, 'spawn');
    return new LocalProcess(child, (line) => onLine(line, child.pid ?? 0));
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** SIGTERM, and SIGKILL when the grace period is over. @returns whether the process went by itself */
  async terminate(graceMs: number): Promise<boolean> {
    const inTime = new AbortController();
    this.#child.kill('SIGTERM');
    const late = sleep(graceMs, true, { signal: inTime.signal, ref: false }).catch(() => false);
    const killed = await Promise.race([late, this.exited.then(() => false)]);
    inTime.abort();
    if (killed) this.#child.kill('SIGKILL');
    await this.exited;
    return !killed;
  }

  /** Resolves when the path answers with 2xx; rejects when the process ends before. */
  async ready(url: string): Promise<void> {
    let over: Exit | undefined;
    void this.exited.then((exit) => {
      over = exit;
    });
    while (!over) {
      const status = await send('GET', url, {}, Buffer.alloc(0)).then(
        (answer) => answer.status,
        () => 0,
      );
      if (status >= 200 && status < 300) return;
      await sleep(LOOKS_AGAIN_AFTER_MS);
    }
    throw new Error(`ended with ${over.code ?? over.signal} before it was ready`);
  }
}

function readLines(stream: Readable, onLine: (line: string) => void): void {
  createInterface({ input: stream }).on('line', onLine);
}

function exitOf(code: Exit[keyof Exit] | undefined, signal: Exit[keyof Exit] | undefined): Exit {
  return { code: typeof code === 'number' ? code : null, signal: typeof signal === 'string' ? signal : null };
}
