import { BUILT_IN_GROUPS, VIRTUAL_LABEL } from '../constants.ts';
import type { KindName, LldapAttributeSchema, LldapGroup, LldapMembership, LldapUser, ResourceOf } from '../kube/resources.ts';

/** lldap folds user ids and attribute names by ASCII only, and group names by Unicode. */
export function foldId(name: string): string {
  return name.replace(/[A-Z]/g, (c) => c.toLowerCase());
}

export function foldGroupName(name: string): string {
  return name.toLowerCase();
}

/** Whether lldap takes a name for this group's. */
export function isNamed(group: { displayName: string }, name: string): boolean {
  return foldGroupName(group.displayName) === foldGroupName(name);
}

export function isBuiltInGroup(name: string): boolean {
  return BUILT_IN_GROUPS.some((group) => group === foldGroupName(name));
}

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
