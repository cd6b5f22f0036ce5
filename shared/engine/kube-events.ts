import { randomBytes } from 'node:crypto';
import { API_GROUP, API_VERSION } from '../constants.ts';
import type { Kube } from '../kube/client.ts';
import { KubeError } from '../kube/errors.ts';
import type { Resource, Retry } from '../kube/resources.ts';
import type { Clock } from '../platform/clock.ts';
import { truncateBytes } from '../platform/text.ts';
import { condition } from '../rules/predicates.ts';
import type { Reason } from '../rules/reasons.ts';
import type { Log } from '../telemetry/log.ts';
import type { ConditionDraft } from './conditions.ts';

interface EventIo {
  kube: Pick<Kube, 'createEvent'>;
  clock: Clock;
  log: Log;
}

/** The API server refuses an Event with a longer note. */
const MAX_NOTE_BYTES = 1024;

/**
 * Emits a Kubernetes Event when Ready changes, with the condition's reason: a resource that fails for an hour leaves a
 * handful, and one that becomes Ready without a failure before leaves none. Never fails a reconcile.
 *
 * @param wait the retry of a resource that waits for another. Its first attempt emits nothing, since resources that are
 *   applied together wait for each other for a moment
 */
export async function emitReadyEvent(io: EventIo, resource: Resource, ready: ConditionDraft, wait?: Retry): Promise<void> {
  const before = condition(resource.status, 'Ready');
  const isChange = before?.status !== ready.status || before.reason !== ready.reason;
  const retry = resource.status?.retry;
  const isSecondWait = wait !== undefined && retry?.attempts === 1;
  if (wait?.attempts === 1 || !(isChange || isSecondWait)) return;
  const wasQuiet = !before || (retry?.category === 'NotReady' && retry.attempts === 1);
  if (ready.status === 'True' && wasQuiet) return;
  await createEvent(io, resource, {
    type: ready.status === 'True' || ready.reason === 'Suspended' ? 'Normal' : 'Warning',
    reason: ready.reason,
    note: ready.message,
  });
}

/** @param event its `note` is truncated to what an Event may hold; one whose `name` exists is not created again */
export async function createEvent(
  io: EventIo,
  about: { kind: string; apiVersion?: string; metadata: { name: string; namespace: string; uid?: string; resourceVersion?: string } },
  { name: eventName, ...event }: { type: 'Normal' | 'Warning'; reason: Reason; note: string; name?: string },
): Promise<void> {
  const { name, namespace, uid, resourceVersion } = about.metadata;
  await io.kube
    .createEvent({
      // Events are named after their object with a suffix; generateName does not allow the dot between.
      metadata: { name: eventName ?? `${name.slice(0, 230).replace(/[-.]+$/, '')}.${randomBytes(8).toString('hex')}`, namespace },
      eventTime: new Date(io.clock.now()).toISOString().replace('Z', '000Z'),
      action: 'Reconcile',
      regarding: {
        apiVersion: about.apiVersion ?? API_VERSION,
        kind: about.kind,
        name,
        namespace,
        ...(uid && { uid }),
        ...(resourceVersion && { resourceVersion }),
      },
      reportingController: `${API_GROUP}/operator`,
      reportingInstance: 'lldap-operator',
      ...event,
      note: truncateBytes(event.note, MAX_NOTE_BYTES),
    })
    .catch((error: unknown) => {
      if (eventName && error instanceof KubeError && error.reason === 'AlreadyExists') return;
      const reason = error instanceof KubeError ? error.brief : String(error);
      io.log.warn('failed to create a Kubernetes Event', { reason, namespace, name });
    });
}
