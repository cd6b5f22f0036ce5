import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { ensureTools, type Tools } from './build.ts';

/** The oldest Kubernetes that the operator supports, see docs/install.md. */
const MINIMUM_KUBERNETES_MINOR = 32;
/** Kubernetes 1.32 was released with etcd 3.5. */
const MINIMUM_ETCD_MINOR = 5;

type Say = (line: string) => void;
type Tool = keyof Tools;

interface Found {
  path: string;
  version: string;
  minor: number;
}

/**
 * The tools for the demo, which runs with any supported version: those in `KUBEBUILDER_ASSETS` (as envtest reads it), else
 * those on the `PATH`, else built from source. The tests always use the pinned versions, see {@link ensureTools}.
 *
 * @param say receives the choice and its reason, and the progress of a build
 * @param build builds what is missing
 * @throws Error as {@link ensureTools} does
 */
export async function findTools(say: Say, env: NodeJS.ProcessEnv = process.env, build = ensureTools): Promise<Tools> {
  const assets = env.KUBEBUILDER_ASSETS;
  const places: [title: string, folders: string[]][] = [
    ...(assets ? [['KUBEBUILDER_ASSETS', [assets]] as [string, string[]]] : []),
    ['the PATH', (env.PATH ?? '').split(delimiter).filter(Boolean)],
  ];
  const chosen: Partial<Tools> = {};
  let serverMinor: number | undefined;
  for (const [title, folders] of places) {
    const [apiserver, etcd] = await Promise.all([find('apiserver', folders), find('etcd', folders)]);
    const problem = problemOf(apiserver, etcd);
    if (problem || !apiserver || !etcd) {
      say(`${title[0]?.toUpperCase()}${title.slice(1)} ${problem}.`);
      continue;
    }
    say(`Using kube-apiserver ${apiserver.version} and etcd ${etcd.version} from ${title}.`);
    Object.assign(chosen, { apiserver: apiserver.path, etcd: etcd.path });
    serverMinor = apiserver.minor;
    break;
  }
  for (const [title, folders] of places) {
    const kubectl = await find('kubectl', folders);
    if (!kubectl || kubectl.minor < MINIMUM_KUBERNETES_MINOR || (serverMinor !== undefined && Math.abs(kubectl.minor - serverMinor) > 1))
      continue;
    say(`Using kubectl ${kubectl.version} from ${title}.`);
    chosen.kubectl = kubectl.path;
    break;
  }
  const missing = (Object.keys(BINARIES) as Tool[]).filter((tool) => chosen[tool] === undefined);
  if (missing.length === 0) return chosen as Tools;
  const built = await build(say, missing);
  say(`Using ${missing.map((tool) => BINARIES[tool].name).join(', ')} of the pinned version, built from source.`);
  return { ...built, ...chosen };
}

function problemOf(apiserver: Found | undefined, etcd: Found | undefined): string | undefined {
  const missing = [!apiserver && BINARIES.apiserver.name, !etcd && BINARIES.etcd.name].filter(Boolean);
  if (!apiserver || !etcd) return `has no ${missing.join(' and no ')}`;
  if (apiserver.minor < MINIMUM_KUBERNETES_MINOR)
    return `has kube-apiserver ${apiserver.version}, which is older than 1.${MINIMUM_KUBERNETES_MINOR}`;
  return etcd.minor < MINIMUM_ETCD_MINOR ? `has etcd ${etcd.version}, which is older than 3.${MINIMUM_ETCD_MINOR}` : undefined;
}

const BINARIES: Record<Tool, { name: string; args: string[]; version: RegExp }> = {
  apiserver: { name: 'kube-apiserver', args: ['--version'], version: /^Kubernetes (v1\.(\d+)\.\S+)/ },
  etcd: { name: 'etcd', args: ['--version'], version: /^etcd Version: (3\.(\d+)\.\S+)/ },
  kubectl: { name: 'kubectl', args: ['version', '--client'], version: /^Client Version: (v1\.(\d+)\.\S+)/ },
};

/** The first in the folders that runs and says its version. */
async function find(tool: Tool, folders: readonly string[]): Promise<Found | undefined> {
  const { name, args, version } = BINARIES[tool];
  for (const path of folders.map((folder) => join(folder, name)).filter(existsSync)) {
    const output = await promisify(execFile)(path, args).then(
      ({ stdout }) => stdout,
      () => '',
    );
    const [, text, minor] = version.exec(output) ?? [];
    if (text !== undefined) return { path, version: text, minor: Number(minor) };
  }
  return undefined;
}
