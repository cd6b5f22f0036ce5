import type { AllowedNamespaces, LldapMembership } from '../../shared/kube/resources.ts';
import type { Moment } from './history.ts';
import type { AnyResource } from './kube-double.ts';
import type { Identity } from './lldap-double.ts';
import { isBuiltIn, isLooking, isPrivileged, ownership, type RuleBook, readMark, recordedUuid } from './ownership-oracle.ts';

/**
 * What the owner of a group says to the memberships of a namespace. `out`: whoever has joined goes, too; `no`: nobody else
 * comes in. Where it is nobody's, or was handed over and nobody has it yet, none but the owner's own namespace comes in.
 */
type Answer = 'yes' | 'no' | 'out' | 'nobody' | 'handed over' | 'foreign';

export function consent(group: Identity, namespace: string, moment: Moment, book: RuleBook): Answer {
  if (isBuiltIn(group.name)) return isPrivileged(namespace, book) ? 'yes' : 'no';
  const owner = ownership(group, undefined, moment, book);
  if (owner === 'foreign') return 'foreign';
  if (isPrivileged(namespace, book)) return 'yes';
  if (typeof owner === 'string') return withoutOwner(readMark(group.mark, group.uuid)?.namespace, namespace, book);
  if (isLooking(owner)) return withoutOwner(owner.metadata.namespace, namespace, book);
  if (owner.kind !== 'LldapGroup' || owner.metadata.namespace === namespace) return 'yes';
  const asked = owner.spec.allowedMemberships?.namespaces;
  return asked ? answerOf(asked, namespace, moment) : 'no';
}

function withoutOwner(left: string | undefined, namespace: string, book: RuleBook): Answer {
  if (book.adoption === 'all' || left === namespace) return 'yes';
  return left === undefined ? 'nobody' : 'handed over';
}

function answerOf(asked: AllowedNamespaces, namespace: string, moment: Moment): Answer {
  const labels: Record<string, string> = { 'kubernetes.io/metadata.name': namespace, ...moment.namespaceLabels.get(namespace) };
  const isSelected = Object.entries(asked.selector?.matchLabels ?? {}).every(([key, value]) => labels[key] === value);
  return asked.from === 'All' || (asked.from === 'Selector' && isSelected) ? 'yes' : 'out';
}

/** Whether a membership may leave its user in a group when it is deleted: its namespace is privileged, or has the group. */
export function mayKeep({ metadata: { namespace } }: LldapMembership, group: Identity, moment: Moment, book: RuleBook): boolean {
  const has = (r: AnyResource) => r.kind === 'LldapGroup' && r.metadata.namespace === namespace && recordedUuid(r) === group.uuid;
  return isPrivileged(namespace, book) || [...moment.resources.values()].some(has);
}
