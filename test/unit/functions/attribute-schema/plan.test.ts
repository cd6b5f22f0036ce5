import assert from 'node:assert/strict';
import { type Observed, plan, planDeletion } from '../../../../functions/attribute-schema/plan.ts';
import type { LldapAttributeSchema, LldapAttributeSchemaSpec } from '../../../../shared/kube/resources.ts';
import type { AttributeDefinition } from '../../../../shared/lldap/api.ts';
import { desiredDefinition } from '../../../../shared/rules/attributes.ts';
import { definition, policy, schema, told } from '../../support/examples.ts';

const input = (resource: LldapAttributeSchema, created = false) => ({
  resource,
  draft: created ? { created } : {},
  policy: policy(),
});

function refusal(spec: Partial<LldapAttributeSchemaSpec>, found: Partial<AttributeDefinition>) {
  const made = plan(input(schema({ spec })), { definition: definition(found) });
  return 'rejected' in made ? told(made.rejected) : undefined;
}

describe('functions/attribute-schema/plan', () => {
  it('a definition that lldap does not have is made', () => {
    assert.deepEqual(plan(input(schema()), {}), { steps: [{ do: 'create' }] });
    assert.deepEqual(desiredDefinition(schema()), { type: 'Integer', isList: false, isVisible: false, isEditable: false });
    assert.deepEqual(desiredDefinition(schema({ spec: { attributeType: 'DateTime', isList: true, isVisible: true, isEditable: true } })), {
      type: 'DateTime',
      isList: true,
      isVisible: true,
      isEditable: true,
    });
  });

  it('an equal one is taken as it is', () => {
    assert.deepEqual(plan(input(schema()), { definition: definition() }), { steps: [] });
    const all = { isList: true, isVisible: true, isEditable: true };
    assert.deepEqual(plan(input(schema({ spec: all })), { definition: definition(all) }), { steps: [] });
  });

  describe('another one is never changed, since all values would be lost:', () => {
    const tail = "and cannot edit definitions. Use another name, or declare lldap's definition.";
    const cases: Record<string, [Partial<LldapAttributeSchemaSpec>, Partial<AttributeDefinition>, string]> = {
      'another type': [{}, { type: 'String' }, 'attributeType String, not Integer'],
      'a list': [{}, { isList: true }, 'isList true, not false'],
      'no list': [{ isList: true }, {}, 'isList false, not true'],
      'other visibility': [{ isVisible: true }, {}, 'isVisible false, not true'],
      'other editability': [{ isEditable: true }, {}, 'isEditable false, not true'],
      'several differences': [
        { attributeType: 'DateTime', isList: true },
        {},
        'attributeType Integer, not DateTime and isList false, not true',
      ],
    };
    for (const [name, [spec, found, difference]] of Object.entries(cases)) {
      it(name, () => {
        assert.deepEqual(refusal(spec, found), [
          'Invalid',
          'SchemaMismatch',
          `lldap has the attribute shoe-size with ${difference}, ${tail}`,
        ]);
      });
    }

    it('one that is built into lldap', () => {
      assert.deepEqual(refusal({ attributeName: 'Avatar' }, { name: 'avatar', isHardcoded: true }), [
        'Invalid',
        'Protected',
        'spec.attributeName: avatar is built into lldap. Choose another name.',
      ]);
    });
  });

  describe('a definition whose resource is deleted', () => {
    const found = { definition: definition() };
    const told = { deletionPolicy: 'Delete' } as const;
    const cases: Record<string, [LldapAttributeSchema, created: boolean, Observed, deleted: boolean]> = {
      'goes if the operator made it': [schema(), true, found, true],
      'goes if a privileged namespace says so': [schema({ spec: told, metadata: { namespace: 'admins' } }), false, found, true],
      'goes if a tenant says so and the operator made it': [schema({ spec: told }), true, found, true],
      'stays if it was there before': [schema(), false, found, false],
      'stays if it was there before, though a tenant says otherwise': [schema({ spec: told }), false, found, false],
      'stays if it was there before and a privileged namespace says nothing': [
        schema({ metadata: { namespace: 'admins' } }),
        false,
        found,
        false,
      ],
      'stays if another resource declares it': [schema(), true, { ...found, isAlsoDeclared: true }, false],
      'stays if another resource declares it and one uses it': [
        schema(),
        true,
        { ...found, isAlsoDeclared: true, usedBy: 'The LldapUser team/alice' },
        false,
      ],
      'stays if somebody made another one of it': [schema(), true, { definition: definition({ type: 'String' }) }, false],
      'stays if it is built into lldap': [schema({ spec: told }), true, { definition: definition({ isHardcoded: true }) }, false],
      'has gone already': [schema(), true, {}, false],
      'has gone already, whoever names it': [schema(), true, { usedBy: 'The LldapUser team/alice' }, false],
    };
    for (const [name, [resource, created, observed, deleted]] of Object.entries(cases)) {
      it(name, () => assert.deepEqual(planDeletion(input(resource, created), observed), { steps: deleted ? [{ do: 'delete' }] : [] }));
    }

    it('waits while a resource uses it', () => {
      const made = planDeletion(input(schema({ spec: { attributeName: 'Shoe-Size' } }), true), {
        ...found,
        usedBy: 'The LldapUser team/alice',
      });
      assert.ok('blockedBy' in made && made.blockedBy);
      assert.deepEqual(made.steps, []);
      assert.deepEqual(
        [made.blockedBy.category, made.blockedBy.reason, made.blockedBy.message],
        [
          'NotReady',
          'AttributeInUse',
          "The LldapUser team/alice uses the attribute shoe-size. Remove it from that resource's spec.attributes first.",
        ],
      );
    });
  });
});
