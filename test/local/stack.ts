import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';
import { type KnativeOptions, type LocalKnative, startKnative } from './knative/knative.ts';
import { renderManifests, withSettings } from './knative/render.ts';
import { type Cluster, startCluster } from './kube/cluster.ts';
import { installCrds } from './kube/crds.ts';
import { type LldapPlace, openLldap } from './lldap/place.ts';
import type { Tools } from './tools/build.ts';

/**
 * Everything that a cluster with the operator has, on this machine: the real API server, a local Knative that obeys
 * the manifests of `knative/base`, and lldap: the stand-in, or a real one where `LLDAP_URL` names it.
 */
export interface Stack {
  cluster: Cluster;
  knative: LocalKnative;
  lldap: LldapPlace;
  /** Of the label that the operator selects on. */
  instance: string;
  stop(): Promise<void>;
}

export interface StackOptions extends Pick<KnativeOptions, 'idleMs' | 'jobs' | 'onEvent'> {
  /** In place of the ConfigMap's. */
  settings?: Record<string, string>;
  /** Where lldap is; by the environment's variables, unless given. */
  lldap?: NodeJS.ProcessEnv;
  /** For every function besides, as an overlay would add it. */
  env?: Record<string, string>;
  /** Of the pinned versions by default. */
  tools?: Tools;
  /** Told before each part starts. */
  onPart?(part: 'kubernetes' | 'lldap' | 'knative'): void;
}

const NAMESPACE = 'lldap-operator';
const BUNDLE = fileURLToPath(new URL('../../dist/main.cjs', import.meta.url));

export async function startStack({
  settings = {},
  lldap: where = process.env,
  env = {},
  tools,
  onPart,
  ...knativeOptions
}: StackOptions = {}): Promise<Stack> {
  onPart?.('kubernetes');
  const cluster = await startCluster(tools);
  const parts: { stop(): Promise<void> }[] = [cluster];
  const stop = async () => {
    for (const part of parts.splice(0).reverse()) await part.stop();
  };
  try {
    await installCrds(cluster);
    onPart?.('lldap');
    const lldap = await openLldap(where);
    parts.push({ stop: lldap.close });
    await cluster.apply(await credentials(lldap));
    onPart?.('knative');
    const instance = settings.LLDAP_INSTANCE ?? 'default';
    const manifests = withSettings(await renderManifests('base', tools?.kubectl), {
      LLDAP_URL: lldap.url,
      LLDAP_LDAP_URL: lldap.ldapUrl,
      LLDAP_CA: lldap.ca ?? '',
      ...settings,
    });
    const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    const command = (args: string[]) => ['env', ...variables, process.execPath, BUNDLE, ...args];
    const knative = await startKnative({ cluster, manifests, command, ...knativeOptions });
    parts.push(knative);
    return { cluster, knative, lldap, instance, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function credentials({ admin }: LldapPlace): Promise<string> {
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } };
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'lldap-operator-credentials', namespace: NAMESPACE },
    stringData: { username: admin.username, password: admin.password },
  };
  return [namespace, secret].map((object) => stringify(object)).join('---\n');
}
