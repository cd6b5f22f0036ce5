import assert from 'node:assert/strict';
import type { KindName, ResourceOf } from '../../shared/kube/resources.ts';
import { useHarness } from './support/harness.ts';
import { createMembers } from './support/membership.ts';

describe('Look before you act', () => {
  const h = useHarness();
  const m = createMembers(h);
  const HELD = { managementPolicy: 'Observe', deletionPolicy: 'Retain' } as const;
  const SPECS: { [K in KindName]: ResourceOf[K]['spec'] } = {
    LldapAttributeSchema: { attributeName: 'held', attributeType: 'Integer', target: 'User', ...HELD },
    LldapGroup: { displayName: 'Held', ...HELD },
    LldapUser: {
      username: 'held',
      email: 'held@example.com',
      attributes: [{ name: 'held', value: ['42'] }],
      passwordSecretRef: { name: 'held', key: 'password' },
      ...HELD,
    },
    LldapMembership: { userName: 'held', groupName: 'Held', ...HELD },
  };
  const kinds = Object.keys(SPECS) as KindName[];
  const directory = async () => ({ users: await h.lldap.users(), groups: await h.lldap.groups() });
  const withoutMarks = (found: Awaited<ReturnType<typeof directory>>) =>
    JSON.parse(JSON.stringify(found, (key, value) => (['k8s-owner', 'modified_date', 'modifiedDate'].includes(key) ? undefined : value)));
  const all = async (work: (kind: KindName, namespace: string) => Promise<unknown>) => {
    for (const kind of kinds) await work(kind, h.operatorNamespace);
  };

  it('a living directory is taken over without a change but marks, and given back without one', async () => {
    await m.byHand('addUserAttribute(name: "held", attributeType: INTEGER, isList: false, isVisible: false, isEditable: false) { ok }');
    await m.byHand('createUser(user: {id: "held", email: "held@example.com", attributes: [{name: "held", value: ["42"]}]}) { id }');
    await m.byHand('createGroup(name: "Held") { id }');
    const group = (await h.lldap.groups()).find(({ displayName }) => displayName === 'Held');
    await m.byHand(`addUserToGroup(userId: "held", groupId: ${group?.id}) { ok }`);
    await h.lldap.setPassword('held', 'password of held');
    await h.secret('held', { password: 'password of held' }, { namespace: h.operatorNamespace });
    const before = await directory();

    const looking = await h.cost(() =>
      all(async (kind, namespace) => {
        await h.create(kind, 'held', SPECS[kind], { namespace });
        await h.reconcile(kind, 'held', { namespace, full: true });
        assert.equal((await h.ready(kind, 'held', namespace)).reason, 'Observed', kind);
      }),
    );
    assert.deepEqual([looking.mutations, looking.passwords], [[], ['bind held']]);
    assert.deepEqual(await directory(), before);

    const taking = await h.cost(() =>
      all(async (kind, namespace) => {
        await h.edit(kind, 'held', { spec: { managementPolicy: 'Manage' } }, namespace);
        await h.reconcile(kind, 'held', { namespace, full: true });
        assert.equal((await h.ready(kind, 'held', namespace)).reason, 'Reconciled', kind);
      }),
    );
    assert.deepEqual(taking.mutations, [`updateGroup ${group?.id}`, 'updateUser held']);
    assert.deepEqual(withoutMarks(await directory()), withoutMarks(before));

    const leaving = await h.cost(() =>
      all(async (kind, namespace) => {
        await h.remove(kind, 'held', namespace);
        await h.reconcile(kind, 'held', { namespace, full: true });
        assert.equal(await h.exists(kind, 'held', namespace), false, kind);
      }),
    );
    assert.deepEqual(leaving.mutations, []);
    assert.deepEqual(withoutMarks(await directory()), withoutMarks(before));
  });
});
