import { VIRTUAL_LABEL } from '../constants.ts';
import type { KindName, LldapAttributeSchema, LldapGroup, LldapMembership, LldapUser, ResourceOf } from '../kube/resources.ts';
import { foldGroupName, foldId, isBuiltInGroup } from '../lldap/names.ts';

/** `namespace/name`, as marks and messages name a resource. */
export function refOf(resource: { metadata: { namespace: string; name: string } }): string {
  return `${resource.metadata.namespace}/${resource.metadata.name}`;
}

/** A virtual group stands for a built-in one: only with the label, in the operator's namespace, under a built-in name. */
export function isVirtual(group: LldapGroup, operatorNamespace: string): boolean {
  return (
    group.metadata.labels?.[VIRTUAL_LABEL] === 'true' &&
    group.metadata.namespace === operatorNamespace &&
    isBuiltInGroup(group.spec.displayName)
  );
}

/** The `metadata.name` of the resource that stands for a built-in group. */
export function virtualGroupName(builtIn: string): string {
  return foldGroupName(builtIn).replaceAll('_', '-');
}

/** The folded name that a resource declares in lldap. */
export function declaredName(resource: LldapUser | LldapGroup | LldapAttributeSchema): string {
  switch (resource.kind) {
    case 'LldapUser':
      return foldId(resource.spec.username);
    case 'LldapGroup':
      return foldGroupName(resource.spec.displayName);
    case 'LldapAttributeSchema':
      return foldId(resource.spec.attributeName);
  }
}

/** The status fields that make a resource findable by field selector: field selectors compare exactly, names don't. */
export function statusKeys(resource: ResourceOf[KindName]): Record<string, string> {
  switch (resource.kind) {
    case 'LldapUser':
    case 'LldapGroup':
      return { nameKey: declaredName(resource) };
    case 'LldapMembership':
      return membershipKeys(resource);
    case 'LldapAttributeSchema':
      return {};
  }
}

export function membershipKeys(membership: LldapMembership): { userKey: string; groupKey: string } {
  return { userKey: foldId(membership.spec.userName), groupKey: foldGroupName(membership.spec.groupName) };
}
