import type { OperatorEvent } from '../../shared/events/parse.ts';
import type { Delivery } from './broker-double.ts';
import type { FunctionName, Process } from './process.ts';
import type { Random } from './random.ts';
import { type Call, type Fault, type Service, settleMicrotasks } from './scheduler.ts';
import type { World } from './world.ts';

/** More in one schedule is no coming to rest. */
const MOST_ACTIONS = 20_000;
/** Faults of the broker that no event is lost by, as deliveries outnumber them. */
const OUTLIVED = 4;

/** The course of things: what arrives, what fails on its way, and how time passes. */
export class Course {
  /** Faults that the next calls meet. */
  failing: { service: Service; fault: Fault; left: number }[] = [];
  /** Calls of processes that are no more. */
  late: Call[] = [];
  /** Told of what arrives, when schedules are to be read. */
  trace: ((line: string) => void) | undefined;
  readonly #world: World;
  #actions = 0;
  #brokerFaults = 0;

  constructor(world: World) {
    this.#world = world;
  }

  /** Lets one of the things that may happen now happen. Answers whether there was one. */
  async act(random: Random): Promise<boolean> {
    const { scheduler, broker } = this.#world;
    const calls = scheduler.calls.filter(({ by }) => !by.frozen);
    const deliveries = broker.ready.filter(({ to }) => this.#serving(to).length > 0);
    const all = [...calls, ...this.late, ...deliveries].sort((a, b) => a.seq - b.seq);
    const chosen = all[random.below(all.length)];
    if (!chosen) return false;
    if (++this.#actions > MOST_ACTIONS) this.#world.violate('a schedule comes to rest');
    if ('to' in chosen) this.#deliver(chosen, random);
    else if (this.late.includes(chosen)) this.arriveLate(chosen);
    else this.#arrive(chosen);
    await this.#settle();
    return true;
  }

  /** All that may happen happens until then, or until `enough`. */
  async runUntil(time: number, random: Random, enough: () => boolean = () => false): Promise<void> {
    const { scheduler, broker } = this.#world;
    // What a step has just led to may be all that there is to happen.
    await this.#settle();
    while (!enough()) {
      if (await this.act(random)) continue;
      const next = Math.min(scheduler.next, broker.next);
      if (next > time) {
        scheduler.now = Math.max(scheduler.now, time);
        return;
      }
      await this.#passTime(next, random);
    }
  }

  /** Time passes, and nothing arrives. */
  async stall(time: number, random: Random): Promise<void> {
    const { scheduler } = this.#world;
    for (let next = scheduler.next; next <= time; next = scheduler.next) await this.#passTime(next, random);
    scheduler.now = time;
  }

  /** The call of a process that is no more. */
  arriveLate(call: Call): void {
    this.trace?.(`  ${nameOf(call.by)} is no more, ${call.what} arrives`);
    const isLate = this.late.includes(call);
    this.late = this.late.filter((other) => other !== call);
    if (isLate) this.#world.unwatched(() => call.arriveLate());
    else call.arriveLate();
  }

  #arrive(call: Call): void {
    const { scheduler } = this.#world;
    scheduler.remove(call);
    const failing = this.failing.find((f) => f.service === call.service && f.left > 0);
    if (failing) {
      failing.left--;
      this.#world.count(`${call.service}: ${failing.fault}`);
      if (call.service === 'broker') this.#brokerFailed(call);
      // A status that is refused for good names no retry.
      if (failing.fault === 'odd' && call.what.endsWith('/status')) this.#world.isLossy = true;
    }
    this.trace?.(`  ${nameOf(call.by)} ${call.what}${failing ? ` (${failing.fault})` : ''}`);
    call.arrive(failing?.fault);
  }

  /**
   * What was to be delivered is delivered again, a few times. It may come to another process of the function, which
   * takes it for the event of its own write.
   */
  #brokerFailed({ what }: Call): void {
    // Nobody posts that event again.
    if (what === 'post reconcile') this.#world.isLossy = true;
    if (++this.#brokerFaults > OUTLIVED || this.#world.isCrowded) this.#world.isLossy = true;
  }

  #deliver(delivery: Delivery, random: Random): void {
    const serving = this.#serving(delivery.to);
    const process = serving[random.below(serving.length)];
    if (!process) return;
    this.trace?.(`  ${textOf(delivery.event)} to ${nameOf(process)}${delivery.path === '/' ? '' : delivery.path}`);
    this.#world.broker.deliver(delivery, process);
  }

  #serving(to: FunctionName): Process[] {
    return this.#world.processes.filter((p) => p.name === to && !p.frozen && !p.stopping.signal.aborted);
  }

  async #passTime(to: number, random: Random): Promise<void> {
    const { scheduler } = this.#world;
    scheduler.now = Math.max(scheduler.now, to);
    scheduler.fire(random, (call, done) => {
      this.trace?.(`  ${nameOf(call.by)} gives up ${call.what}${done ? ', which was carried out' : ''}`);
      this.#world.count(`${call.service}: timeout`);
      if (call.service === 'broker') this.#brokerFailed(call);
    });
    await this.#settle();
  }

  async #settle(): Promise<void> {
    await settleMicrotasks();
    if (this.#world.violation) throw this.#world.violation;
  }
}

const nameOf = (process: Process) => `${process.name}${process.slot === 0 ? '' : `/${process.slot}`}`;

function textOf(event: OperatorEvent): string {
  switch (event.what) {
    case 'startup':
      return `startup ${event.mode}`;
    case 'secret':
      return `secret ${event.namespace}/${event.name}`;
    case 'resource':
      return `${event.change} ${event.target.kind} ${event.target.namespace}/${event.target.name}`;
    default: {
      const { kind, namespace, name } = event.target;
      return `${event.what} ${kind} ${namespace}/${name} ${event.notBefore ?? ''}`;
    }
  }
}
