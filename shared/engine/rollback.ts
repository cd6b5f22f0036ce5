import type { CommonStatus, KindName, ResourceOf } from '../kube/resources.ts';
import { targetOf } from '../lookup/dependents.ts';
import { toFailure } from '../rules/failure.ts';
import { statusKeys } from '../rules/resource-names.ts';
import type { StatusOf, Work } from './context.ts';

/**
 * The draft of an attempt over a resource as just read, with what an attempt before it did whose status write another's
 * forestalled. Undefined where that was for another resource of the name, or another process has recorded another object
 * meanwhile: what that attempt made is one too many.
 */
export function resumeDraft<K extends KindName>(resource: ResourceOf[K], carried: Work<K> | undefined): StatusOf<K> | undefined {
  const { conditions: _conditions, observedGeneration: _generation, ...kept } = (resource.status ?? {}) as CommonStatus;
  const recorded = uuidOf(kept);
  const isAnothers = carried && carried.resource.metadata.uid !== resource.metadata.uid;
  // What was recorded before is not meanwhile: the object of that uuid was gone when ours was made.
  const isTwice = carried && recorded !== undefined && recorded !== uuidOf(carried.resource.status) && recorded !== uuidOf(carried.draft);
  if (isAnothers || isTwice) return undefined;
  return { ...kept, ...carried?.draft, ...statusKeys(resource) } as StatusOf<K>;
}

/** Pauses between the attempts to roll back, in milliseconds. */
const ROLL_BACK_AGAIN_AFTER_MS = [1_000, 5_000, 15_000];

/**
 * Removes what an attempt made for a resource that is gone, or that another process made something for, too. The promise:
 * a membership that is deleted while a slow process joins it leaves nobody in the group. No status can remember it, so it
 * is attempted a few times; if all fail, the log alone tells.
 *
 * @param remove what the deletion of the resource would do
 */
export async function rollBack<K extends KindName>(work: Work<K>, remove: (work: Work<K>) => Promise<void>): Promise<void> {
  if (!work.made) return;
  for (const pause of [...ROLL_BACK_AGAIN_AFTER_MS, undefined]) {
    try {
      return await remove({ ...work, checkpoint: () => undefined });
    } catch (error) {
      if (pause === undefined) return work.io.log.error(LEFT_IN_LLDAP, { ...targetOf(work.resource), reason: toFailure(error).reason });
    }
    await work.io.clock.sleep(pause);
  }
}

/** What the log says where an object or a membership stays that nobody asks for. */
export const LEFT_IN_LLDAP = 'what a pass had made in vain stays in lldap';

function uuidOf(status: object | undefined): unknown {
  return status && 'uuid' in status ? status.uuid : undefined;
}
