import { strict as assert } from 'node:assert';
import { API_GROUP, API_VERSION, FIELD_MANAGER, INSTANCE_LABEL } from '../../shared/constants.ts';
import type {
  CommonStatus,
  Condition,
  KindName,
  LldapAttributeSchemaStatus,
  LldapGroupStatus,
  LldapMembershipStatus,
  LldapUserStatus,
} from '../../shared/kube/resources.ts';
import { PLURALS } from '../../shared/kube/resources.ts';
import { LEAST_SPEC } from '../local/kube/crds.ts';
import { ACCEPTED, type Bench, judge, useBench } from './support/crds.ts';

const KINDS = Object.keys(PLURALS) as KindName[];
const REF = { name: 'bob-password', key: 'password' };
const READY: Condition = {
  type: 'Ready',
  status: 'True',
  reason: 'Settled',
  message: 'as asked',
  lastTransitionTime: '2026-11-29T12:00:00Z',
  observedGeneration: 1,
};
const COMMON: Required<CommonStatus> = {
  ready: true,
  observedGeneration: 1,
  conditions: [READY],
  retry: { nextTime: '2026-11-29T12:00:05.123Z', attempts: 1, category: 'Unavailable' },
  lastHandledReconcileAt: 't'.repeat(64),
};

/** Every field that the operator writes, as large as it gets. */
const STATUS: {
  LldapUser: Required<LldapUserStatus>;
  LldapGroup: Required<LldapGroupStatus>;
  LldapMembership: Required<LldapMembershipStatus>;
  LldapAttributeSchema: Required<LldapAttributeSchemaStatus>;
} = {
  LldapUser: {
    ...COMMON,
    nameKey: 'b'.repeat(64),
    uuid: '6e7b7a8c-77c7-3c5c-9a35-7a0a8f3b2f10',
    origin: 'created',
    passwordHash: `v1:${'0'.repeat(8)}:${'f'.repeat(64)}`,
    passwordTried: { hash: 'x', fits: true, modifiedAt: 'x' },
    passwordModifiedAt: '2026-11-29T16:01:31.246161677+00:00',
  },
  // Lower case can be longer than what it was made from.
  LldapGroup: {
    ...COMMON,
    nameKey: 'İ'.repeat(128).toLowerCase(),
    groupId: 2 ** 31 - 1,
    uuid: '6e7b7a8c-77c7-3c5c-9a35-7a0a8f3b2f10',
    origin: 'adopted',
  },
  LldapMembership: {
    ...COMMON,
    userKey: 'b'.repeat(255),
    groupKey: 'İ'.repeat(255).toLowerCase(),
    joined: { userUuid: 'u'.repeat(36), groupId: 4, groupUuid: 'g'.repeat(36), declared: ['User', 'Group'] },
    joining: { userUuid: 'u'.repeat(36), groupId: 4, groupUuid: 'g'.repeat(36), declared: [] },
  },
  LldapAttributeSchema: { ...COMMON, created: true },
};

/** Applies a status as the operator does. @returns the verdict */
async function applyStatus(
  bench: Bench,
  kind: KindName,
  name: string,
  status: object,
  { manager = FIELD_MANAGER, resourceVersion = '' } = {},
) {
  const metadata = { name, ...(resourceVersion && { resourceVersion }) };
  const path = `${bench.path(kind, name)}/status?fieldManager=${manager}&force=true`;
  const body = { apiVersion: API_VERSION, kind, metadata, status };
  return bench.cluster.request('PATCH', path, { body, contentType: 'application/apply-patch+yaml' });
}

describe('the custom resources', () => {
  const bench = useBench('crds');

  for (const kind of KINDS) {
    it(`keep every field of an ${kind}'s status`, async () => {
      const name = await bench().create(kind, LEAST_SPEC[kind]);
      const answer = await applyStatus(bench(), kind, name, STATUS[kind]);
      assert.equal(judge(answer), ACCEPTED);
      assert.deepEqual((answer.body as { status: unknown }).status, STATUS[kind]);
    });

    it(`take a status of an ${kind} only for the version that it was made for`, async () => {
      const name = await bench().create(kind, LEAST_SPEC[kind]);
      const { body } = await bench().cluster.request('GET', bench().path(kind, name));
      const { resourceVersion } = (body as { metadata: { resourceVersion: string } }).metadata;
      assert.equal((await applyStatus(bench(), kind, name, { observedGeneration: 1 }, { resourceVersion })).code, 200);
      assert.equal((await applyStatus(bench(), kind, name, { observedGeneration: 2 }, { resourceVersion })).code, 409);
    });

    it(`let the conditions of an ${kind} belong to several controllers`, async () => {
      const name = await bench().create(kind, LEAST_SPEC[kind]);
      const foreign = { ...READY, type: 'example.com/Approved' };
      await applyStatus(bench(), kind, name, { conditions: [foreign] }, { manager: 'another' });
      await applyStatus(bench(), kind, name, { conditions: [READY] });
      const { body } = await applyStatus(bench(), kind, name, {});
      assert.deepEqual((body as { status: unknown }).status, { conditions: [foreign] });
    });

    it(`are refused without a spec: ${kind}`, async () => {
      assert.match(await bench().tryCreate(kind, undefined), /spec: Required value/);
    });

    it(`are selected by short name and by the category lldap: ${kind}`, async () => {
      const name = await bench().create(kind, LEAST_SPEC[kind]);
      const short = { LldapUser: 'llu', LldapGroup: 'llg', LldapMembership: 'llm', LldapAttributeSchema: 'llas' }[kind];
      for (const word of [short, 'lldap']) {
        const { stdout } = await bench().cluster.kubectl(['get', word, '-n', bench().namespace, '-o', 'name']);
        assert.ok(stdout.split('\n').includes(`${kind.toLowerCase()}.${API_GROUP}/${name}`), stdout);
      }
    });
  }

  const DEFAULTS: Record<KindName, object> = {
    LldapUser: { suspend: false, passwordPolicy: 'Manage' },
    LldapGroup: { suspend: false },
    LldapMembership: { suspend: false },
    LldapAttributeSchema: { suspend: false, isList: false, isVisible: false, isEditable: false },
  };
  for (const kind of KINDS) {
    it(`default what the spec of an ${kind} leaves out, but not the deletion policy`, async () => {
      const spec = kind === 'LldapUser' ? { username: 'bob', email: 'bob@example.com', passwordSecretRef: REF } : LEAST_SPEC[kind];
      const answer = await bench().cluster.request('POST', bench().path(kind), { body: bench().manifest(kind, spec) });
      assert.deepEqual((answer.body as { spec: unknown }).spec, { ...spec, ...DEFAULTS[kind] });
    });
  }

  it('explain every field to kubectl', async () => {
    const { body } = await bench().cluster.request('GET', `/openapi/v3/apis/${API_VERSION}`);
    const { schemas } = (body as { components: { schemas: Record<string, Schema> } }).components;
    const mute = KINDS.flatMap((kind) => {
      const schema = Object.entries(schemas).find(([name]) => name.endsWith(`.${kind}`))?.[1];
      assert.ok(schema, `${kind} is published`);
      return undescribed(kind, schema);
    });
    assert.deepEqual(mute, []);
    const { stdout } = await bench().cluster.kubectl(['explain', 'llu.spec.passwordPolicy']);
    assert.match(stdout, /ENUM:\s+Manage\s+InitialOnly\s+Ignore/);
    assert.match(stdout, /InitialOnly\s+sets it once/);
    const { stdout: value } = await bench().cluster.kubectl(['explain', 'llu.spec.attributes.value']);
    assert.match(value.trim(), /clears the\s+attribute\.$/);
    const { stdout: name } = await bench().cluster.kubectl(['explain', 'llas.spec.attributeName']);
    assert.match(name.replace(/\s+/g, ' '), /the letters a to z in either case, digits and '-'/);
  });

  it('take manifests that were written for the fields of the public operator', async () => {
    const applied = await bench().cluster.apply(PUBLIC_MANIFESTS.replaceAll('NAMESPACE', bench().namespace));
    assert.equal(applied.split('\n').filter((line) => line.endsWith(' created')).length, 4, applied);
  });

  it('refuse a field that does not exist, so that a typing error is noticed', async () => {
    const manifest = PUBLIC_MANIFESTS.replaceAll('NAMESPACE', bench().namespace).replace('firstName', 'firstname');
    await assert.rejects(bench().cluster.apply(manifest), /unknown field "spec.firstname"/);
  });
});

interface Schema {
  description?: string;
  properties?: Record<string, Schema>;
  items?: Schema;
}

/** The paths of fields that say nothing about themselves. */
function undescribed(path: string, { description, properties = {}, items }: Schema): string[] {
  return [...(description ? [] : [path]), ...undescribedBelow(path, { properties }), ...undescribedBelow(`${path}[]`, items)];
}

/** An item of a list has no description of its own: kubectl would print it after the list's. */
function undescribedBelow(path: string, { properties = {} }: Schema = {}): string[] {
  return Object.entries(properties).flatMap(([name, schema]) => undescribed(`${path}.${name}`, schema));
}

const PUBLIC_MANIFESTS = `
apiVersion: ${API_VERSION}
kind: LldapAttributeSchema
metadata: { name: public, namespace: NAMESPACE, labels: { ${INSTANCE_LABEL}: main } }
spec: { attributeName: sshPublicKey, attributeType: String, target: User, isList: true, isVisible: true, isEditable: false }
---
apiVersion: ${API_VERSION}
kind: LldapGroup
metadata: { name: public, namespace: NAMESPACE, labels: { ${INSTANCE_LABEL}: main } }
spec: { displayName: Developers, attributes: [{ name: floor, value: ["2"] }] }
---
apiVersion: ${API_VERSION}
kind: LldapUser
metadata: { name: public, namespace: NAMESPACE, labels: { ${INSTANCE_LABEL}: main } }
spec:
  username: Bob
  email: bob@example.com
  displayName: Bob Example
  firstName: Bob
  lastName: Example
  attributes: [{ name: sshPublicKey, value: [ssh-ed25519 AAAA, ssh-ed25519 BBBB] }]
  passwordPolicy: Manage
  passwordSecretRef: { name: bob-password, key: password }
---
apiVersion: ${API_VERSION}
kind: LldapMembership
metadata: { name: public, namespace: NAMESPACE, labels: { ${INSTANCE_LABEL}: main } }
spec: { userName: bob, groupName: Developers }
`;
