import assert from 'node:assert/strict';
import { VIRTUAL_LABEL } from '../../../shared/constants.ts';
import { foldGroupName, foldId, isBuiltInGroup } from '../../../shared/lldap/names.ts';
import { declaredName, isVirtual, membershipKeys, refOf, statusKeys, virtualGroupName } from '../../../shared/rules/resource-names.ts';
import { group, membership, OPERATOR_NAMESPACE, schema, user } from '../support/examples.ts';

describe('shared/rules/resource-names', () => {
  const ids: Record<string, [string, string]> = {
    'user ids ignore the case of A to Z': ['Alice.B_c-9', 'alice.b_c-9'],
    'user ids keep the case of letters beyond A to Z, as lldap does': ['ÉVA', 'Éva'],
    'user ids that are in lower case stay': ['alice', 'alice'],
  };
  for (const [name, [text, folded]] of Object.entries(ids)) it(name, () => assert.equal(foldId(text), folded));

  const groups: Record<string, [string, string]> = {
    'group names ignore the case of all letters, as lldap does': ['TEAM Ä', 'team ä'],
    'group names keep their spaces': [' Crew  One ', ' crew  one '],
  };
  for (const [name, [text, folded]] of Object.entries(groups)) it(name, () => assert.equal(foldGroupName(text), folded));

  const builtIn: Record<string, boolean> = {
    lldap_admin: true,
    LLDAP_Password_Manager: true,
    lldap_strict_readonly: true,
    'lldap-admin': false,
    'lldap_admin ': false,
    lldap_admins: false,
    '': false,
  };
  for (const [name, is] of Object.entries(builtIn)) {
    it(`a group "${name}" is ${is ? '' : 'not '}one of lldap's own`, () => assert.equal(isBuiltInGroup(name), is));
  }

  const labels = { [VIRTUAL_LABEL]: 'true' };
  const virtual = { metadata: { namespace: OPERATOR_NAMESPACE, labels }, spec: { displayName: 'lldap_admin' } };
  const virtuals: Record<string, [Parameters<typeof group>[0], boolean]> = {
    'a labelled group of a built-in name in the operator’s namespace stands for the built-in group': [virtual, true],
    'the same in a tenant’s namespace stands for nothing': [{ ...virtual, metadata: { namespace: 'team', labels } }, false],
    'the same without the label stands for nothing': [{ ...virtual, metadata: { namespace: OPERATOR_NAMESPACE, labels: {} } }, false],
    'the same with the label "false" stands for nothing': [
      { ...virtual, metadata: { namespace: OPERATOR_NAMESPACE, labels: { [VIRTUAL_LABEL]: 'false' } } },
      false,
    ],
    'a labelled group of another name stands for nothing': [{ ...virtual, spec: { displayName: 'Crew' } }, false],
  };
  for (const [name, [example, is]] of Object.entries(virtuals)) {
    it(name, () => assert.equal(isVirtual(group(example), OPERATOR_NAMESPACE), is));
  }

  it('a group without any labels stands for nothing', () => {
    const { labels: _labels, ...metadata } = group(virtual).metadata;
    assert.equal(isVirtual({ ...group(virtual), metadata }, OPERATOR_NAMESPACE), false);
  });

  it('virtual groups have names that Kubernetes allows', () => {
    assert.equal(virtualGroupName('lldap_strict_readonly'), 'lldap-strict-readonly');
    assert.equal(virtualGroupName('LLDAP_Admin'), 'lldap-admin');
  });

  it('a resource is named by its namespace and name', () => {
    assert.equal(refOf(user({ metadata: { name: 'alice', namespace: 'team' } })), 'team/alice');
  });

  it('what a resource declares in lldap comes from its spec, folded as lldap folds it', () => {
    assert.equal(declaredName(user({ metadata: { name: 'other' }, spec: { username: 'Éva' } })), 'Éva');
    assert.equal(declaredName(user({ spec: { username: 'ALICE' } })), 'alice');
    assert.equal(declaredName(group({ spec: { displayName: 'TEAM Ä' } })), 'team ä');
    assert.equal(declaredName(schema({ spec: { attributeName: 'Shoe-Size' } })), 'shoe-size');
  });

  it('statuses carry the folded names by which resources find each other', () => {
    assert.deepEqual(statusKeys(user({ spec: { username: 'Alice' } })), { nameKey: 'alice' });
    assert.deepEqual(statusKeys(group({ spec: { displayName: 'Crew Ä' } })), { nameKey: 'crew ä' });
    assert.deepEqual(statusKeys(membership({ spec: { userName: 'ALICE', groupName: 'Crew Ä' } })), {
      userKey: 'alice',
      groupKey: 'crew ä',
    });
    assert.deepEqual(statusKeys(schema()), {});
    assert.deepEqual(membershipKeys(membership({ spec: { userName: 'Éva', groupName: 'ÉVA' } })), { userKey: 'Éva', groupKey: 'éva' });
  });
});
