import assert from 'node:assert/strict';
import { builtIn, type Observed, plan, planDeletion, type Step } from '../../../../functions/group/plan.ts';
import { VIRTUAL_LABEL } from '../../../../shared/constants.ts';
import type { LldapGroup, LldapGroupSpec } from '../../../../shared/kube/resources.ts';
import type { GroupChange } from '../../../../shared/lldap/api.ts';
import { hasGroupName } from '../../../../shared/lldap/names.ts';
import type { Owner } from '../../../../shared/rules/ownership.ts';
import { definition, group, groupAccount, policy, told } from '../../support/examples.ts';

const OURS: Owner = { who: 'self', origin: 'created', marked: true };
const MARK = { name: 'k8s-owner', value: ['v2;main;team/crew;created;uid-team-crew;uuid-crew'] };

interface Example {
  resource?: LldapGroup;
  observed?: Partial<Observed>;
}

function planned({ resource = group(), observed = {} }: Example) {
  return plan({ resource, draft: {}, policy: policy() }, { definitions: new Map(), ...observed });
}

function refusal(example: Example) {
  const made = planned(example);
  return 'rejected' in made ? told(made.rejected) : undefined;
}

function stepsOf(example: Example): Step[] {
  const made = planned(example);
  assert.ok('steps' in made, 'rejected' in made ? made.rejected.message : '');
  return made.steps;
}

describe('functions/group/plan', () => {
  it('a group that lldap does not have is created', () => {
    assert.deepEqual(planned({}), { steps: [{ do: 'create' }] });
  });

  it('a group is not created with values that lldap would refuse', () => {
    const resource = group({ spec: { attributes: [{ name: 'shoe-size', value: ['large'] }] } });
    assert.equal(refusal({ resource, observed: { definitions: new Map([['shoe-size', definition()]]) } })?.[1], 'InvalidValue');
  });

  describe('a group that lldap has', () => {
    const found = groupAccount({ attributes: [{ name: 'nick', value: ['Al'] }] });

    it('is left alone where nothing differs, and recorded', () => {
      assert.deepEqual(planned({ observed: { group: found, owner: OURS } }), {
        statusPatch: { groupId: 7, uuid: 'uuid-crew', origin: 'created' },
        steps: [],
      });
    });

    const changes: Record<string, [Partial<LldapGroupSpec>, GroupChange]> = {
      'another name, which keeps its id': [{ displayName: 'Team' }, { displayName: 'Team' }],
      'another case of its name': [{ displayName: 'CREW' }, { displayName: 'CREW' }],
      'an attribute': [{ attributes: [{ name: 'Nick', value: ['Ally'] }] }, { insertAttributes: [{ name: 'nick', value: ['Ally'] }] }],
      'an attribute that is cleared': [{ attributes: [{ name: 'nick', value: [''] }] }, { removeAttributes: ['nick'] }],
      'both, by one call': [
        { displayName: 'Team', attributes: [{ name: 'nick', value: [] }] },
        { displayName: 'Team', removeAttributes: ['nick'] },
      ],
    };
    for (const [name, [spec, change]] of Object.entries(changes)) {
      it(`is updated where it differs: ${name}`, () => {
        assert.deepEqual(stepsOf({ resource: group({ spec }), observed: { group: found, owner: OURS } }), [
          { do: 'update', id: 7, name: 'Crew', change },
        ]);
      });
    }

    it('gets its mark again where that was removed', () => {
      assert.deepEqual(stepsOf({ observed: { group: found, owner: { ...OURS, marked: false } } }), [
        { do: 'update', id: 7, name: 'Crew', change: { insertAttributes: [MARK] } },
      ]);
    });

    it('of nobody is adopted by a privileged namespace, and marked as adopted', () => {
      const made = planned({
        resource: group({ metadata: { namespace: 'admins' } }),
        observed: { group: found, owner: { who: 'nobody' } },
      });
      const mark = { name: 'k8s-owner', value: ['v2;main;admins/crew;adopted;uid-admins-crew;uuid-crew'] };
      assert.deepEqual(made, {
        statusPatch: { groupId: 7, uuid: 'uuid-crew', origin: 'adopted' },
        steps: [{ do: 'update', id: 7, name: 'Crew', change: { insertAttributes: [mark] } }],
      });
    });

    it('of nobody is not touched by a tenant', () => {
      assert.deepEqual(refusal({ observed: { group: found, owner: { who: 'nobody' } } })?.slice(0, 2), ['Invalid', 'NotOurs']);
    });

    it('of another resource is not touched, and its owner is named', () => {
      assert.deepEqual(refusal({ observed: { group: found, owner: { who: 'other', ref: 'other/crew' } } }), [
        'Taken',
        'Conflict',
        'The group Crew in lldap belongs to the LldapGroup other/crew. Use another name, or delete one of the two resources. Only a resource in a privileged namespace can adopt the object as it is.',
      ]);
    });
  });

  it('a built-in group is never renamed, though it carries our mark', () => {
    const found = groupAccount({ displayName: 'LLDAP_admin' });
    assert.deepEqual(refusal({ observed: { group: found, owner: OURS } }), [
      'Invalid',
      'Protected',
      'The group LLDAP_admin is built into lldap, and no resource may own it. Use LldapMemberships for its members, and give this resource another displayName.',
    ]);
    assert.equal(builtIn('lldap_admin').reason, 'Protected');
  });

  it('a virtual group that somebody edited says who sets it back', () => {
    const resource = group({ metadata: { labels: { [VIRTUAL_LABEL]: 'true' } } });
    const found = groupAccount({ displayName: 'lldap_admin' });
    assert.deepEqual(refusal({ resource, observed: { group: found, owner: OURS } }), [
      'Invalid',
      'Protected',
      "This resource represents lldap's built-in group lldap_admin and cannot represent Crew. Nothing is written to lldap, and the next run of startup restores spec.displayName. Create another LldapGroup for a group of your own.",
    ]);
  });

  describe('a name that another group has', () => {
    const found = groupAccount({ displayName: 'Old' });

    it('is waited for, and its holder is named', () => {
      const observed = { group: found, owner: OURS, nameHolder: { id: 8, owner: 'LldapGroup other/crew' } };
      assert.deepEqual(refusal({ observed }), [
        'Taken',
        'NameTaken',
        'spec.displayName: another group in lldap has the name Crew (LldapGroup other/crew). Use another name, or rename that group. To swap two names, give one of the groups a third name first.',
      ]);
    });

    it('is no other’s if the holder is the group itself', () => {
      const observed = { group: found, owner: OURS, nameHolder: { id: 7, owner: 'LldapGroup team/crew' } };
      assert.deepEqual(stepsOf({ observed }), [{ do: 'update', id: 7, name: 'Old', change: { displayName: 'Crew' } }]);
    });
  });

  it('names are the same whatever their case, as lldap has it', () => {
    assert.equal(hasGroupName({ displayName: 'TEAM Ä' }, 'team ä'), true);
    assert.equal(hasGroupName({ displayName: 'team a' }, 'team ä'), false);
  });

  describe('a group whose resource is deleted', () => {
    const owner = (origin: 'created' | 'adopted'): Owner => ({ who: 'self', origin, marked: true });
    const found = groupAccount();
    const cases: Record<string, [Partial<Observed>, Partial<LldapGroupSpec>, deleted: boolean]> = {
      'is deleted if the operator created it': [{ group: found, owner: owner('created') }, {}, true],
      'is kept if the operator adopted it': [{ group: found, owner: owner('adopted') }, {}, false],
      'is deleted if the spec says so, though it was adopted': [
        { group: found, owner: owner('adopted') },
        { deletionPolicy: 'Delete' },
        true,
      ],
      'is nobody’s to delete when it has gone': [{}, { deletionPolicy: 'Delete' }, false],
      'is kept if it belongs to nobody': [{ group: found, owner: { who: 'nobody' } }, { deletionPolicy: 'Delete' }, false],
      'is kept if it belongs to another': [
        { group: found, owner: { who: 'other', ref: 'other/crew' } },
        { deletionPolicy: 'Delete' },
        false,
      ],
      'is kept if it is built in by now': [
        { group: groupAccount({ displayName: 'lldap_strict_readonly' }), owner: owner('created') },
        { deletionPolicy: 'Delete' },
        false,
      ],
    };
    for (const [name, [observed, spec, deleted]] of Object.entries(cases)) {
      it(name, () => {
        const input = { resource: group({ spec }), draft: {}, policy: policy() };
        assert.deepEqual(planDeletion(input, { definitions: new Map(), ...observed }), {
          steps: deleted ? [{ do: 'delete', id: 7, name: observed.group?.displayName }] : [],
        });
      });
    }
  });
});
