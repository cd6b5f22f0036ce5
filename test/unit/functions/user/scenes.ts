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
export function userScenes(w: TestWorld) {
  const works = (password: string) => w.lldap.hasPassword('alice', password);
  /** A user with a password, in steady state. */
  async function made(over: Partial<LldapUserSpec> = {}): Promise<void> {
    w.secret('team/s', 'password-1');
    w.user(PLACE, { ...MANAGED, ...over });
    await w.deliverEvents();
    assert.equal(w.ready(KIND, PLACE), 'True', w.message(KIND, PLACE));
    w.forget();
  }
  /** The account is deleted and another of its name created. */
  function replace(mark: string | undefined, password?: string): void {
    w.byHand((directory) => {
      directory.deleteUser('alice');
      const attributes = mark === undefined ? [] : [{ name: 'k8s-owner', value: [mark] }];
      directory.createUser({ id: 'alice', email: 'alice@example.com', attributes });
    });
    if (password !== undefined) w.lldap.setPassword('alice', password);
  }
  /** Another tenant's resource for the same username, which says Conflict. */
  async function withContender(): Promise<string> {
    const { metadata } = w.user('other/alice');
    await w.deliverEvents();
    assert.equal(w.ready(KIND, 'other/alice'), 'False Conflict');
    w.forget();
    return `v2;main;other/alice;created;${metadata.uid}`;
  }

  return { works, made, replace, withContender };
}
