import { FINALIZER, REQUESTED_AT } from '../constants.ts';
import type { CommonStatus, LldapAttributeSchema, LldapGroup, LldapUser, Resource, Retry } from '../kube/resources.ts';
import { truncate } from '../platform/text.ts';

/** Questions about a resource that it answers itself. */

/** Of `status.lastHandledReconcileAt`, in UTF-16 code units. */
const MAX_TOKEN_LENGTH = 64;

/** Whether the resource, by its own status, needs nothing. */
export function isSteady(resource: Resource): boolean {
  return (
    !isDeleting(resource) &&
    resource.status?.observedGeneration === resource.metadata.generation &&
    isReady(resource) &&
    unhandledToken(resource) === undefined &&
    (hasFinalizer(resource) || isObserved(resource))
  );
}

/** Whether the resource only compares, and neither owns nor writes anything. */
export function isObserved({ spec }: Resource): boolean {
  return spec.managementPolicy === 'Observe';
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

/** Whether the operator has completed the deletion, so that only another's finalizer keeps the resource. It counts as gone. */
export function isReleased(resource: Resource): boolean {
  return isDeleting(resource) && !hasFinalizer(resource);
}

/** The token of a `requested-at` annotation that no reconcile has handled yet, truncated to what the status holds. */
export function unhandledToken(resource: Resource): string | undefined {
  const token = truncate(resource.metadata.annotations?.[REQUESTED_AT] ?? '', MAX_TOKEN_LENGTH, '');
  return token && token !== resource.status?.lastHandledReconcileAt ? token : undefined;
}

/** The status's retry, if it is of the current generation. */
export function currentRetry(resource: Resource): Retry | undefined {
  return resource.status?.observedGeneration === resource.metadata.generation ? resource.status.retry : undefined;
}

/**
 * Whether to leave the resource to a retry that is due later. Otherwise each status write, which returns as an event,
 * would start a chain of retries of its own.
 */
export function waitsForRetry(resource: Resource, demand: { full: boolean; notBefore: ReadonlySet<string> }, now: number): boolean {
  const next = currentRetry(resource)?.nextTime;
  if (next === undefined || demand.full || demand.notBefore.has(next)) return false;
  return Date.parse(next) > now;
}

/** A resource with one of these reasons will not get the name that it declares, so others need not wait for it. */
const HOPELESS_REASONS = new Set(['Conflict', 'NotOurs', 'Forbidden', 'Protected']);

/** Whether a resource has a claim to the name that it declares. */
export function claimsName(resource: LldapUser | LldapGroup | LldapAttributeSchema): boolean {
  if (isObserved(resource)) return false;
  if (resource.kind === 'LldapAttributeSchema' && condition(resource.status, 'Stalled')?.status === 'True') return false;
  return !isReleased(resource) && !HOPELESS_REASONS.has(notReadyReason(resource) ?? '');
}
