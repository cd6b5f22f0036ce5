/** What an installation allows. */
export interface Policy {
  instance: string;
  operatorNamespace: string;
  /** The one namespace that the installation serves; absent for all. */
  onlyNamespace?: string;
  privilegedNamespaces: ReadonlySet<string>;
  adoption: 'privileged' | 'all';
  /** The folded id of the operator's own account. */
  operatorLogin: string;
  passwordMinLength: number;
}

export function isPrivileged(policy: Policy, namespace: string): boolean {
  return namespace === policy.operatorNamespace || policy.privilegedNamespaces.has(namespace);
}
