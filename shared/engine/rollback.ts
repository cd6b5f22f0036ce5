import type { CommonStatus, KindName, ResourceOf } from '../kube/resources.ts';
import { targetOf } from '../lookup/dependents.ts';
import { toFailure } from '../rules/failure.ts';
import { statusKeys } from '../rules/resource-names.ts';
import type { ReconcileContext, StatusOf } from './context.ts';

/**
 * The draft for a resource as just read, including the results of an attempt whose status write met a conflict.
 *
 * @param superseded that attempt
 * @returns undefined where its results belong to another resource of the name, or another process has recorded another
 *   object meanwhile: what it created is then an orphan
 */
export function resumeDraft<K extends KindName>(
  resource: ResourceOf[K],
  superseded: ReconcileContext<K> | undefined,
): StatusOf<K> | undefined {
  const { conditions: _conditions, observedGeneration: _generation, ready: _ready, ...kept } = (resource.status ?? {}) as CommonStatus;
  const recorded = uuidOf(kept);
  const isOfAnother = superseded && superseded.resource.metadata.uid !== resource.metadata.uid;
  // An object that was recorded before the attempt had gone when the attempt created its own.
  const isDuplicate =
    superseded && recorded !== undefined && recorded !== uuidOf(superseded.resource.status) && recorded !== uuidOf(superseded.draft);
  if (isOfAnother || isDuplicate) return undefined;
  return { ...kept, ...superseded?.draft, ...statusKeys(resource) } as StatusOf<K>;
}

/** Pauses between the attempts to roll back, in milliseconds. */
const ROLLBACK_PAUSES_MS = [1_000, 5_000, 15_000];

/**
 * Removes what an attempt created for a resource that is gone, or for which another process created an object, too. The
 * promise: a membership that is deleted while a slow process joins it leaves nobody in the group. No status can record
 * the orphan, so the rollback is attempted four times; if all fail, only the log tells.
 *
 * @param remove does what the deletion of the resource would do
 */
export async function rollBack<K extends KindName>(
  context: ReconcileContext<K>,
  remove: (context: ReconcileContext<K>) => Promise<void>,
): Promise<void> {
  if (!context.created) return;
  const { io, resource } = context;
  for (const pause of [...ROLLBACK_PAUSES_MS, undefined]) {
    try {
      return await remove({ ...context, checkpoint: () => undefined });
    } catch (error) {
      if (pause === undefined) return io.log.error(ORPHAN_LEFT, { ...targetOf(resource), reason: toFailure(error).reason });
    }
    await io.clock.sleep(pause);
  }
}

/** The log line about an object or a membership that stays in lldap although no resource asks for it. */
export const ORPHAN_LEFT = 'failed to roll back; an orphan stays in lldap';

function uuidOf(status: object | undefined): unknown {
  return status && 'uuid' in status ? status.uuid : undefined;
}
