import type { LldapGroup, LldapMembership } from '../../shared/kube/resources.ts';
import { dependsOnLabels, isConsentOutdated, ownsByRecord } from '../../shared/rules/consent.ts';
import type { Policy } from '../../shared/rules/policy.ts';
import { isDeleting, isReady, notReadyReason } from '../../shared/rules/predicates.ts';
import { declaredName, isVirtual, membershipKeys } from '../../shared/rules/resource-names.ts';

/** The labels of all namespaces; undefined if they could not be read. */
export type NamespaceLabels = ReadonlyMap<string, Record<string, string>> | undefined;

/** `outdated`: the membership does not know yet what its group's owner says. `forbidden`: it does, and the owner still says no. */
export type Consent = 'outdated' | 'forbidden' | undefined;

/** Whether the labels of namespaces decide about any membership. */
export function needsLabels(memberships: readonly LldapMembership[], groups: readonly LldapGroup[]): boolean {
  return memberships.length > 0 && groups.some(({ spec }) => spec.allowedMemberships?.namespaces.from === 'Selector');
}

/** Compares what memberships know with what the owners of their groups say, so that a lost event loses no revocation. */
export function createConsentCheck(
  groups: readonly LldapGroup[],
  labels: NamespaceLabels,
  policy: Policy,
): (membership: LldapMembership) => Consent {
  const owning = groups.filter((g) => ownsByRecord(g) && !isVirtual(g, policy.operatorNamespace));
  const byUuid = Map.groupBy(owning, (g) => g.status?.uuid ?? '');
  const byName = Map.groupBy(owning.filter(isReady), declaredName);
  return (membership) => {
    const joined = membership.status?.joined ?? membership.status?.joining;
    const owners = (joined ? byUuid.get(joined.groupUuid) : byName.get(membershipKeys(membership).groupKey)) ?? [];
    const [owner] = owners;
    const { namespace } = membership.metadata;
    // With two, only the mark can tell, and the sweep reconciles both.
    if (!owner || owners.length > 1 || isDeleting(membership)) return undefined;
    if (dependsOnLabels(owner, namespace) && !labels) return undefined;
    if (isConsentOutdated(membership, owner, labels?.get(namespace), policy)) return 'outdated';
    return notReadyReason(membership) === 'Forbidden' ? 'forbidden' : undefined;
  };
}
