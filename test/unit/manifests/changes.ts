import { isRecord } from '../../local/knative/fields.ts';
import { parseManifests } from '../../local/knative/manifests.ts';

/**
 * What is different in the second of two rendered manifests, a line each: `+ Kind name` and `- Kind name` for objects,
 * `Kind name path: value` for a field that is new or another, `Kind name path: gone` for one that isn't there any more.
 * Items of lists go by their names, where they have some.
 */
export function changes(before: string, after: string): string[] {
  const [old, now] = [objects(before), objects(after)];
  const lines = [...old.keys()].filter((id) => !now.has(id)).map((id) => `- ${id}`);
  for (const [id, object] of now) {
    const former = old.get(id);
    if (former) lines.push(...fieldChanges(former, object).map((change) => `${id} ${change}`));
    else lines.push(`+ ${id}`);
  }
  return lines.sort();
}

function fieldChanges(former: unknown, object: unknown): string[] {
  const [old, now] = [fields(former), fields(object)];
  const gone = [...old.keys()].filter((path) => !now.has(path)).map((path) => `${path}: gone`);
  return [...gone, ...[...now].filter(([path, value]) => old.get(path) !== value).map(([path, value]) => `${path}: ${value}`)];
}

function objects(rendered: string): Map<string, unknown> {
  return new Map(
    parseManifests(rendered)
      .map((object) => object.all())
      .map(({ apiVersion, ...object }) => {
        const name = isRecord(object.metadata) ? object.metadata.name : '';
        return [`${String(apiVersion).includes('serving.knative.dev') ? 'Knative' : ''}${object.kind} ${name}`, object];
      }),
  );
}

/** Every leaf by its path. */
function fields(value: unknown, path = ''): Map<string, string> {
  if (!isRecord(value) && !Array.isArray(value)) return new Map([[path, String(value)]]);
  const entries = Array.isArray(value)
    ? value.map((item, index): [string, unknown] => [`[${isRecord(item) && typeof item.name === 'string' ? item.name : index}]`, item])
    : Object.entries(value).map(([name, item]): [string, unknown] => [`.${name}`, item]);
  if (entries.length === 0) return new Map([[path, 'empty']]);
  return new Map(entries.flatMap(([step, item]) => [...fields(item, `${path}${step}`)]));
}
