import type { Target } from '../events/parse.ts';
import { KubeError } from '../kube/errors.ts';
import type { KindName, ResourceOf } from '../kube/resources.ts';
import { LldapError } from '../lldap/api.ts';
import { INSTANCE_LABEL, MARK_ATTRIBUTE } from '../names.ts';
import { takeUp, undo } from './carried.ts';
import { hasFinalizer, isSettled, unhandledToken, waitsForRetry } from './decide.ts';
import type { Echoes } from './echoes.ts';
import { Failure, toFailure } from './failure.ts';
import type { Journal, Report, Settings } from './journal.ts';
import type { Io, Kind, Plan, StatusOf, Work } from './kind.ts';
import { restoreMarks } from './marks.ts';
import type { Hints } from './queue.ts';
import { REASONS } from './reasons.ts';
import { settle, wake } from './settle.ts';
import type { Policy } from './standing.ts';

/** Milliseconds from the start of a pass after which it starts no further mutation. */
export const DEADLINE_MS = 30_000;
/** Passes that meet another's write, before the broker is asked to come again. */
const TRIES = 3;
/** Observations in one pass: a creation may be answered "exists", and the mark's definition may be missing. */
const ROUNDS = 4;

/**
 * One pass over one resource. Throws nothing but what is not foreseen: an error of the API server is a report, too.
 *
 * @param hints made full by the first mutation: should no status be written for it, lldap must be looked at again
 */
export async function runPass<K extends KindName, Dependencies, Observed, Step>(
  kind: Kind<K, Dependencies, Observed, Step>,
  io: Io,
  settings: Settings,
  echoes: Echoes,
  target: Target,
  hints: Hints,
  signal: AbortSignal,
): Promise<Report> {
  const deadline = io.clock.monotonic() + DEADLINE_MS;
  const checkpoint = () => {
    if (signal.aborted || io.clock.monotonic() > deadline)
      throw new Failure(
        'Unavailable',
        'DeadlineExceeded',
        'The pass ran out of time before all was done; it goes on with the next attempt.',
      );
  };
  const did: string[] = [];
  const journal: Journal<K> = { did, hints, settings, echoes, report: (result, more = {}) => ({ result, ...target, did, ...more }) };
  for (let tries = 1; ; tries++) {
    try {
      const { report, again } = await attempt(kind, io, target, journal, checkpoint);
      if (!again || tries === TRIES) return report;
      journal.hints = { ...hints, full: true };
    } catch (error) {
      if (!(error instanceof KubeError)) throw error;
      if (tries < TRIES && (error.stale || error.gone)) continue;
      io.log.error('the API server failed a pass', { ...target, status: error.status, reason: error.message });
      return journal.report('unwritten', {
        message: `the API server failed the pass (${error.status || 'no answer'}); it will be tried again`,
      });
    }
  }
}

/** From reading the resource to the write of its status; throws KubeError when the resource was not what it took it for. */
async function attempt<K extends KindName, Dependencies, Observed, Step>(
  kind: Kind<K, Dependencies, Observed, Step>,
  io: Io,
  target: Target,
  journal: Journal<K>,
  checkpoint: () => void,
): Promise<{ report: Report; again?: boolean }> {
  const { report } = journal;
  const policy = await io.policy();
  const resource = await readServed(kind, io, policy, target);
  if (typeof resource === 'string') {
    if (resource === 'gone') await undo(io, target, journal.carried?.undo);
    return { report: report(resource) };
  }

  const full = journal.hints.full || unhandledToken(resource) !== undefined;
  const work: Work<K> = { io, policy, full, resource, findings: {}, checkpoint, ...(await takeUp(io, resource, journal.carried)) };
  if (resource.spec.suspend) return { report: await settle(work, journal, 'suspended') };
  if (waitsForRetry(resource, { ...journal.hints, full }, io.clock.now())) return { report: report('waiting') };

  if (resource.metadata.deletionTimestamp !== undefined) {
    if (!hasFinalizer(resource)) return { report: report('gone') };
    const failure = await caught(io, () => remove(kind, work, journal));
    if (failure) return { report: await settle(work, journal, failure) };
    let woken: Target[] = [];
    await wake(io, async () => {
      woken = await kind.dependants(work, { becameReady: false, gone: true });
      return woken;
    });
    await io.kube.removeFinalizer(work.resource);
    // Whoever takes its place found it still there, if it was quick.
    await wake(io, async () => woken.filter((t) => t.kind === kind.name));
    return { report: report('deleted') };
  }

  if (!full && isSettled(resource) && (await isUnchanged(kind, work))) return { report: report('unchanged') };
  const failure = await caught(io, async () => {
    throwIf(kind.refuse(resource, policy));
    const dependencies = await findDependencies(kind, work);
    await converge(kind, work, journal, dependencies);
  });
  const settled = await settle(work, journal, failure, (change) => kind.dependants(work, change));
  // A dependency that turned Ready between our look and our status write found nobody to wake.
  const waits = failure?.category === 'NotReady' && work.findings.DependenciesReady?.status === 'False';
  const again = waits && (await caught(io, async () => void (await kind.depend(work)))) === undefined;
  return { report: settled, again };
}

/** The resource, if it is one that this installation serves. */
async function readServed<K extends KindName, Dependencies, Observed, Step>(
  kind: Kind<K, Dependencies, Observed, Step>,
  io: Io,
  policy: Policy,
  target: Target,
): Promise<ResourceOf[K] | 'gone' | 'ignored'> {
  // An event may name anything; where one namespace is served, the functions' rights end there, too.
  if (target.namespace !== (policy.onlyNamespace ?? target.namespace)) return 'ignored';
  const resource = await io.kube.get(kind.name, target.namespace, target.name);
  if (!resource) return 'gone';
  const isServed = resource.metadata.labels?.[INSTANCE_LABEL] === policy.instance && !kind.ignores?.(resource, policy);
  return isServed ? resource : 'ignored';
}

/** A failure here is found again, and settled, by the pass that then goes on. */
async function isUnchanged<K extends KindName, Dependencies, Observed, Step>(
  kind: Kind<K, Dependencies, Observed, Step>,
  work: Work<K>,
): Promise<boolean> {
  let unchanged = false;
  await caught(work.io, async () => {
    unchanged = await kind.unchanged(work);
  });
  return unchanged;
}

async function findDependencies<K extends KindName, Dependencies, Observed, Step>(
  kind: Kind<K, Dependencies, Observed, Step>,
  work: Work<K>,
): Promise<Dependencies> {
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
async function caught(io: Io, work: () => Promise<void>): Promise<Failure | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    if (error instanceof KubeError) throw error;
    const failure = toFailure(error);
    if (failure.category === 'Bug') io.log.error('an unforeseen error', { stack: error instanceof Error ? error.stack : String(error) });
    return failure;
  }
}

async function converge<K extends KindName, Dependencies, Observed, Step>(
  kind: Kind<K, Dependencies, Observed, Step>,
  work: Work<K>,
  journal: Journal<K>,
  dependencies: Dependencies,
): Promise<void> {
  await untilCarriedOut(kind, work, journal, async (sought) => {
    const plan = kind.plan(work, await kind.observe(work, dependencies, sought));
    if ('refused' in plan) throw plan.refused;
    if (!hasFinalizer(work.resource)) {
      work.resource = await work.io.kube.addFinalizer(work.resource);
      journal.echoes.note(work.resource);
    }
    return plan;
  });
}

/** Deletes what is ours. Where this resource may not act, nothing in lldap is touched and the resource may go. */
async function remove<K extends KindName, Dependencies, Observed, Step>(
  kind: Kind<K, Dependencies, Observed, Step>,
  work: Work<K>,
  journal: Journal<K>,
): Promise<void> {
  if (work.resource.spec.deletionPolicy === 'Retain' || kind.refuse(work.resource, work.policy)) return;
  await untilCarriedOut(kind, work, journal, async () => {
    const plan = kind.planDeletion(work, await kind.observeDeletion(work));
    return 'refused' in plan ? { steps: [] } : plan;
  });
}

/** Carries out what `decide` plans; when lldap contradicts what was observed, observes and decides again. */
async function untilCarriedOut<K extends KindName, Dependencies, Observed, Step>(
  kind: Kind<K, Dependencies, Observed, Step>,
  work: Work<K>,
  journal: Journal<K>,
  decide: (sought: boolean) => Promise<Exclude<Plan<Step, StatusOf<K>>, { refused: Failure }>>,
): Promise<void> {
  let sought = false;
  for (let round = 1; ; round++) {
    const plan = await decide(sought);
    Object.assign(work.draft, plan.keep);
    const surprise = await carryOut(kind, work, journal, plan.steps);
    if (!surprise) {
      Object.assign(work.findings, plan.findings);
      return throwIf(plan.unmet);
    }
    if (round === ROUNDS) throw surprise;
    if (surprise.kind === 'exists') sought = true;
    else await restoreMarks(work.io);
  }
}

/** Answers the error that calls for another look, if one did. */
async function carryOut<K extends KindName, Dependencies, Observed, Step>(
  kind: Kind<K, Dependencies, Observed, Step>,
  work: Work<K>,
  journal: Journal<K>,
  steps: Step[],
): Promise<LldapError | undefined> {
  for (const step of steps) {
    work.checkpoint();
    // Another process may have settled a newer spec by the time of our status write, and this be an older one's.
    journal.hints.full = true;
    try {
      await kind.apply(step, work);
    } catch (error) {
      if (error instanceof LldapError && (error.kind === 'exists' || isMarkMissing(error))) return error;
      throw error;
    }
    journal.did.push(kind.describe(step));
  }
  return undefined;
}

function isMarkMissing(error: LldapError): boolean {
  return error.kind === 'undefinedAttribute' && error.attribute === MARK_ATTRIBUTE;
}

function throwIf(failure: Failure | undefined): void {
  if (failure) throw failure;
}
