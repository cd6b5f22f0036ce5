import type { BrokerDouble, Delivery } from './broker-double.ts';
import type { History } from './history.ts';
import { type AnyResource, keyOf } from './kube-double.ts';
import type { Process } from './process.ts';
import type { Attempt, Context } from './scheduler.ts';

/** A reconcile over one resource by one process, from its first reading to the answer. */
interface Reconcile {
  process: Process;
  key: string;
  attempts: Attempt[];
  isOver: boolean;
}

/** Who is at work on what, and who was when somebody else wrote. */
export class Reconciles {
  readonly #reconciles: Reconcile[] = [];
  readonly #history: History;
  readonly #broker: BrokerDouble;

  constructor(history: History, broker: BrokerDouble) {
    this.#history = history;
    this.#broker = broker;
  }

  /** A process reads the resource that its reconcile is about. */
  read(by: Context, resource: AnyResource | undefined): void {
    if (!by.target) return;
    const key = keyOf(by.target.kind, by.target.namespace, by.target.name);
    by.attempt = { since: this.#history.now, self: resource, statusWrites: 0, mutations: 0 };
    const reconcile = this.#reconciles.find((p) => p.process === by.process && p.key === key && !p.isOver);
    if (reconcile) reconcile.attempts.push(by.attempt);
    else this.#reconciles.push({ process: by.process, key, attempts: [by.attempt], isOver: false });
  }

  /** A request was answered with success: its reconcile is over, unless another request waits for the same. */
  answered(process: Process, delivery: Delivery): void {
    const key = aboutOf(delivery);
    const isShared = [...this.#broker.inFlight].some((flight) => flight.process === process && aboutOf(flight.delivery) === key);
    if (key === undefined || isShared) return;
    for (const reconcile of this.#reconciles) if (reconcile.process === process && reconcile.key === key) reconcile.isOver = true;
  }

  /** The keys on which a process that dies has written, while another was at work on the same: nobody will look again. */
  died(process: Process): string[] {
    const cut = this.#reconciles.filter((p) => p.process === process && !p.isOver);
    for (const reconcile of cut) reconcile.isOver = true;
    return cut
      .filter((reconcile) => reconcile.attempts.some(({ mutations }) => mutations > 0) && this.#hadCompany(reconcile))
      .map(({ key }) => key);
  }

  #hadCompany({ process, key, attempts }: Reconcile): boolean {
    const since = attempts[0]?.since ?? 0;
    return this.#reconciles.some((p) => p.key === key && p.process !== process && (!p.isOver || (p.attempts.at(-1)?.since ?? 0) >= since));
  }
}

function aboutOf({ event }: Delivery): string | undefined {
  if (event.what !== 'resource' && event.what !== 'reconcile') return undefined;
  return keyOf(event.target.kind, event.target.namespace, event.target.name);
}
