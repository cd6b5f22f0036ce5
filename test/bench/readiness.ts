import { setTimeout as sleep } from 'node:timers/promises';
import type { Condition, KindName } from '../../shared/kube/resources.ts';
import type { Stack } from '../local/stack.ts';

const LOOKS_AGAIN_AFTER_MS = 50;
const GIVES_UP_AFTER_MS = 60_000;
const NAMED = 5;

interface Resource {
  metadata: { name: string };
  status?: { conditions?: Condition[] };
}

/** Which resources have become Ready, from the functions' log lines: to ask the API server would cost what is measured. */
export class Readiness {
  readonly #ready = new Map<string, Set<string>>();

  hear(line: string): void {
    if (!line.includes('"reconciled"')) return;
    const { message, ready, kind, name } = JSON.parse(line) as { message: string; ready?: boolean; kind: string; name: string };
    if (message === 'reconciled' && ready) this.#of(kind).add(name);
  }

  /** @throws Error with what is not Ready, when nothing more has become Ready for a minute */
  async wait(kind: KindName, names: readonly string[], { cluster }: Stack, path: string): Promise<void> {
    const ready = this.#of(kind);
    for (let [seen, since] = [ready.size, Date.now()]; !names.every((name) => ready.has(name)); ) {
      if (Date.now() - since > GIVES_UP_AFTER_MS) throw new Error(await this.#unready(kind, names, cluster, path));
      await sleep(LOOKS_AGAIN_AFTER_MS);
      if (ready.size > seen) [seen, since] = [ready.size, Date.now()];
    }
  }

  async #unready(kind: KindName, names: readonly string[], cluster: Stack['cluster'], path: string): Promise<string> {
    const late = names.filter((name) => !this.#of(kind).has(name));
    const answers = await Promise.all(late.slice(0, NAMED).map((name) => cluster.request('GET', `${path}/${name}`)));
    const lines = answers.map(({ body }) => describe(body as Resource));
    const first = `${late.length} of ${names.length} ${kind} are not Ready, and none became so in the last ${GIVES_UP_AFTER_MS / 1000} s:`;
    return [first, ...lines].join('\n  ');
  }

  #of(kind: string): Set<string> {
    const known = this.#ready.get(kind) ?? new Set();
    this.#ready.set(kind, known);
    return known;
  }
}

function describe({ metadata, status }: Resource): string {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  return `${metadata.name}: ${ready ? `Ready is ${ready.status}, ${ready.reason}: ${ready.message}` : 'no condition Ready'}`;
}
