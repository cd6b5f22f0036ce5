import { readdir, readFile, readlink } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { stringify } from 'yaml';
import { API_VERSION, INSTANCE_LABEL } from '../../shared/constants.ts';
import type { KindName, ResourceOf } from '../../shared/kube/resources.ts';
import { createLldapClient } from '../../shared/lldap/client.ts';
import { isReady, notReadyReason } from '../../shared/rules/predicates.ts';
import { createLog } from '../../shared/telemetry/log.ts';
import type { Happening } from '../local/knative/story.ts';
import type { LocalLldap } from '../local/lldap/start.ts';
import { type Stack, type StackOptions, startStack } from '../local/stack.ts';
import { findLeaks } from '../support/leaks.ts';

/** For tests of the whole path: the stack, what happened in it, and what a person at the command line does. */
export class World {
  readonly stack: Stack;
  readonly happenings: Happening[];
  /** Every password that was given to somebody. */
  readonly #secrets = new Set<string>();

  private constructor(stack: Stack, happenings: Happening[]) {
    this.stack = stack;
    this.happenings = happenings;
  }

  /** With the stand-in for lldap, which these tests steer. The functions log at level debug. */
  static async start(options: StackOptions = {}): Promise<World> {
    const happenings: Happening[] = [];
    const stack = await startStack({
      idleMs: 2_000,
      jobs: 'on demand',
      lldap: {},
      ...options,
      settings: { LOG_LEVEL: 'debug', ...options.settings },
      onEvent: (h) => happenings.push(h),
    });
    const world = new World(stack, happenings);
    const { code, output } = await stack.knative.runJob('lldap-operator-install');
    if (code !== 0) throw new Error(`the install Job ended with ${code}: ${output}`);
    return world;
  }

  /** The stand-in, for faults and counts. */
  get lldap(): LocalLldap {
    const { local } = this.stack.lldap;
    if (!local) throw new Error('these tests steer the stand-in');
    return local;
  }

  async kubectl(...args: string[]): Promise<string> {
    const { stdout, stderr, code } = await this.stack.cluster.kubectl(args);
    if (code !== 0) throw new Error(`kubectl ${args.join(' ')}: ${stderr}`);
    return stdout;
  }

  async apply(...objects: object[]): Promise<void> {
    await this.stack.cluster.apply(objects.map((object) => stringify(object)).join('---\n'));
  }

  /** A custom resource of the instance. */
  resource(kind: string, namespace: string, name: string, spec: object): object {
    return { apiVersion: API_VERSION, kind, metadata: { name, namespace, labels: { [INSTANCE_LABEL]: this.stack.instance } }, spec };
  }

  secret(namespace: string, name: string, stringData: Record<string, string>): object {
    for (const value of Object.values(stringData)) this.#secrets.add(value);
    return {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name, namespace, labels: { [INSTANCE_LABEL]: this.stack.instance } },
      stringData,
    };
  }

  /** Waits until all that is there is Ready, and what is being deleted is gone. @throws Error naming what is not, and why */
  async ready(namespace: string, seconds = 120): Promise<void> {
    const left = await this.unready(namespace, seconds);
    if (left.length > 0) throw new Error(`not Ready within ${seconds} s: ${left.join(', ')}`);
  }

  /** What is not Ready, or not gone, after so long; none as soon as there is none. */
  async unready(namespace: string, seconds: number): Promise<string[]> {
    const deadline = Date.now() + seconds * 1000;
    for (;;) {
      const { items } = JSON.parse(await this.kubectl('get', 'llu,llg,llm,llas', '-n', namespace, '-o', 'json')) as {
        items: ResourceOf[KindName][];
      };
      const isDone = ({ status, metadata }: ResourceOf[KindName]) =>
        status?.observedGeneration === metadata.generation && metadata.deletionTimestamp === undefined;
      const left = items.filter((r) => !isReady(r) || !isDone(r));
      if (left.length === 0 || Date.now() > deadline) return left.map((r) => `${r.kind} ${r.metadata.name} (${notReadyReason(r)})`);
      await sleep(300);
    }
  }

  async reason(kind: string, namespace: string, name: string): Promise<string> {
    return this.kubectl('get', kind, name, '-n', namespace, '-o', 'jsonpath={.status.conditions[?(@.type=="Ready")].reason}');
  }

  client() {
    const { url, admin } = this.stack.lldap;
    return createLldapClient({ url, credentials: async () => admin, log: createLog('error') });
  }

  /** How many connections a function's process has to the API server; none where it is at zero. */
  async connections(service: string): Promise<number> {
    const port = new URL(this.stack.cluster.url).port;
    const [process] = this.stack.knative.processes(service);
    if (!process) return 0;
    const sockets = new Set<string>();
    for (const fd of await readdir(`/proc/${process.pid}/fd`).catch(() => [])) {
      const inode = /^socket:\[(\d+)]$/.exec(await readlink(`/proc/${process.pid}/fd/${fd}`).catch(() => ''))?.[1];
      if (inode) sockets.add(inode);
    }
    const lines = (await readFile('/proc/net/tcp', 'utf8')).split('\n').slice(1);
    return lines
      .map((line) => line.trim().split(/\s+/))
      .filter(([, , remote, , , , , , , inode]) => {
        return remote !== undefined && Number.parseInt(remote.split(':')[1] ?? '', 16) === Number(port) && sockets.has(inode ?? '');
      }).length;
  }

  /** @throws Error when a function, a status or a Kubernetes Event said a password or a token */
  async stop(): Promise<void> {
    const said = this.happenings.flatMap((h) => (h.what === 'log' ? [h.line] : h.what === 'job' ? [h.output] : []));
    const { stdout } = await this.stack.cluster.kubectl(['get', 'llu,llg,llm,llas,events', '-A', '-o', 'json']);
    const leaks = findLeaks([...said, stdout], [...this.#secrets, this.stack.lldap.admin.password]);
    await this.stack.stop();
    if (leaks.length > 0) throw new Error(`a secret was said: ${leaks.join('\n')}`);
  }
}

/** Waits, generously, for what will be. */
export async function until(what: string, holds: () => boolean | Promise<boolean>, seconds = 120): Promise<void> {
  const deadline = Date.now() + seconds * 1000;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`not within ${seconds} s: ${what}`);
    await sleep(100);
  }
}
