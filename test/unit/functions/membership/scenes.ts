import assert from 'node:assert/strict';
import type { TestWorld } from '../../support/world.ts';

export const PLACE = 'team/m';
export const KIND = 'LldapMembership';

/** What the scenarios of memberships begin with. */
export function membershipScenes(world: () => TestWorld) {
  const crew = () => world().apply('LldapGroup', 'team/crew', { displayName: 'Crew' });
  const joinedBy = (userName: string, groupName: string, declared: string[]) => {
    const { id, uuid } = world().groupOf(groupName);
    return { userUuid: world().accountOf(userName).uuid, groupId: id, groupUuid: uuid, declared };
  };
  /** A membership of `alice` in `Crew`, in steady state, whose user and group are resources. */
  async function joined(): Promise<void> {
    world().user('team/alice');
    crew();
    world().membership(PLACE, 'alice', 'Crew');
    await world().deliverEvents();
    assert.deepEqual(world().members('Crew'), ['alice']);
    world().forget();
  }
  /** An administrator by a membership of a privileged namespace. */
  async function promoted(): Promise<void> {
    world().user('adm/root');
    world().membership('adm/m', 'root', 'lldap_admin');
    await world().deliverEvents();
    assert.equal(world().ready(KIND, 'adm/m'), 'True');
    world().forget();
  }

  return { crew, joinedBy, joined, promoted };
}
