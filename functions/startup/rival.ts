import { FIELD_MANAGER } from '../../shared/constants.ts';
import type { KindName, ResourceOf } from '../../shared/kube/resources.ts';
import { truncate } from '../../shared/platform/text.ts';
import { refOf } from '../../shared/rules/resource-names.ts';
import type { Inventory } from './unsettled.ts';

/** Of a manager's name, in UTF-16 code units. */
const MAX_MANAGER_LENGTH = 64;

/**
 * Another operator that serves the same kinds, told by a status that it writes: the two would undo each other's work.
 * A status that other tools write conditions of their own into is not one: only a `Ready` that is not ours counts.
 *
 * @returns a sentence that says what to do, or undefined
 */
export function findRival(inventory: Inventory): string | undefined {
  const resources: ResourceOf[KindName][] = Object.values(inventory).flat();
  for (const resource of resources) {
    const rival = resource.metadata.managedFields?.find((entry) => entry.manager !== FIELD_MANAGER && ownsReady(entry));
    if (rival)
      return `Another operator (${managerName(rival)}) writes the status of ${resource.kind} ${refOf(resource)}: stop it, or the two undo each other's work.`;
  }
  return undefined;
}

/** Whoever may edit a resource chooses the name, and an administrator reads it: only the characters of managers' names. */
function managerName({ manager = '' }: { manager?: string }): string {
  return truncate(manager.replace(/[^-\w./]/g, ''), MAX_MANAGER_LENGTH);
}

function ownsReady({ subresource, fieldsV1 }: { subresource?: string; fieldsV1?: unknown }): boolean {
  return subresource === 'status' && JSON.stringify(fieldsV1 ?? {}).includes('{\\"type\\":\\"Ready\\"}');
}
