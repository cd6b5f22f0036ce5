import type { Resource } from '../kube/resources.ts';

/** The versions that this process wrote lately: each comes back as an event that tells nothing new. */
export interface Echoes {
  note(resource: Resource): void;
  has(resource: Resource): boolean;
}

/** A write's echo comes within moments; this many writes lie between only under the heaviest load. */
const REMEMBERED = 5_000;

export function createEchoes(): Echoes {
  const written = new Set<string>();
  const keyOf = (resource: Resource) => `${resource.metadata.uid}/${resource.metadata.resourceVersion}`;
  return {
    note(resource) {
      written.add(keyOf(resource));
      if (written.size <= REMEMBERED) return;
      for (const oldest of written) {
        written.delete(oldest);
        break;
      }
    },
    has: (resource) => written.has(keyOf(resource)),
  };
}
