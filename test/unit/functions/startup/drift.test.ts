import assert from 'node:assert/strict';
import { findDrifted } from '../../../../functions/startup/drift.ts';
import type { Inventory } from '../../../../functions/startup/unsettled.ts';
import { VIRTUAL_LABEL } from '../../../../shared/constants.ts';
import type { LldapGroup, LldapGroupStatus, LldapUser, LldapUserStatus } from '../../../../shared/kube/resources.ts';
import { AnswerTooLarge, type AttributeDefinition, type LldapAccount, type LldapGroupAccount } from '../../../../shared/lldap/api.ts';
import type { Io } from '../../../../shared/lookup/io.ts';
import { refOf } from '../../../../shared/rules/resource-names.ts';
import {
  account,
  condition,
  definition,
  group,
  groupAccount,
  membership,
  OPERATOR_NAMESPACE,
  policy,
  READY,
  schema,
  user,
} from '../../support/examples.ts';

const SET = '2026-03-01T11:00:00+00:00';
const steady = { observedGeneration: 1, conditions: [READY] };
const owned = (text: string) => ({ name: 'k8s-owner', value: [text] });

interface Lldap {
  users?: LldapAccount[];
  groups?: LldapGroupAccount[];
  definitions?: AttributeDefinition[];
  /** Ids of groups that lldap has, but that are too large to be read. */
  large?: number[];
}

/** What drifted, and what of lldap was read to find that. */
async function drifted(inventory: Partial<Inventory>, { users = [], groups = [], definitions = [], large = [] }: Lldap) {
  const read: string[] = [];
  const all: Inventory = { LldapUser: [], LldapGroup: [], LldapMembership: [], LldapAttributeSchema: [], ...inventory };
  const io = {
    lldap: {
      usersById: async (ids: readonly string[]) => {
        read.push(`users ${ids.join()}`);
        return users.filter(({ id }) => ids.includes(id));
      },
      schema: async () => ({ User: definitions, Group: definitions }),
      group: async (id: number) => {
        read.push(`group ${id}`);
        if (large.includes(id)) throw new AnswerTooLarge('too large');
        return groups.find((g) => g.id === id);
      },
    },
    lookup: {
      groups: async () => {
        read.push('groups');
        if (large.length > 0) throw new AnswerTooLarge('too large');
        return groups;
      },
      scan: async (kind: 'LldapUser' | 'LldapGroup', keep: (resource: LldapUser | LldapGroup) => unknown) => all[kind].map(keep),
    },
  } as unknown as Io;
  const found = await findDrifted(io, policy(), all);
  return { found: found.map((r) => `${r.kind} ${refOf(r)}`), read };
}

describe('functions/startup/drift', () => {
  const aUser = (example: Parameters<typeof user>[0] = {}, status: LldapUserStatus = {}): LldapUser =>
    user({ ...example, status: { ...steady, uuid: 'uuid-alice', passwordModifiedAt: SET, ...status } });
  const shown = (name: string) => [owned('v2;main;team/alice;created;uid-team-alice'), { name: 'display_name', value: [name] }];
  const has = (over: Partial<LldapAccount> = {}, more: LldapAccount['attributes'] = [owned('v2;main;team/alice;created;uid-team-alice')]) =>
    account({ attributes: [{ name: 'password_modified_date', value: [SET] }, ...more], ...over });

  describe('a steady user has drifted', () => {
    const nick = { attributes: [{ name: 'nick', value: ['Al'] }] };
    const cases: Record<string, [LldapUser, LldapAccount[], boolean]> = {
      'not while lldap holds what it asks for': [aUser(), [has()], false],
      'not by what it does not ask for': [aUser(), [has({}, shown('B'))], false],
      'when lldap does not have it': [aUser(), [], true],
      'when a field is another': [aUser({ spec: { displayName: 'A' } }), [has({}, shown('B'))], true],
      'when an attribute is another': [aUser({ spec: nick }), [has()], true],
      'when its mark is gone': [aUser(), [has({}, [])], true],
      'when its mark is for the account before it': [
        aUser(),
        [has({}, [owned('v2;main;team/alice;created;uid-team-alice;uuid-before')])],
        true,
      ],
      'when its mark names another': [aUser(), [has({}, [owned('v2;main;other/al;created;uid-other-al')])], true],
      'when somebody else set its password': [aUser({}, { passwordModifiedAt: '2026-03-01T10:00:00+00:00' }), [has()], true],
      'when somebody else set a password that is managed in so many words': [
        aUser({ spec: { passwordPolicy: 'Manage' } }, { passwordModifiedAt: '2026-03-01T10:00:00+00:00' }),
        [has()],
        true,
      ],
      'not by a password, where that is not managed': [
        aUser({ spec: { passwordPolicy: 'Ignore' } }, { passwordModifiedAt: '2026-03-01T10:00:00+00:00' }),
        [has()],
        false,
      ],
      'not by a later password, where only the first is ours': [
        aUser({ spec: { passwordPolicy: 'InitialOnly' } }, { passwordModifiedAt: '2026-03-01T10:00:00+00:00' }),
        [has()],
        false,
      ],
      'under whatever case of its name': [aUser({ spec: { username: 'ALICE' } }), [has()], false],
    };
    for (const [name, [resource, users, is]] of Object.entries(cases)) {
      it(name, async () => {
        const { found } = await drifted({ LldapUser: [resource] }, { users, definitions: [definition({ name: 'nick', type: 'String' })] });
        assert.deepEqual(found, is ? ['LldapUser team/alice'] : []);
      });
    }
  });

  describe('a steady group has drifted', () => {
    const aGroup = (example: Parameters<typeof group>[0] = {}, status: LldapGroupStatus = {}) =>
      group({ ...example, status: { ...steady, groupId: 7, uuid: 'uuid-crew', ...status } });
    const marked = (over: Partial<LldapGroupAccount> = {}) =>
      groupAccount({ attributes: [owned('v2;main;team/crew;created;uid-team-crew')], ...over });
    const virtual = {
      metadata: { namespace: OPERATOR_NAMESPACE, labels: { [VIRTUAL_LABEL]: 'true' } },
      spec: { displayName: 'lldap_admin' },
    };
    const cases: Record<string, [ReturnType<typeof aGroup>, LldapGroupAccount[], boolean]> = {
      'not while lldap holds what it asks for': [aGroup(), [marked()], false],
      'when lldap does not have it': [aGroup(), [marked({ uuid: 'uuid-other' })], true],
      'when it has another id': [aGroup(), [marked({ id: 8 })], true],
      'when it has another name': [aGroup(), [marked({ displayName: 'Team' })], true],
      'when its mark is gone': [aGroup(), [groupAccount()], true],
      'never if it stands for a built-in one': [aGroup(virtual), [], false],
    };
    for (const [name, [resource, groups, is]] of Object.entries(cases)) {
      it(name, async () => {
        assert.deepEqual((await drifted({ LldapGroup: [resource] }, { groups })).found, is ? ['LldapGroup team/crew'] : []);
      });
    }
  });

  describe('a steady membership has drifted', () => {
    const JOINED = { userUuid: 'uuid-alice', groupId: 7, groupUuid: 'uuid-crew' };
    const aMember = (example: Parameters<typeof membership>[0] = {}, joined = JOINED) =>
      membership({ ...example, status: { ...steady, joined } });
    const crew = { id: 7, uuid: 'uuid-crew', displayName: 'Crew' };
    const cases: Record<string, [ReturnType<typeof aMember>, LldapAccount[], boolean]> = {
      'not while the user is in the group': [aMember(), [account({ groups: [crew] })], false],
      'when the user has left': [aMember(), [account()], true],
      'when the user has gone': [aMember(), [], true],
      'when the user was made anew': [aMember(), [account({ uuid: 'uuid-new', groups: [crew] })], true],
      'when the group was made anew': [aMember(), [account({ groups: [{ ...crew, uuid: 'uuid-new' }] })], true],
      'under whatever case of the user’s name': [aMember({ spec: { userName: 'ALICE' } }), [account({ groups: [crew] })], false],
    };
    for (const [name, [resource, users, is]] of Object.entries(cases)) {
      it(name, async () => {
        assert.deepEqual((await drifted({ LldapMembership: [resource] }, { users })).found, is ? ['LldapMembership team/alice-crew'] : []);
      });
    }
  });

  describe('a steady definition has drifted', () => {
    const cases: Record<string, [AttributeDefinition[], boolean]> = {
      'not while lldap has it': [[definition()], false],
      'not while lldap has it among others': [[definition({ name: 'nick', type: 'String' }), definition()], false],
      'when lldap does not have it': [[], true],
      'when lldap has another one': [[definition({ type: 'String' })], true],
    };
    for (const [name, [definitions, is]] of Object.entries(cases)) {
      it(name, async () => {
        const { found } = await drifted({ LldapAttributeSchema: [schema({ status: steady })] }, { definitions });
        assert.deepEqual(found, is ? ['LldapAttributeSchema team/shoe-size'] : []);
      });
    }
  });

  it('what is not steady is left to its own events', async () => {
    const status = { observedGeneration: 1, conditions: [condition('Ready', 'False', 'LldapUnavailable')] };
    const { found } = await drifted(
      {
        LldapUser: [user({ status })],
        LldapGroup: [group({ status })],
        LldapMembership: [membership({ status })],
        LldapAttributeSchema: [schema({ status })],
      },
      {},
    );
    assert.deepEqual(found, []);
  });

  it('reads each user once, by id, whoever names it, and groups only where there are some', async () => {
    const bob = membership({ metadata: { name: 'bob-crew' }, spec: { userName: 'bob' }, status: steady });
    const { read } = await drifted({ LldapUser: [aUser()], LldapMembership: [membership({ status: steady }), bob] }, {});
    assert.deepEqual(read, ['users alice,bob']);
    assert.deepEqual((await drifted({ LldapGroup: [group({ status: steady })] }, {})).read, ['users ', 'groups']);
  });

  it('of groups is found one by one if one tenant’s attributes make their list too large', async () => {
    const of = (name: string, groupId: number) =>
      group({ metadata: { name }, spec: { displayName: name }, status: { ...steady, groupId, uuid: `uuid-${name}` } });
    const found = groupAccount({
      id: 7,
      uuid: 'uuid-crew',
      displayName: 'crew',
      attributes: [owned('v2;main;team/crew;created;uid-team-crew')],
    });
    assert.deepEqual(await drifted({ LldapGroup: [of('crew', 7), of('huge', 8)] }, { groups: [found], large: [8] }), {
      found: ['LldapGroup team/huge'],
      read: ['users ', 'groups', 'group 7', 'group 8'],
    });
  });
});
