import assert from 'node:assert/strict';
import type { LldapUserSpec } from '../../../../shared/kube/resources.ts';
import type { TestWorld } from '../../support/world.ts';

export const KIND = 'LldapUser';
export const PLACE = 'team/alice';
export const REF = { name: 's', key: 'password' };
export const MANAGED: Partial<LldapUserSpec> = { passwordPolicy: 'Manage', passwordSecretRef: REF };
export const LATE = { notBefore: '2026-03-01T11:00:00.000Z' };
export const FORGOTTEN = undefined as never;

/** What the scenarios of users begin with. */
export function userScenes(world: () => TestWorld) {
  const works = (password: string) => world().lldap.hasPassword('alice', password);
  /** A user with a password, in steady state. */
  async function made(over: Partial<LldapUserSpec> = {}): Promise<void> {
    world().secret('team/s', 'password-1');
    world().user(PLACE, { ...MANAGED, ...over });
    await world().deliverEvents();
    assert.equal(world().ready(KIND, PLACE), 'True', world().message(KIND, PLACE));
    world().forget();
  }
  /** The account is deleted and another of its name created. */
  function replace(mark: string | undefined, password?: string): void {
    world().byHand((directory) => {
      directory.deleteUser('alice');
      const attributes = mark === undefined ? [] : [{ name: 'k8s-owner', value: [mark] }];
      directory.createUser({ id: 'alice', email: 'alice@example.com', attributes });
    });
    if (password !== undefined) world().lldap.setPassword('alice', password);
  }
  /** Another tenant's resource for the same username, which says Conflict. */
  async function withContender(): Promise<string> {
    const { metadata } = world().user('other/alice');
    await world().deliverEvents();
    assert.equal(world().ready(KIND, 'other/alice'), 'False Conflict');
    world().forget();
    return `v2;main;other/alice;created;${metadata.uid}`;
  }

  return { works, made, replace, withContender };
}
