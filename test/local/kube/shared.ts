/** For mocha's test files: importing this registers the root hook that ends the shared cluster. */
import { type Cluster, startCluster } from './cluster.ts';
import { installCrds } from './crds.ts';

let shared: Promise<Cluster> | undefined;

/**
 * One cluster for all test files of this mocha process, with `crds/` in effect, started when it is first asked for and
 * ended after the last test. Each file works in namespaces of its own (`createNamespace`). Call it in a `before` whose timeout allows for
 * the tools' first build: `this.timeout(CLUSTER_TIMEOUT_MS)`.
 */
export function sharedCluster(): Promise<Cluster> {
  shared ??= startWithCrds();
  return shared;
}

async function startWithCrds(): Promise<Cluster> {
  const cluster = await startCluster();
  await installCrds(cluster);
  return cluster;
}

/** Enough for a first build on a small machine. */
export const CLUSTER_TIMEOUT_MS = 30 * 60_000;

after('the shared cluster ends', async () => {
  const cluster = await shared;
  await cluster?.stop();
});
