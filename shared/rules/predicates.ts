import { FINALIZER, REQUESTED_AT } from '../constants.ts';
import type { CommonStatus, LldapAttributeSchema, LldapGroup, LldapUser, Resource, Retry } from '../kube/resources.ts';

/** Questions about a resource as it stands, answered without any call. */

/** Nothing is left to do by what the resource itself says. */
export function isSettled(resource: Resource): boolean {
  return (
    !isDeleting(resource) &&
    resource.status?.observedGeneration === resource.metadata.generation &&
    isReady(resource) &&
    unhandledToken(resource) === undefined &&
    hasFinalizer(resource)
  );
}

export function isReady(resource: Resource): boolean {
  return condition(resource.status, 'Ready')?.status === 'True';
}

/** The reason for which Ready is False. */
export function notReadyReason(resource: Resource): string | undefined {
  const ready = condition(resource.status, 'Ready');
  return ready?.status === 'False' ? ready.reason : undefined;
}

export function condition(status: CommonStatus | undefined, type: string) {
  return status?.conditions?.find((c) => c.type === type);
}

export function hasFinalizer(resource: Resource): boolean {
  return resource.metadata.finalizers?.includes(FINALIZER) ?? false;
}

export function isDeleting({ metadata }: Resource): boolean {
  return metadata.deletionTimestamp !== undefined;
}

/** Being deleted, and let go by the operator; another's finalizer may keep it. To others it is as if it were gone. */
export function isLetGo(resource: Resource): boolean {
  return isDeleting(resource) && !hasFinalizer(resource);
}

/** The token of a `requested-at` annotation that no pass has settled yet; as much of it as a status holds. */
export function unhandledToken(resource: Resource): string | undefined {
  // Half of a character would come back from the API server as another one.
  const token = resource.metadata.annotations?.[REQUESTED_AT]?.slice(0, 64).replace(/[\uD800-\uDBFF]$/, '');
  return token && token !== resource.status?.lastHandledReconcileAt ? token : undefined;
}

/** The status's retry, as long as it speaks of this generation. */
export function currentRetry(resource: Resource): Retry | undefined {
  return resource.status?.observedGeneration === resource.metadata.generation ? resource.status.retry : undefined;
}

/**
 * Whether to leave the resource to the retry that is due later. Without this each status write, which comes
 * back as an event, would start a chain of retries of its own.
 */
export function waitsForRetry(resource: Resource, hints: { full: boolean; notBefore: ReadonlySet<string> }, now: number): boolean {
  const next = currentRetry(resource)?.nextTime;
  if (next === undefined || hints.full || hints.notBefore.has(next)) return false;
  return Date.parse(next) > now;
}

/** A resource with one of these reasons does not get what it declares, so others need not wait for it. */
const NOT_DECLARING = new Set(['Conflict', 'NotOurs', 'Forbidden', 'Protected']);

/** Whether a resource counts as declaring its name. */
export function declares(resource: LldapUser | LldapGroup | LldapAttributeSchema): boolean {
  if (resource.kind === 'LldapAttributeSchema' && condition(resource.status, 'Stalled')?.status === 'True') return false;
  return !isLetGo(resource) && !NOT_DECLARING.has(notReadyReason(resource) ?? '');
}
