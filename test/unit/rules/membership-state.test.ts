import assert from 'node:assert/strict';
import type { Joined, LldapGroupStatus, LldapUserStatus } from '../../../shared/kube/resources.ts';
import { isMembershipStale, type NamedResources } from '../../../shared/rules/membership-state.ts';
import { condition, group, membership, READY, user } from '../support/examples.ts';

const JOINED: Joined = { userUuid: 'uuid-alice', groupId: 7, groupUuid: 'uuid-crew' };
const joined = membership({ status: { joined: JOINED } });
const aUser = (status: LldapUserStatus = {}) => user({ status: { conditions: [READY], uuid: 'uuid-alice', ...status } });
const aGroup = (status: LldapGroupStatus = {}, displayName = 'Crew') =>
  group({ spec: { displayName }, status: { conditions: [READY], groupId: 7, uuid: 'uuid-crew', ...status } });
const failing = (reason: string) => [condition('Ready', 'False', reason)];

describe('shared/rules/membership-state', () => {
  const cases: Record<string, [Partial<NamedResources>, stale: boolean]> = {
    'is as the names mean it where both record what was joined': [
      { users: [aUser()], groups: [aGroup()], joinedGroups: [aGroup()] },
      false,
    ],
    'is as it is where no resource declares the names': [{}, false],
    'is over when the user was made anew': [{ users: [aUser({ uuid: 'uuid-new' })], groups: [aGroup()] }, true],
    'is over when the group was made anew under the same id': [{ groups: [aGroup({ uuid: 'uuid-new' })] }, true],
    'is over when the group has another id': [{ groups: [aGroup({ groupId: 8 })] }, true],
    'is over when the group that was joined has another name': [{ joinedGroups: [aGroup({}, 'Team')] }, true],
    'stays when the group only changes the case of its name': [{ groups: [aGroup({}, 'CREW')], joinedGroups: [aGroup({}, 'CREW')] }, false],
    'stays while the user is not Ready, and so not sure of itself': [
      { users: [aUser({ uuid: 'uuid-new', conditions: failing('LldapUnavailable') })] },
      false,
    ],
    'stays while the group is not Ready, and so not sure of itself': [
      { groups: [aGroup({ groupId: 8, conditions: failing('LldapUnavailable') })] },
      false,
    ],
    'stays while the group that was joined is not Ready under its new name': [
      { joinedGroups: [aGroup({ conditions: failing('NameTaken') }, 'Team')] },
      false,
    ],
    'stays whatever a resource says that records nothing yet': [
      { users: [user({ status: { conditions: [READY] } })], groups: [group()] },
      false,
    ],
    'is over by whichever of several that declare the name': [{ users: [aUser(), aUser({ uuid: 'uuid-new' })] }, true],
  };
  for (const reason of ['Conflict', 'NotOurs', 'Forbidden', 'Protected'])
    cases[`stays whatever a resource says that does not get the name: ${reason}`] = [
      { users: [aUser({ uuid: 'uuid-new', conditions: failing(reason) })], groups: [aGroup({ groupId: 8, conditions: failing(reason) })] },
      false,
    ];

  const asDeclared = membership({ status: { joined: { ...JOINED, declared: ['User', 'Group'] } } });
  const asFound = membership({ status: { joined: { ...JOINED, declared: [] } } });
  const userDeclared = membership({ status: { joined: { ...JOINED, declared: ['User'] } } });
  const leaving = { metadata: { deletionTimestamp: '2026-03-01T11:00:00Z' } };
  const declared: Record<string, [typeof joined, Partial<NamedResources>, stale: boolean]> = {
    'through resources is over when none declares the user any more': [asDeclared, { groups: [aGroup()] }, true],
    'through resources is over when none declares the group any more': [asDeclared, { users: [aUser()] }, true],
    'through resources is over when the one that is left does not get the name': [
      asDeclared,
      { users: [aUser({ conditions: failing('Conflict') })], groups: [aGroup()] },
      true,
    ],
    'through resources is over when the one that is left never got the user': [
      asDeclared,
      { users: [user({ status: { conditions: failing('Suspended') } })], groups: [aGroup()] },
      true,
    ],
    'through resources is over when the one that is left has another group': [
      asDeclared,
      { users: [aUser()], groups: [aGroup({ uuid: 'uuid-other', conditions: failing('NameTaken') })] },
      true,
    ],
    'through resources stays while both declare the names': [asDeclared, { users: [aUser()], groups: [aGroup()] }, false],
    'through resources stays while one fails': [
      asDeclared,
      { users: [aUser({ conditions: failing('LldapUnavailable') })], groups: [aGroup()] },
      false,
    ],
    'as lldap had it is looked at when resources declare both': [asFound, { users: [aUser()], groups: [aGroup()] }, true],
    'as lldap had it is looked at when a resource declares the user': [asFound, { users: [aUser()] }, true],
    'as lldap had it is looked at when a resource declares the group': [asFound, { groups: [aGroup()] }, true],
    'of a declared user is over when none declares the user any more, though none ever declared the group': [userDeclared, {}, true],
    'of a declared user stays while the user is declared, though none ever declared the group': [userDeclared, { users: [aUser()] }, false],
    'as lldap had it stays while one that declares its name fails': [
      asFound,
      { groups: [aGroup({ conditions: failing('LldapUnavailable') })] },
      false,
    ],
    'as lldap had it stays while one that declares its name is being deleted': [
      asFound,
      { users: [{ ...aUser(), metadata: user(leaving).metadata }] },
      false,
    ],
  };
  for (const [name, [self, parties, stale]] of Object.entries(declared)) {
    it(`what was joined ${name}`, () => {
      assert.equal(isMembershipStale(self, { users: [], groups: [], joinedGroups: [], ...parties }), stale);
    });
  }

  for (const [name, [parties, stale]] of Object.entries(cases)) {
    it(`what was joined ${name}`, () => {
      assert.equal(isMembershipStale(joined, { users: [], groups: [], joinedGroups: [], ...parties }), stale);
    });
  }

  it('a membership that records nothing has to be looked at', () => {
    const none: NamedResources = { users: [], groups: [], joinedGroups: [] };
    assert.equal(isMembershipStale(membership(), none), true);
    assert.equal(isMembershipStale(membership({ status: {} }), none), true);
  });
});
