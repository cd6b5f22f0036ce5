import type { Resource } from '../kube/resources.ts';

/** The versions that this process wrote lately. Each returns as an event that says nothing new. */
export interface OwnWrites {
  add(resource: Resource): void;
  /** @param version see {@link versionOf} */
  has(version: string): boolean;
}

/** Identifies one version of one resource, also after another resource took its name. */
export function versionOf({ metadata }: Resource): string {
  return `${metadata.uid}/${metadata.resourceVersion}`;
}

/** The event of a write arrives within seconds; a process writes this many meanwhile only under the heaviest load. */
const MAX_REMEMBERED_WRITES = 5_000;

export function createOwnWrites(): OwnWrites {
  const versions = new Set<string>();
  return {
    add(resource) {
      versions.add(versionOf(resource));
      const [oldest] = versions;
      if (oldest && versions.size > MAX_REMEMBERED_WRITES) versions.delete(oldest);
    },
    has: (version) => versions.has(version),
  };
}
