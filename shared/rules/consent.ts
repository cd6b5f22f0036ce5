import type { LabelSelector, LldapGroup, LldapMembership } from '../kube/resources.ts';
import { type Failure, invalid, notReady } from './failure.ts';
import type { ObjectOwner } from './ownership.ts';
import { isPrivileged, type Policy } from './policy.ts';
import { claimsName, isObserved, isReady, notReadyReason } from './predicates.ts';
import { refOf } from './resource-names.ts';

/** The owner of a group says which namespaces' memberships may join it. */

export type Admission =
  | { admitted: true }
  /** `revoked`: the owner's own decision, which also removes members that joined before. */
  | { admitted: false; revoked: boolean; failure: Failure };

type Labels = Readonly<Record<string, string>>;

/**
 * Decides whether the memberships of a namespace may join a group.
 *
 * 1. Another installation's group: none.
 * 2. Those in privileged namespaces, in the owner's own, and in those that `spec.allowedMemberships` of the owner selects.
 * 3. Nobody's group, or one whose owner only observes it: with `adoption: all`, every namespace, as for adoption;
 *    otherwise the namespace that the mark names.
 * 4. The others only wait, and who has joined stays, unless the owner wrote `spec.allowedMemberships`.
 *
 * @param labels the namespace's, if {@link dependsOnLabels}
 */
export function admit(
  input: { owner: ObjectOwner<LldapGroup>; groupName: string; namespace: string; labels: Labels | undefined },
  policy: Policy,
): Admission {
  const { owner, groupName, namespace, labels } = input;
  if (owner.who === 'foreign') {
    const message = `The group ${groupName} in lldap belongs to the operator installation of instance "${owner.instance}", and only its resources may add members. Name another group.`;
    return { admitted: false, revoked: false, failure: invalid('NotOurs', message) };
  }
  if (isPrivileged(policy, namespace)) return { admitted: true };
  if (owner.who === 'nobody' || isObserved(owner.resource)) {
    const left = owner.who === 'nobody' ? owner.markNamespace : owner.resource.metadata.namespace;
    if (policy.adoption === 'all' || left === namespace) return { admitted: true };
    return { admitted: false, revoked: false, failure: withoutOwner(groupName, left) };
  }
  const { resource } = owner;
  if (selects(resource, namespace, labels)) return { admitted: true };
  return { admitted: false, revoked: resource.spec.allowedMemberships !== undefined, failure: notAdmitted(resource, groupName, namespace) };
}

/** Whether the namespace's labels decide. */
export function dependsOnLabels({ metadata, spec }: LldapGroup, namespace: string): boolean {
  return namespace !== metadata.namespace && spec.allowedMemberships?.namespaces.from === 'Selector';
}

/** Whether a group's owner admits the memberships of an ordinary namespace. */
export function selects(group: LldapGroup, namespace: string, labels: Labels | undefined): boolean {
  const { from, selector } = group.spec.allowedMemberships?.namespaces ?? { from: 'Same' };
  if (namespace === group.metadata.namespace || from === 'All') return true;
  return from === 'Selector' && labels !== undefined && selector !== undefined && matchesLabels(selector, labels);
}

/** As the API server evaluates label selectors. */
function matchesLabels({ matchLabels = {}, matchExpressions = [] }: LabelSelector, labels: Labels): boolean {
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every(({ key, operator, values = [] }) => {
      const isThere = Object.hasOwn(labels, key);
      const isListed = isThere && values.includes(labels[key] ?? '');
      return { In: isListed, NotIn: !isListed, Exists: isThere, DoesNotExist: !isThere }[operator];
    })
  );
}

function notAdmitted(owner: LldapGroup, groupName: string, namespace: string): Failure {
  const home = owner.metadata.namespace;
  const belongs = `The group ${groupName} belongs to the LldapGroup ${refOf(owner)}`;
  const remedy = `Ask for spec.allowedMemberships there to select the namespace ${namespace}, or create this resource in ${home}.`;
  return invalid(
    'Forbidden',
    owner.spec.allowedMemberships
      ? `${belongs}, whose spec.allowedMemberships does not select this namespace. ${remedy}`
      : `${belongs}, which has no spec.allowedMemberships and so allows only its own namespace. A user that has joined before stays. ${remedy}`,
  );
}

function withoutOwner(groupName: string, markNamespace: string | undefined): Failure {
  if (markNamespace !== undefined)
    return notReady(
      'DependencyNotReady',
      `An LldapGroup of the namespace ${markNamespace} has left the group ${groupName} in lldap, or only observes it. Until an LldapGroup manages it again, only memberships in ${markNamespace} and in privileged namespaces may join it.`,
    );
  return invalid(
    'NotOurs',
    `The group ${groupName} exists in lldap and no resource owns it, so only privileged namespaces may add members to it. Declare it as an LldapGroup in a privileged namespace that allows this namespace, or create this resource in a privileged namespace.`,
  );
}

/** Whether a group that a resource records is its own, as far as its status tells: the mark decides. */
export function ownsByRecord(group: LldapGroup): boolean {
  // With a built-in name in its spec, it still owns the group that it has.
  return claimsName(group) || notReadyReason(group) === 'Protected';
}

/**
 * Whether a membership, by its status, does not know yet what the owner of its group says: it joined and is no longer
 * admitted, or waits although it is admitted.
 *
 * @param labels its namespace's, if {@link dependsOnLabels}
 */
export function isConsentOutdated(membership: LldapMembership, owner: LldapGroup, labels: Labels | undefined, policy: Policy): boolean {
  const { namespace } = membership.metadata;
  if (isPrivileged(policy, namespace)) return false;
  if (selects(owner, namespace, labels)) return notReadyReason(membership) === 'Forbidden';
  const { joined, joining } = membership.status ?? {};
  const isRevoked = owner.spec.allowedMemberships !== undefined && (joined ?? joining) !== undefined;
  return isRevoked || isReady(membership);
}

/**
 * Whether a membership's deletion may leave the user in the group: otherwise a tenant would keep it there for ever.
 *
 * @param recording the resources that record the group, or declare its name
 */
export function mayRetain({ metadata }: LldapMembership, recording: readonly LldapGroup[], policy: Policy): boolean {
  const isOwner = (group: LldapGroup) => !['Conflict', 'NotOurs'].includes(notReadyReason(group) ?? '');
  return isPrivileged(policy, metadata.namespace) || recording.some((g) => g.metadata.namespace === metadata.namespace && isOwner(g));
}
