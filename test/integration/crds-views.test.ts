import { strict as assert } from 'node:assert';
import type { KindName } from '../../shared/kube/resources.ts';
import { LEAST_SPEC } from '../local/kube/crds.ts';
import { ACCEPTED, type Bench, judge, useBench } from './support/crds.ts';

const READY = { type: 'Ready', status: 'False', reason: 'Taken', message: 'the name is taken', lastTransitionTime: '2026-11-29T12:00:00Z' };

async function createWithStatus(bench: Bench, kind: KindName, spec: object, status: object): Promise<string> {
  const name = await bench.create(kind, spec);
  const options = { body: { status }, contentType: 'application/merge-patch+json' };
  assert.equal(judge(await bench.cluster.request('PATCH', `${bench.path(kind, name)}/status`, options)), ACCEPTED);
  return name;
}

/** Cells are divided by two spaces or more. */
const cells = (line = '') => line.trim().split(/ {2,}/);

describe('kubectl get', () => {
  const bench = useBench('crds-columns');
  const expected: Record<KindName, [columns: string[], values: string[]]> = {
    LldapUser: [['USERNAME'], ['probe']],
    LldapGroup: [['DISPLAY NAME'], ['probe']],
    LldapMembership: [
      ['USER', 'GROUP'],
      ['probe', 'probe'],
    ],
    LldapAttributeSchema: [
      ['ATTRIBUTE', 'TYPE', 'TARGET'],
      ['probe', 'String', 'User'],
    ],
  };

  for (const kind of Object.keys(expected) as KindName[]) {
    it(`shows what an ${kind} is, whether it is ready, why not and how old it is; with -o wide also the instance, the policies and the message`, async () => {
      const allowedMemberships = { namespaces: { from: 'All' } };
      const seen = { managementPolicy: 'Observe', ...(kind === 'LldapGroup' && { allowedMemberships }) };
      const name = await createWithStatus(bench(), kind, { ...LEAST_SPEC[kind], ...seen }, { conditions: [READY] });
      const get = async (...more: string[]) => {
        const { stdout } = await bench().cluster.kubectl(['get', kind, name, '-n', bench().namespace, ...more]);
        return stdout.split('\n').map(cells);
      };
      const [columns, values] = expected[kind];
      const [header, row] = await get();
      assert.deepEqual(header, ['NAME', ...columns, 'READY', 'REASON', 'AGE']);
      assert.deepEqual(row?.slice(0, -1), [name, ...values, 'False', 'Taken']);
      assert.match(row?.at(-1) ?? '', /^\d+[smh]/);
      const [wideHeader, wideRow] = await get('-o', 'wide');
      const policies = kind === 'LldapGroup' ? ['MEMBERSHIPS FROM', 'POLICY'] : ['POLICY'];
      assert.deepEqual(wideHeader, [...(header ?? []), 'INSTANCE', ...policies, 'MESSAGE']);
      const shown = kind === 'LldapGroup' ? ['All', 'Observe'] : ['Observe'];
      assert.deepEqual(wideRow?.slice(-2 - shown.length), ['main', ...shown, 'the name is taken']);
    });
  }
});

describe('a field selector', () => {
  const bench = useBench('crds-selectors');
  const selections: [kind: KindName, spec: object, status: object, selector: string][] = [
    ['LldapUser', { passwordSecretRef: { name: 'bob-password', key: 'p' } }, {}, 'spec.passwordSecretRef.name=bob-password'],
    ['LldapUser', {}, { nameKey: 'bob' }, 'status.nameKey=bob'],
    ['LldapUser', {}, { uuid: '6e7b7a8c' }, 'status.uuid=6e7b7a8c'],
    ['LldapGroup', {}, { nameKey: 'a=b, c\\d ä' }, 'status.nameKey=a\\=b\\, c\\\\d ä'],
    ['LldapGroup', {}, { uuid: '6e7b7a8c' }, 'status.uuid=6e7b7a8c'],
    ['LldapMembership', {}, { userKey: 'bob' }, 'status.userKey=bob'],
    ['LldapMembership', {}, { groupKey: 'team ä' }, 'status.groupKey=team ä'],
    ['LldapMembership', {}, { joined: { userUuid: 'u', groupId: 7, groupUuid: '6e7b7a8c' } }, 'status.joined.groupUuid=6e7b7a8c'],
  ];

  for (const kind of Object.keys(LEAST_SPEC) as (keyof typeof LEAST_SPEC)[]) {
    it(`finds every ${kind} that is not Ready, also one without a status, and none that is`, async () => {
      const made = [{ ready: true }, { ready: false }, {}, undefined].map(async (status) =>
        status ? await createWithStatus(bench(), kind, LEAST_SPEC[kind], status) : await bench().create(kind, LEAST_SPEC[kind]),
      );
      const names = await Promise.all(made);
      const { body } = await bench().cluster.request(
        'GET',
        `${bench().path(kind)}?fieldSelector=${encodeURIComponent('status.ready!=true')}`,
      );
      const found = (body as { items: { metadata: { name: string } }[] }).items.map(({ metadata }) => metadata.name);
      assert.deepEqual(
        names.map((name) => found.includes(name)),
        [false, true, true, true],
      );
    });
  }

  for (const [kind, spec, status, selector] of selections) {
    it(`finds an ${kind} by ${selector} in all namespaces`, async () => {
      const found = await createWithStatus(bench(), kind, { ...LEAST_SPEC[kind], ...spec }, status);
      const other = await createWithStatus(bench(), kind, LEAST_SPEC[kind], {});
      const path = bench().path(kind).replace(`/namespaces/${bench().namespace}`, '');
      const { body } = await bench().cluster.request('GET', `${path}?fieldSelector=${encodeURIComponent(selector)}`);
      const names = (body as { items: { metadata: { name: string } }[] }).items.map(({ metadata }) => metadata.name);
      assert.deepEqual([names.includes(found), names.includes(other)], [true, false]);
    });
  }
});
