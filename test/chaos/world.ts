import { INSTANCE_LABEL, MARK_ATTRIBUTE, PASSWORD_KEY_SECRET } from '../../shared/constants.ts';
import { ORPHAN_LEFT } from '../../shared/engine/rollback.ts';
import type { OperatorEvent, Target } from '../../shared/events/parse.ts';
import type { Secret } from '../../shared/kube/objects.ts';
import { targetOf } from '../../shared/lookup/dependents.ts';
import { createLog } from '../../shared/telemetry/log.ts';
import type { State } from '../local/lldap/state.ts';
import { BrokerDouble, type Delivery } from './broker-double.ts';
import { Course } from './driver.ts';
import { Ledger } from './expected-leftovers.ts';
import { History, type Moment } from './history.ts';
import { configOf, INSTANCE, OPERATOR_NAMESPACE } from './installation.ts';
import { Invariants } from './invariants.ts';
import { type AnyResource, type Change, KubeDouble, type KubeListener, keyOf, resourceKey } from './kube-double.ts';
import { LldapDouble, type LldapListener } from './lldap-double.ts';
import { objectOf, pairOf } from './mutation-oracle.ts';
import { Possession } from './objects-kept.ts';
import { isLooking, type RuleBook, recordedUuid } from './ownership-oracle.ts';
import { createProcess, FUNCTIONS, type FunctionName, type Process, type Surroundings } from './process.ts';
import { createRandom, type Random } from './random.ts';
import { Reconciles } from './reconciles.ts';
import type { Schedule } from './schedule.ts';
import { type Context, Scheduler } from './scheduler.ts';

/** A rule that did not hold. */
export class Violation extends Error {
  override name = 'Violation';
}

/** All processes, what they talk to, and what is known of them. */
export class World {
  readonly scheduler = new Scheduler();
  readonly course = new Course(this);
  readonly kube: KubeDouble;
  readonly lldap: LldapDouble;
  readonly broker: BrokerDouble;
  readonly history: History;
  readonly ledger: Ledger;
  readonly possession: Possession;
  readonly book: RuleBook;
  /** How often each fault was met. */
  readonly counts = new Map<string, number>();
  readonly backups: { kube: { resources: AnyResource[]; secrets: ReadonlyMap<string, Secret> }; lldap: State };
  processes: Process[] = [];
  /** Changes that the source will not tell. */
  untold = 0;
  /** An event is gone for good, or one thing was done that none tells of. */
  isLossy: boolean;
  /** Only a full reconcile finds what people did in lldap, or what a backup brought back. */
  needsFull = false;
  /** The cluster went back to a backup. */
  isRestored = false;
  /** uids of memberships that had no status yet, by which they are found, when a user or group changed. */
  readonly unfound = new Set<string>();
  /** Keys on which a process died after a write that came late: the one thing that only drift mends. */
  readonly residue = new Set<string>();
  /** What was written, for times in which nothing should be. */
  readonly writes: string[] = [];
  violation: Violation | undefined;
  readonly #schedule: Schedule;
  readonly #around: Surroundings;
  readonly #reconciles: Reconciles;
  readonly invariants: Invariants;
  #isWatched = true;

  constructor(schedule: Schedule) {
    this.#schedule = schedule;
    const config = configOf({ ADOPTION: schedule.adoption, MAX_DELAYED_RETRIES: String(schedule.maxDelayedRetries) });
    const { privilegedNamespaces, adoption } = config;
    this.book = {
      instance: INSTANCE,
      operatorNamespace: OPERATOR_NAMESPACE,
      privilegedNamespaces: new Set(privilegedNamespaces),
      adoption,
    };
    this.isLossy = this.mayLetGo || !schedule.installed;
    this.ledger = new Ledger(this.book);
    this.kube = new KubeDouble(this.scheduler, this.#kubeListener(), OPERATOR_NAMESPACE);
    this.lldap = new LldapDouble(this.scheduler, this.#lldapListener());
    this.broker = new BrokerDouble(this.scheduler, (error) =>
      this.violate(`no handler throws what is not foreseen: ${error instanceof Error ? error.stack : String(error)}`),
    );
    this.broker.onAnswered = ({ process, delivery }, status) => this.#answered(process, delivery, status);
    this.history = new History(this.kube, this.lldap);
    this.#reconciles = new Reconciles(this.history, this.broker);
    this.possession = new Possession(this.history);
    this.invariants = new Invariants(this.history, this.broker, this.book, this.possession, (sentence) => this.violate(sentence));
    this.history.note(true);
    this.ledger.keepAll(this.history.current.objects, [], this.pairs());
    this.backups = { kube: { resources: [], secrets: new Map() }, lldap: structuredClone(this.lldap.state) };
    this.#around = {
      config,
      scheduler: this.scheduler,
      kube: this.kube,
      lldap: this.lldap,
      brokerOf: (process) => this.broker.of(process),
      log: createLog('error', (line) => this.#logged(line)),
      random: createRandom(schedule.calmSeed),
    };
    for (const name of FUNCTIONS) for (let slot = 0; slot < this.#count(name); slot++) this.#start(name, slot);
  }

  count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
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

  /** Processes that wait for an answer, or owe one: also those that sleep, and a requeue that holds. */
  get busy(): Process[] {
    const flights = [...this.broker.inFlight];
    return this.processes.filter((p) => this.scheduler.calls.some(({ by }) => by === p) || flights.some(({ process }) => process === p));
  }

  /** Whether a retry may be left to the sweep: requeue lets go of what is above its bound. */
  get mayLetGo(): boolean {
    return this.#schedule.maxDelayedRetries < 100;
  }

  /** Whether a function has more than one process, or had. */
  get isCrowded(): boolean {
    return this.#schedule.processes > 1 || this.counts.has('process: rollout');
  }

  /** Each call that it had on its way arrives, never will, or will be late; another process takes its place. */
  crash(process: Process, fate: Random | 'late'): void {
    process.alive = false;
    const cut = this.scheduler.cut(process);
    if (fate === 'late') this.course.late.push(...cut);
    else for (const call of cut) if (fate.below(2) === 1) this.course.arriveLate(call);
    this.#forgive();
    for (const pair of this.invariants.orphanedBy(process)) this.ledger.pairs.add(pair);
    for (const key of this.#reconciles.died(process)) {
      this.residue.add(key);
      this.count('residue: a late write of a process that died');
    }
    this.broker.disconnect(process);
    this.processes = this.processes.filter((p) => p !== process);
    if (!process.stopping.signal.aborted) this.#start(process.name, process.slot);
  }

  /** New events go to a new process, while this one finishes what it has. */
  rollout(process: Process): void {
    if (process.stopping.signal.aborted) return;
    process.stopping.abort();
    this.#start(process.name, process.slot);
  }

  /** Of a late write no rule is asked, since nobody is there any more to look again after it; and what it makes may stay. */
  unwatched(arrive: () => void): void {
    const before = this.history.now;
    this.#isWatched = false;
    arrive();
    this.#isWatched = true;
    if (this.history.now === before) return;
    this.count('residue: a late write of a process that died');
    for (const key of this.kube.resources.keys()) this.residue.add(key);
    this.ledger.keepAll(this.history.current.objects, this.definitions(), this.pairs());
  }

  #start(name: FunctionName, slot: number): void {
    const skew = (this.#schedule.skews[slot] ?? 0) * 60_000;
    this.processes.push(createProcess(name, slot, skew, this.#around));
  }

  #count(name: FunctionName): number {
    return name === 'startup' || name === 'requeue' ? 1 : this.#schedule.processes;
  }

  #kubeListener(): KubeListener {
    return {
      onChange: (change: Change, resource: AnyResource) => {
        this.history.note(false);
        if (change === 'delete') this.#gone(resource);
        this.#tell({ what: 'resource', change, target: targetOf(resource), object: resource });
      },
      onSecret: (_change: Change, { metadata }: Secret) => {
        this.history.note(false);
        if (metadata.name === PASSWORD_KEY_SECRET) return;
        if (metadata.labels?.[INSTANCE_LABEL] !== INSTANCE) this.isLossy = true;
        else this.#tell({ what: 'secret', namespace: metadata.namespace, name: metadata.name, redelivered: 0 });
      },
      onStatus: (by, current, status) => {
        this.writes.push(`status ${resourceKey(current)}`);
        this.invariants.status(by, current, status);
      },
      onExpired: () => this.count('kube: a list expired'),
      onRead: (by, resource) => this.#reconciles.read(by, resource),
    };
  }

  #lldapListener(): LldapListener {
    return {
      onMutation: (by, operation, variables) => {
        if (this.#isWatched) this.invariants.mutation(by, operation, variables);
      },
      onMutated: (by, operation, variables, result) => {
        this.writes.push(operation);
        this.invariants.mutated(by, operation, variables, result);
        if (/^delete(User|Group)$|^updateGroup$/.test(operation)) this.#noteUnfound();
        this.#excuse(by, operation, variables, result);
      },
      onPassword: (by, userId, password) => {
        this.writes.push(`password ${userId}`);
        if (this.#isWatched) this.invariants.password(by, userId, password);
      },
      onChange: () => this.history.note(true),
    };
  }

  /** Memberships that nobody could find who changed a user or group. */
  #noteUnfound(): void {
    for (const { status, metadata } of this.kube.all('LldapMembership')) if (!status?.userKey) this.unfound.add(metadata.uid);
  }

  /** What a mutation leaves that was made for a resource which is gone. */
  #excuse(by: Context | undefined, operation: string, variables: Record<string, unknown>, result: unknown): void {
    const self = by?.attempt?.self;
    const current = self && this.kube.resources.get(resourceKey(self));
    if (!self || (current?.metadata.uid === self.metadata.uid && current.metadata.deletionTimestamp === undefined)) return;
    // Nothing takes back what a resource is to keep, nor what nobody is there any more to look after.
    const isKept = self.spec.deletionPolicy === 'Retain' || isLooking(self);
    if (operation === 'addUserToGroup' && (isKept || !by.process.alive)) this.ledger.pairs.add(pairOf(variables, this.history.current));
    if (operation.startsWith('create') && isKept) this.ledger.objects.add((result as { uuid: string }).uuid);
    // What exists is taken over by its mark alone, and is not deleted where nobody is there any more to record it.
    const written = !current && operation.startsWith('update') && objectOf(operation, variables, this.history.current);
    if (written) this.ledger.objects.add(written.uuid);
    // A definition whose resource has vanished is recorded nowhere, and kept.
    const target = /^add(User|Group)Attribute$/.exec(operation)?.[1];
    if (target && !current) this.ledger.definitions.add(`${target} ${variables.name}`);
  }

  #tell(event: OperatorEvent): void {
    if (this.untold === 0) {
      this.broker.post(event);
      return;
    }
    this.untold--;
    this.isLossy = true;
    this.count('source: lost');
  }

  #gone(resource: AnyResource): void {
    this.possession.gone(resource);
    // What kept the object may have been true only when its last reconcile looked.
    const key = resourceKey(resource);
    const isGoing = ({ resources }: Moment) => resources.get(key)?.metadata.deletionTimestamp !== undefined;
    const views = new Set([this.history.moments.at(-2) ?? this.history.current, ...this.history.moments.filter(isGoing)]);
    for (const view of views) this.ledger.gone(resource, { ...view, resources: new Map(view.resources).set(key, resource) }, this.pairs());
  }

  #answered(process: Process, delivery: Delivery, status: number): void {
    if (status >= 500) this.#forgive();
    if (status < 300) this.#reconciles.answered(process, delivery);
  }

  /**
   * A resource cannot vanish while it has our finalizer, unless the cluster goes back to a backup. What a reconcile made for
   * it then goes again with the reconcile's status; it stays if that fails, too.
   */
  #forgive(): void {
    if (this.isRestored) for (const uuid of this.invariants.orphans) this.ledger.objects.add(uuid);
  }

  #logged(line: string): void {
    const { message, stack, kind, namespace, name } = JSON.parse(line) as { message: string; stack?: string } & Target;
    if (message === 'unexpected error' && !stack?.includes('LldapError')) this.violate(`no error is unforeseen: ${stack}`);
    if (message === ORPHAN_LEFT) {
      const resource = this.kube.resources.get(keyOf(kind, namespace, name));
      const recorded = resource && recordedUuid(resource);
      this.ledger.leftInVain({ kind, ref: `${namespace}/${name}`, recorded }, this.history.current.objects, this.pairs());
    }
  }
}
