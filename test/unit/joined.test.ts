import assert from 'node:assert/strict';
import type { Joined, LldapGroupStatus, LldapUserStatus } from '../../shared/kube/resources.ts';
import { isJoinedStale, type Parties } from '../../shared/reconcile/joined.ts';
import { condition, group, membership, READY, user } from './examples.ts';

const JOINED: Joined = { userUuid: 'uuid-alice', groupId: 7, groupUuid: 'uuid-crew' };
const joined = membership({ status: { joined: JOINED } });
const aUser = (status: LldapUserStatus = {}) => user({ status: { conditions: [READY], uuid: 'uuid-alice', ...status } });
const aGroup = (status: LldapGroupStatus = {}, displayName = 'Crew') =>
  group({ spec: { displayName }, status: { conditions: [READY], groupId: 7, uuid: 'uuid-crew', ...status } });
const failing = (reason: string) => [condition('Ready', 'False', reason)];

describe('shared/reconcile/joined', () => {
  const cases: Record<string, [Partial<Parties>, stale: boolean]> = {
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

  for (const [name, [parties, stale]] of Object.entries(cases)) {
    it(`what was joined ${name}`, () => {
      assert.equal(isJoinedStale(joined, { users: [], groups: [], joinedGroups: [], ...parties }), stale);
    });
  }

  it('a membership that records nothing has to be looked at', () => {
    const none: Parties = { users: [], groups: [], joinedGroups: [] };
    assert.equal(isJoinedStale(membership(), none), true);
    assert.equal(isJoinedStale(membership({ status: {} }), none), true);
  });
});
