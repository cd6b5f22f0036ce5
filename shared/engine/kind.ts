import type { Target } from '../events/parse.ts';
import type { KindName, ResourceOf, Retry } from '../kube/resources.ts';
import type { Failure } from '../rules/failure.ts';
import type { Policy } from '../rules/policy.ts';
import type { Reason } from '../rules/reasons.ts';
import type { ExtraConditions } from './conditions.ts';
import type { ReconcileContext, StatusOf } from './context.ts';

/** What a reconcile found and did, for logs and for callers that ask. It holds no value of a spec. */
export interface Report {
  result: 'gone' | 'ignored' | 'waiting' | 'unchanged' | 'reconciled' | 'deleted' | 'unwritten';
  kind: KindName;
  namespace: string;
  name: string;
  ready?: boolean;
  reason?: Reason;
  /** Why the status is `unwritten`. */
  message?: string;
  did: string[];
  retry?: Retry;
}

export interface Settings {
  maxConcurrentReconciles: number;
  retryMaxMs: number;
}

/** The mutations that a resource calls for, each because of a difference between spec and lldap; or why it gets none. */
export type Plan<Step, Status = object> =
  | {
      /** What the observation alone adds to the status, such as an id. */
      statusPatch?: Partial<Status>;
      steps: Step[];
      /** Conditions once all steps have succeeded. */
      conditions?: ExtraConditions;
      /** Why the resource is not Ready even then. */
      blockedBy?: Failure;
    }
  | { rejected: Failure };

/** What a kind supplies; everything else is the engine's. */
export interface Kind<K extends KindName, Dependencies, Observed, Step> {
  readonly name: K;
  /** Whether the engine leaves the resource alone. */
  ignores?(resource: ResourceOf[K], policy: Policy): boolean;
  /** Finishes or undoes a step that was written ahead and never confirmed. Runs before everything else, whatever the spec says. */
  recover?(context: ReconcileContext<K>): Promise<void>;
  /** Why the spec alone forbids this resource ever to act. */
  refuse(resource: ResourceOf[K], policy: Policy): Failure | undefined;
  /** With these, a plan says whether the resource may act at all, before it looks at what the resource names. */
  readonly withoutDependencies?: Dependencies;
  /** Whether a resource in steady state needs no look at lldap. */
  isUnchanged(context: ReconcileContext<K>): Promise<boolean>;
  /** Whether the resource names other resources. */
  hasDependencies(resource: ResourceOf[K]): boolean;
  /** @throws Failure NotReady while a dependency is missing */
  findDependencies(context: ReconcileContext<K>): Promise<Dependencies>;
  /**
   * Reads as much of lldap as the plan needs.
   * @param searchAll lldap answered "exists" to a creation, so look everywhere the object may be
   */
  observe(context: ReconcileContext<K>, dependencies: Dependencies, searchAll: boolean): Promise<Observed>;
  plan(context: PlanInput<K>, observed: Observed): Plan<Step, StatusOf<K>>;
  /**
   * Reads lldap for a deletion, which waits for no dependency.
   * @param onlyCreated consider only what the draft says this reconcile created
   */
  observeDeletion(context: ReconcileContext<K>, onlyCreated: boolean): Promise<Observed>;
  /** Whether `deletionPolicy: Retain` counts; it does unless the kind says otherwise. */
  mayRetain?(context: ReconcileContext<K>): Promise<boolean>;
  /** `rejected`, like no steps, removes the finalizer; `blockedBy` keeps it. */
  planDeletion(context: PlanInput<K>, observed: Observed): Plan<Step, StatusOf<K>>;
  /** Carries out one step and puts its results into the draft. */
  apply(step: Step, context: ReconcileContext<K>): Promise<void>;
  /** One step in words, without any value of the spec. */
  describe(step: Step): string;
  /** What a step would do, by the names of fields, without any value; undefined if it turns out to change nothing. */
  preview(step: Step, context: ReconcileContext<K>): Promise<string | undefined>;
  /** Resources that the change from `context.resource` to the draft concerns. */
  findDependents(context: ReconcileContext<K>, change: { becameReady: boolean; gone: boolean }): Promise<Target[]>;
}

/** What a plan may read: no clock, no client. */
export type PlanInput<K extends KindName> = Pick<ReconcileContext<K>, 'resource' | 'draft' | 'policy'>;
