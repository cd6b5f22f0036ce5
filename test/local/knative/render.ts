import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import { stringify } from 'yaml';
import { ensureTools } from '../tools/build.ts';
import { isRecord } from './fields.ts';
import { parseManifests } from './manifests.ts';

const KNATIVE = join(import.meta.dirname, '../../../knative');

const rendered = new Map<string, Promise<string>>();

/**
 * Renders a folder of `knative/` with `kubectl kustomize`, once per process.
 *
 * @param kubectl its path; the pinned version by default
 * @throws Error with kubectl's message if the folder does not render
 */
export function renderManifests(folder = 'base', kubectl?: string): Promise<string> {
  const manifests = rendered.get(folder) ?? kustomize(join(KNATIVE, folder), kubectl);
  rendered.set(folder, manifests);
  return manifests;
}

/**
 * What it makes of an overlay of `knative/overlays` with these components, in this order, of `knative/`.
 * @param before the overlay as one file, rendered before: as a release has it
 * @throws Error with kubectl's words when it does not render
 */
export async function renderWith(components: string[], overlay = 'all-namespaces', before?: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'local-kustomize-'));
  const at = (...path: string[]) => relative(folder, join(KNATIVE, ...path));
  try {
    if (before !== undefined) await writeFile(join(folder, 'install.yaml'), before);
    const kustomization = {
      apiVersion: 'kustomize.config.k8s.io/v1beta1',
      kind: 'Kustomization',
      resources: [before === undefined ? at('overlays', overlay) : 'install.yaml'],
      components: components.map((component) => at(component)),
    };
    await writeFile(join(folder, 'kustomization.yaml'), stringify(kustomization));
    return await kustomize(folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function kustomize(folder: string, given?: string): Promise<string> {
  const kubectl = given ?? (await ensureTools()).kubectl;
  const { stdout } = await promisify(execFile)(kubectl, ['kustomize', folder], { maxBuffer: 16 * 1024 * 1024 });
  return stdout;
}

/**
 * The manifests with other settings in the ConfigMap `lldap-operator`, as an overlay would put them there.
 * @throws Error for a setting that the ConfigMap does not have
 */
export function withSettings(manifests: string, settings: Record<string, string>): string {
  const objects = parseManifests(manifests).map((object) => object.all());
  const data = objects.find(({ kind, metadata }) => kind === 'ConfigMap' && isRecord(metadata) && metadata.name === 'lldap-operator')?.data;
  if (!isRecord(data)) throw new Error('the manifests have no ConfigMap lldap-operator');
  const unknown = Object.keys(settings).find((name) => !(name in data));
  if (unknown !== undefined) throw new Error(`the ConfigMap lldap-operator has no setting ${unknown}`);
  Object.assign(data, settings);
  return objects.map((object) => stringify(object)).join('---\n');
}
