import type { Target } from '../events/parse.ts';
import type { CommonStatus, KindName, ResourceOf } from '../kube/resources.ts';
import type { Io, StatusOf, Work } from './kind.ts';
import { statusKeys } from './names.ts';
import { targetOf } from './wake.ts';

/** What a try of a pass did, whose status another's write forestalled: the next try goes on from there. */
export interface Carried<K extends KindName> {
  /** Of the resource that it was done for. */
  uid: string;
  /** lldap's uuid that its status recorded then. */
  recorded: unknown;
  draft: StatusOf<K>;
  undo?: () => Promise<void>;
}

/**
 * The draft for a resource as it was just read, with what an earlier try did for it. Where another process has
 * recorded another object meanwhile, or the resource itself is another of the same name, the object that we made is
 * one too many, and goes.
 */
export async function takeUp<K extends KindName>(
  io: Io,
  resource: ResourceOf[K],
  carried: Carried<K> | undefined,
): Promise<Pick<Work<K>, 'draft' | 'undo'>> {
  const { conditions: _conditions, observedGeneration: _generation, ...kept } = (resource.status ?? {}) as CommonStatus;
  const recorded = uuidOf(kept);
  const isAnothers = carried?.uid !== resource.metadata.uid;
  // What was recorded before is not meanwhile: the object of that uuid was gone when ours was made.
  const isTwice = recorded !== undefined && recorded !== carried?.recorded && recorded !== uuidOf(carried?.draft);
  if (carried && (isAnothers || isTwice)) {
    await undo(io, targetOf(resource), carried.undo);
    return { draft: { ...kept, ...statusKeys(resource) } as StatusOf<K> };
  }
  return { draft: { ...kept, ...carried?.draft, ...statusKeys(resource) } as StatusOf<K>, ...(carried?.undo && { undo: carried.undo }) };
}

/** Pauses between the attempts to take something back, in milliseconds. */
const UNDO_AGAIN_AFTER_MS = [1_000, 5_000, 15_000];

/**
 * What was made for a resource that is gone, or is made twice, must go. No status can remember that, so it is attempted a
 * few times; if lldap fails them all, the log alone tells.
 */
export async function undo(io: Io, target: Target, remove: Work<KindName>['undo']): Promise<void> {
  for (const pause of [...UNDO_AGAIN_AFTER_MS, undefined]) {
    try {
      return await remove?.();
    } catch (error) {
      if (pause === undefined) return io.log.error(LEFT_IN_LLDAP, { ...target, reason: String(error) });
    }
    await io.clock.sleep(pause);
  }
}

/** What the log says where an object or a membership stays that nobody asks for. */
export const LEFT_IN_LLDAP = 'what a pass had made in vain stays in lldap';

export function uuidOf(status: object | undefined): unknown {
  return status && 'uuid' in status ? status.uuid : undefined;
}
