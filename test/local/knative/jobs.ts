import { LocalProcess } from './process.ts';
import { type Host, Sandbox } from './sandbox.ts';
import { nextRun } from './schedule.ts';
import type { JobModel } from './workload.ts';

export interface JobResult {
  code: number | null;
  /** Both streams, line by line. */
  output: string;
}

/** Longer delays overflow Node's timers. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * A Job, or a CronJob with its schedule. A run is one process: `backoffLimit` and deadlines are the cluster's affair,
 * and a failed run fails at once here, where a test can see it.
 */
export class LocalJob {
  readonly name: string;
  readonly #model: JobModel;
  readonly #host: Host;
  readonly #end = new AbortController();
  readonly #running = new Set<Promise<JobResult>>();
  #timer: NodeJS.Timeout | undefined;

  constructor(model: JobModel, host: Host) {
    this.name = model.workload.name;
    this.#model = model;
    this.#host = host;
  }

  /** Runs it once, now. @throws Error when the process cannot be started */
  run(): Promise<JobResult> {
    const result = this.#execute().finally(() => this.#running.delete(result));
    this.#running.add(result);
    return result;
  }

  /** Runs it whenever the schedule says, until `stop`; not where it has none or is suspended. */
  schedule(): void {
    const { schedule, forbidConcurrent } = this.#model;
    if (schedule === undefined || this.#end.signal.aborted) return;
    const due = nextRun(schedule, new Date()).getTime() - Date.now();
    this.#timer = setTimeout(
      () => {
        if (due <= LONGEST_TIMER_MS && !(forbidConcurrent && this.#running.size > 0)) this.runInBackground();
        this.schedule();
      },
      Math.min(due, LONGEST_TIMER_MS),
    ).unref();
  }

  /** Its result is in the story. */
  runInBackground(): void {
    this.run().catch((error: unknown) => {
      if (!this.#end.signal.aborted) this.#host.story.tell({ what: 'warning', from: this.name, message: String(error) });
    });
  }

  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    this.#end.abort();
    await Promise.allSettled(this.#running);
  }

  async #execute(): Promise<JobResult> {
    const { workload } = this.#model;
    const lines: string[] = [];
    const sandbox = await Sandbox.prepare(workload, this.#host, this.#end.signal);
    try {
      const process = await LocalProcess.start(this.#host.command(workload.args), sandbox.env, (line, pid) => {
        lines.push(line);
        this.#host.story.tell({ what: 'log', from: this.name, pid, line });
      });
      const end = () => process.signal('SIGKILL');
      this.#end.signal.addEventListener('abort', end);
      const { code } = await process.exited;
      this.#end.signal.removeEventListener('abort', end);
      const result = { code, output: lines.join('\n') };
      this.#host.story.tell({ what: 'job', job: this.name, ...result });
      return result;
    } finally {
      await sandbox.remove();
    }
  }
}
