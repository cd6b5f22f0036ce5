import assert from 'node:assert/strict';
import { Failure } from '../../../shared/rules/failure.ts';
import { type Owner, refusePrivilegedAccount, standing } from '../../../shared/rules/ownership.ts';
import { isPrivileged } from '../../../shared/rules/policy.ts';
import { account, groupAccount, policy, told } from '../support/examples.ts';

type Act = { origin: 'created' | 'adopted'; marked: boolean };
type Refusal = [category: string, reason: string, message: string];

const CONFLICT: Refusal = [
  'Taken',
  'Conflict',
  'The user alice in lldap belongs to the LldapUser other/alice; delete one of the two resources (with deletionPolicy: Retain on the one that shall hand it over), or use another name.',
];
const FOREIGN: Refusal = [
  'Invalid',
  'NotOurs',
  'The user alice in lldap belongs to the operator installation of instance "second"; use another name.',
];
const NOBODYS: Refusal = [
  'Invalid',
  'NotOurs',
  'The user alice is in lldap already and no resource made it; to take it over, declare it in a privileged namespace, or use another name.',
];
const LEFT_BEHIND: Refusal = [
  'Invalid',
  'NotOurs',
  'The user alice was left in lldap by a resource of the namespace other; to take it over, declare it there or in a privileged namespace, or use another name.',
];

describe('shared/rules/ownership', () => {
  describe('privileged are', () => {
    const cases: Record<string, [namespace: string, privileged: boolean]> = {
      'the operator’s own namespace': ['lldap-operator', true],
      'those that the installation names': ['admins', true],
      'no others': ['team', false],
      'not those whose names only begin alike': ['admins-of-team', false],
    };
    for (const [name, [namespace, privileged]] of Object.entries(cases)) {
      it(name, () => assert.equal(isPrivileged(policy(), namespace), privileged));
    }
  });

  describe('a resource may act on an object', () => {
    const cases: Record<string, [Owner, namespace: string, adoption: 'privileged' | 'all', Act]> = {
      'that carries its own mark': [
        { who: 'self', origin: 'created', marked: true },
        'team',
        'privileged',
        { origin: 'created', marked: true },
      ],
      'that it records though the mark is gone, and marks it again': [
        { who: 'self', origin: 'adopted', marked: false },
        'team',
        'privileged',
        { origin: 'adopted', marked: false },
      ],
      'of nobody, from the operator’s namespace': [{ who: 'nobody' }, 'lldap-operator', 'privileged', { origin: 'adopted', marked: false }],
      'of nobody, from a privileged namespace': [{ who: 'nobody' }, 'admins', 'privileged', { origin: 'adopted', marked: false }],
      'of nobody, from any namespace where the installation says so': [
        { who: 'nobody' },
        'team',
        'all',
        { origin: 'adopted', marked: false },
      ],
      'that a resource of the same namespace created and left behind, as its creator': [
        { who: 'nobody', markNamespace: 'team', origin: 'created' },
        'team',
        'privileged',
        { origin: 'created', marked: false },
      ],
      'that a resource of the same namespace adopted and left behind, as its adopter': [
        { who: 'nobody', markNamespace: 'team', origin: 'adopted' },
        'team',
        'privileged',
        { origin: 'adopted', marked: false },
      ],
      'that a resource of another namespace created and left behind, only as its adopter': [
        { who: 'nobody', markNamespace: 'other', origin: 'created' },
        'admins',
        'privileged',
        { origin: 'adopted', marked: false },
      ],
    };
    for (const [name, [owner, namespace, adoption, act]] of Object.entries(cases)) {
      it(name, () => assert.deepEqual(standing(owner, 'user alice', namespace, 'LldapUser', policy({ adoption })), act));
    }
  });

  describe('a resource may not touch an object', () => {
    const cases: Record<string, [Owner, namespace: string, adoption: 'privileged' | 'all', Refusal]> = {
      'of another resource, but waits for it': [{ who: 'other', ref: 'other/alice' }, 'team', 'privileged', CONFLICT],
      'of another resource, not even from a privileged namespace': [{ who: 'other', ref: 'other/alice' }, 'admins', 'all', CONFLICT],
      'of another installation': [{ who: 'foreign', instance: 'second' }, 'team', 'privileged', FOREIGN],
      'of another installation, not even from a privileged namespace where all may adopt': [
        { who: 'foreign', instance: 'second' },
        'admins',
        'all',
        FOREIGN,
      ],
      'of nobody, from an ordinary namespace': [{ who: 'nobody' }, 'team', 'privileged', NOBODYS],
      'that a resource of another namespace left behind': [
        { who: 'nobody', markNamespace: 'other', origin: 'created' },
        'team',
        'privileged',
        LEFT_BEHIND,
      ],
    };
    for (const [name, [owner, namespace, adoption, refusal]] of Object.entries(cases)) {
      it(name, () => {
        const stand = standing(owner, 'user alice', namespace, 'LldapUser', policy({ adoption }));
        assert.ok(stand instanceof Failure);
        assert.deepEqual(told(stand), refusal);
      });
    }
  });

  describe('an account in one of lldap’s own groups', () => {
    const admin = account({ groups: [groupAccount(), groupAccount({ displayName: 'lldap_admin' })] });

    it('is not changed from an ordinary namespace', () => {
      assert.deepEqual(told(refusePrivilegedAccount(admin, 'team', policy())), [
        'Invalid',
        'Forbidden',
        'The user alice is a member of lldap_admin, so only a resource in a privileged namespace may change it; move this resource there, or remove the user from the group.',
      ]);
    });

    it('is not changed from an ordinary namespace where all may adopt either', () => {
      assert.equal(refusePrivilegedAccount(admin, 'team', policy({ adoption: 'all' }))?.reason, 'Forbidden');
    });

    for (const name of ['lldap_password_manager', 'LLDAP_Strict_ReadOnly']) {
      it(`counts as such in ${name}, too`, () => {
        const member = account({ groups: [groupAccount({ displayName: name })] });
        assert.equal(refusePrivilegedAccount(member, 'team', policy())?.reason, 'Forbidden');
      });
    }

    it('is changed from a privileged namespace', () => {
      assert.equal(refusePrivilegedAccount(admin, 'admins', policy()), undefined);
      assert.equal(refusePrivilegedAccount(admin, 'lldap-operator', policy()), undefined);
    });

    it('is unlike an account in ordinary groups', () => {
      assert.equal(refusePrivilegedAccount(account({ groups: [groupAccount()] }), 'team', policy()), undefined);
      assert.equal(refusePrivilegedAccount(account(), 'team', policy()), undefined);
    });
  });
});
