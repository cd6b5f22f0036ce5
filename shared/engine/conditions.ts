import { isDeepStrictEqual } from 'node:util';
import type { CommonStatus, Condition, Resource, Retry } from '../kube/resources.ts';
import { truncate } from '../platform/text.ts';
import type { Failure } from '../rules/failure.ts';
import { condition } from '../rules/predicates.ts';
import type { Reason } from '../rules/reasons.ts';

/** A condition without its time and generation, which {@link buildStatus} adds. */
export interface ConditionDraft {
  status: 'True' | 'False' | 'Unknown';
  reason: Reason;
  message: string;
}

const EXTRA_CONDITIONS = ['DependenciesReady', 'PasswordSynced'] as const;
/** Conditions beside Ready; null for one that does not apply to the resource. */
export type ExtraConditions = { [type in (typeof EXTRA_CONDITIONS)[number]]?: ConditionDraft | null };

/** A convention of condition messages; in UTF-16 code units. */
const MAX_MESSAGE_LENGTH = 1024;
const OWN_CONDITIONS = new Set<string>(['Ready', 'Reconciling', 'Stalled', ...EXTRA_CONDITIONS]);

/**
 * The complete status that the operator owns after a reconcile; Server-Side Apply would erase what it leaves out.
 * Other managers' conditions are not part of it and survive.
 *
 * @param input.own the kind's own fields
 * @param input.extra null for a condition that does not apply; one that the reconcile did not reach stays as it was
 * @param input.now milliseconds since the epoch
 */
export function buildStatus(input: {
  resource: Resource;
  own: CommonStatus;
  extra: ExtraConditions;
  ready: ConditionDraft;
  failure: Failure | undefined;
  retry: Retry | undefined;
  token: string | undefined;
  now: number;
}): CommonStatus {
  const { resource, own, extra, ready, failure, retry, token, now } = input;
  const drafts: Record<string, ConditionDraft> = { Ready: ready };
  if (retry && failure) drafts.Reconciling = { status: 'True', reason: failure.reason, message: retryMessage(retry) };
  if (failure?.category === 'Invalid') drafts.Stalled = { status: 'True', reason: failure.reason, message: failure.message };
  const conditions = Object.entries(drafts).map(([type, draft]) => toCondition(type, draft, resource, now));
  for (const type of EXTRA_CONDITIONS) {
    const draft = extra[type];
    const before = condition(resource.status, type);
    if (draft) conditions.push(toCondition(type, draft, resource, now));
    else if (draft === undefined && before) conditions.push(before);
  }
  const handled = token ?? resource.status?.lastHandledReconcileAt;
  const { retry: _retry, lastHandledReconcileAt: _handled, ...fields } = own;
  return {
    ...fields,
    ready: ready.status === 'True',
    observedGeneration: resource.metadata.generation,
    conditions,
    ...(retry && { retry }),
    ...(handled && { lastHandledReconcileAt: handled }),
  };
}

/** The current status with the kind's own fields as given, and without a generation: the reconcile that writes it is not over. */
export function statusAhead(resource: Resource, own: CommonStatus): CommonStatus {
  const { observedGeneration: _generation, ...status } = resource.status ?? {};
  const conditions = (status.conditions ?? []).filter((c) => OWN_CONDITIONS.has(c.type));
  return { ...status, ...own, conditions };
}

/** Whether writing `next` would change nothing. */
export function sameStatus(current: CommonStatus | undefined, next: CommonStatus): boolean {
  return isDeepStrictEqual(ownPart(current), ownPart(next));
}

/** The fields that the operator owns, and its conditions by type, since their order means nothing. */
function ownPart(status: CommonStatus | undefined): object {
  const conditions = (status?.conditions ?? []).filter((c) => OWN_CONDITIONS.has(c.type));
  const defined = Object.entries(status ?? {}).filter(([, value]) => value !== undefined);
  return { ...Object.fromEntries(defined), conditions: Object.fromEntries(conditions.map((c) => [c.type, c])) };
}

function toCondition(type: string, draft: ConditionDraft, resource: Resource, now: number): Condition {
  const before = condition(resource.status, type);
  return {
    type,
    status: draft.status,
    reason: draft.reason,
    message: truncate(draft.message, MAX_MESSAGE_LENGTH),
    lastTransitionTime: before?.status === draft.status ? before.lastTransitionTime : new Date(now).toISOString().replace(/\.\d+Z$/, 'Z'),
    observedGeneration: resource.metadata.generation,
  };
}

function retryMessage(retry: Retry): string {
  return retry.nextTime
    ? `Attempt ${retry.attempts} failed. The next one is due at ${retry.nextTime}.`
    : `Attempt ${retry.attempts} failed. The broker did not accept the next one; the sweep will start it.`;
}
