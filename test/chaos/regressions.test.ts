import { play } from './run-schedule.ts';
import type { Schedule, Step } from './schedule.ts';

/** Every schedule that ever broke a promise, cut down to what it takes. */

const PLAIN: Omit<Schedule, 'steps'> = {
  processes: 1,
  skews: [],
  adoption: 'privileged',
  maxDelayedRetries: 1000,
  installed: true,
  phase: 60,
  calmSeed: 0,
};

function keepsItsPromises(sentence: string, steps: Step[], settings: Partial<Schedule> = {}): void {
  it(sentence, () => play({ ...PLAIN, ...settings, steps }).then(() => undefined));
}

const secret = (at: `${string}/${string}`, k = 'password-1'): Step => ({ do: 'secret', at, data: { k }, labelled: true });
const ALICE = { username: 'alice', email: 'alice@example.com' };
const WITH_PASSWORD = { ...ALICE, passwordSecretRef: { name: 's1', key: 'k' } };
const SHOE = { attributeName: 'shoe', attributeType: 'Integer' as const, target: 'User' as const };
const IGNORED = { ...ALICE, passwordPolicy: 'Ignore' as const };

describe('schedules that once broke a promise', () => {
  keepsItsPromises(
    'a membership that joined a group while it was renamed does not stay Ready when the group is deleted',
    [
      { do: 'apply', kind: 'LldapUser', at: 'a/r1', spec: { ...IGNORED, email: 'e1@x' } },
      { do: 'apply', kind: 'LldapGroup', at: 'a/r1', spec: { displayName: 'team' } },
      { do: 'apply', kind: 'LldapMembership', at: 'b/r1', spec: { userName: 'alice', groupName: 'team' } },
      { do: 'wait', seconds: 5, seed: 0 },
      { do: 'apply', kind: 'LldapGroup', at: 'a/r1', spec: { displayName: 'team', allowedMemberships: { namespaces: { from: 'Same' } } } },
      { do: 'apply', kind: 'LldapGroup', at: 'a/r1', spec: { displayName: 'ops', allowedMemberships: { namespaces: { from: 'All' } } } },
      { do: 'apply', kind: 'LldapMembership', at: 'op/r1', spec: { userName: 'alice', groupName: 'team' } },
      { do: 'wait', seconds: 1, seed: 0 },
      { do: 'delete', kind: 'LldapGroup', at: 'a/r1' },
      { do: 'event', what: 'delay', pick: 0 },
    ],
    { adoption: 'all' },
  );

  keepsItsPromises(
    'a group that withdraws its consent and asks for a name that it cannot get loses its guests all the same',
    [
      { do: 'apply', kind: 'LldapUser', at: 'a/r1', spec: { ...IGNORED, email: 'e1@x' } },
      { do: 'apply', kind: 'LldapGroup', at: 'a/r1', spec: { displayName: 'team', allowedMemberships: { namespaces: { from: 'All' } } } },
      { do: 'apply', kind: 'LldapMembership', at: 'b/r1', spec: { userName: 'alice', groupName: 'team' } },
      { do: 'wait', seconds: 5, seed: 0 },
      {
        do: 'apply',
        kind: 'LldapGroup',
        at: 'a/r1',
        spec: { displayName: 'lldap_admin', allowedMemberships: { namespaces: { from: 'Same' } } },
      },
    ],
    {},
  );

  keepsItsPromises(
    'a group that another process makes after a refused request stays',
    [
      { do: 'fail', service: 'lldap', fault: 'refused', calls: 1 },
      { do: 'apply', kind: 'LldapGroup', at: 'a/r1', spec: { displayName: 'team' } },
      { do: 'apply', kind: 'LldapGroup', at: 'op/r1', spec: { displayName: 'team', allowedMemberships: { namespaces: { from: 'All' } } } },
      { do: 'apply', kind: 'LldapAttributeSchema', at: 'a/r1', spec: { attributeName: 'shoe', attributeType: 'Integer', target: 'User' } },
      { do: 'wait', seconds: 1, seed: 765678 },
      { do: 'run', actions: 1, seed: 0 },
    ],
    { processes: 2 },
  );

  keepsItsPromises(
    'a join that lldap does not answer goes again with its membership',
    [
      { do: 'apply', kind: 'LldapUser', at: 'adm/r1', spec: { ...IGNORED, email: 'e1@x' } },
      { do: 'wait', seconds: 5, seed: 0 },
      { do: 'apply', kind: 'LldapUser', at: 'a/r1', spec: { ...IGNORED, email: 'e2@x' } },
      { do: 'wait', seconds: 5, seed: 0 },
      { do: 'apply', kind: 'LldapMembership', at: 'adm/r1', spec: { userName: 'alice', groupName: 'lldap_admin' } },
      { do: 'until', call: 'membership/0 lldap addUserToGroup' },
      { do: 'freeze', after: 0, pick: 0, seed: 0 },
      { do: 'delete', kind: 'LldapUser', at: 'adm/r1' },
      { do: 'delete', kind: 'LldapMembership', at: 'adm/r1' },
      { do: 'run', actions: 15, seed: 37901 },
      { do: 'freeze', after: 11, pick: 0, seed: 0 },
      { do: 'fail', service: 'lldap', fault: 'unanswered', calls: 1 },
      { do: 'thaw', pick: 3 },
      { do: 'crash', after: 1, pick: 0, seed: 0 },
    ],
    { processes: 2 },
  );

  keepsItsPromises('a password that InitialOnly has set is told of in the same words ever after', [
    { do: 'secret', at: 'a/s1', data: { k: 'password-1' }, labelled: false },
    { do: 'apply', kind: 'LldapUser', at: 'a/r1', spec: { ...WITH_PASSWORD, passwordPolicy: 'InitialOnly' } },
  ]);

  keepsItsPromises("a group that takes a built-in's name and is deleted leaves nothing of what it was before", [
    { do: 'apply', kind: 'LldapGroup', at: 'a/r1', spec: { displayName: 'team' } },
    { do: 'wait', seconds: 1, seed: 0 },
    { do: 'apply', kind: 'LldapGroup', at: 'a/r1', spec: { displayName: 'lldap_admin' } },
    { do: 'wait', seconds: 1, seed: 0 },
    { do: 'delete', kind: 'LldapGroup', at: 'a/r1' },
  ]);

  keepsItsPromises('a group that is renamed before its status could tell of it is not taken by who declares the old name', [
    { do: 'apply', kind: 'LldapGroup', at: 'op/r1', spec: { displayName: 'ops' } },
    { do: 'until', call: 'group/0 lldap /auth' },
    { do: 'apply', kind: 'LldapGroup', at: 'op/r1', spec: { displayName: 'team' } },
    { do: 'apply', kind: 'LldapGroup', at: 'adm/r1', spec: { displayName: 'ops' } },
  ]);

  keepsItsPromises('of two that adopt a user at the same moment one is its owner, and the other says Conflict', [
    { do: 'apply', kind: 'LldapUser', at: 'a/r1', spec: { ...IGNORED, deletionPolicy: 'Retain' } },
    { do: 'wait', seconds: 1, seed: 0 },
    { do: 'delete', kind: 'LldapUser', at: 'a/r1' },
    { do: 'wait', seconds: 1, seed: 0 },
    { do: 'apply', kind: 'LldapUser', at: 'adm/r1', spec: IGNORED },
    { do: 'apply', kind: 'LldapUser', at: 'op/r1', spec: { ...IGNORED, displayName: 'Alice' } },
    { do: 'until', call: 'user/0 lldap updateUser' },
  ]);

  keepsItsPromises('what is suspended says so, though the event is lost', [
    { do: 'sourceDown', changes: 1 },
    { do: 'apply', kind: 'LldapUser', at: 'a/r1', spec: { ...IGNORED, suspend: true } },
  ]);

  keepsItsPromises(
    'users that waited for the password key go on with the run of startup that makes it',
    [
      { do: 'fail', service: 'kube', fault: 'refused', calls: 6 },
      { do: 'wait', seconds: 1, seed: 0 },
      secret('a/s1'),
      { do: 'apply', kind: 'LldapUser', at: 'a/r1', spec: WITH_PASSWORD },
      { do: 'wait', seconds: 400, seed: 0 },
    ],
    { installed: false, phase: 285, calmSeed: 14 },
  );

  keepsItsPromises("a hidden definition is not taken for gone while the operator's account lacks its rights", [
    { do: 'apply', kind: 'LldapAttributeSchema', at: 'a/r1', spec: SHOE },
    { do: 'wait', seconds: 1, seed: 0 },
    { do: 'demote' },
    { do: 'logout' },
    { do: 'delete', kind: 'LldapAttributeSchema', at: 'a/r1' },
    { do: 'wait', seconds: 1, seed: 0 },
  ]);

  keepsItsPromises('a membership of a group that is renamed while it is being deleted does not stay Ready', [
    { do: 'apply', kind: 'LldapUser', at: 'a/r1', spec: IGNORED },
    { do: 'apply', kind: 'LldapGroup', at: 'a/r1', spec: { displayName: 'ops' } },
    { do: 'apply', kind: 'LldapMembership', at: 'a/r1', spec: { userName: 'alice', groupName: 'ops' } },
    { do: 'wait', seconds: 10, seed: 0 },
    { do: 'delete', kind: 'LldapGroup', at: 'a/r1' },
    { do: 'apply', kind: 'LldapGroup', at: 'a/r1', spec: { displayName: 'team' } },
  ]);

  keepsItsPromises("a membership whose user is deleted does not stay Ready, though the broker loses the deletion's events", [
    { do: 'apply', kind: 'LldapUser', at: 'a/r1', spec: IGNORED },
    { do: 'apply', kind: 'LldapGroup', at: 'a/r1', spec: { displayName: 'ops' } },
    { do: 'apply', kind: 'LldapMembership', at: 'a/r1', spec: { userName: 'alice', groupName: 'ops' } },
    { do: 'wait', seconds: 10, seed: 0 },
    { do: 'delete', kind: 'LldapUser', at: 'a/r1' },
    { do: 'until', call: 'user/0 kube PATCH' },
    { do: 'brokerDies' },
  ]);

  keepsItsPromises('what was made for a resource that meanwhile is another of the same name does not stay', [
    { do: 'apply', kind: 'LldapGroup', at: 'a/r1', spec: { displayName: 'team' } },
    { do: 'backup', of: 'kube' },
    { do: 'until', call: 'group/0 lldap /auth' },
    { do: 'restore', of: 'kube', bare: true },
    { do: 'apply', kind: 'LldapGroup', at: 'a/r1', spec: { displayName: 'ops' } },
  ]);

  keepsItsPromises(
    'a definition that is declared while another deletes it is there in the end',
    [
      { do: 'apply', kind: 'LldapAttributeSchema', at: 'a/r1', spec: SHOE },
      { do: 'wait', seconds: 1, seed: 0 },
      { do: 'delete', kind: 'LldapAttributeSchema', at: 'a/r1' },
      { do: 'until', call: 'attribute-schema/0 lldap deleteUserAttribute' },
      { do: 'freeze', after: 0, pick: 0, seed: 0 },
      { do: 'apply', kind: 'LldapAttributeSchema', at: 'a/r2', spec: SHOE },
      { do: 'wait', seconds: 1, seed: 0 },
    ],
    { processes: 2 },
  );

  keepsItsPromises('a user that was lost in lldap and made again is not taken for one too many when its spec is edited meanwhile', [
    { do: 'apply', kind: 'LldapUser', at: 'a/r1', spec: IGNORED },
    { do: 'wait', seconds: 1, seed: 0 },
    { do: 'backup', of: 'lldap' },
    { do: 'removeUser', id: 'alice' },
    { do: 'request', kind: 'LldapUser', at: 'a/r1', token: 'again' },
    { do: 'until', call: 'user/0 lldap createUser' },
    { do: 'until', call: 'user/0 kube PATCH' },
    { do: 'apply', kind: 'LldapUser', at: 'a/r1', spec: { ...IGNORED, displayName: 'Alice' } },
    { do: 'until', call: 'user/0 lldap deleteUser' },
    { do: 'restore', of: 'lldap', bare: false },
  ]);

  keepsItsPromises(
    "a membership of a group whose resource takes a built-in's name is told so by the sweep, though another declares the name",
    [
      { do: 'apply', kind: 'LldapGroup', at: 'b/r1', spec: { displayName: 'team' } },
      { do: 'apply', kind: 'LldapUser', at: 'a/r1', spec: IGNORED },
      { do: 'apply', kind: 'LldapMembership', at: 'a/r1', spec: { userName: 'alice', groupName: 'team' } },
      { do: 'wait', seconds: 1, seed: 0 },
      { do: 'apply', kind: 'LldapGroup', at: 'b/r1', spec: { displayName: 'lldap_admin' } },
      { do: 'apply', kind: 'LldapGroup', at: 'a/r1', spec: { displayName: 'team', suspend: true } },
      { do: 'wait', seconds: 1, seed: 0 },
    ],
  );

  keepsItsPromises(
    'a membership of a group that was lost in lldap, and that another resource made meanwhile, joins that one',
    [
      { do: 'apply', kind: 'LldapGroup', at: 'b/r1', spec: { displayName: 'team' } },
      { do: 'apply', kind: 'LldapMembership', at: 'a/r1', spec: { userName: 'alice', groupName: 'team' } },
      { do: 'run', actions: 1, seed: 0 },
      { do: 'apply', kind: 'LldapMembership', at: 'op/r1', spec: { userName: 'alice', groupName: 'team' } },
      { do: 'run', actions: 5, seed: 64333 },
      { do: 'removeGroup', displayName: 'team' },
      { do: 'apply', kind: 'LldapGroup', at: 'a/r1', spec: { displayName: 'team' } },
      { do: 'newUser', id: 'alice', email: 'e1@x' },
      { do: 'secret', at: 'adm/s1', data: { k: 'password-1' }, labelled: true },
    ],
    { adoption: 'all', maxDelayedRetries: 1, phase: 0 },
  );

  keepsItsPromises('a password that was set while lldap was restored is not set again', [
    { do: 'apply', kind: 'LldapUser', at: 'a/r1', spec: WITH_PASSWORD },
    { do: 'until', call: 'user/0 lldap createUser' },
    { do: 'until', call: 'user/0 kube PATCH' },
    { do: 'backup', of: 'lldap' },
    { do: 'removeUser', id: 'alice' },
    secret('a/s1'),
    { do: 'until', call: 'user/0 lldap createUser' },
    { do: 'until', call: 'user/0 ldap setPassword' },
    { do: 'restore', of: 'lldap', bare: false },
  ]);

  keepsItsPromises(
    'two processes that know different keys for password hashes, as after a restore, come to agree',
    [
      { do: 'run', actions: 30, seed: 0 },
      {
        do: 'apply',
        kind: 'LldapUser',
        at: 'a/r1',
        spec: { username: 'Alice', email: 'e1@x', displayName: 'A', firstName: 'A', passwordSecretRef: { name: 's1', key: 'k' } },
      },
      { do: 'run', actions: 5, seed: 132294 },
      { do: 'run', actions: 7, seed: 27746 },
      { do: 'restore', of: 'kube', bare: false },
      {
        do: 'apply',
        kind: 'LldapUser',
        at: 'a/r1',
        spec: { username: 'alice', email: 'e1@x', passwordSecretRef: { name: 's1', key: 'k' } },
      },
      secret('a/s1'),
      { do: 'run', actions: 1, seed: 68287 },
    ],
    { processes: 2, installed: false, calmSeed: 1 },
  );

  keepsItsPromises(
    'a group that two processes make under two names, as it is renamed meanwhile, does not stay twice where lldap fails once more',
    [
      { do: 'brokerDies' },
      { do: 'apply', kind: 'LldapGroup', at: 'a/r1', spec: { displayName: 'team', deletionPolicy: 'Delete' } },
      { do: 'run', actions: 3, seed: 422036 },
      { do: 'apply', kind: 'LldapGroup', at: 'a/r1', spec: { displayName: 'ops', deletionPolicy: 'Delete' } },
      { do: 'event', what: 'repeat', pick: 0 },
      { do: 'run', actions: 30, seed: 661118 },
      { do: 'stall', seconds: 12, seed: 0 },
      { do: 'fail', service: 'kube', fault: 'refused', calls: 1 },
    ],
    { processes: 2, installed: false, phase: 0 },
  );

  for (const [name, after] of Object.entries({
    'lldap is there': [],
    'lldap is away for a moment': [{ do: 'fail', service: 'lldap', fault: 'refused', calls: 1 }],
  } satisfies Record<string, Step[]>))
    keepsItsPromises(`a group that was told to stay is not renamed by the next resource of that metadata.name, when ${name}`, [
      { do: 'apply', kind: 'LldapGroup', at: 'a/r1', spec: { displayName: 'team', deletionPolicy: 'Retain' } },
      { do: 'wait', seconds: 20, seed: 0 },
      { do: 'delete', kind: 'LldapGroup', at: 'a/r1' },
      { do: 'wait', seconds: 20, seed: 0 },
      ...after,
      { do: 'apply', kind: 'LldapGroup', at: 'a/r1', spec: { displayName: 'ops' } },
    ]);

  keepsItsPromises('a group that was told to stay is not deleted with the next resource of that metadata.name', [
    { do: 'apply', kind: 'LldapGroup', at: 'a/r1', spec: { displayName: 'team', deletionPolicy: 'Retain' } },
    { do: 'wait', seconds: 20, seed: 0 },
    { do: 'delete', kind: 'LldapGroup', at: 'a/r1' },
    { do: 'wait', seconds: 20, seed: 0 },
    { do: 'fail', service: 'lldap', fault: 'refused', calls: 1 },
    { do: 'apply', kind: 'LldapGroup', at: 'a/r1', spec: { displayName: 'ops' } },
    { do: 'wait', seconds: 2, seed: 0 },
    { do: 'delete', kind: 'LldapGroup', at: 'a/r1' },
  ]);

  for (const [name, then] of Object.entries({
    'goes on': [{ do: 'thaw', pick: 0 }],
    'dies before it looks again': [
      { do: 'thaw', pick: 0 },
      { do: 'until', call: 'membership/0 lldap user' },
      { do: 'crash', after: 0, pick: 0, seed: 0 },
    ],
  } satisfies Record<string, Step[]>))
    keepsItsPromises(`a tenant who creates an administrator's account anew during its join is none in the end, when the process ${name}`, [
      { do: 'apply', kind: 'LldapUser', at: 'adm/r1', spec: IGNORED },
      { do: 'wait', seconds: 5, seed: 0 },
      { do: 'apply', kind: 'LldapUser', at: 'a/r1', spec: { ...IGNORED, email: 'tenant@example.com' } },
      { do: 'wait', seconds: 5, seed: 0 },
      { do: 'apply', kind: 'LldapMembership', at: 'adm/r1', spec: { userName: 'alice', groupName: 'lldap_admin' } },
      { do: 'until', call: 'membership/0 lldap addUserToGroup' },
      { do: 'freeze', after: 0, pick: 0, seed: 0 },
      { do: 'delete', kind: 'LldapUser', at: 'adm/r1' },
      { do: 'wait', seconds: 3, seed: 0 },
      ...then,
    ]);

  keepsItsPromises('a retry that requeue holds while it is rolled out comes all the same', [
    { do: 'demote' },
    { do: 'apply', kind: 'LldapAttributeSchema', at: 'a/r1', spec: { ...SHOE, deletionPolicy: 'Delete' } },
    { do: 'wait', seconds: 1, seed: 0 },
    { do: 'rollout', name: 'requeue' },
  ]);

  keepsItsPromises(
    'a membership of a group by the name that it kept in lldap is told when the group is deleted',
    [
      { do: 'apply', kind: 'LldapGroup', at: 'a/r1', spec: { displayName: 'ops' } },
      { do: 'apply', kind: 'LldapMembership', at: 'adm/r1', spec: { userName: 'alice', groupName: 'team' } },
      { do: 'run', actions: 8, seed: 36172 },
      { do: 'demote' },
      { do: 'apply', kind: 'LldapGroup', at: 'a/r1', spec: { displayName: 'team', attributes: [], deletionPolicy: 'Delete' } },
      { do: 'delete', kind: 'LldapGroup', at: 'a/r1' },
      { do: 'rollout', name: 'group' },
      { do: 'apply', kind: 'LldapMembership', at: 'op/r1', spec: { userName: 'admin', groupName: 'ops', deletionPolicy: 'Delete' } },
      { do: 'wait', seconds: 1, seed: 0 },
      { do: 'giveUp', after: 0, pick: 1, seed: 0 },
      { do: 'crash', after: 0, pick: 0, seed: 0 },
      { do: 'apply', kind: 'LldapUser', at: 'b/r1', spec: { username: 'alice', email: 'e1@x', passwordPolicy: 'Ignore' } },
      { do: 'event', what: 'drop', pick: 5 },
      { do: 'apply', kind: 'LldapMembership', at: 'a/r1', spec: { userName: 'admin', groupName: 'team', suspend: true } },
    ],
    { phase: 0 },
  );

  keepsItsPromises(
    "a group that was told to stay is nobody's, though another's finalizer keeps the resource that recorded it",
    [
      { do: 'apply', kind: 'LldapGroup', at: 'a/r2', spec: { displayName: 'team', deletionPolicy: 'Retain' } },
      { do: 'apply', kind: 'LldapGroup', at: 'b/r1', spec: { displayName: 'team', attributes: [], deletionPolicy: 'Delete' } },
      { do: 'touch', kind: 'LldapGroup', at: 'a/r2', what: 'finalizer' },
      { do: 'run', actions: 5, seed: 135257 },
      { do: 'run', actions: 3, seed: 115043 },
      { do: 'delete', kind: 'LldapGroup', at: 'a/r2' },
      { do: 'crash', after: 0, pick: 0, seed: 0 },
    ],
    { phase: 0 },
  );

  keepsItsPromises(
    'a group that two processes create under two names leaves one of them, also with Retain',
    [
      { do: 'apply', kind: 'LldapGroup', at: 'a/r1', spec: { displayName: 'ops', deletionPolicy: 'Retain' } },
      { do: 'run', actions: 5, seed: 916543 },
      { do: 'apply', kind: 'LldapGroup', at: 'a/r1', spec: { displayName: 'team', attributes: [] } },
      { do: 'wait', seconds: 1, seed: 340217 },
    ],
    { processes: 2, phase: 0 },
  );

  keepsItsPromises('a group that a person renames after a restore without status stays, beside the one that the resource declares', [
    { do: 'apply', kind: 'LldapGroup', at: 'a/r1', spec: { displayName: 'ops', deletionPolicy: 'Delete' } },
    { do: 'wait', seconds: 1, seed: 0 },
    { do: 'backup', of: 'kube' },
    { do: 'restore', of: 'kube', bare: true },
    { do: 'renameGroup', from: 'ops', to: 'team' },
  ]);

  keepsItsPromises('a group that a person renames before a restore without status stays, beside the one that the resource declares', [
    { do: 'apply', kind: 'LldapGroup', at: 'adm/r1', spec: { displayName: 'Team', deletionPolicy: 'Delete' } },
    { do: 'run', actions: 5, seed: 87594 },
    { do: 'renameGroup', from: 'team', to: 'ops' },
    { do: 'backup', of: 'kube' },
    { do: 'run', actions: 5, seed: 0 },
    { do: 'restore', of: 'kube', bare: true },
  ]);

  keepsItsPromises(
    'a group that is taken over for a resource which a restore made vanish stays as it was found',
    [
      {
        do: 'apply',
        kind: 'LldapGroup',
        at: 'a/r1',
        spec: {
          displayName: 'team',
          allowedMemberships: { namespaces: { from: 'Selector', selector: { matchLabels: { team: 'blue' } } } },
          deletionPolicy: 'Delete',
        },
      },
      { do: 'run', actions: 1, seed: 669455 },
      { do: 'apply', kind: 'LldapGroup', at: 'b/r1', spec: { displayName: 'team', suspend: true } },
      { do: 'apply', kind: 'LldapGroup', at: 'a/r1', spec: { displayName: 'ops', allowedMemberships: { namespaces: { from: 'All' } } } },
      { do: 'run', actions: 8, seed: 206779 },
      { do: 'apply', kind: 'LldapMembership', at: 'a/r1', spec: { userName: 'alice', groupName: 'team', suspend: true } },
      { do: 'apply', kind: 'LldapGroup', at: 'op/r1', spec: { displayName: 'team' } },
      { do: 'apply', kind: 'LldapGroup', at: 'adm/r1', spec: { displayName: 'Team', allowedMemberships: { namespaces: { from: 'All' } } } },
      { do: 'run', actions: 9, seed: 563004 },
      {
        do: 'apply',
        kind: 'LldapGroup',
        at: 'adm/r1',
        spec: {
          displayName: 'team',
          allowedMemberships: { namespaces: { from: 'Selector', selector: { matchLabels: { team: 'blue' } } } },
        },
      },
      { do: 'restore', of: 'kube', bare: false },
      { do: 'wait', seconds: 1, seed: 388052 },
      { do: 'wait', seconds: 1, seed: 0 },
    ],
    { processes: 2, phase: 0 },
  );
});
