import { BrokerError } from '../events/broker.ts';
import type { Target } from '../events/parse.ts';
import { KubeError } from '../kube/errors.ts';
import type { CommonStatus, KindName, ResourceOf, Retry } from '../kube/resources.ts';
import { announce } from './announce.ts';
import { undo, uuidOf } from './carried.ts';
import { currentRetry, isReady, unhandledToken } from './decide.ts';
import type { Failure } from './failure.ts';
import type { Journal, Report } from './journal.ts';
import type { Io, Work } from './kind.ts';
import { REASONS } from './reasons.ts';
import { nextRetry } from './retry.ts';
import { buildStatus, cut, type Finding, sameStatus } from './status.ts';
import { targetOf } from './wake.ts';

/**
 * The one exit of every pass that acted: posts the retry's event, then writes the status, then tells and wakes others.
 *
 * @throws KubeError when the status could not be written; what the pass did is in the journal for its next try
 */
export async function settle<K extends KindName>(
  work: Work<K>,
  journal: Journal<K>,
  outcome: Failure | 'suspended' | undefined,
  dependants: (change: { becameReady: boolean; gone: boolean }) => Promise<Target[]> = async () => [],
): Promise<Report> {
  const { io, resource } = work;
  const failure = outcome === 'suspended' ? undefined : outcome;
  const ready = readyFinding(resource, outcome);
  const { retry, refused } = failure ? await dueRetry(work, journal, failure) : {};
  const before = resource.status;
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
  if (!sameStatus(before, next)) await write(work, journal, next);
  await announce(io, resource, ready);
  const becameReady = ready.status === 'True' && !isReady(resource);
  if (ready.status === 'True') await wake(io, () => dependants({ becameReady, gone: false }));
  return journal.report(refused ? 'unwritten' : 'settled', {
    ready: ready.status === 'True',
    reason: ready.reason,
    message: refused ?? ready.message,
    ...(retry && { retry }),
  });
}

/** Posts reconcile events; what is not found or not taken is logged, since the dependents' own retries and the sweep cover it. */
export async function wake(io: Io, find: () => Promise<Target[]>): Promise<void> {
  try {
    for (const target of await find()) await io.broker.reconcile(target);
  } catch (error) {
    if (!(error instanceof BrokerError || error instanceof KubeError)) throw error;
    io.log.warn('dependents could not be woken', { reason: error.message });
  }
}

function readyFinding(resource: ResourceOf[KindName], outcome: Failure | 'suspended' | undefined): Finding {
  if (outcome === 'suspended') return { status: 'False', reason: 'Suspended', message: 'spec.suspend is true; set it to false to go on.' };
  if (outcome === undefined) return { status: 'True', reason: 'Reconciled', message: REASONS.Reconciled };
  if (resource.metadata.deletionTimestamp === undefined) return { status: 'False', reason: outcome.reason, message: cut(outcome.message) };
  return {
    status: 'False',
    reason: outcome.reason,
    message: cut(`Not deleted yet: ${outcome.message} To let the resource go without touching lldap, set spec.deletionPolicy to Retain.`),
  };
}

/** The retry that the status shall name, its event already accepted by the broker; or why the broker did not take it. */
async function dueRetry<K extends KindName>(
  { io, resource, full }: Work<K>,
  { hints, settings }: Journal<K>,
  failure: Failure,
): Promise<{ retry?: Retry; refused?: string }> {
  const previous = currentRetry(resource);
  const isLive = previous?.nextTime !== undefined && hints.notBefore.has(previous.nextTime);
  const isAhead = previous?.nextTime !== undefined && Date.parse(previous.nextTime) > io.clock.now();
  if (full && !isLive && isAhead && previous?.reason === failure.category) return { retry: previous };
  const random = (settings.random ?? Math.random)();
  const retry = nextRetry({ category: failure.category, previous, now: io.clock.now(), maxMs: settings.retryMaxMs, random });
  if (!retry) return {};
  const { kind, metadata } = resource;
  try {
    await io.broker.requeue({ kind, namespace: metadata.namespace, name: metadata.name }, retry.nextTime);
    return { retry };
  } catch (error) {
    if (!(error instanceof BrokerError)) throw error;
    io.log.error('the broker did not take a retry', { kind, namespace: metadata.namespace, name: metadata.name, reason: error.message });
    return { retry: { attempts: retry.attempts, reason: retry.reason }, refused: error.message };
  }
}

async function write<K extends KindName>(work: Work<K>, journal: Journal<K>, status: CommonStatus): Promise<void> {
  const { io, resource } = work;
  try {
    journal.echoes.note(await io.kube.applyStatus(resource, status));
  } catch (error) {
    if (!(error instanceof KubeError)) throw error;
    if (error.stale)
      journal.carried = {
        uid: resource.metadata.uid,
        recorded: uuidOf(resource.status),
        draft: work.draft,
        ...(work.undo && { undo: work.undo }),
      };
    if (error.gone) await undo(io, targetOf(resource), work.undo);
    if (!error.refused) throw error;
    io.log.error('the API server refuses the status', { kind: resource.kind, name: resource.metadata.name, reason: error.message });
  }
}
