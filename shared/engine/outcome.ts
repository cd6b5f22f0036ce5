import { BrokerError } from '../events/broker.ts';
import type { Target } from '../events/parse.ts';
import { KubeError } from '../kube/errors.ts';
import type { CommonStatus, KindName, ResourceOf, Retry } from '../kube/resources.ts';
import { enqueueDependents, targetOf } from '../lookup/dependents.ts';
import type { Failure } from '../rules/failure.ts';
import { currentRetry, isDeleting, isObserved, isReady, unhandledToken } from '../rules/predicates.ts';
import { REASONS } from '../rules/reasons.ts';
import { buildStatus, type ConditionDraft, sameStatus } from './conditions.ts';
import type { ReconcileContext } from './context.ts';
import type { Report, Settings } from './kind.ts';
import { emitReadyEvent } from './kube-events.ts';
import type { OwnWrites } from './own-writes.ts';
import { nextRetry } from './retry.ts';

/** What the status says now. `brokerProblem`: why the broker did not accept the retry's event. */
type Recorded = Pick<Report, 'ready' | 'reason' | 'retry'> & { brokerProblem?: string };

/**
 * The one exit of every reconcile that acted: posts the retry's event, writes the status, emits a Kubernetes Event and
 * enqueues dependents, in this order.
 *
 * @throws KubeError when the status could not be written
 */
export async function recordOutcome<K extends KindName>(
  context: ReconcileContext<K>,
  settings: Settings,
  ownWrites: OwnWrites,
  outcome: Failure | 'suspended' | undefined,
  findDependents: (change: { becameReady: boolean; gone: boolean }) => Promise<Target[]>,
): Promise<Recorded> {
  const { io, resource } = context;
  const failure = outcome === 'suspended' ? undefined : outcome;
  const ready = readyCondition(resource, outcome);
  const { retry, brokerProblem } = failure ? await postRetry(context, settings, failure) : {};
  const next = buildStatus({
    resource,
    own: context.draft,
    extra: context.conditions,
    ready,
    failure,
    retry,
    token: unhandledToken(resource),
    now: io.clock.now(),
  });
  if (!sameStatus(resource.status, next)) await writeStatus(context, ownWrites, next);
  await emitReadyEvent(io, resource, ready, failure?.category === 'NotReady' ? retry : undefined);
  const isNowReady = ready.status === 'True';
  const becameReady = isNowReady && !isReady(resource);
  if (isNowReady && !isObserved(resource)) await enqueueDependents(io, () => findDependents({ becameReady, gone: false }));
  return { ready: isNowReady, reason: ready.reason, ...(retry && { retry }), ...(brokerProblem && { brokerProblem }) };
}

/** The Ready condition after a reconcile with this outcome. */
export function readyCondition(resource: ResourceOf[KindName], outcome: Failure | 'suspended' | undefined): ConditionDraft {
  if (outcome === 'suspended') {
    const remedy = isDeleting(resource) ? 'The deletion waits until it is false.' : 'Set it to false to resume reconciliation.';
    return { status: 'False', reason: 'Suspended', message: `spec.suspend is true. ${remedy}` };
  }
  if (outcome === undefined && isObserved(resource)) return { status: 'True', reason: 'Observed', message: REASONS.Observed };
  if (outcome === undefined) return { status: 'True', reason: 'Reconciled', message: REASONS.Reconciled };
  const { reason, message } = outcome;
  if (!isDeleting(resource)) return { status: 'False', reason, message };
  const remedy = 'To delete the resource without touching lldap, set spec.deletionPolicy to Retain.';
  return { status: 'False', reason, message: `Not deleted yet. ${message} ${remedy}` };
}

/** The retry that the status names, once the broker has accepted its event; or why the broker did not. */
async function postRetry<K extends KindName>(
  { io, resource, full, notBefore }: ReconcileContext<K>,
  settings: Settings,
  failure: Failure,
): Promise<{ retry?: Retry; brokerProblem?: string }> {
  const previous = currentRetry(resource);
  const isThisOne = previous?.nextTime !== undefined && notBefore.has(previous.nextTime);
  const isAhead = previous?.nextTime !== undefined && Date.parse(previous.nextTime) > io.clock.now();
  if (full && !isThisOne && isAhead && previous?.category === failure.category) return { retry: previous };
  const { category } = failure;
  const retry = nextRetry({ category, previous, now: io.clock.now(), maxMs: settings.retryMaxMs, random: io.random() });
  if (!retry) return {};
  try {
    await io.broker.requeue(targetOf(resource), retry.nextTime);
    return { retry };
  } catch (error) {
    if (!(error instanceof BrokerError)) throw error;
    io.log.error('the broker did not accept a retry', { ...targetOf(resource), reason: error.message });
    return { retry: { attempts: retry.attempts, category }, brokerProblem: error.message };
  }
}

/** @returns the resource with its new status, or unchanged where the API server will never accept this status */
export async function writeStatus<K extends KindName>(
  { io, resource }: ReconcileContext<K>,
  ownWrites: OwnWrites,
  status: CommonStatus,
): Promise<ResourceOf[K]> {
  try {
    const written = await io.kube.applyStatus(resource, status);
    ownWrites.add(written);
    return written;
  } catch (error) {
    if (!(error instanceof KubeError && error.refused)) throw error;
    io.log.error('the API server rejected the status', { ...targetOf(resource), reason: error.brief });
    return resource;
  }
}
