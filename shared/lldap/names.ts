import { BUILT_IN_GROUPS } from '../constants.ts';

/** lldap folds user ids and attribute names by ASCII only, and group names by Unicode. */
export function foldId(name: string): string {
  return name.replace(/[A-Z]/g, (c) => c.toLowerCase());
}

export function foldGroupName(name: string): string {
  return name.toLowerCase();
}

/** Whether lldap considers the name to be this group's. */
export function hasGroupName(group: { displayName: string }, name: string): boolean {
  return foldGroupName(group.displayName) === foldGroupName(name);
}

export function isBuiltInGroup(name: string): boolean {
  return BUILT_IN_GROUPS.some((group) => group === foldGroupName(name));
}
