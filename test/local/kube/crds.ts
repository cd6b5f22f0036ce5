import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type KindName, PLURALS, type ResourceOf } from '../../../shared/kube/resources.ts';
import { API_VERSION, INSTANCE_LABEL } from '../../../shared/names.ts';
import type { Cluster } from './cluster.ts';

/** The four kinds and the label policy. */
export const CRD_FOLDER = join(import.meta.dirname, '../../../crds');
const IN_EFFECT_WITHIN_MS = 60_000;

/** The least that each kind's spec can be. */
export const LEAST_SPEC: { [K in KindName]: ResourceOf[K]['spec'] } = {
  LldapUser: { username: 'probe', email: 'probe@example.com', passwordPolicy: 'Ignore' },
  LldapGroup: { displayName: 'probe' },
  LldapMembership: { userName: 'probe', groupName: 'probe' },
  LldapAttributeSchema: { attributeName: 'probe', attributeType: 'String', target: 'User' },
};

/**
 * Applies `crds/` and waits until all of it is in effect: every kind is served, and the admission policy, which the API
 * server notices with a delay of its own, refuses what it should.
 * @throws Error with what the API server said
 */
export async function installCrds(cluster: Cluster): Promise<void> {
  await cluster.apply(CRD_FOLDER);
  await Promise.all((Object.keys(PLURALS) as KindName[]).map((kind) => policyHolds(cluster, kind)));
}

/** Asks for the creation of an object without the instance label, which is refused for that reason once all is in effect. */
async function policyHolds(cluster: Cluster, kind: KindName): Promise<void> {
  const path = `/apis/${API_VERSION}/namespaces/default/${PLURALS[kind]}?dryRun=All`;
  const body = { apiVersion: API_VERSION, kind, metadata: { name: 'probe' }, spec: LEAST_SPEC[kind] };
  const deadline = Date.now() + IN_EFFECT_WITHIN_MS;
  for (;;) {
    const { code, body: answer } = await cluster.request('POST', path, { body });
    const text = JSON.stringify(answer);
    if (text.includes('ValidatingAdmissionPolicy') && text.includes(INSTANCE_LABEL)) return;
    if (Date.now() > deadline) throw new Error(`crds/ is not in effect for ${kind}: ${code} ${text}`);
    await sleep(50);
  }
}
