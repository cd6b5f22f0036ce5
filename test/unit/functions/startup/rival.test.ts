import assert from 'node:assert/strict';
import { findRival } from '../../../../functions/startup/rival.ts';
import type { LldapUser, ObjectMeta } from '../../../../shared/kube/resources.ts';

const NOTHING = { LldapUser: [], LldapGroup: [], LldapMembership: [], LldapAttributeSchema: [] };

function user(managedFields: ObjectMeta['managedFields']): LldapUser {
  return {
    apiVersion: 'lldap-operator.lukidoescode.com/v1alpha1',
    kind: 'LldapUser',
    metadata: {
      name: 'alice',
      namespace: 'team',
      uid: '1',
      resourceVersion: '1',
      generation: 1,
      creationTimestamp: '2026-01-01T00:00:00Z',
      ...(managedFields && { managedFields }),
    },
    spec: { username: 'alice', email: 'alice@example.com' },
  };
}

const ready = { 'f:status': { 'f:conditions': { 'k:{"type":"Ready"}': {} } } };

describe('a rival operator', () => {
  const cases: [string, ObjectMeta['managedFields'], boolean][] = [
    ['is one that writes Ready into a status', [{ manager: 'manager', subresource: 'status', fieldsV1: ready }], true],
    ['is not this one', [{ manager: 'lldap-operator', subresource: 'status', fieldsV1: ready }], false],
    ['is not whoever applies the spec', [{ manager: 'kubectl', fieldsV1: { 'f:spec': {} } }], false],
    [
      'is not who writes a condition of its own',
      [{ manager: 'policy', subresource: 'status', fieldsV1: { 'f:status': { 'f:conditions': { 'k:{"type":"Checked"}': {} } } } }],
      false,
    ],
    ['is not there where nobody wrote anything', undefined, false],
  ];
  it('is called by the characters of managers’ names alone, 64 at most, since a tenant may have invented it', () => {
    const told = (manager: string) => findRival({ ...NOTHING, LldapUser: [user([{ manager, subresource: 'status', fieldsV1: ready }])] });
    assert.match(told('call +49 30: the <b>admin</b>\npassword') ?? '', /^Another operator \(call4930thebadmin\/bpassword\) writes/);
    assert.match(told('x'.repeat(200)) ?? '', /^Another operator \(x{63}…\) writes/);
    assert.match(told('Fleet_manager/v1.2-rc') ?? '', /^Another operator \(Fleet_manager\/v1\.2-rc\) writes/);
  });

  for (const [sentence, managedFields, is] of cases) {
    it(sentence, () => {
      const told = findRival({ ...NOTHING, LldapUser: [user(managedFields)] });
      assert.equal(
        told,
        is
          ? "Another operator (manager) writes the status of LldapUser team/alice: stop it, or the two undo each other's work."
          : undefined,
      );
    });
  }
});
