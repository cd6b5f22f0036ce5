import { join } from 'node:path';
import { API_GROUP, API_VERSION, INSTANCE_LABEL } from '../../../shared/constants.ts';
import { type KindName, PLURALS, type ResourceOf } from '../../../shared/kube/resources.ts';

import type { Cluster } from './cluster.ts';
import { inEffect } from './in-effect.ts';

/** The four kinds and the label policy. */
export const CRD_FOLDER = join(import.meta.dirname, '../../../crds');

/** The least that each kind's spec can be. */
export const LEAST_SPEC: { [K in KindName]: ResourceOf[K]['spec'] } = {
  LldapUser: { username: 'probe', email: 'probe@example.com', passwordPolicy: 'Ignore' },
  LldapGroup: { displayName: 'probe' },
  LldapMembership: { userName: 'probe', groupName: 'probe' },
  LldapAttributeSchema: { attributeName: 'probe', attributeType: 'String', target: 'User' },
};

/**
 * Applies `crds/` and waits until all of it is in effect: every kind is served, kubectl knows it and can explain it, and the
 * admission policy refuses what it should. The API server does each of these with a delay of its own.
 * @throws Error with what the API server said
 */
export async function installCrds(cluster: Cluster): Promise<void> {
  await cluster.apply(CRD_FOLDER);
  const kinds = Object.keys(PLURALS) as KindName[];
  await Promise.all([
    ...kinds.map((kind) => policyHolds(cluster, kind)),
    kubectlKnows(
      cluster,
      kinds.map((kind) => `${PLURALS[kind]}.${API_GROUP}`),
    ),
    isPublished(cluster, kinds),
  ]);
}

/**
 * Waits until kubectl finds these kinds, which it does by a list of all kinds that follows their definitions.
 * @param resources `<plural>.<group>`
 * @throws Error with what kubectl said
 */
export async function kubectlKnows(cluster: Cluster, resources: string[]): Promise<void> {
  await inEffect(async () => {
    const { code, stderr } = await cluster.kubectl(['get', resources.join(','), '-A']);
    return code === 0 ? undefined : `kubectl get: ${stderr.trim()}`;
  });
}

/** Waits for the schemas that kubectl explains and that tell it whether the API server checks fields. */
async function isPublished(cluster: Cluster, kinds: KindName[]): Promise<void> {
  await inEffect(async () => {
    const { code, body } = await cluster.request('GET', `/openapi/v3/apis/${API_VERSION}`);
    const text = JSON.stringify(body);
    const isThere = code === 200 && kinds.every((kind) => text.includes(`.${kind}"`));
    return isThere ? undefined : `the schemas of crds/ are not published: ${code}`;
  });
}

/** Asks for the creation of an object without the instance label, which is refused for that reason once all is in effect. */
async function policyHolds(cluster: Cluster, kind: KindName): Promise<void> {
  const path = `/apis/${API_VERSION}/namespaces/default/${PLURALS[kind]}?dryRun=All`;
  const body = { apiVersion: API_VERSION, kind, metadata: { name: 'probe' }, spec: LEAST_SPEC[kind] };
  await inEffect(async () => {
    const { code, body: answer } = await cluster.request('POST', path, { body });
    const text = JSON.stringify(answer);
    const isRefused = text.includes('ValidatingAdmissionPolicy') && text.includes(INSTANCE_LABEL);
    return isRefused ? undefined : `crds/ is not in effect for ${kind}: ${code} ${text}`;
  });
}
