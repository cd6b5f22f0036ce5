import type { Listed } from '../../shared/kube/listed.ts';
import { truncate } from '../../shared/platform/text.ts';
import { refOf } from '../../shared/rules/resource-names.ts';

/** Of a manager's name, in UTF-16 code units. */
const MAX_MANAGER_LENGTH = 64;

/**
 * Another operator that serves the same kinds, told by a `Ready` that it writes: the two would undo each other's work.
 *
 * @returns a sentence that says what to do, or undefined
 */
export function findRival(resources: readonly Listed[]): string | undefined {
  for (const { kind, metadata, rival } of resources)
    if (rival !== undefined)
      return `Another operator (${managerName(rival)}) writes the status of ${kind} ${refOf({ metadata })}: stop it, or the two undo each other's work.`;
  return undefined;
}

/** Whoever may edit a resource chooses the name, and an administrator reads it: only the characters of managers' names. */
function managerName(name: string): string {
  return truncate(name.replace(/[^-\w./]/g, ''), MAX_MANAGER_LENGTH);
}
