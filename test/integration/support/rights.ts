import { stringify } from 'yaml';
import { parseManifests } from '../../local/knative/manifests.ts';
import { renderManifests } from '../../local/knative/render.ts';
import { rbacKnowsAll } from '../../local/kube/access.ts';
import type { Cluster } from '../../local/kube/cluster.ts';
import { FUNCTIONS, type KubeCall } from './functions.ts';

/** The functions' ServiceAccounts and rights, as the base has them, and which of them calls need. */

const CLUSTER_WIDE = new Set(['ClusterRole', 'ClusterRoleBinding', 'Namespace']);
const RIGHTS = new Set(['ServiceAccount', 'Role', 'RoleBinding', ...CLUSTER_WIDE]);

interface Manifest {
  kind: string;
  metadata: { name: string; namespace?: string };
  roleRef?: { kind: string; name: string };
  subjects?: { name: string; namespace?: string }[];
  rules?: { resources: string[]; verbs: string[]; resourceNames?: string[] }[];
}

async function manifests(): Promise<Manifest[]> {
  return parseManifests(await renderManifests())
    .map((object) => object.all() as unknown as Manifest)
    .filter(({ kind }) => RIGHTS.has(kind));
}

/** Grants an operator in a namespace of its own what the base grants, and waits until the API server knows it. */
export async function grantRights(cluster: Cluster, namespace: string): Promise<void> {
  const objects = await manifests();
  const rename = (name: string) => (name === 'lldap-operator' ? namespace : `${name}-${namespace}`);
  for (const object of objects) {
    if (CLUSTER_WIDE.has(object.kind)) object.metadata.name = rename(object.metadata.name);
    if (object.metadata.namespace) object.metadata.namespace = namespace;
    if (object.roleRef?.kind === 'ClusterRole') object.roleRef.name = rename(object.roleRef.name);
    for (const subject of object.subjects ?? []) subject.namespace = namespace;
  }
  await cluster.apply(objects.map((object) => stringify(object)).join('---\n'));
  await rbacKnowsAll(cluster);
}

/** Everything that the base grants to the functions: `user: patch lldapusers/status`. */
export async function grantedRights(): Promise<Set<string>> {
  const objects = await manifests();
  const grants = objects.flatMap(({ roleRef, subjects = [] }) => {
    const role = objects.find(({ kind, metadata }) => kind === roleRef?.kind && metadata.name === roleRef.name);
    const functions = subjects.map(({ name }) => name.replace('lldap-operator-', '')).filter((name) => FUNCTIONS.some((f) => f === name));
    return functions.map((by) => ({ by, rules: role?.rules ?? [] }));
  });
  return new Set(
    grants.flatMap(({ by, rules }) =>
      rules.flatMap(({ resources, verbs }) => resources.flatMap((resource) => verbs.map((verb) => `${by}: ${verb} ${resource}`))),
    ),
  );
}

/** The rights that a call needed, in the same words. */
export function rightsOf({ by, method, path, contentType }: KubeCall): string[] {
  const [, resource = '', name, subresource] =
    /\/api\/v1\/(namespaces)(?:\/([^/?]+))?(?:\?|$)/.exec(path) ??
    /namespaces\/[^/]+\/([^/?]+)(?:\/([^/?]+))?(?:\/([^/?]+))?/.exec(path) ??
    /\/([^/?]+)(?:\?|$)/.exec(path) ??
    [];
  const verbs = { GET: name ? 'get' : 'list', POST: 'create', PATCH: 'patch', DELETE: 'delete' };
  const right = (verb: string) => `${by}: ${verb} ${resource}${subresource ? `/${subresource}` : ''}`;
  // Who applies what may not be there must be allowed to create it, too.
  const creates = contentType?.includes('apply-patch') && !subresource;
  return [right(verbs[method]), ...(creates ? [right('create')] : [])];
}
