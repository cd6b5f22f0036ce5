import assert from 'node:assert/strict';
import { FINALIZER, INSTANCE_LABEL, REQUESTED_AT, VIRTUAL_LABEL } from '../../../shared/constants.ts';
import { createListReducer } from '../../../shared/kube/listed.ts';
import type { KindName, ResourceOf } from '../../../shared/kube/resources.ts';
import { condition, group, membership, READY, schema, user } from '../support/examples.ts';

const toListed = <K extends KindName>(resource: ResourceOf[K]) => createListReducer<K>()(resource);

/** A resource with `managedFields`, as the API server returns it. */
function managed(...managedFields: { manager?: string; subresource?: string; fieldsV1?: unknown }[]) {
  const resource = user();
  return { ...resource, metadata: { ...resource.metadata, managedFields } };
}

describe('shared/kube/listed', () => {
  it('a list keeps what sweeps, memberships and deletions read of a resource', () => {
    for (const resource of [
      user({ spec: { passwordSecretRef: { name: 'alice', key: 'password' } }, status: { conditions: [READY], uuid: 'u' } }),
      user({ metadata: { finalizers: [], deletionTimestamp: '2026-03-01T12:00:00Z', annotations: { [REQUESTED_AT]: 'now' } } }),
      group({ metadata: { labels: { [INSTANCE_LABEL]: 'main', [VIRTUAL_LABEL]: 'true' } } }),
      membership({ status: { conditions: [condition('Ready', 'False', 'Forbidden')] } }),
      schema(),
    ])
      assert.deepEqual(toListed(resource), { ...resource, rival: undefined });
  });

  it('and nothing that others write into it: annotations, labels, finalizers, owners, managers', () => {
    const { metadata, ...rest } = user();
    const junk = { 'example.com/junk': 'x'.repeat(1_000) };
    const fat = {
      ...rest,
      metadata: {
        ...metadata,
        annotations: { ...junk, [REQUESTED_AT]: 'now' },
        labels: { ...metadata.labels, ...junk },
        finalizers: ['example.com/other', FINALIZER],
        ownerReferences: [{ name: 'x'.repeat(1_000) }],
        managedFields: [{ manager: 'kubectl', fieldsV1: junk }],
      },
    };
    assert.deepEqual(toListed(fat), {
      ...rest,
      metadata: { ...metadata, annotations: { [REQUESTED_AT]: 'now' } },
      rival: undefined,
    });
  });

  it('of attributes it keeps nothing: photos are large', () => {
    const photo = { name: 'avatar', value: ['x'.repeat(1_000)] };
    const { spec } = toListed(user({ spec: { attributes: [photo, { name: 'nick', value: ['Al'] }] } }));
    assert.deepEqual(spec, user().spec);
  });

  it('of a token that asks for a reconcile it keeps more than a status holds, and no megabytes', () => {
    const { metadata } = toListed(user({ metadata: { annotations: { [REQUESTED_AT]: '\ud83d'.repeat(200_000) } } }));
    assert.equal(metadata.annotations?.[REQUESTED_AT], '\ud83d'.repeat(100));
  });

  describe('another manager of the condition Ready', () => {
    const status = (type: string) => ({ 'f:status': { 'f:conditions': { [`k:{"type":"${type}"}`]: {} } } });
    const cases: Record<string, [ReturnType<typeof managed>, string | undefined]> = {
      'is named': [managed({ manager: 'manager', subresource: 'status', fieldsV1: status('Ready') }), 'manager'],
      'is not the operator': [managed({ manager: 'lldap-operator', subresource: 'status', fieldsV1: status('Ready') }), undefined],
      'is not a tool that applies the spec': [managed({ manager: 'kubectl', fieldsV1: { 'f:spec': {} } }), undefined],
      'is not a tool that writes a condition of its own': [
        managed({ manager: 'policy', subresource: 'status', fieldsV1: status('Checked') }),
        undefined,
      ],
      'is not a tool that writes no status': [managed({ manager: 'kubectl', fieldsV1: status('Ready') }), undefined],
      'is found beside others': [
        managed({ manager: 'kubectl' }, { manager: 'manager', subresource: 'status', fieldsV1: status('Ready') }),
        'manager',
      ],
    };
    for (const [name, [resource, rival]] of Object.entries(cases)) it(name, () => assert.equal(toListed(resource).rival, rival));
  });
});
