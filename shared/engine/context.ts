import type { KindName, ResourceOf } from '../kube/resources.ts';
import type { Io } from '../lookup/io.ts';
import type { Policy } from '../rules/policy.ts';
import type { ExtraConditions } from './conditions.ts';

export type StatusOf<K extends KindName> = NonNullable<ResourceOf[K]['status']>;

/** One attempt to reconcile one resource: what the kind's functions may read, and the draft of the status that they write to. */
export interface ReconcileContext<K extends KindName> {
  readonly io: Io;
  readonly policy: Policy;
  /** Read lldap and correct drift, whatever the status says. */
  readonly full: boolean;
  /** The times of the retries that this reconcile stands for. */
  readonly notBefore: ReadonlySet<string>;
  /** As read, or as returned by the last write to it. */
  resource: ResourceOf[K];
  /** The kind's own status fields. Results of successful steps stay here even if a later step fails. */
  readonly draft: StatusOf<K>;
  /** Conditions beside Ready. */
  readonly conditions: ExtraConditions;
  /** Descriptions of the mutations so far, over all attempts. */
  readonly did: string[];
  /**
   * Called before each mutation.
   * @throws Failure when the reconcile is past its deadline
   */
  checkpoint(): void;
  /**
   * Writes the draft before a step that must not be forgotten if the process dies. The resource does not count as
   * handled until the outcome is recorded.
   * @throws KubeError
   */
  writeAhead(): Promise<void>;
  /** Whether this attempt created something in lldap, or may have. It is rolled back if the resource turns out to be gone. */
  created: boolean;
  /** The folded name that the object had in lldap before this reconcile renamed or deleted it. */
  formerName?: string;
}
