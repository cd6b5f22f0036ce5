import { INSTANCE_LABEL, MARK_ATTRIBUTE } from '../constants.ts';
import type { Target } from '../events/parse.ts';
import { KubeError } from '../kube/errors.ts';
import type { KindName, ResourceOf } from '../kube/resources.ts';
import { LldapError } from '../lldap/api.ts';
import { askForDefinition } from '../lookup/attribute-definitions.ts';
import { enqueueDependents } from '../lookup/dependents.ts';
import type { Io } from '../lookup/io.ts';
import { restoreMarkAttributes } from '../lookup/mark-attribute.ts';
import { Failure, invalid, toFailure } from '../rules/failure.ts';
import type { Policy } from '../rules/policy.ts';
import { hasFinalizer, isDeleting, isObserved, isSteady, unhandledToken, waitsForRetry } from '../rules/predicates.ts';
import { REASONS } from '../rules/reasons.ts';
import { statusAhead } from './conditions.ts';
import type { ReconcileContext, StatusOf } from './context.ts';
import type { Kind, Plan, Report, Settings } from './kind.ts';
import { recordOutcome, writeStatus } from './outcome.ts';
import type { OwnWrites } from './own-writes.ts';
import type { Demand } from './queue.ts';
import { resumeDraft, rollBack } from './rollback.ts';

/** A reconcile starts no further mutation after this time. */
export const DEADLINE_MS = 30_000;
/** Attempts that end in a conflict with another writer; then the broker delivers the event again. */
const MAX_CONFLICT_ATTEMPTS = 3;
/** Observations in one attempt: lldap may answer "exists" to a creation, or lack the definition of an attribute. */
const MAX_OBSERVE_ROUNDS = 4;

export interface Outcome {
  report: Report;
  /** What the next reconcile must make up for, since this one's status was not written. */
  unfinished?: Demand;
}

/** `again`: the resource, or a dependency, changed between the reading and the status write. */
type Attempted = { report: Report; again?: boolean };

/**
 * Reconciles the resources of one kind: reads the resource, decides, applies what the kind plans, records the outcome.
 * Throws nothing foreseen; an error of the API server is an outcome, too.
 */
export function createReconciler<K extends KindName, Dependencies, Observed, Step>(
  kind: Kind<K, Dependencies, Observed, Step>,
  io: Io,
  settings: Settings,
  ownWrites: OwnWrites,
): (target: Target, demand: Demand) => Promise<Outcome> {
  type Context = ReconcileContext<K>;
  type Steps = Exclude<Plan<Step, StatusOf<K>>, { rejected: Failure }>;

  return async (target, demand) => {
    const run = startRun(target, demand);
    for (let attempts = 1; ; attempts++) {
      const { report, again } = await attempt(run).catch((error: unknown) => fromKubeError(run, error));
      if (again && attempts < MAX_CONFLICT_ATTEMPTS) continue;
      return report.result === 'unwritten' ? { report, unfinished: run } : { report };
    }
  };

  /** A conflict is attempted again; every other error of the API server is left to the broker's next delivery. */
  function fromKubeError(run: Run, error: unknown): Attempted {
    if (!(error instanceof KubeError)) throw error;
    const again = error.stale || error.gone;
    io.log[again ? 'debug' : 'error']('a reconcile failed at the API server', { ...run.target, reason: error.brief });
    return { report: run.report('unwritten', { message: error.brief }), again };
  }

  /** The state that all attempts of one reconcile share. */
  function startRun(target: Target, { full, notBefore }: Demand) {
    const deadline = io.clock.monotonic() + DEADLINE_MS;
    const did: string[] = [];
    return {
      target,
      full,
      notBefore,
      did,
      /** The last attempt, if its status write met a conflict. */
      superseded: undefined as Context | undefined,
      checkpoint(): void {
        // Another process may record a newer spec before our status write, and this mutation be of an older one.
        this.full = true;
        if (io.clock.monotonic() <= deadline) return;
        throw new Failure('Unavailable', 'DeadlineExceeded', 'The reconcile ran out of time. The next attempt continues where it stopped.');
      },
      report: (result: Report['result'], more: Partial<Report> = {}): Report => ({ result, ...target, did, ...more }),
    };
  }
  type Run = ReturnType<typeof startRun>;

  async function attempt(run: Run): Promise<Attempted> {
    const policy = await io.policy();
    const resource = await readServed(policy, run.target);
    if (resource === 'gone') await rollBackSuperseded(run, 'gone');
    if (typeof resource === 'string') return { report: run.report(resource) };
    const isSame = resource.metadata.uid === run.superseded?.resource.metadata.uid;
    if (!resumeDraft(resource, run.superseded)) await rollBackSuperseded(run, isSame ? 'duplicate' : 'gone');
    const context = createContext(run, policy, resource);
    try {
      return await reconcile(run, context);
    } catch (error) {
      if (error instanceof KubeError && error.stale) run.superseded = context;
      throw error;
    }
  }

  async function rollBackSuperseded(run: Run, cause: 'gone' | 'duplicate'): Promise<void> {
    if (run.superseded) await rollBack(run.superseded, (old) => remove(old, cause));
    run.superseded = undefined;
  }

  function createContext(run: Run, policy: Policy, resource: ResourceOf[K]): Context {
    const context: Context = {
      io,
      policy,
      full: run.full || unhandledToken(resource) !== undefined,
      notBefore: run.notBefore,
      resource,
      draft: resumeDraft(resource, run.superseded) ?? {},
      conditions: {},
      did: run.did,
      created: run.superseded?.created ?? false,
      checkpoint: () => run.checkpoint(),
      async writeAhead() {
        context.resource = await writeStatus(context, ownWrites, statusAhead(context.resource, context.draft));
      },
    };
    return context;
  }

  async function reconcile(run: Run, context: Context): Promise<Attempted> {
    const { resource } = context;
    if (waitsForRetry(resource, context, io.clock.now())) return { report: run.report('waiting') };
    const unrecovered = await failureOf(async () => kind.recover?.(context));
    if (unrecovered) return { report: await record(run, context, unrecovered) };
    if (resource.spec.suspend) return { report: await record(run, context, 'suspended') };
    if (isDeleting(resource)) return { report: await finalize(run, context) };
    if (!context.full && isSteady(resource) && !isObserved(resource) && (await isUnchanged(context)))
      return { report: run.report('unchanged') };
    const failure = await failureOf(async () => {
      throwIf(kind.refuse(resource, context.policy));
      if (isObserved(resource)) return preview(context);
      await converge(context, await findDependencies(context));
    });
    const report = await record(run, context, failure);
    // A dependency that became Ready between our reading and our status write found nobody waiting for it.
    const isWaiting = failure?.category === 'NotReady' && context.conditions.DependenciesReady?.status === 'False';
    const again = isWaiting && (await failureOf(async () => void (await kind.findDependencies(context)))) === undefined;
    if (again) run.full = true;
    return { report, again };
  }

  async function record(run: Run, context: Context, outcome: Failure | 'suspended' | undefined): Promise<Report> {
    const { brokerProblem, ...recorded } = await recordOutcome(context, settings, ownWrites, outcome, (change) =>
      kind.findDependents(context, change),
    ).catch(async (error: unknown) => {
      if (error instanceof KubeError && error.gone) await rollBack(context, (old) => remove(old, 'gone'));
      throw error;
    });
    return run.report(brokerProblem ? 'unwritten' : 'reconciled', { ...recorded, ...(brokerProblem && { message: brokerProblem }) });
  }

  /** Completes a deletion: removes what is ours from lldap, enqueues dependents, removes our finalizer. */
  async function finalize(run: Run, context: Context): Promise<Report> {
    if (!hasFinalizer(context.resource)) return run.report('gone');
    const failure = await failureOf(() => remove(context, 'deletion'));
    if (failure) return record(run, context, failure);
    let dependents: Target[] = [];
    await enqueueDependents(io, async () => {
      dependents = await kind.findDependents(context, { becameReady: false, gone: true });
      return dependents;
    });
    await io.kube.removeFinalizer(context.resource);
    // A resource that takes this one's place may have been quick enough to find it still there.
    await enqueueDependents(io, async () => dependents.filter((t) => t.kind === kind.name));
    return run.report('deleted');
  }

  /** The resource, if this installation serves it. */
  async function readServed(policy: Policy, { namespace, name }: Target): Promise<ResourceOf[K] | 'gone' | 'ignored'> {
    // An event may name any namespace; an installation for one namespace has no rights in others.
    if (namespace !== (policy.onlyNamespace ?? namespace)) return 'ignored';
    const resource = await io.kube.get(kind.name, namespace, name);
    if (!resource) return 'gone';
    const isServed = resource.metadata.labels?.[INSTANCE_LABEL] === policy.instance && !kind.ignores?.(resource, policy);
    return isServed ? resource : 'ignored';
  }

  /** A failure here is met again, and recorded, by the reconcile that then continues. */
  async function isUnchanged(context: Context): Promise<boolean> {
    let unchanged = false;
    await failureOf(async () => {
      unchanged = await kind.isUnchanged(context);
    });
    return unchanged;
  }

  async function findDependencies(context: Context): Promise<Dependencies> {
    if (!kind.hasDependencies(context.resource)) {
      context.conditions.DependenciesReady = null;
      return kind.findDependencies(context);
    }
    try {
      const dependencies = await kind.findDependencies(context);
      context.conditions.DependenciesReady = { status: 'True', reason: 'DependenciesReady', message: REASONS.DependenciesReady };
      return dependencies;
    } catch (error) {
      if (error instanceof Failure && error.category === 'NotReady')
        context.conditions.DependenciesReady = { status: 'False', reason: error.reason, message: error.message };
      throw error;
    }
  }

  /** The failure that `step` throws. Errors of the API server pass through: without it no status can be written. */
  async function failureOf(step: () => Promise<void> | undefined): Promise<Failure | undefined> {
    try {
      await step();
      return undefined;
    } catch (error) {
      if (error instanceof KubeError) throw error;
      const failure = toFailure(error);
      if (failure.category === 'Bug') io.log.error('unexpected error', { stack: error instanceof Error ? error.stack : String(error) });
      return failure;
    }
  }

  /** Compares, and writes nothing. A resource that may not act learns only that. */
  async function preview(context: Context): Promise<void> {
    const planWith = async (dependencies: Dependencies): Promise<Steps> => {
      const plan = kind.plan(context, await kind.observe(context, dependencies, false));
      if ('rejected' in plan) throw plan.rejected;
      return plan;
    };
    if (kind.withoutDependencies && kind.hasDependencies(context.resource)) await planWith(kind.withoutDependencies);
    const plan = await planWith(await findDependencies(context));
    Object.assign(context.conditions, plan.conditions);
    const changes: string[] = [];
    for (const step of plan.steps) changes.push(...[await kind.preview(step, context)].filter((change) => change !== undefined));
    if (changes.length > 0) throw invalid('WouldChange', `With managementPolicy: Manage, the operator would ${changes.join(', and ')}.`);
    throwIf(plan.blockedBy);
  }

  async function converge(context: Context, dependencies: Dependencies): Promise<void> {
    await observeAndApply(context, async (searchAll) => {
      const plan = kind.plan(context, await kind.observe(context, dependencies, searchAll));
      if ('rejected' in plan) throw plan.rejected;
      if (!hasFinalizer(context.resource)) {
        context.resource = await io.kube.addFinalizer(context.resource);
        ownWrites.add(context.resource);
      }
      return plan;
    });
  }

  /**
   * Deletes what is ours. Where this resource may not act, nothing in lldap changes and the deletion completes.
   *
   * @param cause a rollback, if not the resource's deletion. Retain is about the resource's own object, not a duplicate.
   */
  async function remove(context: Context, cause: 'deletion' | 'gone' | 'duplicate'): Promise<void> {
    const { resource } = context;
    const asksToRetain = (resource.spec.deletionPolicy === 'Retain' || isObserved(resource)) && cause !== 'duplicate';
    const isRetained = asksToRetain && (await kind.mayRetain?.(context)) !== false;
    if (isRetained || kind.refuse(resource, context.policy)) return;
    await observeAndApply(context, async () => {
      const plan = kind.planDeletion(context, await kind.observeDeletion(context, cause !== 'deletion'));
      return 'rejected' in plan ? { steps: [] } : plan;
    });
  }

  /** Applies a plan. When lldap contradicts the observation, observes and plans again. */
  async function observeAndApply(context: Context, makePlan: (searchAll: boolean) => Promise<Steps>): Promise<void> {
    let searchAll = false;
    for (let round = 1; ; round++) {
      const plan = await makePlan(searchAll);
      Object.assign(context.draft, plan.statusPatch);
      const contradiction = await apply(context, plan.steps);
      if (!contradiction) {
        Object.assign(context.conditions, plan.conditions);
        return throwIf(plan.blockedBy);
      }
      if (round === MAX_OBSERVE_ROUNDS) throw contradiction;
      if (contradiction.kind === 'exists') searchAll = true;
      else if (contradiction.attribute === MARK_ATTRIBUTE) await restoreMarkAttributes(io);
      else throw await askForDefinition(context, contradiction);
    }
  }

  /** @returns lldap's error, if it calls for another observation */
  async function apply(context: Context, steps: Step[]): Promise<LldapError | undefined> {
    for (const step of steps) {
      context.checkpoint();
      try {
        await kind.apply(step, context);
      } catch (error) {
        if (error instanceof LldapError && (error.kind === 'exists' || error.kind === 'undefinedAttribute')) return error;
        throw error;
      }
      context.did.push(kind.describe(step));
    }
    return undefined;
  }
}

function throwIf(failure: Failure | undefined): void {
  if (failure) throw failure;
}
