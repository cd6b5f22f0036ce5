import assert from 'node:assert/strict';
import { creation, type Observed, plan, planDeletion, type Step } from '../../../../functions/user/plan.ts';
import type { LldapUser, LldapUserSpec } from '../../../../shared/kube/resources.ts';
import type { AccountChange, LldapAccount } from '../../../../shared/lldap/api.ts';
import { notReady } from '../../../../shared/rules/failure.ts';
import { markFor, type Owner } from '../../../../shared/rules/ownership.ts';
import type { PasswordKey } from '../../../../shared/rules/password.ts';
import { account, definition, groupAccount, policy, told, user } from '../../support/examples.ts';

const OURS: Owner = { who: 'self', origin: 'created', marked: true };
const NOBODYS: Owner = { who: 'nobody' };
const KEY: PasswordKey = { id: 'key', key: Buffer.alloc(32) };
const MARK = { name: 'k8s-owner', value: ['v2;main;team/alice;created;uid-team-alice'] };
const SET: Step = { do: 'setPassword', password: 'correct horse', key: KEY };
const password: Observed['password'] = { state: { password: 'correct horse', isLabelled: true }, key: KEY };
const NO_PASSWORD = { passwordPolicy: 'Ignore' } as const;

interface Example {
  resource?: LldapUser;
  observed?: Partial<Observed>;
  draft?: LldapUser['status'];
}

function planned({ resource = user({ spec: NO_PASSWORD }), observed = {}, draft = {} }: Example) {
  return plan({ resource, draft, policy: policy() }, { definitions: new Map(), ...observed });
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

describe('functions/user/plan', () => {
  describe('a user that lldap does not have', () => {
    it('is created with its mark, by the one call that creates it', () => {
      assert.deepEqual(stepsOf({}), [{ do: 'create' }]);
      assert.deepEqual(creation(user({ spec: { username: 'Alice' } }).spec, markFor(user(), 'created', policy())), {
        id: 'alice',
        email: 'alice@example.com',
        attributes: [MARK],
      });
    });

    it('gets its password last', () => {
      assert.deepEqual(stepsOf({ resource: user(), observed: { password } }), [{ do: 'create' }, SET]);
    });

    it('is created though its password has to be waited for', () => {
      const why = notReady('SecretNotFound', 'The Secret alice does not exist.');
      const made = planned({ resource: user(), observed: { password: { state: why, key: KEY } } });
      assert.ok('steps' in made);
      assert.deepEqual([made.steps, made.blockedBy], [[{ do: 'create' }], why]);
      assert.equal(made.conditions?.PasswordSynced?.reason, 'SecretNotFound');
    });

    it('is created with all that the spec names, and without what it clears', () => {
      const spec: LldapUserSpec = {
        ...user().spec,
        displayName: 'Alice A.',
        firstName: 'Alice',
        lastName: '',
        attributes: [
          { name: 'Shoe-Size', value: ['042'] },
          { name: 'tags', value: [] },
          { name: 'nick', value: [''] },
        ],
      };
      assert.deepEqual(creation(spec, MARK), {
        id: 'alice',
        email: 'alice@example.com',
        displayName: 'Alice A.',
        firstName: 'Alice',
        attributes: [{ name: 'shoe-size', value: ['042'] }, MARK],
      });
      assert.equal(creation({ ...spec, lastName: 'Ames' }, MARK).lastName, 'Ames');
    });

    it('is not created with values that lldap would refuse', () => {
      const resource = user({ spec: { ...NO_PASSWORD, attributes: [{ name: 'shoe-size', value: ['large'] }] } });
      const observed = { definitions: new Map([['shoe-size', definition()]]) };
      assert.deepEqual(refusal({ resource, observed })?.slice(0, 2), ['Invalid', 'InvalidValue']);
    });
  });

  describe('a user that lldap has', () => {
    it('is left alone where nothing differs, and recorded', () => {
      assert.deepEqual(planned({ observed: { account: account(), owner: OURS } }), {
        steps: [],
        statusPatch: { uuid: 'uuid-alice', origin: 'created' },
        conditions: {
          PasswordSynced: {
            status: 'Unknown',
            reason: 'PasswordNotManaged',
            message: 'passwordPolicy is Ignore: the operator does not manage the password.',
          },
        },
      });
    });

    const has = account({
      attributes: [
        { name: 'display_name', value: ['A'] },
        { name: 'first_name', value: ['F'] },
        { name: 'last_name', value: ['L'] },
        { name: 'nick', value: ['Al'] },
      ],
    });
    const changes: Record<string, [Partial<LldapUserSpec>, LldapAccount, AccountChange]> = {
      'its e-mail, whatever its case': [{ email: 'ALICE@example.com' }, has, { email: 'ALICE@example.com' }],
      'its display name': [{ displayName: 'B' }, has, { displayName: 'B' }],
      'a name that is cleared': [{ firstName: '' }, has, { firstName: '' }],
      'several fields at once': [{ firstName: 'G', lastName: 'M' }, has, { firstName: 'G', lastName: 'M' }],
      'an attribute': [{ attributes: [{ name: 'Nick', value: ['Ally'] }] }, has, { insertAttributes: [{ name: 'nick', value: ['Ally'] }] }],
      'an attribute that is cleared': [{ attributes: [{ name: 'nick', value: [] }] }, has, { removeAttributes: ['nick'] }],
      'only what differs': [{ displayName: 'A', lastName: 'M', attributes: [{ name: 'nick', value: ['Al'] }] }, has, { lastName: 'M' }],
    };
    for (const [name, [spec, found, change]] of Object.entries(changes)) {
      it(`is updated where it differs: ${name}`, () => {
        const resource = user({ spec: { ...NO_PASSWORD, ...spec } });
        assert.deepEqual(stepsOf({ resource, observed: { account: found, owner: OURS } }), [{ do: 'update', change }]);
      });
    }

    const empty = { displayName: '', firstName: '', lastName: '' };
    const equal: Record<string, [Partial<LldapUserSpec>, LldapAccount]> = {
      'that lldap has, although it answers empty fields beside the attributes': [
        { email: 'alice@example.com', displayName: 'A', firstName: 'F', lastName: 'L' },
        { ...has, ...empty },
      ],
      'that are empty and not set': [empty, account()],
      'that are empty and stored as an empty text': [{ firstName: '' }, account({ attributes: [{ name: 'first_name', value: [''] }] })],
    };
    for (const [name, [spec, found]] of Object.entries(equal)) {
      it(`is not updated for names ${name}`, () => {
        const resource = user({ spec: { ...NO_PASSWORD, ...spec } });
        assert.deepEqual(stepsOf({ resource, observed: { account: found, owner: OURS } }), []);
      });
    }

    it('keeps what the spec does not name', () => {
      assert.deepEqual(stepsOf({ observed: { account: has, owner: OURS } }), []);
    });

    it('gets its mark again where that was removed, together with all else', () => {
      const resource = user({ spec: { ...NO_PASSWORD, displayName: 'B', attributes: [{ name: 'nick', value: ['Ally'] }] } });
      const observed = { account: has, owner: { ...OURS, marked: false } };
      const insertAttributes = [
        { name: 'nick', value: ['Ally'] },
        { ...MARK, value: [`${MARK.value[0]};uuid-alice`] },
      ];
      assert.deepEqual(stepsOf({ resource, observed }), [{ do: 'update', change: { displayName: 'B', insertAttributes } }]);
    });

    it('gets its password last', () => {
      const resource = user({ spec: { displayName: 'B' } });
      const steps = stepsOf({ resource, observed: { account: account(), owner: OURS, password } });
      assert.deepEqual(steps, [{ do: 'update', change: { displayName: 'B' } }, SET]);
    });

    it('of nobody is adopted by a privileged namespace, and marked as adopted', () => {
      const resource = user({ metadata: { namespace: 'admins' }, spec: NO_PASSWORD });
      const made = planned({ resource, observed: { account: account(), owner: NOBODYS } });
      assert.ok('steps' in made);
      const mark = { name: 'k8s-owner', value: ['v2;main;admins/alice;adopted;uid-admins-alice;uuid-alice'] };
      assert.deepEqual(made.steps, [{ do: 'update', change: { insertAttributes: [mark] } }]);
      assert.deepEqual(made.statusPatch, { uuid: 'uuid-alice', origin: 'adopted' });
    });

    it('of nobody is not touched by a tenant', () => {
      assert.deepEqual(refusal({ observed: { account: account(), owner: NOBODYS } })?.slice(0, 2), ['Invalid', 'NotOurs']);
    });

    it('of another resource is not touched, and its owner is named', () => {
      assert.deepEqual(refusal({ observed: { account: account(), owner: { who: 'other', ref: 'other/al' } } }), [
        'Taken',
        'Conflict',
        'The user alice in lldap belongs to the LldapUser other/al. Use another name, or delete one of the two resources. Only a resource in a privileged namespace can adopt the object as it is.',
      ]);
    });
  });

  describe('a user that has become an administrator', () => {
    const admin = account({ groups: [groupAccount({ displayName: 'lldap_admin' })] });

    it('keeps what a tenant would change', () => {
      const resource = user({ spec: { ...NO_PASSWORD, displayName: 'B' } });
      assert.deepEqual(refusal({ resource, observed: { account: admin, owner: OURS } })?.slice(0, 2), ['Invalid', 'Forbidden']);
    });

    it('keeps its password, too', () => {
      assert.deepEqual(refusal({ resource: user(), observed: { account: admin, owner: OURS, password } })?.slice(0, 2), [
        'Invalid',
        'Forbidden',
      ]);
    });

    it('keeps its tenant’s resource Ready as long as nothing differs', () => {
      assert.deepEqual(stepsOf({ observed: { account: admin, owner: OURS } }), []);
    });

    it('is changed from a privileged namespace', () => {
      const resource = user({ metadata: { namespace: 'admins' }, spec: { ...NO_PASSWORD, displayName: 'B' } });
      assert.equal(stepsOf({ resource, observed: { account: admin, owner: OURS } }).length, 1);
    });
  });

  describe('an e-mail that another user has', () => {
    const emailHolder = { id: 'bob', owner: 'LldapUser other/bob' };
    const taken = [
      'Taken',
      'EmailTaken',
      "spec.email: the user bob has the address alice@example.com (LldapUser other/bob). Use another address, or change that user's. To swap two addresses, give one of the users a third address first.",
    ];

    it('is waited for, and its holder is named', () => {
      assert.deepEqual(refusal({ observed: { emailHolder } }), taken);
    });

    it('is waited for by a user that is there, too', () => {
      assert.deepEqual(refusal({ observed: { account: account({ email: 'old@example.com' }), owner: OURS, emailHolder } }), taken);
    });

    it('is no other’s if the holder is the user itself', () => {
      const resource = user({ spec: { ...NO_PASSWORD, username: 'Alice' } });
      const found = account({ email: 'Alice@Example.com' });
      const own = { id: 'alice', owner: 'LldapUser team/alice' };
      assert.deepEqual(stepsOf({ resource, observed: { account: found, owner: OURS, emailHolder: own } }), [
        { do: 'update', change: { email: 'alice@example.com' } },
      ]);
    });
  });

  it('an e-mail that the user has is no other’s, whatever lldap said a moment ago', () => {
    const found = account({ email: 'ALICE@example.com' });
    const resource = user({ spec: { ...NO_PASSWORD, email: 'alice@example.com' } });
    const emailHolder = { id: 'bob', owner: 'managed by no resource' };
    assert.deepEqual(stepsOf({ resource, observed: { account: found, owner: OURS, emailHolder } }), [
      { do: 'update', change: { email: 'alice@example.com' } },
    ]);
  });

  describe('a user whose resource is deleted', () => {
    const owner = (origin: 'created' | 'adopted'): Owner => ({ who: 'self', origin, marked: true });
    const admin = account({ groups: [groupAccount({ displayName: 'lldap_admin' })] });
    const deletion = (observed: Partial<Observed>, spec: Partial<LldapUserSpec> = {}, namespace = 'team') =>
      planDeletion(
        { resource: user({ spec, metadata: { namespace } }), draft: {}, policy: policy() },
        { definitions: new Map(), ...observed },
      );

    const cases: Record<string, [Partial<Observed>, Partial<LldapUserSpec>, deleted: boolean]> = {
      'is deleted if the operator created it': [{ account: account(), owner: owner('created') }, {}, true],
      'is kept if the operator adopted it': [{ account: account(), owner: owner('adopted') }, {}, false],
      'is deleted if the spec says so, though it was adopted': [
        { account: account(), owner: owner('adopted') },
        { deletionPolicy: 'Delete' },
        true,
      ],
      'is nobody’s to delete when it has gone': [{}, { deletionPolicy: 'Delete' }, false],
      'is kept if it belongs to nobody': [{ account: account(), owner: NOBODYS }, { deletionPolicy: 'Delete' }, false],
      'is kept if it belongs to another': [
        { account: account(), owner: { who: 'other', ref: 'other/alice' } },
        { deletionPolicy: 'Delete' },
        false,
      ],
      'is kept if it belongs to another installation': [
        { account: account(), owner: { who: 'foreign', instance: 'second' } },
        { deletionPolicy: 'Delete' },
        false,
      ],
    };
    for (const [name, [observed, spec, deleted]] of Object.entries(cases)) {
      it(name, () => assert.deepEqual(deletion(observed, spec), { steps: deleted ? [{ do: 'delete' }] : [] }));
    }

    it('and who has become an administrator is not deleted by a tenant', () => {
      const made = deletion({ account: admin, owner: owner('created') });
      assert.equal('rejected' in made && made.rejected.reason, 'Forbidden');
    });

    it('and who has become an administrator is deleted from a privileged namespace', () => {
      assert.deepEqual(deletion({ account: admin, owner: owner('created') }, {}, 'admins'), { steps: [{ do: 'delete' }] });
    });
  });
});
