import { execFile } from 'node:child_process';
import { chmod, cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { knativeCrds } from '../local/knative/crds.ts';
import type { Cluster } from '../local/kube/cluster.ts';
import { ensureTools } from '../local/tools/build.ts';

/** Running what the documentation's pages tell people to run. */

const ROOT = join(import.meta.dirname, '../..');

/** Stands in for make, which would look after packages: all that pages ask of it is the release. */
const MAKE = `#!/bin/sh
[ "$1" = release ] || { echo "make $1 is not run here" >&2; exit 2; }
shift
for setting; do export "$setting"; done
exec node release.ts "$IMAGE" "$OVERLAY"
`;

export interface Place {
  /** A copy of what of the checkout the pages speak of; commands run there. */
  folder: string;
  /** Runs one block. @returns what it printed. @throws Error with what it said when it fails */
  run(script: string): Promise<string>;
  remove(): Promise<void>;
}

/** @param tools folders of further programs */
export async function preparePlace(cluster: Cluster, password: string, tools: string[] = []): Promise<Place> {
  const folder = await mkdtemp(join(tmpdir(), 'pages-'));
  for (const path of ['release.ts', 'package.json', 'knative', 'crds', 'docs'])
    await cp(join(ROOT, path), join(folder, path), { recursive: true });
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  await writeFile(join(folder, 'admin-password'), password, { mode: 0o600 });
  const bin = join(folder, 'bin');
  await mkdir(bin);
  await writeFile(join(bin, 'make'), MAKE);
  await chmod(join(bin, 'make'), 0o755);
  const { kubectl } = await ensureTools();
  const path = [bin, dirname(kubectl), ...tools, dirname(process.execPath), '/usr/bin', '/bin'];
  const env = { PATH: path.join(delimiter), KUBECONFIG: cluster.kubeconfig, HOME: folder };
  const run = (script: string) =>
    new Promise<string>((resolve, reject) => {
      execFile('bash', ['--norc', '-euo', 'pipefail', '-c', script], { cwd: folder, env }, (error, stdout, stderr) => {
        if (error) reject(new Error(`${script}\n${stdout}${stderr}`));
        else resolve(stdout);
      });
    });
  return { folder, run, remove: () => rm(folder, { recursive: true }) };
}

/** The shell commands of a page, block by block, without those that say that they need something that is not here. */
export async function blocksOf(page: string): Promise<string[]> {
  const text = await readFile(join(ROOT, 'docs', page), 'utf8');
  return [...text.matchAll(/^```sh\n([\s\S]*?)^```$/gm)]
    .map(([, block = '']) => withoutNeedy(block))
    .filter((block) => block.trim() !== '');
}

/** Commands may go over several lines; the mark stands at the end of the last. */
function withoutNeedy(block: string): string {
  return block.replace(/^(?:.*\\\n)*.*# \(needs [^)]+\)\n/gm, '');
}

/** Lets the API server keep Knative's kinds. */
export async function installKnativeKinds(cluster: Cluster): Promise<void> {
  await cluster.apply(knativeCrds());
  const served = async () => (await cluster.kubectl(['get', 'services.serving.knative.dev,triggers,apiserversources', '-A'])).code === 0;
  while (!(await served())) await sleep(100);
}
