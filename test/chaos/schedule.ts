import type { OperatorEvent, SweepMode } from '../../shared/events/parse.ts';
import type { KindName } from '../../shared/kube/resources.ts';
import type { AnyResource } from './kube-double.ts';
import type { FunctionName } from './process.ts';
import type { Fault, Service } from './scheduler.ts';

/**
 * One schedule: what people do, what goes wrong, and when what is on its way arrives. Plain data, so that a
 * counter-example can be kept as a test. Names are few, so that they clash.
 */
export interface Schedule {
  /** Processes of each function. */
  processes: number;
  /** Minutes that the clock of each process is ahead, by its slot; the first is startup's and requeue's, too. */
  skews: number[];
  adoption: 'privileged' | 'all';
  /** Requeue events that one process holds. */
  maxDelayedRetries: number;
  /** Whether startup has run before all else. */
  installed: boolean;
  /** Seconds from the end of the faults to the next run of the CronJob. */
  phase: number;
  /** Decides what arrives first once the faults are over; 0: in order. */
  calmSeed: number;
  steps: Step[];
}

/** namespace/name. */
export type Place = `${string}/${string}`;

export type Step = Passing | Failing | Telling | Asking | Touching;

/** What is on its way arrives, or time passes. */
type Passing =
  /** So many calls and events arrive, chosen by the seed. */
  | { do: 'run'; actions: number; seed: number }
  /** All arrive until a call whose service, operation and object match is on its way. */
  | { do: 'until'; call: string }
  /** All arrive, and what follows, while time passes. */
  | { do: 'wait'; seconds: number; seed: number }
  /** Time passes while nothing arrives. */
  | { do: 'stall'; seconds: number; seed: number };

type Failing =
  /** The next calls to a service fail. */
  | { do: 'fail'; service: Service; fault: Fault; calls: number }
  /** After some more has arrived, a process that is at work dies; each call that it had on its way is carried out, or not. */
  | { do: 'crash'; after: number; pick: number; seed: number }
  /** The same, but each call arrives some time later: the one thing that lldap cannot be kept from. */
  | { do: 'crashLate'; after: number; pick: number; seed: number }
  /** After some more, one that is at work gets no answer and no time, until it is thawed. */
  | { do: 'freeze'; after: number; pick: number; seed: number }
  | { do: 'thaw'; pick: number }
  | { do: 'rollout'; name: FunctionName }
  /** The dispatcher of the broker. */
  | { do: 'brokerDies' }
  /** So many changes are not told. */
  | { do: 'sourceDown'; changes: number }
  /** One of the events on their way. */
  | { do: 'event'; what: 'drop' | 'repeat' | 'delay'; pick: number }
  /** The broker gives up a request that it waits for, and delivers again. */
  | { do: 'giveUp'; after: number; pick: number; seed: number }
  /** All tokens of the operator's account end. */
  | { do: 'logout' }
  /** The account gets another password; the file follows or goes before, or is right again. */
  | { do: 'rotate'; what: 'password' | 'file' | 'both' }
  | { do: 'demote' };

type Telling =
  /** Anybody may post events. */
  { do: 'forge'; event: OperatorEvent } | { do: 'startup'; mode: SweepMode };

/** What users ask for. */
type Asking =
  | { do: 'apply'; kind: KindName; at: Place; spec: AnyResource['spec'] }
  | { do: 'delete'; kind: KindName; at: Place }
  | { do: 'request'; kind: KindName; at: Place; token: string }
  /** Another controller. */
  | { do: 'touch'; kind: KindName; at: Place; what: 'annotation' | 'condition' | 'finalizer' }
  /** The label `team` of a namespace, which no event tells of. */
  | { do: 'label'; namespace: string; team: string | null }
  | { do: 'secret'; at: Place; data: Record<string, string> | null; labelled: boolean }
  | { do: 'backup'; of: 'kube' | 'lldap' }
  /** `bare`: resources get new uids and have no status. */
  | { do: 'restore'; of: 'kube' | 'lldap'; bare: boolean };

/** What people do in lldap by hand. */
type Touching =
  | { do: 'newUser'; id: string; email: string; displayName?: string }
  | { do: 'newGroup'; displayName: string }
  | { do: 'editUser'; id: string; email?: string; displayName?: string; shoe?: string }
  | { do: 'renameGroup'; from: string; to: string }
  | { do: 'removeUser'; id: string }
  | { do: 'removeGroup'; displayName: string }
  | { do: 'join' | 'leave'; user: string; group: string }
  /** The mark of a user, or of a group, becomes another or none. */
  | { do: 'mark'; of: 'user' | 'group'; name: string; value: string | null }
  | { do: 'password'; id: string; password: string }
  | { do: 'define'; target: 'User' | 'Group'; name: string }
  | { do: 'undefine'; target: 'User' | 'Group'; name: string };

type StepOf<Do extends Step['do']> = Extract<Step, { do: Do }>;

/** How each step is carried out. */
export type Steps<W, Do extends Step['do']> = { [D in Do]: (world: W, step: StepOf<D>) => void | Promise<void> };
