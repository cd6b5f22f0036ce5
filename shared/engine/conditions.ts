import { isDeepStrictEqual } from 'node:util';
import type { CommonStatus, Condition, Resource, Retry } from '../kube/resources.ts';
import type { Failure } from '../rules/failure.ts';
import { condition } from '../rules/predicates.ts';
import type { Reason } from '../rules/reasons.ts';

/** A condition as a pass finds it; times and generations are added here. */
export interface Finding {
  status: 'True' | 'False' | 'Unknown';
  reason: Reason;
  message: string;
}

const EXTRA_CONDITIONS = ['DependenciesReady', 'PasswordSynced'] as const;
/** Beside Ready; null for a condition that does not apply to the resource. */
export type ExtraFindings = { [type in (typeof EXTRA_CONDITIONS)[number]]?: Finding | null };

const MESSAGE_LENGTH = 1024;
const OWN_CONDITIONS = new Set<string>(['Ready', 'Reconciling', 'Stalled', ...EXTRA_CONDITIONS]);

/**
 * The complete status that the operator owns after a pass; a partial one would erase what it leaves out.
 * Conditions of others are not in it and survive.
 *
 * @param input.kept the kind's own fields
 * @param input.extra findings of this pass; null for what does not apply; what it did not come to stays as it was
 * @param input.now milliseconds since the epoch
 */
export function buildStatus(input: {
  resource: Resource;
  kept: CommonStatus;
  extra: ExtraFindings;
  ready: Finding;
  failure: Failure | undefined;
  retry: Retry | undefined;
  token: string | undefined;
  now: number;
}): CommonStatus {
  const { resource, kept, extra, ready, failure, retry, token, now } = input;
  const findings: Record<string, Finding> = { Ready: ready };
  if (retry && failure) findings.Reconciling = { status: 'True', reason: failure.reason, message: retryMessage(retry) };
  if (failure?.category === 'Invalid') findings.Stalled = { status: 'True', reason: failure.reason, message: failure.message };
  const conditions = Object.entries(findings).map(([type, finding]) => toCondition(type, finding, resource, now));
  for (const type of EXTRA_CONDITIONS) {
    const finding = extra[type];
    const before = condition(resource.status, type);
    if (finding) conditions.push(toCondition(type, finding, resource, now));
    else if (finding === undefined && before) conditions.push(before);
  }
  const handled = token ?? resource.status?.lastHandledReconcileAt;
  const { retry: _retry, lastHandledReconcileAt: _handled, ...own } = kept;
  return {
    ...own,
    observedGeneration: resource.metadata.generation,
    conditions,
    ...(retry && { retry }),
    ...(handled && { lastHandledReconcileAt: handled }),
  };
}

/** The status as it is but for the kind's own fields, and not yet of this generation: the pass that writes it has more to do. */
export function statusAhead(resource: Resource, kept: CommonStatus): CommonStatus {
  const { observedGeneration: _generation, ...status } = resource.status ?? {};
  const conditions = (status.conditions ?? []).filter((c) => OWN_CONDITIONS.has(c.type));
  return { ...status, ...kept, conditions };
}

/** Whether writing `next` would change nothing. */
export function sameStatus(current: CommonStatus | undefined, next: CommonStatus): boolean {
  return isDeepStrictEqual(ownPart(current), ownPart(next));
}

function ownPart(status: CommonStatus | undefined): CommonStatus {
  const conditions = (status?.conditions ?? []).filter((c) => OWN_CONDITIONS.has(c.type));
  const defined = Object.entries(status ?? {}).filter(([, value]) => value !== undefined);
  return { ...Object.fromEntries(defined), conditions: conditions.sort((a, b) => a.type.localeCompare(b.type)) };
}

function toCondition(type: string, finding: Finding, resource: Resource, now: number): Condition {
  const before = condition(resource.status, type);
  const message = cut(finding.message);
  return {
    type,
    status: finding.status,
    reason: finding.reason,
    message,
    lastTransitionTime: before?.status === finding.status ? before.lastTransitionTime : new Date(now).toISOString().replace(/\.\d+Z$/, 'Z'),
    observedGeneration: resource.metadata.generation,
  };
}

/** At most what a condition's message should be, with a sign that something is missing. */
export function cut(message: string): string {
  if (message.length <= MESSAGE_LENGTH) return message;
  // Half of a character would come back from the API server as another one, and be written again.
  return `${message.slice(0, MESSAGE_LENGTH - 1).replace(/[\uD800-\uDBFF]$/, '')}…`;
}

function retryMessage(retry: Retry): string {
  return retry.nextTime
    ? `Attempt ${retry.attempts} failed; the next one is due at ${retry.nextTime}.`
    : `Attempt ${retry.attempts} failed; the broker did not take the next one, the sweep will start it.`;
}
