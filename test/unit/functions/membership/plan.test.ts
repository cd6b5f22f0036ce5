import assert from 'node:assert/strict';
import { isClaiming, type Observed, plan, planDeletion, refuse, type Step } from '../../../../functions/membership/plan.ts';
import type { Joined, LldapMembership } from '../../../../shared/kube/resources.ts';
import { account, membership, policy, READY, told, user } from '../../support/examples.ts';

const crew = { id: 7, uuid: 'uuid-crew', displayName: 'Crew' };
const old = { id: 5, uuid: 'uuid-old', displayName: 'Old' };
const admins = { id: 1, uuid: 'uuid-admins', displayName: 'lldap_admin' };
const JOINED: Joined = { userUuid: 'uuid-alice', groupId: 7, groupUuid: 'uuid-crew', declared: [] };
const alice = account();
const member = account({ groups: [old, crew] });
const marked = (text: string, groups = [crew]) => account({ groups, attributes: [{ name: 'k8s-owner', value: [text] }] });

const input = (resource: LldapMembership) => ({ resource, draft: {}, policy: policy() });
const planned = (observed: Observed, resource = membership()) => plan(input(resource), observed);
const deletion = (observed: Observed, resource = membership()) => planDeletion(input(resource), observed);
const of = (groupName: string, namespace: string) => membership({ spec: { groupName }, metadata: { namespace } });

function refusal(observed: Observed, resource?: LldapMembership) {
  const made = planned(observed, resource);
  return 'rejected' in made ? told(made.rejected) : undefined;
}

describe('functions/membership/plan', () => {
  describe('who may ask', () => {
    for (const name of ['lldap_admin', 'LLDAP_Admin', 'lldap_password_manager', 'lldap_strict_readonly']) {
      it(`a tenant may not for ${name}`, () => {
        assert.deepEqual(told(refuse(of(name, 'team'), policy())), [
          'Invalid',
          'Forbidden',
          `spec.groupName: only privileged namespaces may add members to ${name}. Create it in the operator's namespace or in one of PRIVILEGED_NAMESPACES, or name another group.`,
        ]);
      });
      it(`a privileged namespace may for ${name}`, () => assert.equal(refuse(of(name, 'admins'), policy()), undefined));
    }
    it('everybody may for other groups', () => assert.equal(refuse(of('Crew', 'team'), policy()), undefined));
    it('a tenant may not, even where all may adopt', () => {
      assert.equal(refuse(of('lldap_admin', 'team'), policy({ adoption: 'all' }))?.reason, 'Forbidden');
    });
  });

  describe('a user', () => {
    it('is added to the group', () => {
      assert.deepEqual(planned({ account: alice, group: crew }), {
        statusPatch: {},
        steps: [{ do: 'join', user: alice, group: crew, joined: JOINED }],
      });
    });

    it('who is in the group is left there, and recorded', () => {
      assert.deepEqual(planned({ account: member, group: crew }), { statusPatch: { joined: JOINED }, steps: [] });
    });

    it('who was in a group that had the same id is added to the one of now', () => {
      const stranger = account({ groups: [{ ...crew, uuid: 'uuid-before' }] });
      assert.deepEqual(planned({ account: stranger, group: crew }), {
        statusPatch: {},
        steps: [{ do: 'join', user: stranger, group: crew, joined: JOINED }],
      });
    });

    it('leaves what was joined under the name before, then is added', () => {
      const before = account({ groups: [old] });
      const steps: Step[] = [
        { do: 'leave', user: before, group: old },
        { do: 'join', user: before, group: crew, joined: JOINED },
      ];
      assert.deepEqual(planned({ account: before, group: crew, formerGroup: old, isFormerGroupClaimed: false }), {
        statusPatch: {},
        steps,
      });
    });

    it('does not leave what another membership asks for', () => {
      const before = account({ groups: [old] });
      const steps: Step[] = [{ do: 'join', user: before, group: crew, joined: JOINED }];
      assert.deepEqual(planned({ account: before, group: crew, formerGroup: old, isFormerGroupClaimed: true }), { statusPatch: {}, steps });
    });

    it('who is the operator does not leave what was given the name lldap_admin since, though the name before means another group', () => {
      const login = account({ id: 'admin', groups: [{ ...old, displayName: 'LLDAP_Admin' }, crew] });
      const made = planned({ account: login, group: crew, formerGroup: { ...old, displayName: 'LLDAP_Admin' } }, of('Crew', 'admins'));
      assert.deepEqual('steps' in made && made.steps, []);
    });

    it('leaves the group before though the new one has been joined', () => {
      assert.deepEqual(planned({ account: member, group: crew, formerGroup: old, isFormerGroupClaimed: false }), {
        statusPatch: { joined: JOINED },
        steps: [{ do: 'leave', user: member, group: old }],
      });
    });

    it('that lldap does not have is waited for', () => {
      assert.deepEqual(refusal({ group: crew }), [
        'NotReady',
        'DependencyNotReady',
        'lldap has no user alice. Create an LldapUser for it, or replace this membership by one with the correct userName.',
      ]);
    });
  });

  it('what somebody deleted in lldap is waited for under the name of the resource that makes it again', () => {
    const gone = user({ status: { conditions: [READY] } });
    assert.deepEqual(refusal({ group: crew, vanished: [gone] }), [
      'NotReady',
      'DependencyNotReady',
      'lldap no longer has the object of the LldapUser team/alice. The operator has asked that resource to create it again.',
    ]);
  });

  it('a group that lldap does not have is waited for', () => {
    assert.deepEqual(refusal({ account: alice }), [
      'NotReady',
      'DependencyNotReady',
      'lldap has no group Crew. Create an LldapGroup for it, or replace this membership by one with the correct groupName.',
    ]);
  });

  it('a built-in group whose name is spelt with a hyphen is named as lldap spells it', () => {
    assert.equal(
      refusal({ account: alice }, membership({ spec: { groupName: 'LLDAP-Admin' } }))?.[2],
      'lldap has no group LLDAP-Admin; its built-in group is called lldap_admin. Replace this membership by one with that groupName.',
    );
  });

  describe('an administrator is made', () => {
    const wanted = of('lldap_admin', 'admins');

    for (const namespace of ['admins', 'lldap-operator']) {
      it(`of a user whom the namespace ${namespace} owns`, () => {
        const owned = marked(`v1;main;${namespace}/alice;adopted`);
        assert.deepEqual(planned({ account: owned, group: admins }, wanted), {
          statusPatch: {},
          steps: [{ do: 'join', user: owned, group: admins, joined: { ...JOINED, groupId: 1, groupUuid: 'uuid-admins' } }],
        });
      });
    }

    const others: Record<string, ReturnType<typeof account>> = {
      'whom a tenant owns': marked('v1;main;team/alice;created'),
      'whom nobody owns': alice,
      'whose mark was removed': account({ groups: [crew] }),
      'whose mark is for another account': marked('v2;main;admins/alice;adopted;uid-admins-alice;uuid-before'),
      'whose mark is none': marked('admins/alice'),
      'whom a namespace of the same name owns in another installation': marked('v1;second;admins/alice;created'),
    };
    for (const [name, found] of Object.entries(others)) {
      it(`not of a user ${name}`, () => {
        assert.deepEqual(refusal({ account: found, group: admins }, wanted), [
          'NotReady',
          'UserNotPrivileged',
          name === 'whom a tenant owns'
            ? 'Only users that a privileged namespace owns may join lldap_admin, and alice belongs to team/alice. If that LldapUser exists, set deletionPolicy: Retain on it and delete it. Then declare an LldapUser for it in a privileged namespace (passwordPolicy: Ignore keeps its password).'
            : 'Only users that a privileged namespace owns may join lldap_admin, and no resource owns alice. Declare an LldapUser for it in a privileged namespace (passwordPolicy: Ignore keeps its password).',
        ]);
      });
    }

    it('not of the operator’s own account, and the message does not send anybody to declare it', () => {
      const own = account({ id: 'admin', groups: [] });
      const resource = membership({ metadata: { namespace: 'admins' }, spec: { userName: 'Admin', groupName: 'lldap_admin' } });
      assert.deepEqual(refusal({ account: own, group: admins }, resource), [
        'NotReady',
        'UserNotPrivileged',
        "Admin is the operator's own account, whose groups only a person may change, in lldap. Delete this resource.",
      ]);
    });

    it('not of one whom a person put there, who stays', () => {
      const put = marked('v2;main;team/alice;created;uid-team-alice', [admins]);
      assert.equal(refusal({ account: put, group: admins }, wanted)?.[1], 'UserNotPrivileged');
    });

    it('not by a group that was given a built-in name since, asked for by a tenant', () => {
      assert.deepEqual(refusal({ account: alice, group: { ...crew, displayName: 'LLDAP_admin' } })?.slice(0, 2), ['Invalid', 'Forbidden']);
    });

    it('not by a group that was given a built-in name since, of a user whom a tenant owns', () => {
      const found = { account: marked('v1;main;team/alice;created'), group: { ...crew, displayName: 'lldap_admin' } };
      assert.equal(refusal(found, of('Crew', 'admins'))?.[1], 'UserNotPrivileged');
    });
  });

  describe('a membership whose resource is deleted', () => {
    const leave = { steps: [{ do: 'leave', user: member, group: crew }] };
    const nothing = { steps: [] };

    it('ends', () => assert.deepEqual(deletion({ account: member, formerGroup: crew, isFormerGroupClaimed: false }), leave));
    it('stays if another one asks for it', () =>
      assert.deepEqual(deletion({ account: member, formerGroup: crew, isFormerGroupClaimed: true }), nothing));
    it('is over if the user has gone', () => assert.deepEqual(deletion({ formerGroup: crew }), nothing));
    it('is over if the user has left', () => assert.deepEqual(deletion({ account: member }), nothing));

    it('of a group that was given a built-in name since stays, as far as a tenant goes', () => {
      assert.deepEqual(
        deletion({ account: member, formerGroup: { ...crew, displayName: 'lldap_admin' }, isFormerGroupClaimed: false }),
        nothing,
      );
    });

    const admin = account({ id: 'admin', groups: [admins] });
    it('never takes the operator’s own rights', () => {
      assert.deepEqual(
        deletion(
          { account: admin, formerGroup: { ...admins, displayName: 'LLDAP_Admin' }, isFormerGroupClaimed: false },
          of('lldap_admin', 'admins'),
        ),
        nothing,
      );
    });
    it('takes others’ rights', () => {
      const bob = account({ id: 'bob', groups: [admins] });
      assert.deepEqual(deletion({ account: bob, formerGroup: admins, isFormerGroupClaimed: false }, of('lldap_admin', 'admins')), {
        steps: [{ do: 'leave', user: bob, group: admins }],
      });
    });
    it('takes the operator out of other groups', () => {
      assert.deepEqual(deletion({ account: admin, formerGroup: crew, isFormerGroupClaimed: false }), {
        steps: [{ do: 'leave', user: admin, group: crew }],
      });
    });
  });

  describe('another membership keeps a user in a group', () => {
    const self = membership({ metadata: { name: 'self' } });
    const cases: Record<string, [LldapMembership, groupName: string, keeps: boolean]> = {
      'if it declares the pair, in whatever case': [membership({ spec: { userName: 'ALICE', groupName: 'CREW' } }), 'Crew', true],
      'if it does so in another namespace': [membership({ metadata: { namespace: 'other' } }), 'Crew', true],
      'though it is not Ready, or suspended': [membership({ spec: { suspend: true } }), 'Crew', true],
      'if it declares the name that the group has now': [membership({ spec: { groupName: 'New' } }), 'New', true],
      'but not by the name that the group had': [membership({ spec: { groupName: 'Crew' } }), 'New', false],
      'but not for another user': [membership({ spec: { userName: 'bob' } }), 'Crew', false],
      'but not if it is the one that goes': [self, 'Crew', false],
      'but not if it is being deleted itself': [membership({ metadata: { deletionTimestamp: '2026-03-01T12:00:00Z' } }), 'Crew', false],
      'but not if it is a tenant’s, of a built-in group': [of('lldap_admin', 'team'), 'lldap_admin', false],
      'if it is an administrator’s, of a built-in group': [of('lldap_admin', 'admins'), 'lldap_admin', true],
    };
    for (const [name, [other, groupName, keeps]] of Object.entries(cases)) {
      it(name, () => assert.equal(isClaiming(other, self, { userId: 'alice', groupName }, policy()), keeps));
    }
  });
});
