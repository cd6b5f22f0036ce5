import { VIRTUAL_LABEL } from '../constants.ts';
import type { KindName, LldapAttributeSchema, LldapGroup, LldapMembership, LldapUser, ResourceOf } from '../kube/resources.ts';
import { foldGroupName, foldId, isBuiltInGroup } from '../lldap/names.ts';

/** `namespace/name`, as in marks and messages. */
export function refOf(resource: { metadata: { namespace: string; name: string } }): string {
  return `${resource.metadata.namespace}/${resource.metadata.name}`;
}

/** Whether a resource is the virtual group of a built-in group: by its label, in the operator's namespace, with a built-in name. */
export function isVirtual(group: LldapGroup, operatorNamespace: string): boolean {
  return (
    group.metadata.labels?.[VIRTUAL_LABEL] === 'true' &&
    group.metadata.namespace === operatorNamespace &&
    isBuiltInGroup(group.spec.displayName)
  );
}

/** The `metadata.name` of a built-in group's virtual group. */
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

/** Status fields with folded names, for field selectors, which compare exactly. */
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
