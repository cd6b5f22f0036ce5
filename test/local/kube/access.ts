import { isRecord } from '../knative/fields.ts';
import type { Cluster } from './cluster.ts';

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
