import assert from 'node:assert/strict';
import { Failure } from '../../../shared/rules/failure.ts';
import { authorize, type Owner, refusePrivilegedAccount } from '../../../shared/rules/ownership.ts';
import { isPrivileged } from '../../../shared/rules/policy.ts';
import { account, groupAccount, policy, told } from '../support/examples.ts';

type Act = { origin: 'created' | 'adopted'; marked: boolean };
type Refusal = [category: string, reason: string, message: string];

const BELONGS = 'The user alice in lldap belongs to the LldapUser other/alice. Use another name, or delete one of the two resources.';
const CONFLICT: Refusal = ['Taken', 'Conflict', `${BELONGS} Only a resource in a privileged namespace can adopt the object as it is.`];
const HANDED_OVER: Refusal = [
  'Taken',
  'Conflict',
  `${BELONGS} To hand the object over to this resource, set deletionPolicy: Retain on other/alice before you delete it.`,
];
const FOREIGN: Refusal = [
  'Invalid',
  'NotOurs',
  'The user alice in lldap belongs to the operator installation of instance "second". Use another name.',
];
const NOBODYS: Refusal = [
  'Invalid',
  'NotOurs',
  'The user alice already exists in lldap and no resource owns it. Declare it in a privileged namespace to adopt it, or use another name.',
];
const LEFT_BEHIND: Refusal = [
  'Invalid',
  'NotOurs',
  'A deleted resource of the namespace other left the user alice in lldap. Declare it there or in a privileged namespace to adopt it, or use another name.',
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
      it(name, () => assert.deepEqual(authorize(owner, 'user alice', namespace, 'LldapUser', policy({ adoption })), act));
    }
  });

  describe('a resource may not touch an object', () => {
    const cases: Record<string, [Owner, namespace: string, adoption: 'privileged' | 'all', Refusal]> = {
      'of another resource, but waits for it': [{ who: 'other', ref: 'other/alice' }, 'team', 'privileged', CONFLICT],
      'of another resource, not even from a privileged namespace': [
        { who: 'other', ref: 'other/alice' },
        'admins',
        'privileged',
        HANDED_OVER,
      ],
      'of another resource, where all may adopt': [{ who: 'other', ref: 'other/alice' }, 'team', 'all', HANDED_OVER],
      'of another resource in its own namespace': [{ who: 'other', ref: 'other/alice' }, 'other', 'privileged', HANDED_OVER],
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
        const stand = authorize(owner, 'user alice', namespace, 'LldapUser', policy({ adoption }));
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
        'The user alice is a member of lldap_admin, so only a resource in a privileged namespace may change it. Move this resource there, or remove the user from the group.',
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
