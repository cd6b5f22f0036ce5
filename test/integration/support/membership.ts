import assert from 'node:assert/strict';
import type { Report } from '../../../shared/engine/kind.ts';
import type { LldapMembershipSpec } from '../../../shared/kube/resources.ts';
import type { Harness } from './harness.ts';
import type { CreateOptions } from './person.ts';

/** Short ways to make users, groups and memberships, and to see who is in what. */
export interface Members {
  user(name: string, options?: CreateOptions): Promise<Report>;
  group(name: string, displayName?: string, options?: CreateOptions): Promise<Report>;
  member(name: string, userName: string, groupName: string, more?: Partial<LldapMembershipSpec>, options?: CreateOptions): Promise<Report>;
  /** Deletes the resource, which must complete. */
  remove(kind: 'LldapUser' | 'LldapGroup' | 'LldapMembership', name: string): Promise<void>;
  /** Renames the group and lets all follow from that. */
  rename(name: string, displayName: string): Promise<void>;
  groupsOf(id: string): Promise<string[] | undefined>;
  /** A mutation in lldap's own UI. */
  byHand(mutation: string): Promise<unknown>;
}

export function createMembers(h: Harness): Members {
  const full = ({ namespace }: CreateOptions) => ({ full: true, ...(namespace && { namespace }) });
  return {
    async user(name, options = {}) {
      await h.create('LldapUser', name, { username: name, email: `${name}@example.com`, passwordPolicy: 'Ignore' }, options);
      return h.reconcile('LldapUser', name, full(options));
    },
    async group(name, displayName = name, options = {}) {
      await h.create('LldapGroup', name, { displayName }, options);
      return h.reconcile('LldapGroup', name, full(options));
    },
    async member(name, userName, groupName, more = {}, options = {}) {
      await h.create('LldapMembership', name, { userName, groupName, ...more }, options);
      return h.reconcile('LldapMembership', name, full(options));
    },
    async remove(kind, name) {
      await h.remove(kind, name);
      const report = await h.reconcile(kind, name, {});
      assert.equal(report.result, 'deleted', JSON.stringify(report));
    },
    async rename(name, displayName) {
      await h.edit('LldapGroup', name, { spec: { displayName } });
      await h.reconcile('LldapGroup', name, {});
      await h.deliverEvents();
    },
    groupsOf: async (id) => (await h.lldap.users()).find((u) => u.id === id)?.groups,
    byHand: (mutation) => h.lldap.edit(`mutation { ${mutation} }`),
  };
}
