import { setTimeout as sleep } from 'node:timers/promises';
import { portForChild } from '../ports.ts';
import { type Exit, LocalProcess } from './process.ts';
import { type Host, Sandbox } from './sandbox.ts';
import type { FunctionModel } from './workload.ts';

/** Instead of the 30 s that a real pod still gets requests after its end was decided. */
const DRAIN_MS = 100;

/** One pod of a Service: its process and what surrounds it. */
export class Instance {
  readonly url: string;
  readonly pid: number;
  readonly exited: Promise<Exit>;
  inFlight = 0;
  readonly #process: LocalProcess;
  readonly #sandbox: Sandbox;
  readonly #model: FunctionModel;
  readonly #host: Host;
  #asked = false;

  private constructor(process: LocalProcess, url: string, sandbox: Sandbox, model: FunctionModel, host: Host) {
    this.#process = process;
    this.pid = process.pid;
    this.url = url;
    this.#sandbox = sandbox;
    this.#model = model;
    this.#host = host;
    this.exited = process.exited.then((exit) => this.#ended(exit));
  }

  /**
   * Ready to serve when this returns.
   * @throws Error when the process ends before it is ready
   */
  static async start(model: FunctionModel, host: Host, signal: AbortSignal): Promise<Instance> {
    const { name, args } = model.workload;
    const started = performance.now();
    const sandbox = await Sandbox.prepare(model.workload, host, signal);
    const port = await portForChild();
    const env = { ...sandbox.env, PORT: String(port), K_SERVICE: name, K_CONFIGURATION: name, K_REVISION: `${name}-local` };
    const tell = (line: string, pid: number) => host.story.tell({ what: 'log', from: name, pid, line });
    const process = await LocalProcess.start(host.command(args), env, tell).catch(async (error: unknown) => {
      await sandbox.remove();
      throw error;
    });
    const instance = new Instance(process, `http://127.0.0.1:${port}`, sandbox, model, host);
    const giveUp = () => process.signal('SIGKILL');
    signal.addEventListener('abort', giveUp);
    await process.ready(`${instance.url}${model.readinessPath}`).finally(() => signal.removeEventListener('abort', giveUp));
    host.story.tell({ what: 'ready', service: name, pid: process.pid, ms: performance.now() - started });
    return instance;
  }

  signal(signal: NodeJS.Signals): void {
    this.#process.signal(signal);
  }

  /** Drain, SIGTERM, and SIGKILL when the grace period is over. Resolves when the process is gone. */
  async retire(why: 'idle' | 'rollout' | 'eviction' | 'end'): Promise<void> {
    const { name } = this.#model.workload;
    const { story } = this.#host;
    this.#asked = true;
    if (this.inFlight > 0 && why !== 'end') await sleep(DRAIN_MS);
    story.tell({ what: 'stopping', service: name, pid: this.pid, why });
    const started = performance.now();
    await this.#process.terminate(this.#model.timeoutMs);
    const exit = await this.exited;
    story.tell({ what: 'stopped', service: name, pid: this.pid, ...exit, ms: performance.now() - started });
  }

  async #ended(exit: Exit): Promise<Exit> {
    if (!this.#asked) this.#host.story.tell({ what: 'crashed', service: this.#model.workload.name, pid: this.pid, ...exit });
    await this.#sandbox.remove();
    return exit;
  }
}
