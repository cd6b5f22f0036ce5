import type { Summary } from '../../../functions/startup/run.ts';
import { INSTANCE_LABEL, MARK_ATTRIBUTE, PASSWORD_KEY_SECRET, REQUESTED_AT, VIRTUAL_LABEL } from '../../../shared/constants.ts';
import type { Report } from '../../../shared/engine/kind.ts';
import type { OperatorEvent, SweepMode } from '../../../shared/events/parse.ts';
import type {
  Condition,
  KindName,
  LldapMembership,
  LldapMembershipSpec,
  LldapUser,
  LldapUserSpec,
  ObjectMeta,
  ResourceOf,
} from '../../../shared/kube/resources.ts';
import { targetOf } from '../../../shared/lookup/dependents.ts';
import type { Answer } from '../../../shared/service/server.ts';
import { createLog } from '../../../shared/telemetry/log.ts';
import { type Delivery, nameOf } from '../../chaos/broker-double.ts';
import { configOf, INSTANCE, LABELS, OPERATOR_NAMESPACE } from '../../chaos/installation.ts';
import type { AnyResource, KubeListener } from '../../chaos/kube-double.ts';
import { LldapDouble } from '../../chaos/lldap-double.ts';
import { createProcess, FUNCTIONS, type FunctionName, type Process } from '../../chaos/process.ts';
import { createRandom } from '../../chaos/random.ts';
import { type Call, context, type Fault, settleMicrotasks } from '../../chaos/scheduler.ts';
import type { Directory } from '../../local/lldap/directory.ts';
import type { Group, User } from '../../local/lldap/state.ts';
import { forwardTo } from '../../support/forward.ts';
import { FUNCTION_OF } from '../../support/functions.ts';
import { NamingKube, NamingScheduler, ToldBroker } from './told-doubles.ts';

/** namespace/name. */
type Place = `${string}/${string}`;

/** What happens to the next calls that match. */
interface Rule {
  call: RegExp;
  left: number;
  fault?: Fault;
  before?: () => void;
}

/** More in one test is no coming to rest. */
const MOST_ACTIONS = 2_000;
/** A call that changes something, by the names that {@link TestWorld.calls} has. */
const WRITE = /^(lldap (create|update|delete|add|remove)|ldap set|kube (STATUS|FINALIZER|APPLY|CREATE) )/;

/**
 * Every function of the operator with its own code, over the doubles of the schedules: the API server, lldap and the
 * broker in memory, and a clock that moves when a test says so. Calls and events arrive in the order in which they were
 * made, unless a test makes one fail or does something right before it arrives.
 */
export class TestWorld {
  readonly scheduler = new NamingScheduler();
  readonly kube: NamingKube;
  readonly lldap: LldapDouble;
  readonly broker: ToldBroker;
  /** Every call that arrived, like `kube GET LldapUser team/alice`, `lldap updateUser alice`, `ldap setPassword alice`. */
  calls: string[] = [];
  /** What was posted to the broker by functions, like `reconcile LldapUser team/alice`, `startup full`. */
  posted: string[] = [];
  /** Every line of the log. */
  logs: ({ level: string; message: string } & Record<string, unknown>)[] = [];
  readonly #processes: Map<FunctionName, Process>;
  #rules: Rule[] = [];
  #isSourceDown = false;
  #unforeseen: unknown;
  #actions = 0;

  /** @param env settings, as the ConfigMap has them */
  constructor(env: Record<string, string> = {}) {
    const config = configOf(env);
    const listener: KubeListener = {
      onChange: (change, resource) => this.#tell({ what: 'resource', change, target: targetOf(resource), object: resource }),
      onSecret: (_change, { metadata: { namespace, name, labels } }) => {
        if (labels?.[INSTANCE_LABEL] === INSTANCE) this.#tell({ what: 'secret', namespace, name, redelivered: 0 });
      },
      onStatus: () => undefined,
      onExpired: () => undefined,
      onRead: () => undefined,
    };
    this.kube = new NamingKube(this.scheduler, listener, OPERATOR_NAMESPACE);
    const ignored = () => undefined;
    this.lldap = new LldapDouble(this.scheduler, { onMutation: ignored, onMutated: ignored, onPassword: ignored, onChange: ignored });
    this.broker = new ToldBroker(this.scheduler, (error) => {
      this.#unforeseen ??= error;
    });
    const around = {
      config,
      scheduler: this.scheduler,
      kube: this.kube,
      lldap: this.lldap,
      brokerOf: (process: Process) => this.broker.of(process),
      log: createLog('debug', (line) => this.#logged(line)),
      random: createRandom(0),
    };
    this.#processes = new Map(FUNCTIONS.map((name) => [name, createProcess(name, 0, 0, around)]));
    this.broker.told = (event) => {
      if (event.what === 'reconcile' || event.what === 'requeue') this.posted.push(`${event.what} ${nameOf(event.target)}`);
      if (event.what === 'startup') this.posted.push(`startup ${event.mode}`);
    };
  }

  /** What a run of startup leaves: the mark's definitions, the password key, the virtual groups. */
  installed(): this {
    this.unwatched(() => {
      const mark = { name: MARK_ATTRIBUTE, attributeType: 'STRING' as const, isList: false, isVisible: false, isEditable: false };
      for (const target of ['user', 'group'] as const)
        this.lldap.state.definitions[target].set(MARK_ATTRIBUTE, { ...mark, isHardcoded: false, isReadonly: false });
      const key = Buffer.alloc(32, 7).toString('base64');
      this.kube.putSecret({ metadata: { name: PASSWORD_KEY_SECRET, namespace: OPERATOR_NAMESPACE }, data: { key } });
      for (const { id, uuid, displayName } of this.lldap.state.groups.values()) this.#addVirtualGroup(displayName, { groupId: id, uuid });
    });
    return this;
  }

  #addVirtualGroup(displayName: string, recorded: { groupId: number; uuid: string }): void {
    const labels = { ...LABELS, [VIRTUAL_LABEL]: 'true' };
    const group = this.kube.create('LldapGroup', OPERATOR_NAMESPACE, displayName.replaceAll('_', '-'), labels, { displayName });
    const ready: Condition = {
      type: 'Ready',
      status: 'True',
      reason: 'Reconciled',
      message: 'lldap holds what the resource asks for.',
      lastTransitionTime: '2026-03-01T12:00:00Z',
      observedGeneration: 1,
    };
    this.kube.changeStatus(group, {
      nameKey: displayName,
      ...recorded,
      ready: true,
      observedGeneration: 1,
      conditions: [ready],
    } as AnyResource['status']);
  }

  // What people do.

  /** A user whose username is its `metadata.name`, without a password. */
  user(at: Place, over: Partial<LldapUserSpec> = {}): LldapUser {
    const { name } = split(at);
    return this.apply('LldapUser', at, { username: name, email: `${name}@example.com`, passwordPolicy: 'Ignore', ...over });
  }

  membership(at: Place, userName: string, groupName: string, over: Partial<LldapMembershipSpec> = {}): LldapMembership {
    return this.apply('LldapMembership', at, { userName, groupName, ...over });
  }

  /** A user that a person creates in lldap. */
  account(id: string, ...groups: string[]): User {
    this.byHand((directory) => {
      directory.createUser({ id, email: `${id}@example.com` });
      for (const group of groups) directory.addMember(id, this.groupOf(group).id);
    });
    return this.accountOf(id);
  }

  /** Creates the resource, or makes this its spec. */
  apply<K extends KindName>(kind: K, at: Place, spec: ResourceOf[K]['spec'], metadata: Partial<ObjectMeta> = {}): ResourceOf[K] {
    const { namespace, name } = split(at);
    const current = this.kube.get(kind, namespace, name);
    if (current) return this.kube.changeSpec(current, spec) as ResourceOf[K];
    const created = this.kube.create(kind, namespace, name, LABELS, spec);
    return (Object.keys(metadata).length > 0 ? this.kube.changeMetadata(created, metadata) : created) as ResourceOf[K];
  }

  /** Changes some fields of the spec. */
  edit<K extends KindName>(kind: K, at: Place, change: Partial<ResourceOf[K]['spec']>): void {
    const current = this.get(kind, at);
    this.kube.changeSpec(current, { ...current.spec, ...change } as AnyResource['spec']);
  }

  delete(kind: KindName, at: Place): void {
    this.kube.delete(this.get(kind, at));
  }

  /** Makes some fields of the status these; nobody but the operator should, but whoever may can. */
  forge<K extends KindName>(kind: K, at: Place, status: NonNullable<ResourceOf[K]['status']>): void {
    const current = this.get(kind, at);
    this.kube.changeStatus(current, { ...current.status, ...status });
  }

  /** Asks for a reconcile as a person does. */
  request(kind: KindName, at: Place, token: string): void {
    this.kube.changeMetadata(this.get(kind, at), { annotations: { [REQUESTED_AT]: token } });
  }

  secret(at: Place, password: string, labels: Record<string, string> = LABELS): void {
    this.kube.putSecret({ metadata: { ...split(at), labels }, data: { password: Buffer.from(password).toString('base64') } });
  }

  /** What a person does in lldap. */
  byHand(work: (directory: Directory) => void): void {
    this.lldap.byHand(work);
  }

  // What goes wrong, and what happens in between.

  /** The next calls of that name fail. */
  fail(call: RegExp, fault: Fault, times = 1): void {
    this.#rules.push({ call, fault, left: times });
  }

  /** Right before the next call of that name arrives. */
  before(call: RegExp, work: () => void): void {
    this.#rules.push({ call, before: work, left: 1 });
  }

  /** Faults end. */
  heal(): void {
    this.#rules = [];
  }

  /** Changes that no event tells of. */
  unwatched(work: () => void): void {
    this.#isSourceDown = true;
    work();
    this.#isSourceDown = false;
  }

  // Time.

  /** All arrives that is on its way, and what follows from it. */
  async deliverEvents(): Promise<void> {
    await this.pass(0);
  }

  /** The same, while time passes. */
  async pass(seconds: number): Promise<void> {
    const until = this.scheduler.now + seconds * 1000;
    await settleMicrotasks();
    for (;;) {
      if (await this.#act()) continue;
      const next = Math.min(this.scheduler.next, this.broker.next);
      if (next > until) break;
      await this.#passTime(next);
    }
    this.scheduler.now = until;
  }

  /** Forgets what was recorded so far. */
  forget(): void {
    this.calls = [];
    this.posted = [];
    this.logs = [];
    this.kube.events.length = 0;
  }

  /** What an event for a function leads to, as somebody is told who asks for it. */
  async ask(to: FunctionName, event: OperatorEvent): Promise<Answer> {
    const process = this.#processes.get(to);
    const handler = process?.handlers['/'];
    if (!process || !handler) throw new Error(`there is no function ${to}`);
    const { signal } = new AbortController();
    const target = event.what === 'resource' || event.what === 'reconcile' ? event.target : undefined;
    let answer: Answer | undefined;
    let failure: { error: unknown } | undefined;
    context
      .run({ process, target, attempt: undefined }, () => handler(event, { signal, stopping: signal, representation: true }))
      .then(
        (given) => {
          answer = given;
        },
        (error: unknown) => {
          failure = { error };
        },
      );
    await settleMicrotasks();
    while (!answer && !failure) if (!(await this.#act())) await this.#passTime(Math.min(this.scheduler.next, this.broker.next));
    if (failure) throw failure.error;
    if (!answer) throw new Error('no answer');
    return answer;
  }

  /** A full reconcile, as somebody is told who asks for it. */
  async reconcile(kind: KindName, at: Place, hint: { notBefore?: string } = {}): Promise<Report> {
    const answer = await this.ask(FUNCTION_OF[kind], { what: 'reconcile', target: { kind, ...split(at) }, redelivered: 0, ...hint });
    return ('body' in answer ? answer.body : undefined) as Report;
  }

  /** A run of startup, as the Jobs are told of it. */
  async startup(mode: SweepMode = 'sweep'): Promise<Summary> {
    const answer = await this.ask('startup', { what: 'startup', mode });
    return ('body' in answer ? answer.body : undefined) as Summary;
  }

  // What came of it.

  get<K extends KindName>(kind: K, at: Place): ResourceOf[K] {
    const { namespace, name } = split(at);
    const resource = this.kube.get(kind, namespace, name);
    if (!resource) throw new Error(`there is no ${kind} ${at}`);
    return resource;
  }

  has(kind: KindName, at: Place): boolean {
    const { namespace, name } = split(at);
    return this.kube.get(kind, namespace, name) !== undefined;
  }

  status<K extends KindName>(kind: K, at: Place): NonNullable<ResourceOf[K]['status']> {
    return (this.get(kind, at).status ?? {}) as NonNullable<ResourceOf[K]['status']>;
  }

  condition(kind: KindName, at: Place, type: string): Condition | undefined {
    return this.status(kind, at).conditions?.find((c) => c.type === type);
  }

  /** A condition in few words: `True`, or `False DependencyNotReady`. */
  ready(kind: KindName, at: Place, type = 'Ready'): string {
    const condition = this.condition(kind, at, type);
    if (!condition) return 'unset';
    return condition.status === 'True' && type === 'Ready' ? 'True' : `${condition.status} ${condition.reason}`;
  }

  message(kind: KindName, at: Place, type = 'Ready'): string {
    return this.condition(kind, at, type)?.message ?? '';
  }

  hasAccount(id: string): boolean {
    return this.lldap.state.users.has(id);
  }

  accountOf(id: string): User {
    return this.lldap.directory.user(id);
  }

  hasGroup(displayName: string): boolean {
    return [...this.lldap.state.groups.values()].some((g) => g.displayName === displayName);
  }

  groupOf(displayName: string): Group {
    const group = [...this.lldap.state.groups.values()].find((g) => g.displayName === displayName);
    if (!group) throw new Error(`lldap has no group ${displayName}`);
    return group;
  }

  members(displayName: string): string[] {
    return [...this.groupOf(displayName).members].sort();
  }

  markOf(object: User | Group): string | undefined {
    return object.attributes.get(MARK_ATTRIBUTE)?.[0];
  }

  /** The calls that changed something. */
  get writes(): string[] {
    return this.calls.filter((call) => WRITE.test(call));
  }

  /** What lldap was asked, its logins aside. */
  get asked(): string[] {
    return this.calls.filter((call) => /^l?ldap (?!\/auth)/.test(call));
  }

  /** Reasons of Kubernetes Events, like `Normal Reconciled team/alice`. */
  get events(): string[] {
    return this.kube.events.map(({ type, reason, regarding }) => `${type} ${reason} ${regarding.namespace}/${regarding.name}`);
  }

  /** The log's lines of one level. */
  logged(level: 'warn' | 'error'): TestWorld['logs'] {
    return this.logs.filter((entry) => entry.level === level);
  }

  /** The log's lines of reconciles. */
  get reports(): TestWorld['logs'] {
    return this.logs.filter((entry) => 'did' in entry);
  }

  /** What each reconcile came to, like `reconciled LldapUser team/alice`. */
  get results(): string[] {
    return this.reports.map(({ result, kind, namespace, name }) => `${result} ${kind} ${namespace}/${name}`);
  }

  /** What all reconciles did, in words. */
  get did(): string[] {
    return this.reports.flatMap(({ did }) => did as string[]);
  }

  async #act(): Promise<boolean> {
    const [call] = this.scheduler.calls;
    const [delivery] = this.broker.ready;
    if (!call && !delivery) return false;
    if (call && (!delivery || call.seq < delivery.seq)) this.#arrive(call);
    else if (delivery) this.#deliver(delivery);
    await settleMicrotasks();
    if (this.#unforeseen) throw this.#unforeseen;
    if (++this.#actions > MOST_ACTIONS) throw new Error('the world does not come to rest');
    return true;
  }

  #arrive(call: Call): void {
    const name = `${call.service} ${call.what}`;
    const rule = this.#rules.find((r) => r.left > 0 && r.call.test(name));
    if (rule) rule.left--;
    rule?.before?.();
    this.calls.push(name);
    this.scheduler.remove(call);
    call.arrive(rule?.fault);
  }

  #deliver(delivery: Delivery): void {
    const process = this.#processes.get(delivery.to);
    if (process) this.broker.deliver(delivery, process);
  }

  async #passTime(to: number): Promise<void> {
    if (!Number.isFinite(to)) throw new Error('nothing can happen any more');
    this.scheduler.now = Math.max(this.scheduler.now, to);
    this.scheduler.fire(createRandom(0), () => undefined);
    await settleMicrotasks();
  }

  #tell(event: OperatorEvent): void {
    if (!this.#isSourceDown) this.broker.post(event);
  }

  #logged(line: string): void {
    const entry = JSON.parse(line) as TestWorld['logs'][number];
    this.logs.push(entry);
    if ('stack' in entry && !String(entry.stack).includes('LldapError')) this.#unforeseen ??= new Error(String(entry.stack));
  }
}

/** An installation as `startup` leaves it, with nothing recorded. */
export function createWorld(env?: Record<string, string>): TestWorld {
  return new TestWorld(env).installed();
}

/** A new world for each test of one `describe`; `startWith` gives a test another one. */
export function useWorld(): { w: TestWorld; startWith: (other: TestWorld) => void } {
  let world: TestWorld;
  const startWith = (other: TestWorld) => {
    world = other;
  };
  beforeEach(() => startWith(createWorld()));
  return { w: forwardTo(() => world), startWith };
}

function split(at: string): { namespace: string; name: string } {
  const [namespace = '', name = ''] = at.split('/');
  return { namespace, name };
}
