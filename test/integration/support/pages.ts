import { execFile } from 'node:child_process';
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { stringify } from 'yaml';
import { KNATIVE_RESOURCES, knativeCrds, knativePolicies } from '../../local/knative/crds.ts';
import type { Cluster } from '../../local/kube/cluster.ts';
import { kubectlKnows } from '../../local/kube/crds.ts';
import { inEffect } from '../../local/kube/in-effect.ts';
import { ensureTools } from '../../local/tools/build.ts';

/**
 * Running what the documentation's pages tell people to run. Each page with commands, by the test that runs every one
 * of them that does not say what it needs; `test/unit/docs.test.ts` sees that none is missing.
 */
export const RUN_BY: Record<string, string> = {
  'README.md': 'release.test.ts',
  'docs/backup.md': 'release-docs.test.ts',
  'docs/configure.md': 'release-docs.test.ts',
  'docs/install.md': 'release-docs.test.ts',
  'docs/kn.md': 'kn.test.ts',
  'docs/moving.md': 'release-docs.test.ts',
  'docs/multi-instance.md': 'release-docs.test.ts',
  'docs/triggering.md': 'release-docs.test.ts',
  'docs/troubleshooting.md': 'release-docs.test.ts',
  'docs/uninstall.md': 'release-docs.test.ts',
  'docs/upgrade.md': 'release-docs.test.ts',
};

const ROOT = join(import.meta.dirname, '../../..');

/** Stands in for make, which would look after packages: all that pages ask of it is the release. */
const MAKE = `#!/bin/sh
[ "$1" = release ] || { echo "make $1 is not run here" >&2; exit 2; }
shift
for setting; do export "$setting"; done
exec node scripts/release.ts "$IMAGE" "$OVERLAY"
`;

/** Stands in for curl: so tests need none, and addresses of the cluster lead to what stands for them here. */
export const CURL = `#!/bin/sh
exec node '${join(import.meta.dirname, 'curl.ts')}' "$@"
`;

export interface Place {
  /** A copy of what of the checkout the pages speak of; commands run there. */
  folder: string;
  /** What stands here for addresses of the cluster that curl is told. */
  addresses: Record<string, string>;
  /** Runs one block. @returns what it printed. @throws Error with what it said when it fails */
  run(script: string): Promise<string>;
  remove(): Promise<void>;
}

/** @param tools folders of further programs */
export async function preparePlace(cluster: Cluster, password: string, tools: string[] = []): Promise<Place> {
  const folder = await mkdtemp(join(tmpdir(), 'pages-'));
  for (const path of ['scripts', 'package.json', 'knative', 'crds', 'docs'])
    await cp(join(ROOT, path), join(folder, path), { recursive: true });
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  await writeFile(join(folder, 'admin-password'), password, { mode: 0o600 });
  const bin = join(folder, 'bin');
  await mkdir(bin);
  await program(bin, 'make', MAKE);
  await program(bin, 'curl', CURL);
  const { kubectl } = await ensureTools();
  const path = [bin, dirname(kubectl), ...tools, dirname(process.execPath), '/usr/bin', '/bin'];
  const addresses: Place['addresses'] = {};
  const env = { PATH: path.join(delimiter), KUBECONFIG: cluster.kubeconfig, HOME: folder };
  const run = (script: string) =>
    new Promise<string>((resolve, reject) => {
      const options = { cwd: folder, env: { ...env, ADDRESSES: JSON.stringify(addresses) } };
      execFile('bash', ['--norc', '-euo', 'pipefail', '-c', script], options, (error, stdout, stderr) => {
        if (error) reject(new Error(`${script}\n${stdout}${stderr}`));
        else resolve(stdout);
      });
    });
  return { folder, addresses, run, remove: () => rm(folder, { recursive: true }) };
}

async function program(bin: string, name: string, script: string): Promise<void> {
  await writeFile(join(bin, name), script);
  await chmod(join(bin, name), 0o755);
}

/** The shell commands of a page, block by block, without those that say that they need something that is not here. */
export async function blocksOf(page: string): Promise<string[]> {
  return (await fencedIn(page, 'sh')).map(withoutNeedy).filter((block) => block.trim() !== '');
}

/** What stands in a page between fences of a language. @param page from the checkout's root on */
export async function fencedIn(page: string, language: string): Promise<string[]> {
  const text = await readFile(join(ROOT, page), 'utf8');
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'gm'))].map(([, block = '']) => block);
}

/** From the checkout's root on. */
export async function allPages(): Promise<string[]> {
  const docs = await readdir(join(ROOT, 'docs'), { recursive: true });
  return ['README.md', 'CONTRIBUTING.md', ...docs.filter((file) => file.endsWith('.md')).map((file) => join('docs', file))];
}

/** Commands may go over several lines; the mark stands at the end of the last. */
function withoutNeedy(block: string): string {
  return block.replace(/^(?:.*\\\n)*.*# \(needs [^)]+\)\n/gm, '');
}

/** Lets the API server keep Knative's kinds, and refuse the changes that Knative's webhooks refuse. */
export async function installKnativeKinds(cluster: Cluster): Promise<void> {
  await cluster.apply(knativeCrds());
  await kubectlKnows(cluster, KNATIVE_RESOURCES);
  await cluster.apply(knativePolicies());
  await cluster.apply(stringify({ ...TRIGGER, spec: { broker: 'one' } }));
  await inEffect(async () => {
    const { stderr } = await cluster.kubectl(['apply', '--dry-run=server', '-f', '-'], {
      input: stringify({ ...TRIGGER, spec: { broker: 'another' } }),
    });
    return stderr.includes('Immutable') ? undefined : `a Trigger's Broker can be changed: ${stderr}`;
  });
  await cluster.kubectl(['delete', 'trigger', TRIGGER.metadata.name, '-n', TRIGGER.metadata.namespace]);
}

const TRIGGER = { apiVersion: 'eventing.knative.dev/v1', kind: 'Trigger', metadata: { name: 'probe', namespace: 'default' } };
