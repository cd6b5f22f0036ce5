import type { Resource } from '../kube/resources.ts';

/** The versions that this process wrote lately: each comes back as an event that tells nothing new. */
export interface Echoes {
  note(resource: Resource): void;
  /** @param version see {@link versionOf} */
  has(version: string): boolean;
}

/** One version of one resource, also where another of its name came after it. */
export function versionOf({ metadata }: Resource): string {
  return `${metadata.uid}/${metadata.resourceVersion}`;
}

/** A write's echo comes within moments; this many writes lie between only under the heaviest load. */
const REMEMBERED = 5_000;

export function createEchoes(): Echoes {
  const written = new Set<string>();
  return {
    note(resource) {
      written.add(versionOf(resource));
      if (written.size <= REMEMBERED) return;
      for (const oldest of written) {
        written.delete(oldest);
        break;
      }
    },
    has: (version) => written.has(version),
  };
}
