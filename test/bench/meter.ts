import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Stack } from '../local/stack.ts';
import { children, commandOf, cpuMsOf, peakMibOf, serverOf } from './processes.ts';

/** CPU time of the processes of a stack, in milliseconds, by the part that they belong to. `double` is this process: the local Knative and the bench itself. */
export type CpuByPart = Record<(typeof PARTS)[number], number>;
export const PARTS = ['functions', 'apiserver', 'etcd', 'lldap', 'double'] as const;

export type Counts = Record<string, number>;

/** What one phase of a measurement cost. */
export interface Cost {
  /** Until the work was done. The rest counts what it still set off, too. */
  wallMs: number;
  cpuMs: CpuByPart;
  /** API requests by function, verb and resource, such as `user: patch lldapusers/status`. */
  requests: Counts;
  /** Bytes that the API server sent to whoever read, by verb and resource. It counts none for writes. */
  responseBytes: Counts;
  /** Calls of lldap by operation. */
  lldapCalls: Counts;
}

const LOOKS_AGAIN_AFTER_MS = 100;
const QUIET_LOOKS = 3;
const VERBS: Record<string, string> = { POST: 'create', PUT: 'update', APPLY: 'patch' };

/**
 * Measures phases of work on a stack: CPU from /proc, API requests from the audit log, bytes from the API server's metrics, calls of
 * lldap from the debug log lines that {@link Meter.hear} is given. Functions must not stop meanwhile, since a process that ended cannot
 * be measured.
 */
export class Meter {
  readonly #stack: Stack;
  readonly #lldapPid: number | undefined;
  #lldapCalls: Counts = {};

  private constructor(stack: Stack, lldapPid: number | undefined) {
    this.#stack = stack;
    this.#lldapPid = lldapPid;
  }

  static async start(stack: Stack): Promise<Meter> {
    return new Meter(stack, await serverOf(stack.lldap.url));
  }

  /** Whether lldap is a process of this user on this machine, so that its CPU can be read. */
  get seesLldap(): boolean {
    return this.#lldapPid !== undefined;
  }

  hear(line: string): void {
    const operation = line.includes('"lldap call"') && /"operation":"(\w+)"/.exec(line)?.[1];
    if (operation) this.#lldapCalls[operation] = (this.#lldapCalls[operation] ?? 0) + 1;
  }

  async measure(work: () => Promise<void>): Promise<Cost> {
    const bytes = await this.#responseBytes();
    const logged = (await stat(this.#stack.cluster.auditLog)).size;
    this.#lldapCalls = {};
    const before = await this.#cpu();
    const started = performance.now();
    await work();
    const wallMs = performance.now() - started;
    await this.#quiet();
    const after = await this.#cpu();
    return {
      wallMs,
      cpuMs: Object.fromEntries(PARTS.map((part) => [part, after[part] - before[part]])) as CpuByPart,
      requests: await countRequests(this.#stack.cluster.auditLog, logged),
      responseBytes: difference(await this.#responseBytes(), bytes),
      lldapCalls: { ...this.#lldapCalls },
    };
  }

  /** Of each function that runs, since it started. */
  async peaksMib(): Promise<Record<string, number>> {
    const peaks = this.#stack.knative.processes().map(async ({ service, pid }) => [service, await peakMibOf(pid)] as const);
    return Object.fromEntries(await Promise.all(peaks));
  }

  /** Waits for the events that the work set off. */
  async #quiet(): Promise<void> {
    for (let looks = 0; looks < QUIET_LOOKS; looks += 1) {
      await sleep(LOOKS_AGAIN_AFTER_MS);
      if (this.#stack.knative.processes().some(({ inFlight }) => inFlight > 0)) looks = 0;
    }
  }

  async #cpu(): Promise<CpuByPart> {
    const cpu: CpuByPart = { functions: 0, apiserver: 0, etcd: 0, lldap: 0, double: await cpuMsOf(process.pid) };
    for (const pid of await children()) {
      const part = partOf(await commandOf(pid));
      if (part) cpu[part] += await cpuMsOf(pid);
    }
    if (this.#lldapPid !== undefined) cpu.lldap = await cpuMsOf(this.#lldapPid);
    return cpu;
  }

  async #responseBytes(): Promise<Counts> {
    const { body } = await this.#stack.cluster.request('GET', '/metrics');
    const counts: Counts = {};
    for (const [, labels = '', value] of String(body).matchAll(/^apiserver_response_sizes_sum\{(.*)\} (\S+)$/gm)) {
      const label = (name: string) => new RegExp(`\\b${name}="([^"]*)"`).exec(labels)?.[1] ?? '';
      const verb = label('verb');
      const key = `${VERBS[verb] ?? verb.toLowerCase()} ${pathOf(label('resource'), label('subresource'))}`;
      counts[key] = (counts[key] ?? 0) + Number(value);
    }
    return counts;
  }
}

function partOf([program = '', ...args]: string[]): 'functions' | 'apiserver' | 'etcd' | undefined {
  if (program.endsWith('/kube-apiserver')) return 'apiserver';
  if (program.endsWith('/etcd')) return 'etcd';
  return args.some((arg) => arg.endsWith('/dist/main.cjs')) ? 'functions' : undefined;
}

interface AuditEvent {
  verb: string;
  user: { username: string };
  objectRef?: { resource?: string; subresource?: string };
}

/** @param from where the log ended before */
async function countRequests(auditLog: string, from: number): Promise<Counts> {
  const counts: Counts = {};
  for await (const line of createInterface({ input: createReadStream(auditLog, { start: from }) })) {
    const { verb, user, objectRef } = JSON.parse(line) as AuditEvent;
    const by = /^system:serviceaccount:[^:]+:lldap-operator-(.+)$/.exec(user.username)?.[1] ?? 'others';
    const key = `${by}: ${verb} ${pathOf(objectRef?.resource, objectRef?.subresource)}`;
    counts[key] = (counts[key] ?? 0) + 1;
  }
  return counts;
}

function pathOf(resource = '', subresource = ''): string {
  return [resource, subresource].filter(Boolean).join('/');
}

/** Without what did not change. */
function difference(after: Counts, before: Counts): Counts {
  const entries = Object.entries(after).map(([key, value]) => [key, value - (before[key] ?? 0)] as const);
  return Object.fromEntries(entries.filter(([, value]) => value !== 0));
}
