import type { Target } from '../events/parse.ts';
import type { KindName, ResourceOf, Retry } from '../kube/resources.ts';
import type { Failure } from '../rules/failure.ts';
import type { Policy } from '../rules/policy.ts';
import type { Reason } from '../rules/reasons.ts';
import type { ExtraFindings } from './conditions.ts';
import type { StatusOf, Work } from './context.ts';

/** What one pass found and did, as answered to `Prefer: return=representation` and logged: no value of a spec. */
export interface Report {
  result: 'gone' | 'ignored' | 'waiting' | 'unchanged' | 'settled' | 'deleted' | 'unwritten';
  kind: KindName;
  namespace: string;
  name: string;
  ready?: boolean;
  reason?: Reason;
  /** Why a pass is `unwritten`. */
  message?: string;
  did: string[];
  retry?: Retry;
}

export interface Settings {
  maxPasses: number;
  retryMaxMs: number;
}

/** Single mutations, each because of a difference. */
export type Plan<Step, Kept = object> =
  | {
      /** What the observation alone adds to the status, such as an id. */
      keep?: Partial<Kept>;
      steps: Step[];
      /** What conditions say once all steps are done. */
      findings?: ExtraFindings;
      /** What still keeps the resource from being Ready then. */
      unmet?: Failure;
    }
  | { refused: Failure };

/** What a kind supplies; everything else is the engine's. */
export interface Kind<K extends KindName, Dependencies, Observed, Step> {
  readonly name: K;
  /** Left alone altogether. */
  ignores?(resource: ResourceOf[K], policy: Policy): boolean;
  /** Sees to what the status tells of a step that was written ahead, and never confirmed: before all else, whatever the spec says by now. */
  recover?(work: Work<K>): Promise<void>;
  /** Why this resource may never act, as far as its own spec tells. */
  refuse(resource: ResourceOf[K], policy: Policy): Failure | undefined;
  /** Whether a resource that is settled may be left without looking at lldap. */
  unchanged(work: Work<K>): Promise<boolean>;
  /** Whether the resource names others at all. */
  hasDependencies(resource: ResourceOf[K]): boolean;
  /** What the resource waits for. @throws Failure NotReady */
  depend(work: Work<K>): Promise<Dependencies>;
  /**
   * Reads lldap as far as the decision needs.
   * @param sought a creation was answered "exists", so look wherever the object may be
   */
  observe(work: Work<K>, dependencies: Dependencies, sought: boolean): Promise<Observed>;
  plan(work: PlanInput<K>, observed: Observed): Plan<Step, StatusOf<K>>;
  /**
   * At deletion nothing is waited for, and the object may be anywhere.
   * @param onlyMade only what the draft says that the pass made
   */
  observeDeletion(work: Work<K>, onlyMade: boolean): Promise<Observed>;
  /** `refused` and no steps alike let the resource go; `unmet` holds it back. */
  planDeletion(work: PlanInput<K>, observed: Observed): Plan<Step, StatusOf<K>>;
  /** Carries out one step and keeps its results in the draft. */
  apply(step: Step, work: Work<K>): Promise<void>;
  /** One step for logs and people: no value of the spec. */
  describe(step: Step): string;
  /** Who may go on because of the change from `before` to what the draft says; `gone` at deletion. */
  dependants(work: Work<K>, change: { becameReady: boolean; gone: boolean }): Promise<Target[]>;
}

/** What a plan may look at: no clock, no client. */
export type PlanInput<K extends KindName> = Pick<Work<K>, 'resource' | 'draft' | 'policy'>;
