import { loadConfig } from '../../shared/config.ts';
import type { OperatorEvent } from '../../shared/events/parse.ts';
import type { Secret } from '../../shared/kube/objects.ts';
import { createLog } from '../../shared/log.ts';
import { INSTANCE_LABEL, MARK_ATTRIBUTE } from '../../shared/names.ts';
import type { State } from '../local/lldap/state.ts';
import { BrokerDouble, type Delivery } from './broker.ts';
import { History } from './history.ts';
import { Invariants } from './invariants.ts';
import { type AnyResource, type Change, KubeDouble, keyOf, resourceKey } from './kube.ts';
import { Ledger } from './ledger.ts';
import { LldapDouble } from './lldap.ts';
import { createProcess, FUNCTIONS, type FunctionName, type Process, type Surroundings } from './process.ts';
import { createRandom, type Random } from './random.ts';
import type { RuleBook } from './rules.ts';
import type { Schedule } from './schedule.ts';
import { type Attempt, type Call, type Context, type Fault, Scheduler, type Service, settleMicrotasks } from './scheduler.ts';

export const INSTANCE = 'main';
export const OPERATOR_NAMESPACE = 'op';
export const LABELS = { [INSTANCE_LABEL]: INSTANCE };

/** More in one schedule is no coming to rest. */
const MOST_ACTIONS = 20_000;

/** A rule that did not hold. */
export class Violation extends Error {
  override name = 'Violation';
}

/** A pass over one resource by one process, from its first reading to the answer. */
interface Pass {
  process: Process;
  key: string;
  attempts: Attempt[];
  over: boolean;
}

/** All processes, what they talk to, and the time: moved only by a schedule. */
export class World {
  readonly scheduler = new Scheduler();
  readonly kube: KubeDouble;
  readonly lldap: LldapDouble;
  readonly broker: BrokerDouble;
  readonly history: History;
  readonly ledger: Ledger;
  readonly book: RuleBook;
  readonly invariants: Invariants;
  readonly counts = new Map<string, number>();
  readonly backups: { kube: { resources: AnyResource[]; secrets: ReadonlyMap<string, Secret> }; lldap: State };
  processes: Process[] = [];
  failing: { service: Service; fault: Fault; left: number }[] = [];
  /** Calls of processes that are no more. */
  late: Call[] = [];
  /** Changes that the source will not tell. */
  untold = 0;
  /** Only a full reconcile finds what people did in lldap, or what a backup brought back. */
  needsFull = false;
  /** The cluster went back to a backup. */
  restored = false;
  /** Keys on which a process died after a write that came late: the one thing that only drift mends. */
  readonly residue = new Set<string>();
  /** What was done to what, for invariants of quiet. */
  readonly writes: string[] = [];
  violation: Violation | undefined;
  /** What arrived, when schedules are to be read. */
  trace: ((line: string) => void) | undefined;
  readonly #schedule: Schedule;
  readonly #around: Surroundings;
  readonly #passes: Pass[] = [];
  #actions = 0;
  #lateness = false;

  constructor(schedule: Schedule) {
    this.#schedule = schedule;
    const config = loadConfig({
      LLDAP_INSTANCE: INSTANCE,
      LLDAP_URL: 'http://lldap',
      LLDAP_LDAP_URL: 'ldap://lldap',
      BROKER_URL: 'http://broker',
      PRIVILEGED_NAMESPACES: 'adm',
      ADOPTION: schedule.adoption,
      SWEEP_EVENTS_PER_SECOND: '10000',
      MAX_HELD: String(schedule.maxHeld),
    });
    this.book = {
      instance: INSTANCE,
      operatorNamespace: OPERATOR_NAMESPACE,
      privilegedNamespaces: new Set(config.privilegedNamespaces),
      adoption: config.adoption,
    };
    this.ledger = new Ledger(this.book);
    this.kube = new KubeDouble(this.scheduler, this.#kubeListener(), OPERATOR_NAMESPACE);
    this.lldap = new LldapDouble(this.scheduler, {
      onMutation: (by, operation, variables) => {
        if (!this.#lateness) this.invariants.mutation(by, operation, variables);
      },
      onMutated: (by, operation, variables, result) => {
        this.writes.push(operation);
        this.invariants.mutated(by, operation, variables, result);
        this.#definedForNobody(by, operation, variables);
      },
      onPassword: (by, userId, password) => {
        this.writes.push(`password ${userId}`);
        if (!this.#lateness) this.invariants.password(by, userId, password);
      },
      onChange: () => this.history.note(true),
    });
    this.broker = new BrokerDouble(this.scheduler, (error) =>
      this.violate(`no handler throws what is not foreseen: ${error instanceof Error ? error.stack : String(error)}`),
    );
    this.broker.onAnswered = ({ process, delivery }, status) => this.#answered(process, delivery, status);
    this.history = new History(this.kube, this.lldap);
    this.invariants = new Invariants(this.history, this.broker, this.book, (sentence) => this.violate(sentence));
    this.history.note(true);
    this.ledger.keepAll(this.history.current.objects, [], this.pairs());
    this.backups = { kube: { resources: [], secrets: new Map() }, lldap: structuredClone(this.lldap.state) };
    this.#around = {
      config,
      operatorNamespace: OPERATOR_NAMESPACE,
      scheduler: this.scheduler,
      kube: this.kube,
      lldap: this.lldap,
      brokerOf: (process) => this.broker.of(process),
      log: createLog('error', (line) => this.#logged(line)),
      random: createRandom(schedule.calmSeed),
    };
    for (const name of FUNCTIONS) for (let slot = 0; slot < this.#count(name); slot++) this.start(name, slot);
  }

  count(what: string, by = 1): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + by);
  }

  violate(sentence: string): void {
    this.violation ??= new Violation(sentence);
  }

  /** `user uuid|group uuid` of all memberships. */
  pairs(): string[] {
    const { users, groups } = this.lldap.state;
    return [...groups.values()].flatMap((group) => [...group.members].map((id) => `${users.get(id)?.uuid}|${group.uuid}`));
  }

  /** `User name` or `Group name` of all custom attributes but the mark. */
  definitions(): string[] {
    const { user, group } = this.lldap.state.definitions;
    const custom = (target: string, of: Map<string, { name: string; isHardcoded: boolean }>) =>
      [...of.values()].filter((d) => !d.isHardcoded && d.name !== MARK_ATTRIBUTE).map((d) => `${target} ${d.name}`);
    return [...custom('User', user), ...custom('Group', group)];
  }

  start(name: FunctionName, slot: number): void {
    const skew = (this.#schedule.skews[slot] ?? 0) * 60_000;
    this.processes.push(createProcess(name, slot, skew, this.#around));
  }

  /** Those that wait for an answer. */
  get busy(): Process[] {
    return this.processes.filter((p) => this.scheduler.calls.some(({ by }) => by === p));
  }

  /** Each call that it had on its way arrives, never will, or will be late; another process takes its place. */
  crash(process: Process, fate: Random | 'late'): void {
    process.alive = false;
    const cut = this.scheduler.cut(process);
    if (fate === 'late') this.late.push(...cut);
    else for (const call of cut) if (fate.below(2) === 1) this.#arriveLate(call);
    for (const pass of this.#passes.filter((p) => p.process === process && !p.over)) this.#cutShort(pass);
    this.broker.disconnect(process);
    this.processes = this.processes.filter((p) => p !== process);
    if (!process.stopping.signal.aborted) this.start(process.name, process.slot);
  }

  /** New events go to a new process, while this one finishes what it has. */
  rollout(process: Process): void {
    if (process.stopping.signal.aborted) return;
    process.stopping.abort();
    this.start(process.name, process.slot);
  }

  /** How many events stand for one retry. */
  heldFor(resource: AnyResource, notBefore: string | undefined): number {
    const events = [...this.broker.queue, ...[...this.broker.inFlight].map(({ delivery }) => delivery)].map(({ event }) => event);
    const key = resourceKey(resource);
    return events.filter(
      (e) =>
        (e.what === 'requeue' || e.what === 'reconcile') &&
        e.notBefore === notBefore &&
        keyOf(e.target.kind, e.target.namespace, e.target.name) === key,
    ).length;
  }

  /**
   * Whether a retry may be left to the sweep: requeue lets go of what is above its bound, and where clocks differ a
   * retry's event may come before the status that names it.
   */
  get mayLetGo(): boolean {
    return this.#schedule.maxHeld < 100 || this.#schedule.skews.some((minutes) => minutes !== 0);
  }

  /** Lets one of the things that may happen now happen. Answers whether there was one. */
  async act(random: Random): Promise<boolean> {
    const calls = [...this.scheduler.calls.filter(({ by }) => !by.frozen), ...this.late];
    const deliveries = this.broker.ready.filter(({ to }) => this.#serving(to).length > 0);
    const all = [...calls, ...deliveries].sort((a, b) => a.seq - b.seq);
    const chosen = all[random.below(all.length)];
    if (!chosen) return false;
    if (++this.#actions > MOST_ACTIONS) this.violate('a schedule comes to rest');
    if (this.late.includes(chosen as Call)) this.#arriveLate(chosen as Call);
    else if ('arrive' in chosen) this.#arrive(chosen);
    else this.#deliver(chosen, random);
    await settleMicrotasks();
    if (this.violation) throw this.violation;
    return true;
  }

  /** All that may happen happens until then, or until `enough`. */
  async runUntil(time: number, random: Random, enough: () => boolean = () => false): Promise<void> {
    for (;;) {
      if (enough()) return;
      if (await this.act(random)) continue;
      const next = Math.min(this.scheduler.next, this.broker.next);
      if (next > time) break;
      await this.#passTime(next, random);
    }
    this.scheduler.now = Math.max(this.scheduler.now, time);
  }

  /** Time passes, and nothing arrives. */
  async stall(time: number, random: Random): Promise<void> {
    for (let next = this.scheduler.next; next <= time; next = this.scheduler.next) await this.#passTime(next, random);
    this.scheduler.now = time;
  }

  async #passTime(to: number, random: Random): Promise<void> {
    this.scheduler.now = Math.max(this.scheduler.now, to);
    this.scheduler.fire(random, (call, done) => {
      this.trace?.(`  ${name(call.by)} gives up ${call.what}${done ? ', which was carried out' : ''}`);
      this.count(`${call.service}: timeout`);
    });
    await settleMicrotasks();
    if (this.violation) throw this.violation;
  }

  /** Nobody is there any more to look again after it; so no rule is asked, and what it makes may stay. */
  #arriveLate(call: Call): void {
    this.trace?.(`  ${name(call.by)} is no more, ${call.what} arrives`);
    const isLate = this.late.includes(call);
    this.late = this.late.filter((other) => other !== call);
    const before = this.history.now;
    this.#lateness = isLate;
    call.arriveLate();
    this.#lateness = false;
    if (!isLate || this.history.now === before) return;
    this.count('residue: a late write of a process that died');
    for (const key of this.kube.resources.keys()) this.residue.add(key);
    this.ledger.keepAll(this.history.current.objects, this.definitions(), this.pairs());
  }

  #arrive(call: Call): void {
    this.scheduler.remove(call);
    const failing = this.failing.find((f) => f.service === call.service && f.left > 0);
    if (failing) {
      failing.left--;
      this.count(`${call.service}: ${failing.fault}`);
    }
    this.trace?.(`  ${name(call.by)} ${call.what}${failing ? ` (${failing.fault})` : ''}`);
    call.arrive(failing?.fault);
  }

  #deliver(delivery: Delivery, random: Random): void {
    const serving = this.#serving(delivery.to);
    const process = serving[random.below(serving.length)];
    if (!process) return;
    this.trace?.(`  ${textOf(delivery.event)} to ${name(process)}${delivery.path === '/' ? '' : delivery.path}`);
    this.broker.deliver(delivery, process);
  }

  #serving(to: FunctionName): Process[] {
    return this.processes.filter((p) => p.name === to && !p.frozen && !p.stopping.signal.aborted);
  }

  #count(name: FunctionName): number {
    return name === 'startup' || name === 'requeue' ? 1 : this.#schedule.processes;
  }

  #kubeListener() {
    return {
      onChange: (change: Change, resource: AnyResource) => {
        this.history.note(false);
        if (change === 'delete') this.#gone(resource);
        this.#tell({ what: 'resource', change, target: targetOf(resource), object: resource });
      },
      onSecret: (_change: Change, { metadata }: Secret) => {
        this.history.note(false);
        if (metadata.labels?.[INSTANCE_LABEL] === INSTANCE)
          this.#tell({ what: 'secret', namespace: metadata.namespace, name: metadata.name, redelivered: 0 });
      },
      onStatus: (by: Context | undefined, current: AnyResource, status: object) => {
        this.writes.push(`status ${resourceKey(current)}`);
        this.invariants.status(by, current, status);
      },
      onRead: (by: Context, resource: AnyResource | undefined) => this.#attempt(by, resource),
    };
  }

  #tell(event: OperatorEvent): void {
    if (this.untold > 0) {
      this.untold--;
      this.count('source: lost');
    } else this.broker.post(event);
  }

  #gone(resource: AnyResource): void {
    const before = this.history.moments.at(-2) ?? this.history.current;
    this.ledger.gone(resource, { ...before, resources: new Map(before.resources).set(resourceKey(resource), resource) }, this.pairs());
  }

  #attempt(by: Context, resource: AnyResource | undefined): void {
    if (!by.target) return;
    const key = keyOf(by.target.kind, by.target.namespace, by.target.name);
    by.attempt = { since: this.history.now, self: resource, statusWrites: 0, mutations: 0 };
    let pass = this.#passes.find((p) => p.process === by.process && p.key === key && !p.over);
    if (!pass) {
      pass = { process: by.process, key, attempts: [], over: false };
      this.#passes.push(pass);
    }
    pass.attempts.push(by.attempt);
  }

  #answered(process: Process, { event }: Delivery, status: number): void {
    if (status >= 500) this.#forgive();
    if (status >= 300 || (event.what !== 'resource' && event.what !== 'reconcile')) return;
    const key = keyOf(event.target.kind, event.target.namespace, event.target.name);
    // A request that was collapsed into another's pass is answered while that goes on.
    const others = [...this.broker.inFlight].some(({ process: by, delivery: { event: e } }) => {
      if (by !== process || (e.what !== 'resource' && e.what !== 'reconcile')) return false;
      return keyOf(e.target.kind, e.target.namespace, e.target.name) === key;
    });
    if (others) return;
    for (const pass of this.#passes) if (pass.process === process && pass.key === key) pass.over = true;
  }

  /** A pass that wrote while another process was at the same resource, and now will not look again. */
  #cutShort(pass: Pass): void {
    pass.over = true;
    this.#forgive();
    if (pass.attempts.every(({ mutations }) => mutations === 0)) return;
    const since = pass.attempts[0]?.since ?? 0;
    const others = this.#passes.filter((p) => p.key === pass.key && p.process !== pass.process);
    if (others.some((p) => !p.over || (p.attempts.at(-1)?.since ?? 0) >= since)) {
      this.residue.add(pass.key);
      this.count('residue: a late write of a process that died');
    }
  }

  /**
   * A resource cannot vanish while it has our finalizer, unless the cluster goes back to a backup. What a pass made for
   * it then goes again with the pass's status; it stays if that fails, too.
   */
  #forgive(): void {
    if (this.restored) for (const uuid of this.invariants.orphans) this.ledger.objects.add(uuid);
  }

  /** A definition that is not recorded is kept. */
  #definedForNobody(by: Context | undefined, operation: string, { name }: Record<string, unknown>): void {
    const self = by?.attempt?.self;
    const target = /^add(User|Group)Attribute$/.exec(operation)?.[1];
    if (self && target && !this.kube.resources.has(resourceKey(self))) this.ledger.definitions.add(`${target} ${name}`);
  }

  #logged(line: string): void {
    const { message, stack } = JSON.parse(line) as { message: string; stack?: string };
    if (message === 'an unforeseen error' && !stack?.includes('LldapError')) this.violate(`no error is unforeseen: ${stack}`);
  }
}

export function targetOf(resource: AnyResource) {
  return { kind: resource.kind, namespace: resource.metadata.namespace, name: resource.metadata.name };
}

export const name = (process: Process) => `${process.name}${process.slot === 0 ? '' : `/${process.slot}`}`;

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
