import { type Attributes, compileCesql } from './cesql.ts';
import type { Fields } from './fields.ts';

/** A Trigger's filter, as measured on the real broker, its surprises included. */
export type Filter = (attributes: Attributes) => boolean;

const EVERYTHING: Filter = () => true;
const DIALECTS = ['exact', 'prefix', 'suffix', 'any', 'all', 'not', 'cesql'];

/**
 * The filter of a Trigger's spec: `filters`, when not empty, replaces `filter`.
 * @throws Error for what Knative's webhook refuses: a CESQL syntax error, two dialects in one entry, a bad attribute name
 */
export function triggerFilter(spec: Fields): Filter {
  const old = spec.optionalObject('filter');
  const filters = spec.objects('filters');
  if (filters.length > 0) {
    old?.all();
    return all(filters.map(subscriptionFilter));
  }
  if (!old) return EVERYTHING;
  const attributes = old.map('attributes');
  old.done();
  return attributesFilter(attributes);
}

/** One entry of `filters`. An unknown dialect is pruned by the API server, and the empty rest matches everything. */
function subscriptionFilter(entry: Fields): Filter {
  const [dialect, second] = DIALECTS.filter((name) => entry.has(name));
  entry.all();
  if (second) throw new Error(`${entry.path} has more than one dialect`);
  switch (dialect) {
    case 'exact':
      return strings(entry.map('exact'), (value, wanted) => value === wanted);
    case 'prefix':
      return strings(entry.map('prefix'), (value, wanted) => value.startsWith(wanted));
    case 'suffix':
      return strings(entry.map('suffix'), (value, wanted) => value.endsWith(wanted));
    case 'cesql':
      return compileCesql(entry.string('cesql'));
    case 'not':
      return negated(subscriptionFilter(entry.object('not')));
    case 'all':
      return all(entry.objects('all').map(subscriptionFilter));
    case 'any':
      return any(entry.objects('any').map(subscriptionFilter));
    default:
      return EVERYTHING;
  }
}

/** `filter.attributes`: exact on any attribute; an empty value means "there and not empty". */
function attributesFilter(wanted: Record<string, string>): Filter {
  checkNames(wanted);
  const entries = Object.entries(wanted);
  return (attributes) => entries.every(([name, value]) => (value === '' ? Boolean(attributes[name]) : attributes[name] === value));
}

/** An empty value is not refused, and makes the whole entry match everything. */
function strings(wanted: Record<string, string>, matches: (value: string, wanted: string) => boolean): Filter {
  checkNames(wanted);
  const entries = Object.entries(wanted);
  if (entries.some(([, value]) => value === '')) return EVERYTHING;
  return (attributes) =>
    entries.every(([name, value]) => {
      const found = attributes[name];
      return found !== undefined && matches(found, value);
    });
}

function all(filters: Filter[]): Filter {
  return (attributes) => filters.every((filter) => filter(attributes));
}

function any(filters: Filter[]): Filter {
  return filters.length === 0 ? EVERYTHING : (attributes) => filters.some((filter) => filter(attributes));
}

function negated(filter: Filter): Filter {
  return (attributes) => !filter(attributes);
}

function checkNames(wanted: Record<string, string>): void {
  const bad = Object.keys(wanted).find((name) => !/^[a-z][a-z0-9]*$/.test(name));
  if (bad !== undefined) throw new Error(`${bad} is not an attribute's name`);
}
