import { INSTANCE_LABEL, MARK_ATTRIBUTE } from '../constants.ts';
import type { Target } from '../events/parse.ts';
import { KubeError } from '../kube/errors.ts';
import type { KindName, ResourceOf } from '../kube/resources.ts';
import { LldapError } from '../lldap/api.ts';
import { askForDefinition } from '../lookup/attribute-definitions.ts';
import { wake } from '../lookup/dependents.ts';
import type { Io } from '../lookup/io.ts';
import { restoreMarks } from '../lookup/mark-attribute.ts';
import { Failure, toFailure } from '../rules/failure.ts';
import type { Policy } from '../rules/policy.ts';
import { hasFinalizer, isDeleting, isSettled, unhandledToken, waitsForRetry } from '../rules/predicates.ts';
import { REASONS } from '../rules/reasons.ts';
import { statusAhead } from './conditions.ts';
import type { StatusOf, Work } from './context.ts';
import type { Kind, Plan, Report, Settings } from './kind.ts';
import { settle, writeStatus } from './outcome.ts';
import type { Echoes } from './own-writes.ts';
import type { Hints } from './queue.ts';
import { resumeDraft, rollBack } from './rollback.ts';

/** Milliseconds from the start of a pass after which it starts no further mutation. */
export const DEADLINE_MS = 30_000;
/** Attempts of a pass that meet another's write, before the broker is asked to come again. */
const MAX_ATTEMPTS = 3;
/** Observations in one attempt: a creation may be answered "exists", and the mark's definition may be missing. */
const MAX_OBSERVE_ROUNDS = 4;

export interface Outcome {
  report: Report;
  /** What the next pass has to see to, since this one's status could not be written. */
  unfinished?: Hints;
}

/** How one attempt ended: `again` if the resource, or what it waits for, changed between its look and its status write. */
type Attempted = { report: Report; again?: boolean };

/**
 * Makes the passes of one kind: read the resource, decide by it, apply what the kind plans, record the outcome.
 * A pass throws nothing but what is not foreseen: an error of the API server is an outcome, too.
 */
export function createPass<K extends KindName, Dependencies, Observed, Step>(
  kind: Kind<K, Dependencies, Observed, Step>,
  io: Io,
  settings: Settings,
  echoes: Echoes,
): (target: Target, hints: Hints) => Promise<Outcome> {
  type KindWork = Work<K>;
  type Steps = Exclude<Plan<Step, StatusOf<K>>, { refused: Failure }>;

  return async (target, hints) => {
    const pass = startPass(target, hints);
    for (let attempts = 1; ; attempts++) {
      const { report, again } = await attempt(pass).catch((error: unknown) => refused(pass, error));
      if (again && attempts < MAX_ATTEMPTS) continue;
      return report.result === 'unwritten' ? { report, unfinished: pass } : { report };
    }
  };

  /** An error of the API server: read again what is not as it was read, or leave it to the broker's next delivery. */
  function refused(pass: Pass, error: unknown): Attempted {
    if (!(error instanceof KubeError)) throw error;
    const again = error.stale || error.gone;
    io.log[again ? 'debug' : 'error']('the API server failed a pass', { ...pass.target, reason: error.brief });
    return { report: pass.report('unwritten', { message: error.brief }), again };
  }

  /** What the attempts of one pass share. `full` from the first mutation on: should no status tell of it, lldap must be looked at again. */
  function startPass(target: Target, { full, notBefore }: Hints) {
    const deadline = io.clock.monotonic() + DEADLINE_MS;
    const did: string[] = [];
    return {
      target,
      full,
      notBefore,
      did,
      /** The attempt whose status write another's forestalled. */
      carried: undefined as KindWork | undefined,
      checkpoint(): void {
        // Another process may have settled a newer spec by the time of our status write, and this be an older one's.
        this.full = true;
        if (io.clock.monotonic() <= deadline) return;
        throw new Failure(
          'Unavailable',
          'DeadlineExceeded',
          'The pass ran out of time before all was done; it goes on with the next attempt.',
        );
      },
      report: (result: Report['result'], more: Partial<Report> = {}): Report => ({ result, ...target, did, ...more }),
    };
  }
  type Pass = ReturnType<typeof startPass>;

  async function attempt(pass: Pass): Promise<Attempted> {
    const policy = await io.policy();
    const resource = await readServed(policy, pass.target);
    if (resource === 'gone') await dropCarried(pass);
    if (typeof resource === 'string') return { report: pass.report(resource) };
    if (!resumeDraft(resource, pass.carried)) await dropCarried(pass);
    const work = startWork(pass, policy, resource);
    try {
      return await carryOut(pass, work);
    } catch (error) {
      if (error instanceof KubeError && error.stale) pass.carried = work;
      throw error;
    }
  }

  async function dropCarried(pass: Pass): Promise<void> {
    if (pass.carried) await rollBack(pass.carried, (old) => remove(old, true));
    pass.carried = undefined;
  }

  function startWork(pass: Pass, policy: Policy, resource: ResourceOf[K]): KindWork {
    const full = pass.full || unhandledToken(resource) !== undefined;
    const work: KindWork = {
      io,
      policy,
      full,
      notBefore: pass.notBefore,
      resource,
      draft: resumeDraft(resource, pass.carried) ?? {},
      findings: {},
      did: pass.did,
      made: pass.carried?.made ?? false,
      checkpoint: () => pass.checkpoint(),
      async writeAhead() {
        work.resource = await writeStatus(work, echoes, statusAhead(work.resource, work.draft));
      },
    };
    return work;
  }

  async function carryOut(pass: Pass, work: KindWork): Promise<Attempted> {
    const { resource } = work;
    if (waitsForRetry(resource, work, io.clock.now())) return { report: pass.report('waiting') };
    const unrecovered = await caught(async () => kind.recover?.(work));
    if (unrecovered) return { report: await record(pass, work, unrecovered) };
    if (resource.spec.suspend) return { report: await record(pass, work, 'suspended') };
    if (isDeleting(resource)) return { report: await finish(pass, work) };
    if (!work.full && isSettled(resource) && (await isUnchanged(work))) return { report: pass.report('unchanged') };
    const failure = await caught(async () => {
      throwIf(kind.refuse(resource, work.policy));
      await converge(work, await findDependencies(work));
    });
    const report = await record(pass, work, failure);
    // A dependency that turned Ready between our look and our status write found nobody to wake.
    const waits = failure?.category === 'NotReady' && work.findings.DependenciesReady?.status === 'False';
    const again = waits && (await caught(async () => void (await kind.depend(work)))) === undefined;
    if (again) pass.full = true;
    return { report, again };
  }

  async function record(pass: Pass, work: KindWork, outcome: Failure | 'suspended' | undefined): Promise<Report> {
    const { refused, ...found } = await settle(work, settings, echoes, outcome, (change) => kind.dependants(work, change)).catch(
      async (error: unknown) => {
        if (error instanceof KubeError && error.gone) await rollBack(work, (old) => remove(old, true));
        throw error;
      },
    );
    return pass.report(refused ? 'unwritten' : 'settled', { ...found, ...(refused && { message: refused }) });
  }

  /** The end of a resource that is being deleted: what is ours in lldap, whoever waited for it, and our finalizer. */
  async function finish(pass: Pass, work: KindWork): Promise<Report> {
    if (!hasFinalizer(work.resource)) return pass.report('gone');
    const failure = await caught(() => remove(work, false));
    if (failure) return record(pass, work, failure);
    let woken: Target[] = [];
    await wake(io, async () => {
      woken = await kind.dependants(work, { becameReady: false, gone: true });
      return woken;
    });
    await io.kube.removeFinalizer(work.resource);
    // Whoever takes its place found it still there, if it was quick.
    await wake(io, async () => woken.filter((t) => t.kind === kind.name));
    return pass.report('deleted');
  }

  /** The resource, if it is one that this installation serves. */
  async function readServed(policy: Policy, { namespace, name }: Target): Promise<ResourceOf[K] | 'gone' | 'ignored'> {
    // An event may name anything; where one namespace is served, the functions' rights end there, too.
    if (namespace !== (policy.onlyNamespace ?? namespace)) return 'ignored';
    const resource = await io.kube.get(kind.name, namespace, name);
    if (!resource) return 'gone';
    const isServed = resource.metadata.labels?.[INSTANCE_LABEL] === policy.instance && !kind.ignores?.(resource, policy);
    return isServed ? resource : 'ignored';
  }

  /** A failure here is found again, and settled, by the pass that then goes on. */
  async function isUnchanged(work: KindWork): Promise<boolean> {
    let unchanged = false;
    await caught(async () => {
      unchanged = await kind.unchanged(work);
    });
    return unchanged;
  }

  async function findDependencies(work: KindWork): Promise<Dependencies> {
    if (!kind.hasDependencies(work.resource)) {
      work.findings.DependenciesReady = null;
      return kind.depend(work);
    }
    try {
      const dependencies = await kind.depend(work);
      work.findings.DependenciesReady = { status: 'True', reason: 'DependenciesReady', message: REASONS.DependenciesReady };
      return dependencies;
    } catch (error) {
      if (error instanceof Failure) work.findings.DependenciesReady = { status: 'False', reason: error.reason, message: error.message };
      throw error;
    }
  }

  /** The decision that an error carries. The API server's errors go on: without it no status can be written. */
  async function caught(step: () => Promise<void> | undefined): Promise<Failure | undefined> {
    try {
      await step();
      return undefined;
    } catch (error) {
      if (error instanceof KubeError) throw error;
      const failure = toFailure(error);
      if (failure.category === 'Bug') io.log.error('an unforeseen error', { stack: error instanceof Error ? error.stack : String(error) });
      return failure;
    }
  }

  async function converge(work: KindWork, dependencies: Dependencies): Promise<void> {
    await untilApplied(work, async (sought) => {
      const plan = kind.plan(work, await kind.observe(work, dependencies, sought));
      if ('refused' in plan) throw plan.refused;
      if (!hasFinalizer(work.resource)) {
        work.resource = await io.kube.addFinalizer(work.resource);
        echoes.note(work.resource);
      }
      return plan;
    });
  }

  /** Deletes what is ours. Where this resource may not act, nothing in lldap is touched and the resource may go. */
  async function remove(work: KindWork, onlyMade: boolean): Promise<void> {
    if (work.resource.spec.deletionPolicy === 'Retain' || kind.refuse(work.resource, work.policy)) return;
    await untilApplied(work, async () => {
      const plan = kind.planDeletion(work, await kind.observeDeletion(work, onlyMade));
      return 'refused' in plan ? { steps: [] } : plan;
    });
  }

  /** Applies what `decide` plans; when lldap contradicts what was observed, observes and decides again. */
  async function untilApplied(work: KindWork, decide: (sought: boolean) => Promise<Steps>): Promise<void> {
    let sought = false;
    for (let round = 1; ; round++) {
      const plan = await decide(sought);
      Object.assign(work.draft, plan.keep);
      const surprise = await apply(work, plan.steps);
      if (!surprise) {
        Object.assign(work.findings, plan.findings);
        return throwIf(plan.unmet);
      }
      if (round === MAX_OBSERVE_ROUNDS) throw surprise;
      if (surprise.kind === 'exists') sought = true;
      else if (surprise.attribute === MARK_ATTRIBUTE) await restoreMarks(io);
      else throw await askForDefinition(work, surprise);
    }
  }

  /** Answers the error that calls for another look, if one did. */
  async function apply(work: KindWork, steps: Step[]): Promise<LldapError | undefined> {
    for (const step of steps) {
      work.checkpoint();
      try {
        await kind.apply(step, work);
      } catch (error) {
        if (error instanceof LldapError && (error.kind === 'exists' || error.kind === 'undefinedAttribute')) return error;
        throw error;
      }
      work.did.push(kind.describe(step));
    }
    return undefined;
  }
}

function throwIf(failure: Failure | undefined): void {
  if (failure) throw failure;
}
