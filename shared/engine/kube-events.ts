import { randomBytes } from 'node:crypto';
import { API_GROUP, API_VERSION } from '../constants.ts';
import type { Kube } from '../kube/client.ts';
import { KubeError } from '../kube/errors.ts';
import type { Resource, Retry } from '../kube/resources.ts';
import type { Clock } from '../platform/clock.ts';
import { condition } from '../rules/predicates.ts';
import type { Reason } from '../rules/reasons.ts';
import type { Log } from '../telemetry/log.ts';
import type { Finding } from './conditions.ts';

interface EventIo {
  kube: Pick<Kube, 'createEvent'>;
  clock: Clock;
  log: Log;
}

/** The API server refuses an Event whose note is longer, counted in bytes. */
const NOTE_BYTES = 1024;

/**
 * Tells of a change of Ready by a Kubernetes Event, whose reason is the condition's. Only on a change: a resource
 * that fails for an hour leaves a handful. It is never a reason to fail a pass.
 *
 * @param wait the retry of a resource that waits for another: within its first seconds that is no news, since a tree that is
 *   applied at once waits for its own parts
 */
export async function announce(io: EventIo, resource: Resource, ready: Finding, wait?: Retry): Promise<void> {
  const before = condition(resource.status, 'Ready');
  const isChange = before?.status !== ready.status || before.reason !== ready.reason;
  const isLater = wait !== undefined && wait.attempts > 1 && resource.status?.retry?.attempts === 1;
  if (wait?.attempts === 1 || !(isChange || isLater)) return;
  await createEvent(io, resource, {
    type: ready.status === 'True' || ready.reason === 'Suspended' ? 'Normal' : 'Warning',
    reason: ready.reason,
    note: ready.message,
  });
}

/** @param event `note` is cut to what an Event may hold; one whose `name` exists already is not written again */
export async function createEvent(
  io: EventIo,
  about: { kind: string; apiVersion?: string; metadata: { name: string; namespace: string; uid?: string; resourceVersion?: string } },
  { name: eventName, ...event }: { type: 'Normal' | 'Warning'; reason: Reason; note: string; name?: string },
): Promise<void> {
  const { name, namespace, uid, resourceVersion } = about.metadata;
  await io.kube
    .createEvent({
      // Events are named by their object and a tail; generateName would not take the dot between.
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
      note: shorten(event.note),
    })
    .catch((error: unknown) => {
      if (eventName && error instanceof KubeError && error.reason === 'AlreadyExists') return;
      io.log.warn('a Kubernetes Event could not be written', {
        reason: error instanceof KubeError ? error.brief : String(error),
        namespace,
        name,
      });
    });
}

function shorten(note: string): string {
  const bytes = Buffer.from(note);
  if (bytes.length <= NOTE_BYTES) return note;
  // A character that is cut through decodes to the replacement sign.
  return `${bytes.toString('utf8', 0, NOTE_BYTES - 3).replace(/\uFFFD+$/, '')}…`;
}
