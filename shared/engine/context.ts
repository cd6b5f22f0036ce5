import type { KindName, ResourceOf } from '../kube/resources.ts';
import type { Io } from '../lookup/io.ts';
import type { Policy } from '../rules/policy.ts';
import type { ExtraFindings } from './conditions.ts';

export type StatusOf<K extends KindName> = NonNullable<ResourceOf[K]['status']>;

/** One attempt of a pass over one resource: what the kind's calls may read, and the draft that they keep their results in. */
export interface Work<K extends KindName> {
  readonly io: Io;
  readonly policy: Policy;
  readonly full: boolean;
  /** The retries that the pass stands for. */
  readonly notBefore: ReadonlySet<string>;
  /** As read, or as it was after the finalizer was added. */
  resource: ResourceOf[K];
  /** The kind's own status fields; what succeeded is kept here even if a later step fails. */
  readonly draft: StatusOf<K>;
  readonly findings: ExtraFindings;
  /** What the pass has done so far, all attempts together. */
  readonly did: string[];
  /**
   * Called before each mutation.
   * @throws Failure when the pass is past its deadline
   */
  checkpoint(): void;
  /**
   * Writes the draft ahead of a step that must not be forgotten if the process dies; the resource counts as not yet
   * seen to until the pass has settled it.
   * @throws KubeError
   */
  writeAhead(): Promise<void>;
  /** Whether this attempt made something in lldap that was not there: it goes again should the resource turn out to be gone. */
  made: boolean;
  /** The folded name that the object had in lldap, where this pass gave it another. */
  formerName?: string;
}
