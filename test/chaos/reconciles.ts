import type { BrokerDouble, Delivery } from './broker-double.ts';
import type { History } from './history.ts';
import { type AnyResource, keyOf } from './kube-double.ts';
import type { Process } from './process.ts';
import type { Attempt, Context } from './scheduler.ts';

/** A pass over one resource by one process, from its first reading to the answer. */
interface Pass {
  process: Process;
  key: string;
  attempts: Attempt[];
  isOver: boolean;
}

/** Who is at work on what, and who was when somebody else wrote. */
export class Passes {
  readonly #passes: Pass[] = [];
  readonly #history: History;
  readonly #broker: BrokerDouble;

  constructor(history: History, broker: BrokerDouble) {
    this.#history = history;
    this.#broker = broker;
  }

  /** A process reads the resource that its pass is about. */
  read(by: Context, resource: AnyResource | undefined): void {
    if (!by.target) return;
    const key = keyOf(by.target.kind, by.target.namespace, by.target.name);
    by.attempt = { since: this.#history.now, self: resource, statusWrites: 0, mutations: 0 };
    const pass = this.#passes.find((p) => p.process === by.process && p.key === key && !p.isOver);
    if (pass) pass.attempts.push(by.attempt);
    else this.#passes.push({ process: by.process, key, attempts: [by.attempt], isOver: false });
  }

  /** A request was answered with success: its pass is over, unless another request waits for the same. */
  answered(process: Process, delivery: Delivery): void {
    const key = aboutOf(delivery);
    const isShared = [...this.#broker.inFlight].some((flight) => flight.process === process && aboutOf(flight.delivery) === key);
    if (key === undefined || isShared) return;
    for (const pass of this.#passes) if (pass.process === process && pass.key === key) pass.isOver = true;
  }

  /** The keys on which a process that dies has written, while another was at work on the same: nobody will look again. */
  died(process: Process): string[] {
    const cut = this.#passes.filter((p) => p.process === process && !p.isOver);
    for (const pass of cut) pass.isOver = true;
    return cut.filter((pass) => pass.attempts.some(({ mutations }) => mutations > 0) && this.#hadCompany(pass)).map(({ key }) => key);
  }

  #hadCompany({ process, key, attempts }: Pass): boolean {
    const since = attempts[0]?.since ?? 0;
    return this.#passes.some((p) => p.key === key && p.process !== process && (!p.isOver || (p.attempts.at(-1)?.since ?? 0) >= since));
  }
}

function aboutOf({ event }: Delivery): string | undefined {
  if (event.what !== 'resource' && event.what !== 'reconcile') return undefined;
  return keyOf(event.target.kind, event.target.namespace, event.target.name);
}
