import { randomBytes } from 'node:crypto';
import { isRecord } from '../knative/fields.ts';
import type { Cluster } from './cluster.ts';
import { inEffect } from './in-effect.ts';

/** Whether RBAC lets a user do something now; the API server learns of new bindings a moment after they are made. */
export async function isAllowed(
  cluster: Pick<Cluster, 'request'>,
  user: string,
  resourceAttributes: Record<string, string>,
): Promise<boolean> {
  const body = { spec: { user, resourceAttributes } };
  const answer = (await cluster.request('POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', { body })).body;
  return isRecord(answer) && isRecord(answer.status) && answer.status.allowed === true;
}

const RBAC = 'rbac.authorization.k8s.io';

/**
 * Resolves when RBAC knows all roles and bindings that were made before the call. It learns of each sort by a watch, in
 * the order of the writes: once it knows a newer one of every sort, it knows all that are older.
 * @throws Error with what the API server said
 */
export async function rbacKnowsAll(cluster: Pick<Cluster, 'request'>): Promise<void> {
  const name = `newest-${randomBytes(8).toString('hex')}`;
  const subjects = [{ apiGroup: RBAC, kind: 'User', name }];
  const ask = async (method: string, path: string, body?: object) => {
    const answer = await cluster.request(method, `/apis/${RBAC}/v1/${path}`, body === undefined ? {} : { body });
    if (answer.code >= 300) throw new Error(`${method} ${path}: ${answer.code} ${JSON.stringify(answer.body)}`);
  };
  const pairs = [
    { role: 'ClusterRole', where: '', resource: 'newest-anywhere' },
    { role: 'Role', where: 'namespaces/default/', resource: 'newest' },
  ];
  const paths = pairs.flatMap(({ role, where }) => ['s', 'bindings'].map((ending) => `${where}${role.toLowerCase()}${ending}`));
  for (const { role, where, resource } of pairs) {
    const rules = [{ apiGroups: [RBAC], resources: [resource], verbs: ['get'] }];
    await ask('POST', `${where}${role.toLowerCase()}s`, { metadata: { name }, rules });
    await ask('POST', `${where}${role.toLowerCase()}bindings`, {
      metadata: { name },
      roleRef: { apiGroup: RBAC, kind: role, name },
      subjects,
    });
  }
  for (const { resource } of pairs) {
    await inEffect(async () => {
      const isKnown = await isAllowed(cluster, name, { group: RBAC, resource, verb: 'get', namespace: 'default' });
      return isKnown ? undefined : `RBAC knows nothing of the newest ${resource}`;
    });
  }
  for (const path of paths) await ask('DELETE', `${path}/${name}`);
}
