import { MARK_ATTRIBUTE, PASSWORD_KEY_SECRET } from '../../../../shared/constants.ts';
import type { TestWorld } from '../../support/world.ts';

export const KEY_SECRET = `op/${PASSWORD_KEY_SECRET}`;
export const VIRTUAL = 'op/lldap-admin';
export const NOTHING = { lost: 0, stalled: 0, rotated: 0, drifted: 0, full: 0 };

/** What the scenarios of startup begin with. */
export function startupScenes(w: TestWorld) {
  /** A resource that changed and whose event was lost. */
  const lost = () => w.unwatched(() => w.user('team/lost'));
  const defined = (target: 'user' | 'group') => w.lldap.state.definitions[target].get(MARK_ATTRIBUTE);
  const undefine = () => w.byHand(({ state }) => state.definitions.user.delete(MARK_ATTRIBUTE));
  /** Everything there is once, in steady state. */
  async function inhabited(): Promise<void> {
    w.secret('team/s', 'password-1');
    w.user('team/alice', { passwordPolicy: 'Manage', passwordSecretRef: { name: 's', key: 'password' } });
    w.apply('LldapGroup', 'team/crew', { displayName: 'Crew' });
    w.membership('team/m', 'alice', 'Crew');
    w.apply('LldapAttributeSchema', 'team/desk', { attributeName: 'desk', attributeType: 'Integer', target: 'User' });
    w.user('team/paused', { suspend: true });
    await w.deliverEvents();
    w.forget();
  }

  return { lost, defined, undefine, inhabited };
}
