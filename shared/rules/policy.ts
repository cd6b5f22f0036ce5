/** What an installation allows; the same for every pass. */
export interface Policy {
  instance: string;
  operatorNamespace: string;
  /** The one namespace whose resources are served, where it is not all. */
  onlyNamespace?: string;
  privilegedNamespaces: ReadonlySet<string>;
  adoption: 'privileged' | 'all';
  /** The folded id of the account that the operator logs in with. */
  operatorLogin: string;
  passwordMinLength: number;
}

export function isPrivileged(policy: Policy, namespace: string): boolean {
  return namespace === policy.operatorNamespace || policy.privilegedNamespaces.has(namespace);
}
