import assert from 'node:assert/strict';
import type { TestWorld } from '../../support/world.ts';

export const PLACE = 'team/m';
export const KIND = 'LldapMembership';

/** What the scenarios of memberships begin with. */
export function membershipScenes(w: TestWorld) {
  const crew = () => w.apply('LldapGroup', 'team/crew', { displayName: 'Crew' });
  const joinedBy = (userName: string, groupName: string, declared: string[]) => {
    const { id, uuid } = w.groupOf(groupName);
    return { userUuid: w.accountOf(userName).uuid, groupId: id, groupUuid: uuid, declared };
  };
  /** A membership of `alice` in `Crew`, in steady state, whose user and group are resources. */
  async function joined(at: `${string}/${string}` = PLACE): Promise<void> {
    w.user('team/alice');
    crew();
    w.membership(at, 'alice', 'Crew');
    await w.deliverEvents();
    assert.deepEqual(w.members('Crew'), ['alice']);
    w.forget();
  }
  /** An administrator by a membership of a privileged namespace. */
  async function promoted(): Promise<void> {
    w.user('adm/root');
    w.membership('adm/m', 'root', 'lldap_admin');
    await w.deliverEvents();
    assert.equal(w.ready(KIND, 'adm/m'), 'True');
    w.forget();
  }

  return { crew, joinedBy, joined, promoted };
}
