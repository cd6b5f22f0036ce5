import { MARK_ATTRIBUTE, PASSWORD_KEY_SECRET } from '../../../../shared/constants.ts';
import type { TestWorld } from '../../support/world.ts';

export const KEY_SECRET = `op/${PASSWORD_KEY_SECRET}`;
export const VIRTUAL = 'op/lldap-admin';
export const NOTHING = { lost: 0, stalled: 0, rotated: 0, drifted: 0, full: 0 };

/** What the scenarios of startup begin with. */
export function startupScenes(world: () => TestWorld) {
  /** A resource that changed and whose event was lost. */
  const lost = () => world().unwatched(() => world().user('team/lost'));
  const defined = (target: 'user' | 'group') => world().lldap.state.definitions[target].get(MARK_ATTRIBUTE);
  const undefine = () => world().byHand(({ state }) => state.definitions.user.delete(MARK_ATTRIBUTE));
  /** Everything there is once, in steady state. */
  async function inhabited(): Promise<void> {
    world().secret('team/s', 'password-1');
    world().user('team/alice', { passwordPolicy: 'Manage', passwordSecretRef: { name: 's', key: 'password' } });
    world().apply('LldapGroup', 'team/crew', { displayName: 'Crew' });
    world().membership('team/m', 'alice', 'Crew');
    world().apply('LldapAttributeSchema', 'team/desk', { attributeName: 'desk', attributeType: 'Integer', target: 'User' });
    world().user('team/paused', { suspend: true });
    await world().deliverEvents();
    world().forget();
  }

  return { lost, defined, undefine, inhabited };
}
