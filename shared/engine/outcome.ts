import { BrokerError } from '../events/broker.ts';
import type { Target } from '../events/parse.ts';
import { KubeError } from '../kube/errors.ts';
import type { CommonStatus, KindName, ResourceOf, Retry } from '../kube/resources.ts';
import { targetOf, wake } from '../lookup/dependents.ts';
import type { Failure } from '../rules/failure.ts';
import { currentRetry, isDeleting, isReady, unhandledToken } from '../rules/predicates.ts';
import { REASONS } from '../rules/reasons.ts';
import { buildStatus, type Finding, sameStatus } from './conditions.ts';
import type { Work } from './context.ts';
import type { Report, Settings } from './kind.ts';
import { announce } from './kube-events.ts';
import type { Echoes } from './own-writes.ts';
import { nextRetry } from './retry.ts';

/** What a status says by now. `refused`: why the broker did not take the retry's event. */
type Settled = Pick<Report, 'ready' | 'reason' | 'retry'> & { refused?: string };

/**
 * The one exit of every pass that acted: posts the retry's event, then writes the status, then tells and wakes others.
 *
 * @throws KubeError when the status could not be written
 */
export async function settle<K extends KindName>(
  work: Work<K>,
  settings: Settings,
  echoes: Echoes,
  outcome: Failure | 'suspended' | undefined,
  dependants: (change: { becameReady: boolean; gone: boolean }) => Promise<Target[]>,
): Promise<Settled> {
  const { io, resource } = work;
  const failure = outcome === 'suspended' ? undefined : outcome;
  const ready = readyFinding(resource, outcome);
  const { retry, refused } = failure ? await dueRetry(work, settings, failure) : {};
  const next = buildStatus({
    resource,
    kept: work.draft,
    extra: work.findings,
    ready,
    failure,
    retry,
    token: unhandledToken(resource),
    now: io.clock.now(),
  });
  if (!sameStatus(resource.status, next)) await writeStatus(work, echoes, next);
  await announce(io, resource, ready, failure?.category === 'NotReady' ? retry : undefined);
  const becameReady = ready.status === 'True' && !isReady(resource);
  if (ready.status === 'True') await wake(io, () => dependants({ becameReady, gone: false }));
  return { ready: ready.status === 'True', reason: ready.reason, ...(retry && { retry }), ...(refused && { refused }) };
}

/** What Ready says after a pass with this outcome. */
export function readyFinding(resource: ResourceOf[KindName], outcome: Failure | 'suspended' | undefined): Finding {
  if (outcome === 'suspended') return { status: 'False', reason: 'Suspended', message: 'spec.suspend is true; set it to false to go on.' };
  if (outcome === undefined) return { status: 'True', reason: 'Reconciled', message: REASONS.Reconciled };
  const { reason, message } = outcome;
  if (!isDeleting(resource)) return { status: 'False', reason, message };
  const remedy = 'To let the resource go without touching lldap, set spec.deletionPolicy to Retain.';
  return { status: 'False', reason, message: `Not deleted yet: ${message} ${remedy}` };
}

/** The retry that the status shall name, its event already accepted by the broker; or why the broker did not take it. */
async function dueRetry<K extends KindName>(
  { io, resource, full, notBefore }: Work<K>,
  settings: Settings,
  failure: Failure,
): Promise<{ retry?: Retry; refused?: string }> {
  const previous = currentRetry(resource);
  const isLive = previous?.nextTime !== undefined && notBefore.has(previous.nextTime);
  const isAhead = previous?.nextTime !== undefined && Date.parse(previous.nextTime) > io.clock.now();
  if (full && !isLive && isAhead && previous?.reason === failure.category) return { retry: previous };
  const retry = nextRetry({ category: failure.category, previous, now: io.clock.now(), maxMs: settings.retryMaxMs, random: io.random() });
  if (!retry) return {};
  try {
    await io.broker.requeue(targetOf(resource), retry.nextTime);
    return { retry };
  } catch (error) {
    if (!(error instanceof BrokerError)) throw error;
    io.log.error('the broker did not take a retry', { ...targetOf(resource), reason: error.message });
    return { retry: { attempts: retry.attempts, reason: retry.reason }, refused: error.message };
  }
}

/** @returns the resource with its new status; as it was where the API server will never take this status */
export async function writeStatus<K extends KindName>(
  { io, resource }: Work<K>,
  echoes: Echoes,
  status: CommonStatus,
): Promise<ResourceOf[K]> {
  try {
    const written = await io.kube.applyStatus(resource, status);
    echoes.note(written);
    return written;
  } catch (error) {
    if (!(error instanceof KubeError && error.refused)) throw error;
    io.log.error('the API server refuses the status', { ...targetOf(resource), reason: error.brief });
    return resource;
  }
}
