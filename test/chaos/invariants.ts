import { FINALIZER, MARK_ATTRIBUTE } from '../../shared/constants.ts';
import type { CommonStatus, LldapMembershipStatus } from '../../shared/kube/resources.ts';
import type { BrokerDouble } from './broker-double.ts';
import type { History, Moment } from './history.ts';
import { type AnyResource, keyOf, resourceKey } from './kube-double.ts';
import { anyView, type Fields, groupOf, isVain, pairOf, passwordAsked, RULES, userNamed } from './mutation-oracle.ts';
import type { Possession } from './objects-kept.ts';
import { declares, isLooking, mayWrite, type RuleBook } from './ownership-oracle.ts';
import type { Process } from './process.ts';
import type { Context } from './scheduler.ts';

/** A sentence that does not hold, if there is one. */
type Broken = string | undefined;

/** A reconcile as it knows itself. */
interface Reconcile {
  self: AnyResource;
  moments: readonly Moment[];
}

/** What must hold at every call, whatever goes wrong. Each is a sentence; the first that does not hold ends the schedule. */
export class Invariants {
  readonly #history: History;
  readonly #broker: BrokerDouble;
  readonly #book: RuleBook;
  readonly #violate: (sentence: string) => void;
  readonly #possession: Possession;
  /** Which resource, by its uid, made what: a reconcile knows of its own deeds before its status does. */
  readonly #done = new Set<string>();
  /** Every join, with the process that made it for which resource, by its uid. */
  readonly #joins: { process: Process; uid: string; pair: string }[] = [];
  /** What was made for one request: uuids, and pairs of them. */
  readonly #made = new WeakMap<object, string[]>();
  /** Who has set the password of which uuid and not yet written its status. */
  readonly #setting = new Map<Context, string>();
  readonly #lastSet = new Map<string, { by: Context; at: number }>();
  /** uuids whose passwords two processes set at the same time: the status may name the date of the one that came first. */
  readonly contested = new Set<string>();

  constructor(history: History, broker: BrokerDouble, book: RuleBook, possession: Possession, violate: (sentence: string) => void) {
    this.#possession = possession;
    this.#history = history;
    this.#broker = broker;
    this.#book = book;
    this.#violate = violate;
  }

  /** Before a mutation of lldap is carried out. */
  mutation(by: Context | undefined, operation: string, variables: Fields): void {
    if (by?.attempt) by.attempt.mutations++;
    const { self, since = 0 } = by?.attempt ?? {};
    const isUndone = this.#isUndoing(by, operation, variables);
    const taken = self && !isUndone ? this.#possession.brokenBy(self, since, operation, variables) : undefined;
    const broken = this.#mutation(by, operation, variables) ?? taken;
    if (broken) this.#violate(`${broken}: ${textOf(by)}: ${operation} ${JSON.stringify(variables)}`);
  }

  /** After it. */
  mutated(by: Context | undefined, operation: string, variables: Fields, result: unknown): void {
    const self = by?.attempt?.self;
    if (!by || !self) return;
    this.#possession.note(self, operation, variables, result);
    const made = (what: string) => this.#made.set(by, [...(this.#made.get(by) ?? []), what]);
    if (operation.startsWith('create')) made((result as { uuid: string }).uuid);
    if (operation.startsWith('create')) this.#done.add(`${self.metadata.uid} ${(result as { uuid: string }).uuid}`);
    if (operation === 'addUserToGroup') {
      const pair = pairOf(variables, this.#history.current);
      made(pair);
      this.#joins.push({ process: by.process, uid: self.metadata.uid, pair });
    }
    if (operation === 'addUserToGroup') this.#done.add(`${self.metadata.uid} ${pairOf(variables, this.#history.current)}`);
    if (/^add.*Attribute$/.test(operation)) this.#done.add(`${self.metadata.uid} ${String(variables.name)}`);
  }

  /** uuids of what resources made that are no more. */
  get orphans(): string[] {
    const uids = new Set([...this.#history.current.resources.values()].map((r) => r.metadata.uid));
    return [...this.#done].map((deed) => deed.split(' ')).flatMap(([uid = '', what = '']) => (uids.has(uid) ? [] : [what]));
  }

  /** Pairs that a process joined for memberships that are no more: it alone would take them back. */
  orphanedBy(process: Process): string[] {
    const uids = new Set([...this.#history.current.resources.values()].map((r) => r.metadata.uid));
    return this.#joins.filter((join) => join.process === process && !uids.has(join.uid)).map(({ pair }) => pair);
  }

  /** Before a password is set. */
  password(by: Context | undefined, userId: string, password: string): void {
    const uuid = userNamed(this.#history.current, userId)?.uuid ?? '';
    if (!by) {
      this.#violate('passwords are set only by a reconcile of a user');
      return;
    }
    if (by.attempt) by.attempt.mutations++;
    const made = this.#made.get(by) ?? [];
    const isUndoing = made.includes(`password ${uuid}`) || this.#isStray(by, uuid);
    this.#made.set(by, [...made, `password ${uuid}`]);
    this.#noteSetting(by, uuid);
    const broken = isUndoing ? undefined : this.#password(by, userId, password);
    if (broken) this.#violate(`${broken}: ${textOf(by)} sets the password of ${userId}`);
  }

  /** Whether the resource's password works for an account that is not its own: it reached it instead of its own, and is made useless. */
  #isStray(by: Context, uuid: string): boolean {
    const reconcile = this.#reconcile(by);
    if (reconcile?.self.kind !== 'LldapUser' || reconcile.self.spec.passwordPolicy === 'Ignore' || isLooking(reconcile.self)) return false;
    const { self, moments } = reconcile;
    const isOf = (moment: Moment) => moment.passwords.get(uuid) === passwordAsked(self, moment);
    const object = this.#history.current.objects.find((o) => o.uuid === uuid);
    return object !== undefined && !mayWrite(object, self, this.#history.current, this.#book) && moments.some(isOf);
  }

  /** Whoever reads lldap's date last takes it for that of its own password. */
  #noteSetting(by: Context, uuid: string): void {
    const isOpen = [...this.#setting].some(([other, of]) => other !== by && of === uuid);
    const last = this.#lastSet.get(uuid);
    const isUnseen = last !== undefined && last.by !== by && last.at >= (by.attempt?.since ?? 0);
    if (isOpen || isUnseen) this.contested.add(uuid);
    this.#setting.set(by, uuid);
    this.#lastSet.set(uuid, { by, at: this.#history.now });
  }

  /** Before a status is written. */
  status(by: Context | undefined, current: AnyResource, status: CommonStatus): void {
    if (!by?.target) return;
    this.#setting.delete(by);
    const broken = this.#status(by, current, status);
    if (broken) this.#violate(`${broken}: ${textOf(by)}`);
  }

  #mutation(by: Context | undefined, operation: string, variables: Fields): Broken {
    if (/^add(User|Group)Attribute$/.test(operation) && variables.name === MARK_ATTRIBUTE) return undefined;
    if (isVain(operation, variables, this.#history.current) || this.#isUndoing(by, operation, variables)) return undefined;
    const reconcile = this.#reconcile(by);
    if (!reconcile) return 'lldap is written to only by a reconcile of a resource';
    const rule = RULES[operation];
    if (!rule) return 'no kind of resource leads to this';
    if (!reconcile.moments.some((moment) => hasFinalizer(reconcile.self, moment))) return 'the finalizer stands before the first mutation';
    const isRight = anyView(reconcile.moments, (moment) => rule(variables, reconcile.self, moment, this.#book, this.#done));
    return isRight ? undefined : 'only what a resource owns and asks for is written, deleted or joined';
  }

  #password(by: Context | undefined, userId: string, password: string): Broken {
    const reconcile = this.#reconcile(by);
    if (!reconcile) return 'passwords are set only by a reconcile of a user';
    const { self, moments } = reconcile;
    const uuidAt = (moment: Moment) => userNamed(moment, userId)?.uuid ?? '';
    const isKnown = moments.every((moment) => moment.passwords.get(uuidAt(moment)) === password);
    if (isKnown && !this.contested.delete(uuidAt(this.#history.current))) return 'no password is written that lldap has already';
    if (self.kind !== 'LldapUser' || self.metadata.deletionTimestamp !== undefined || declares(self) !== userId)
      return "a password is set only by the user's own resource";
    if (isLooking(self) || self.spec.passwordPolicy === 'Ignore' || !moments.some((moment) => passwordAsked(self, moment) === password))
      return "only the Secret's password is set, and only if the policy is not Ignore";
    if (self.spec.passwordPolicy === 'InitialOnly' && moments.every((moment) => moment.passwords.has(uuidAt(moment))))
      return 'InitialOnly leaves a password that was ever set';
    const isMine = anyView(moments, (moment) => {
      const object = userNamed(moment, userId);
      return object !== undefined && mayWrite(object, self, moment, this.#book);
    });
    return isMine ? undefined : 'a password is set only for a user that the resource owns';
  }

  #status({ attempt }: Context, current: AnyResource, status: CommonStatus): Broken {
    // Written ahead of a join that must not be forgotten; the attempt's own status is still to come.
    if (status.observedGeneration === undefined && (status as LldapMembershipStatus).joining) return undefined;
    if (attempt && ++attempt.statusWrites > 1) return 'there is one status write for each attempt';
    const next = status.retry?.nextTime;
    const isNew = next !== undefined && next !== current.status?.retry?.nextTime;
    if (isNew && !this.#broker.requeues.has(`${resourceKey(current)} ${next}`))
      return 'no status names a retry that the broker has not accepted';
    return status.observedGeneration === current.metadata.generation ? undefined : 'a status speaks of the generation that is there';
  }

  #reconcile(by: Context | undefined): Reconcile | undefined {
    if (!by?.attempt?.self) return undefined;
    return { self: by.attempt.self, moments: this.#history.since(by.attempt.since) };
  }

  /** Of a resource that vanished, or of two processes that made something for it, what is too much goes again. */
  #isUndoing(by: Context | undefined, operation: string, variables: Fields): boolean {
    const made = (by && this.#made.get(by)) ?? [];
    const { current } = this.#history;
    switch (operation) {
      case 'deleteUser':
        return made.includes(userNamed(current, String(variables.userId))?.uuid ?? '');
      case 'deleteGroup':
        return made.includes(groupOf(current, variables.groupId)?.uuid ?? '');
      case 'removeUserFromGroup':
        return made.includes(pairOf(variables, current));
      default:
        return false;
    }
  }
}

function textOf(by: Context | undefined): string {
  return by?.target
    ? `${by.process.name} for ${keyOf(by.target.kind, by.target.namespace, by.target.name)}`
    : (by?.process.name ?? 'nobody');
}

function hasFinalizer(self: AnyResource, moment: Moment): boolean {
  const then = moment.resources.get(resourceKey(self));
  return then?.metadata.uid === self.metadata.uid && (then.metadata.finalizers?.includes(FINALIZER) ?? false);
}
