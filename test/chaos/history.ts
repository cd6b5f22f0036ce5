import type { Secret } from '../../shared/kube/objects.ts';
import type { AnyResource, KubeDouble } from './kube-double.ts';
import type { Identity, LldapDouble } from './lldap-double.ts';

/** Everything that rules look at, as it was between two changes. Nothing in it is ever changed. */
export interface Moment {
  resources: ReadonlyMap<string, AnyResource>;
  secrets: ReadonlyMap<string, Secret>;
  namespaceLabels: KubeDouble['namespaceLabels'];
  objects: readonly Identity[];
  /** By the user's uuid, in plain text; users without a password are not in it. */
  passwords: ReadonlyMap<string, string>;
}

/**
 * All moments of a schedule. No process can know more than what was true at some moment of its reconcile, since lldap has
 * no preconditions: what it does is right if it was right at one of them.
 */
export class History {
  readonly moments: Moment[] = [];
  readonly #kube: KubeDouble;
  readonly #lldap: LldapDouble;

  constructor(kube: KubeDouble, lldap: LldapDouble) {
    this.#kube = kube;
    this.#lldap = lldap;
  }

  /** The number of the moment that is. */
  get now(): number {
    return this.moments.length - 1;
  }

  get current(): Moment {
    const current = this.moments.at(-1);
    if (!current) throw new Error('nothing has happened yet');
    return current;
  }

  /** After every change. */
  note(lldapChanged: boolean): void {
    const last = this.moments.at(-1);
    const { resources, secrets, namespaceLabels } = this.#kube;
    const inKube = { resources, secrets, namespaceLabels };
    if (last && !lldapChanged) this.moments.push({ ...last, ...inKube });
    else this.moments.push({ ...inKube, objects: this.#lldap.identities(), passwords: this.#lldap.plainPasswords() });
  }

  /** From one moment to now. */
  since(number: number): Moment[] {
    return this.moments.slice(number);
  }
}
