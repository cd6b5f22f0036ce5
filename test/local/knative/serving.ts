/**
 * A stand-in for Knative Serving: a Service is one process on this machine, started by the first request and stopped when
 * idle, behind an address that stays. As measured: only a request in flight keeps a pod; during a rollout or an eviction
 * the old process and its successor run at once; SIGTERM comes after a drain, SIGKILL after the grace period.
 *
 * Quicker than the real one: idle is seconds instead of 60 to 90, the drain a moment instead of 30 s. Not modelled:
 * liveness probes, resources, security contexts, more than one pod.
 */
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { listen } from '../ports.ts';
import { serviceHost } from './addresses.ts';
import { type Answer, answer, type Call, close, listener, send, TimedOut } from './http.ts';
import { Instance } from './instance.ts';
import type { Host } from './sandbox.ts';
import type { FunctionModel } from './workload.ts';

export interface ProcessInfo {
  service: string;
  pid: number;
  /** `stopping`: it takes no new requests; SIGTERM was sent or is about to be. */
  state: 'ready' | 'stopping';
  inFlight: number;
}

/** Starts in a row that end before the process is ready; then the requests that wait get 503. */
const STARTS = 5;
const RESTART_AFTER_MS = 100;
/** The double is ended by tests; nobody waits there for a function's whole grace period. A busy machine may need a while. */
const ENDS_WITHIN_MS = 60_000;

export class LocalService {
  readonly name: string;
  url = '';
  readonly #model: FunctionModel;
  readonly #host: Host;
  readonly #idleMs: number;
  readonly #server: Server;
  readonly #end = new AbortController();
  readonly #stopping = new Map<Instance, Promise<void>>();
  #current: Instance | undefined;
  #starting: Promise<Instance> | undefined;
  #idle: NodeJS.Timeout | undefined;

  constructor(model: FunctionModel, host: Host, idleMs: number) {
    this.name = model.workload.name;
    this.#model = model;
    this.#host = host;
    this.#idleMs = idleMs;
    // Connections are kept for good: one that ends after a while meets the next request when this process was held up.
    this.#server = createServer(
      { keepAliveTimeout: 0 },
      listener(
        (call) => this.#handle(call),
        (error) => this.#warn(error),
      ),
    );
  }

  async start(): Promise<void> {
    const { namespace } = this.#model.workload;
    const port = await listen(this.#server);
    this.url = `http://127.0.0.1:${port}`;
    this.#host.addresses.set(serviceHost(namespace, this.name), port);
    this.#host.addresses.handle(serviceHost(namespace, this.name), (call) => this.#handle(call));
  }

  /** Starts the process that `min-scale` asks for, once all addresses are known. */
  async warm(): Promise<void> {
    if (this.#model.minScale > 0) await this.#running('min-scale');
  }

  processes(): ProcessInfo[] {
    const info = (instance: Instance, state: ProcessInfo['state']) => ({
      service: this.name,
      pid: instance.pid,
      state,
      inFlight: instance.inFlight,
    });
    const stopping = [...this.#stopping.keys()].map((instance) => info(instance, 'stopping'));
    return this.#current ? [info(this.#current, 'ready'), ...stopping] : stopping;
  }

  /** Replaces the process as a new revision does: the old one drains once its successor is ready. */
  async rollout(): Promise<void> {
    const old = this.#current;
    await this.#startInstance('rollout');
    if (old) await this.#stopping.get(old);
  }

  /**
   * SIGTERM evicts the pod: it gets no new requests, and the next one starts a successor; resolves when it is gone.
   * Any other signal hits the process alone. If that ends it, it is started again.
   */
  async kill(signal: NodeJS.Signals): Promise<void> {
    const instance = this.#current;
    if (!instance) throw new Error(`${this.name} has no process to kill`);
    if (signal === 'SIGTERM') return this.#retire(instance, 'eviction');
    instance.signal(signal);
    if (signal === 'SIGKILL') await instance.exited;
  }

  async stop(): Promise<void> {
    this.#end.abort();
    clearTimeout(this.#idle);
    await this.#starting?.catch(() => undefined);
    if (this.#current) void this.#retire(this.#current, 'end');
    await Promise.all([...this.#stopping].map(([instance, gone]) => this.#within(instance, gone)));
    this.#host.addresses.handle(serviceHost(this.#model.workload.namespace, this.name), undefined);
    await close(this.#server);
  }

  async #within(instance: Instance, gone: Promise<void>): Promise<void> {
    const inTime = new AbortController();
    const late = sleep(ENDS_WITHIN_MS, true, { signal: inTime.signal }).catch(() => false);
    const isLate = await Promise.race([late, gone.then(() => false)]);
    inTime.abort();
    if (!isLate) return;
    this.#host.story.tell({ what: 'violation', message: `${this.name} did not end within ${ENDS_WITHIN_MS / 1000} s of SIGTERM` });
    instance.signal('SIGKILL');
    await gone;
  }

  /** The activator's part: the request waits until there is a process that takes it. */
  async #handle(call: Call): Promise<Answer> {
    const instance = await this.#running('request').catch((error: unknown) => this.#warn(error));
    if (!instance) return answer(503);
    call.signal.throwIfAborted();
    clearTimeout(this.#idle);
    instance.inFlight += 1;
    try {
      return await this.#forward(instance, call);
    } finally {
      instance.inFlight -= 1;
      this.#whenIdle();
    }
  }

  /** The queue-proxy's part: 502 when the process goes away, 504 when its answer takes too long. */
  async #forward(instance: Instance, { method, path, headers, body, signal }: Call): Promise<Answer> {
    const timeoutMs = Math.min(this.#model.responseStartMs, this.#model.timeoutMs);
    try {
      const answered = await send(method, `${instance.url}${path}`, endToEnd(headers), body, { signal, timeoutMs });
      return { ...answered, headers: endToEnd(answered.headers) };
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof TimedOut) return answer(504);
      this.#warn(error);
      return answer(502);
    }
  }

  /** The process that takes requests, started if need be: once, however many ask. */
  #running(why: 'request' | 'rollout' | 'crash' | 'min-scale'): Promise<Instance> {
    if (this.#current) return Promise.resolve(this.#current);
    this.#starting ??= this.#startInstance(why).finally(() => {
      this.#starting = undefined;
    });
    return this.#starting;
  }

  async #startInstance(why: 'request' | 'rollout' | 'crash' | 'min-scale'): Promise<Instance> {
    this.#host.story.tell({ what: 'starting', service: this.name, why });
    for (let start = 1; ; start += 1) {
      this.#end.signal.throwIfAborted();
      try {
        const instance = await Instance.start(this.#model, this.#host, this.#end.signal);
        const old = this.#current;
        this.#current = instance;
        if (old) void this.#retire(old, 'rollout');
        void instance.exited.then(() => this.#gone(instance));
        this.#whenIdle();
        return instance;
      } catch (error) {
        if (start === STARTS || this.#end.signal.aborted) throw error;
        await sleep(RESTART_AFTER_MS * 2 ** (start - 1), undefined, { signal: this.#end.signal });
      }
    }
  }

  /** A process that ends while nobody asked it to is started again, as the kubelet does. */
  #gone(instance: Instance): void {
    if (this.#current !== instance) return;
    this.#current = undefined;
    if (!this.#end.signal.aborted) this.#running('crash').catch((error: unknown) => this.#warn(error));
  }

  #whenIdle(): void {
    clearTimeout(this.#idle);
    const instance = this.#current;
    if (!instance || instance.inFlight > 0 || this.#model.minScale > 0 || this.#end.signal.aborted) return;
    this.#idle = setTimeout(() => void this.#retire(instance, 'idle'), this.#idleMs).unref();
  }

  #retire(instance: Instance, why: 'idle' | 'rollout' | 'eviction' | 'end'): Promise<void> {
    if (this.#current === instance) this.#current = undefined;
    const gone = instance.retire(why).finally(() => this.#stopping.delete(instance));
    this.#stopping.set(instance, gone);
    return gone;
  }

  #warn(error: unknown): undefined {
    const message = error instanceof Error ? error.message : String(error);
    this.#host.story.tell({ what: 'warning', from: this.name, message });
  }
}

const HOP_BY_HOP = new Set(['connection', 'keep-alive', 'transfer-encoding', 'content-length']);

function endToEnd(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !HOP_BY_HOP.has(name)));
}
