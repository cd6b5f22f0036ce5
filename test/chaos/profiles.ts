import type { Mix } from './generate.ts';
import type { Step } from './schedule.ts';

const ALICE = { username: 'alice', email: 'e1@x', passwordPolicy: 'Ignore' as const };
const MOMENT: Step = { do: 'wait', seconds: 5, seed: 0 };

/** A tenant waits for the name of an account that is deleted while a frozen process is about to make it an administrator. */
const TENANT_IN_WAIT: readonly Step[] = [
  { do: 'apply', kind: 'LldapUser', at: 'adm/r1', spec: ALICE },
  MOMENT,
  { do: 'apply', kind: 'LldapUser', at: 'a/r1', spec: { ...ALICE, email: 'e2@x' } },
  MOMENT,
  { do: 'apply', kind: 'LldapMembership', at: 'adm/r1', spec: { userName: 'alice', groupName: 'lldap_admin' } },
  { do: 'until', call: 'membership/0 lldap addUserToGroup' },
  { do: 'freeze', after: 0, pick: 0, seed: 0 },
  { do: 'delete', kind: 'LldapUser', at: 'adm/r1' },
];

/** A group with a member is told to stay, and its resource's name is free for another. */
const KEPT: readonly Step[] = [
  { do: 'apply', kind: 'LldapUser', at: 'a/r1', spec: ALICE },
  { do: 'apply', kind: 'LldapGroup', at: 'a/r1', spec: { displayName: 'team', deletionPolicy: 'Retain' } },
  { do: 'apply', kind: 'LldapMembership', at: 'a/r1', spec: { userName: 'alice', groupName: 'team', deletionPolicy: 'Retain' } },
  MOMENT,
  { do: 'delete', kind: 'LldapMembership', at: 'a/r1' },
  { do: 'delete', kind: 'LldapGroup', at: 'a/r1' },
  MOMENT,
];

const OF_ALL = { namespaces: { from: 'All' as const } };
const OF_SAME = { namespaces: { from: 'Same' as const } };
const OF_BLUE = { namespaces: { from: 'Selector' as const, selector: { matchLabels: { team: 'blue' } } } };
const groupOf = (allowedMemberships: typeof OF_ALL | typeof OF_SAME | typeof OF_BLUE): Step => ({
  do: 'apply',
  kind: 'LldapGroup',
  at: 'a/r1',
  spec: { displayName: 'team', allowedMemberships },
});
const GUEST: Step = { do: 'apply', kind: 'LldapMembership', at: 'b/r1', spec: { userName: 'alice', groupName: 'team' } };

/** A membership of another namespace joins by consent, which is withdrawn: afterwards, during the join, by a label. */
const WITHDRAWN: readonly (readonly Step[])[] = [
  [{ do: 'apply', kind: 'LldapUser', at: 'a/r1', spec: ALICE }, groupOf(OF_ALL), GUEST, MOMENT, groupOf(OF_SAME)],
  [
    { do: 'apply', kind: 'LldapUser', at: 'a/r1', spec: ALICE },
    groupOf(OF_ALL),
    MOMENT,
    GUEST,
    { do: 'until', call: 'membership/0 lldap addUserToGroup' },
    groupOf(OF_SAME),
  ],
  [
    { do: 'apply', kind: 'LldapUser', at: 'a/r1', spec: ALICE },
    { do: 'label', namespace: 'b', team: 'blue' },
    groupOf(OF_BLUE),
    GUEST,
    MOMENT,
    { do: 'label', namespace: 'b', team: null },
  ],
];

/** Percent of the schedules, by what they are made of. */
export const MIXES: Record<string, { percent: number; mix: Mix }> = {
  'people and races': { percent: 15, mix: { processes: 3, minutesApart: 0, weights: { passing: 5, asking: 5 } } },
  faults: { percent: 30, mix: { processes: 3, minutesApart: 0, weights: { passing: 5, asking: 5, failing: 3 } } },
  'faults, clocks apart, forged events': {
    percent: 15,
    mix: { processes: 3, minutesApart: 30, weights: { passing: 5, asking: 5, failing: 3, telling: 1 } },
  },
  'hands in lldap, restores': {
    percent: 10,
    mix: { processes: 2, minutesApart: 0, weights: { passing: 6, asking: 6, touching: 3, restoring: 1 } },
  },
  everything: {
    percent: 15,
    mix: { processes: 3, minutesApart: 30, weights: { passing: 10, asking: 10, failing: 4, telling: 1, touching: 2, restoring: 1 } },
  },
  'what was kept, who waits in vain': {
    percent: 5,
    mix: { processes: 2, minutesApart: 0, weights: { passing: 6, asking: 4, failing: 4 }, before: [TENANT_IN_WAIT, KEPT] },
  },
  'consent that is withdrawn': {
    percent: 5,
    mix: { processes: 2, minutesApart: 0, weights: { passing: 6, asking: 4, failing: 4 }, before: WITHDRAWN },
  },
  'late writes of processes that died': { percent: 5, mix: { processes: 2, minutesApart: 0, weights: { passing: 5, asking: 5, late: 1 } } },
};
