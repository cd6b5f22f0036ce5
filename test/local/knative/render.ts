import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { stringify } from 'yaml';
import { ensureTools } from '../tools/build.ts';
import { isRecord } from './fields.ts';
import { parseManifests } from './manifests.ts';

/**
 * What `kubectl kustomize` makes of a folder of `knative/`.
 * @throws Error with kubectl's words when it does not render
 */
export async function renderManifests(folder = 'base'): Promise<string> {
  const { kubectl } = await ensureTools();
  const { stdout } = await promisify(execFile)(kubectl, ['kustomize', join(import.meta.dirname, '../../../knative', folder)], {
    maxBuffer: 16 * 1024 * 1024,
  });
  return stdout;
}

/**
 * The manifests with other settings in the ConfigMap `lldap-operator`, as an overlay would put them there.
 * @throws Error for a setting that the ConfigMap does not have
 */
export function withSettings(rendered: string, settings: Record<string, string>): string {
  const objects = parseManifests(rendered).map((object) => object.all());
  const data = objects.find(({ kind, metadata }) => kind === 'ConfigMap' && isRecord(metadata) && metadata.name === 'lldap-operator')?.data;
  if (!isRecord(data)) throw new Error('the manifests have no ConfigMap lldap-operator');
  const unknown = Object.keys(settings).find((name) => !(name in data));
  if (unknown !== undefined) throw new Error(`the ConfigMap lldap-operator has no setting ${unknown}`);
  Object.assign(data, settings);
  return objects.map((object) => stringify(object)).join('---\n');
}
