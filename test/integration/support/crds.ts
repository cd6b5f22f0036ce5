import { strict as assert } from 'node:assert';
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { API_VERSION, INSTANCE_LABEL } from '../../../shared/constants.ts';
import { type KindName, PLURALS } from '../../../shared/kube/resources.ts';
import type { Cluster } from '../../local/kube/cluster.ts';
import type { ApiAnswer } from '../../local/kube/http.ts';
import { CLUSTER_TIMEOUT_MS, sharedCluster } from '../../local/kube/shared.ts';

/** What the API server says to an object or a change; `accepted`, or its message. */
export type Verdict = string;

export const ACCEPTED = 'accepted';

/** Merged over the least metadata that is accepted. */
export interface Metadata {
  name?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  finalizers?: string[];
}

/** One namespace of a cluster, and short ways to ask it. */
export class Bench {
  readonly cluster: Cluster;
  readonly namespace: string;

  constructor(cluster: Cluster, namespace: string) {
    this.cluster = cluster;
    this.namespace = namespace;
  }

  path(kind: KindName, name = ''): string {
    return `/apis/${API_VERSION}/namespaces/${this.namespace}/${PLURALS[kind]}${name && `/${name}`}`;
  }

  manifest(kind: KindName, spec: unknown, metadata: Metadata = {}) {
    const name = metadata.name ?? `x-${randomBytes(4).toString('hex')}`;
    return { apiVersion: API_VERSION, kind, metadata: { labels: { [INSTANCE_LABEL]: 'main' }, ...metadata, name }, spec };
  }

  /** Creates it. @returns its name @throws Error when it is refused */
  async create(kind: KindName, spec: unknown, metadata: Metadata = {}): Promise<string> {
    const body = this.manifest(kind, spec, metadata);
    const verdict = judge(await this.cluster.request('POST', this.path(kind), { body }));
    if (verdict !== ACCEPTED) throw new Error(verdict);
    return body.metadata.name;
  }

  /** Would it be created? */
  async tryCreate(kind: KindName, spec: unknown, metadata: Metadata = {}, token?: string): Promise<Verdict> {
    const body = this.manifest(kind, spec, metadata);
    return judge(await this.cluster.request('POST', `${this.path(kind)}?dryRun=All`, { body, ...(token && { token }) }));
  }

  /** Would this merge patch be taken? */
  async tryPatch(kind: KindName, name: string, patch: unknown, token?: string): Promise<Verdict> {
    const options = { body: patch, contentType: 'application/merge-patch+json', ...(token && { token }) };
    return judge(await this.cluster.request('PATCH', `${this.path(kind, name)}?dryRun=All`, options));
  }
}

export function judge({ code, body }: ApiAnswer): Verdict {
  if (code === 200 || code === 201) return ACCEPTED;
  if (typeof body === 'object' && body !== null && 'message' in body) return String(body.message);
  return `${code} ${JSON.stringify(body)}`;
}

const IN_EFFECT_WITHIN_MS = 120_000;

/** Repeats what the API server comes to agree with a little later, such as new rights, and fails as the last attempt did. */
export async function eventually(check: () => Promise<void>): Promise<void> {
  const deadline = Date.now() + IN_EFFECT_WITHIN_MS;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > deadline) throw error;
    }
    await sleep(50);
  }
}

/** Registers the hook that gives the surrounding suite a namespace in the shared cluster. */
export function useBench(prefix: string): () => Bench {
  let bench: Bench | undefined;
  before(async function () {
    this.timeout(CLUSTER_TIMEOUT_MS);
    const cluster = await sharedCluster();
    bench = new Bench(cluster, await cluster.createNamespace(prefix));
  });
  return () => {
    if (!bench) throw new Error('the bench is set up in a before hook');
    return bench;
  };
}

/** A sentence's object, what is laid over the least spec, and what the API server says: {@link ACCEPTED} or a part of its message. */
export type Row = [what: string, spec: Record<string, unknown>, verdict: Verdict];

export function assertVerdict(actual: Verdict, expected: Verdict): void {
  if (expected === ACCEPTED) assert.equal(actual, ACCEPTED);
  else assert.ok(actual.includes(expected), `expected a refusal with\n  ${expected}\nand got\n  ${actual}`);
}

/** One test for each row: would the object be created? */
export function createTable(bench: () => Bench, kind: KindName, least: object, rows: Row[]): void {
  for (const [what, spec, verdict] of rows) {
    it(`${verdict === ACCEPTED ? 'may have' : 'is refused with'} ${what}`, async () => {
      assertVerdict(await bench().tryCreate(kind, { ...least, ...spec }), verdict);
    });
  }
}

/** One test for each row: would the least object be changed? */
export function changeTable(bench: () => Bench, kind: KindName, least: object, rows: Row[]): void {
  let existing = '';
  before(async () => {
    existing = await bench().create(kind, least);
  });
  for (const [what, spec, verdict] of rows) {
    it(`${verdict === ACCEPTED ? 'can change' : 'cannot change'} ${what}`, async () => {
      assertVerdict(await bench().tryPatch(kind, existing, { spec }), verdict);
    });
  }
}

/** What every kind has. */
export const COMMON: Row[] = [
  ['the deletion policy Delete', { deletionPolicy: 'Delete' }, ACCEPTED],
  ['the deletion policy Retain', { deletionPolicy: 'Retain' }, ACCEPTED],
  [
    'an unknown deletion policy',
    { deletionPolicy: 'Orphan' },
    'spec.deletionPolicy: Unsupported value: "Orphan": supported values: "Delete", "Retain"',
  ],
  ['suspend', { suspend: true }, ACCEPTED],
  ['suspend as a text', { suspend: 'yes' }, 'spec.suspend: Invalid value: "string": spec.suspend in body must be of type boolean'],
];

export const attribute = (name: string, value: string[] = ['x']) => ({ name, value });
export const attributes = (...names: string[]) => ({ attributes: names.map((name) => attribute(name)) });
const longNames = (count: number) => Array.from({ length: count }, (_, i) => `${'a'.repeat(60)}${i}`);
const MIB = 1 << 20;

/** What users and groups have alike. */
export const ATTRIBUTES: Row[] = [
  ['an attribute with digits, dashes and upper case', attributes('2nd-Floor'), ACCEPTED],
  ['an empty list of attributes', { attributes: [] }, ACCEPTED],
  ['an attribute with an empty list and one with an empty text', { attributes: [attribute('a', []), attribute('b', [''])] }, ACCEPTED],
  ['a photo of 1 MiB in base64', { attributes: [attribute('photo', ['A'.repeat(MIB)])] }, ACCEPTED],
  ['a value over 1 MiB', { attributes: [attribute('photo', ['A'.repeat(MIB + 1)])] }, 'spec.attributes[0].value[0]: Too long'],
  ['256 values', { attributes: [attribute('a', Array<string>(256).fill('x'))] }, ACCEPTED],
  ['257 values', { attributes: [attribute('a', Array<string>(257).fill('x'))] }, 'spec.attributes[0].value: Too many: 257'],
  ['100 attributes with long names', attributes(...longNames(100)), ACCEPTED],
  ['101 attributes', attributes(...longNames(101)), 'spec.attributes: Too many: 101: must have at most 100 items'],
  ['an attribute without a value', { attributes: [{ name: 'a' }] }, 'spec.attributes[0].value: Required value'],
  ['an attribute without a name', { attributes: [{ value: [] }] }, 'spec.attributes[0].name: Required value'],
  ['an empty attribute name', attributes(''), 'spec.attributes[0].name in body should be at least 1 chars long'],
  [
    'an attribute name with a space, and is told which characters it can have',
    attributes('a b'),
    "spec.attributes[0].name: Invalid value: \"a b\": an attribute's name can have only the letters a to z in either case, digits, '-' and, if " +
      "it is one of lldap's own, '_'",
  ],
  ['an attribute name of 64 characters', attributes('a'.repeat(64)), ACCEPTED],
  ['an attribute name of 65 characters', attributes('a'.repeat(65)), 'spec.attributes[0].name: Too long: may not be more than 64'],
  ['an attribute twice', attributes('team', 'team'), 'spec.attributes: Forbidden: team is named more than once'],
  [
    'an attribute twice in different case',
    attributes('floor', 'Team', 'TEAM'),
    'spec.attributes: Forbidden: Team is named more than once (lldap ignores case); keep one entry, with all values',
  ],
  [
    "the operator's mark",
    attributes('floor', 'K8s-Owner'),
    "spec.attributes[1].name: Forbidden: k8s-owner is the operator's own mark of ownership; remove it from the attributes",
  ],
];

export function writtenByLldapAlone(...names: string[]): Row[] {
  return names.map((name) => [
    `the attribute ${name}`,
    attributes(name),
    `spec.attributes[0].name: Forbidden: ${name} is written by lldap alone; remove it from the attributes`,
  ]);
}
