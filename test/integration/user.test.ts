import assert from 'node:assert/strict';
import { FINALIZER } from '../../shared/constants.ts';
import type { LldapUserSpec } from '../../shared/kube/resources.ts';
import type { SeenUser } from '../local/lldap/start.ts';
import { useHarness } from './support/harness.ts';

describe('LldapUser', () => {
  const h = useHarness();
  const plain = (username: string, more: Partial<LldapUserSpec> = {}): LldapUserSpec => ({
    username,
    email: `${username.toLowerCase()}@example.com`,
    passwordPolicy: 'Ignore',
    ...more,
  });
  const account = async (id: string): Promise<SeenUser> => {
    const found = (await h.lldap.users()).find((user) => user.id === id);
    if (!found) throw new Error(`lldap has no user ${id}`);
    return found;
  };
  const made = async (name: string, more: Partial<LldapUserSpec> = {}) => {
    await h.create('LldapUser', name, plain(name, more));
    await h.reconcile('LldapUser', name);
    assert.equal((await h.ready('LldapUser', name)).status, 'True');
  };

  it('is made with all that the spec names, its mark in the same call, and its status says so', async () => {
    await h.create('LldapUser', 'full', plain('Full', { displayName: 'Full Name', firstName: 'Full', lastName: 'Name' }));
    const cost = await h.cost(() => h.reconcile('LldapUser', 'full'));
    assert.deepEqual(cost.mutations, ['createUser full']);
    const { uuid, email, displayName, attributes } = await account('full');
    assert.deepEqual([email, displayName], ['full@example.com', 'Full Name']);
    assert.deepEqual(attributes, {
      first_name: ['Full'],
      last_name: ['Name'],
      'k8s-owner': [await h.mark('LldapUser', 'full', 'created')],
    });
    const { status, metadata } = await h.get('LldapUser', 'full');
    assert.deepEqual([status?.nameKey, status?.uuid, status?.origin, status?.observedGeneration], ['full', uuid, 'created', 1]);
    assert.deepEqual(metadata.finalizers, [FINALIZER]);
    assert.deepEqual(
      status?.conditions?.map(({ type, status, reason, observedGeneration }) => [type, status, reason, observedGeneration]),
      [
        ['Ready', 'True', 'Reconciled', 1],
        ['PasswordSynced', 'Unknown', 'PasswordNotManaged', 1],
      ],
    );
    assert.deepEqual(await h.events('full'), []);
  });

  for (const [field, value, seen] of [
    ['email', 'new@example.com', (user: SeenUser) => user.email],
    ['displayName', 'New Name', (user: SeenUser) => user.displayName],
    ['firstName', 'New', (user: SeenUser) => user.attributes.first_name?.[0]],
    ['lastName', 'Newer', (user: SeenUser) => user.attributes.last_name?.[0]],
  ] as const) {
    it(`takes another ${field} in one update that changes nothing else`, async () => {
      const name = `other-${field.toLowerCase()}`;
      await made(name, { displayName: 'Old', firstName: 'Old', lastName: 'Old' });
      const before = await account(name);
      await h.edit('LldapUser', name, { spec: { [field]: value } });
      const cost = await h.cost(() => h.reconcile('LldapUser', name, {}));
      assert.deepEqual(cost.mutations, [`updateUser ${name}`]);
      const after = await account(name);
      assert.equal(seen(after), value);
      const unchanged = (user: SeenUser) => [
        field === 'email' || user.email,
        field === 'displayName' || user.displayName,
        field === 'firstName' || user.attributes.first_name,
        field === 'lastName' || user.attributes.last_name,
        user.attributes['k8s-owner'],
      ];
      assert.deepEqual(unchanged(after), unchanged(before));
    });
  }

  for (const field of ['displayName', 'firstName', 'lastName'] as const) {
    it(`clears ${field} by an empty text, and leaves it as somebody set it when it is not named`, async () => {
      const name = `cleared-${field.toLowerCase()}`;
      const seen = async () => {
        const { displayName, attributes } = await account(name);
        return { displayName, firstName: attributes.first_name?.[0] ?? '', lastName: attributes.last_name?.[0] ?? '' }[field];
      };
      await made(name, { [field]: 'Something' });
      await h.edit('LldapUser', name, { spec: { [field]: '' } });
      await h.reconcile('LldapUser', name, {});
      assert.equal(await seen(), '');
      assert.deepEqual((await h.cost(() => h.reconcile('LldapUser', name))).mutations, []);
      await h.edit('LldapUser', name, { spec: { [field]: null } });
      await h.lldap.edit(`mutation { updateUser(user: {id: "${name}", ${field}: "By hand"}) { ok } }`);
      await h.reconcile('LldapUser', name);
      assert.equal(await seen(), 'By hand');
    });
  }

  it('is made without what the spec names as empty', async () => {
    await made('empty', { displayName: '', firstName: '', lastName: '' });
    const { displayName, attributes } = await account('empty');
    assert.equal(displayName, '');
    assert.deepEqual(Object.keys(attributes), ['k8s-owner']);
    assert.deepEqual((await h.cost(() => h.reconcile('LldapUser', 'empty'))).mutations, []);
  });

  it('what a person changed in lldap is put back by a full reconcile, as far as the spec names it', async () => {
    await made('drifting', { firstName: 'Right' });
    await h.lldap.edit(
      'mutation { updateUser(user: {id: "drifting", email: "wrong@example.com", firstName: "Wrong", lastName: "Kept"}) { ok } }',
    );
    const cost = await h.cost(() => h.reconcile('LldapUser', 'drifting', { full: true }));
    assert.deepEqual(cost.mutations, ['updateUser drifting']);
    const { email, attributes } = await account('drifting');
    assert.deepEqual([email, attributes.first_name?.[0], attributes.last_name?.[0]], ['drifting@example.com', 'Right', 'Kept']);
  });

  it('that a person deleted in lldap is made again by a full reconcile, with another uuid', async () => {
    await made('deleted');
    const before = (await h.get('LldapUser', 'deleted')).status?.uuid;
    await h.lldap.edit('mutation { deleteUser(userId: "deleted") { ok } }');
    await h.reconcile('LldapUser', 'deleted', { full: true });
    const after = (await h.get('LldapUser', 'deleted')).status?.uuid;
    assert.notEqual(after, before);
    assert.equal((await account('deleted')).uuid, after);
  });

  it('an e-mail that differs by its case alone is an update', async () => {
    await made('cased');
    await h.edit('LldapUser', 'cased', { spec: { email: 'Cased@Example.com' } });
    await h.reconcile('LldapUser', 'cased', {});
    assert.equal((await account('cased')).email, 'Cased@Example.com');
    assert.deepEqual((await h.cost(() => h.reconcile('LldapUser', 'cased'))).mutations, []);
  });

  it('an e-mail that another user has: Taken, naming the address, its holder, the resource of that, and the remedy', async () => {
    await made('owner');
    await h.create('LldapUser', 'wants', plain('wants', { email: 'OWNER@example.com' }));
    const report = await h.reconcile('LldapUser', 'wants');
    assert.deepEqual([report.reason, report.retry?.category], ['EmailTaken', 'Taken']);
    for (const part of ['OWNER@example.com', 'the user owner', `LldapUser ${h.namespace}/owner`, 'third'])
      assert.ok(report.message?.includes(part), report.message);
    assert.equal(
      (await h.lldap.users()).some(({ id }) => id === 'wants'),
      false,
    );
    await h.edit('LldapUser', 'owner', { spec: { email: 'owner2@example.com' } });
    await h.reconcile('LldapUser', 'owner', {});
    await h.nextRetry();
    assert.equal((await h.ready('LldapUser', 'wants')).status, 'True');
  });

  it('an e-mail whose holder no resource manages: the message says so', async () => {
    await h.lldap.edit('mutation { createUser(user: {id: "byhand", email: "byhand@example.com"}) { id } }');
    await made('mover');
    await h.edit('LldapUser', 'mover', { spec: { email: 'byhand@example.com', firstName: 'Kept back' } });
    const report = await h.reconcile('LldapUser', 'mover', {});
    assert.match(report.message ?? '', /the user byhand .*\(managed by no resource\)/);
    assert.deepEqual([(await account('mover')).email, (await account('mover')).attributes.first_name], ['mover@example.com', undefined]);
  });

  it('two users hand an e-mail on in one go: both are Ready in the end', async () => {
    await made('hands-a');
    await made('hands-b');
    await h.edit('LldapUser', 'hands-a', { spec: { email: 'hands-b@example.com' } });
    await h.edit('LldapUser', 'hands-b', { spec: { email: 'hands-new@example.com' } });
    await h.reconcile('LldapUser', 'hands-a', {});
    await h.reconcile('LldapUser', 'hands-b', {});
    await h.nextRetry();
    assert.deepEqual(
      [(await account('hands-a')).email, (await account('hands-b')).email],
      ['hands-b@example.com', 'hands-new@example.com'],
    );
    for (const name of ['hands-a', 'hands-b']) assert.equal((await h.ready('LldapUser', name)).status, 'True');
  });

  it('two users swap their e-mails: both say Taken, name each other, and the way by a third address works', async () => {
    await made('swap-a');
    await made('swap-b');
    await h.edit('LldapUser', 'swap-a', { spec: { email: 'swap-b@example.com' } });
    await h.edit('LldapUser', 'swap-b', { spec: { email: 'swap-a@example.com' } });
    for (const [name, other] of [
      ['swap-a', 'swap-b'],
      ['swap-b', 'swap-a'],
    ] as const) {
      const report = await h.reconcile('LldapUser', name, {});
      assert.equal(report.reason, 'EmailTaken');
      assert.ok(report.message?.includes(`${h.namespace}/${other}`), report.message);
    }
    await h.edit('LldapUser', 'swap-a', { spec: { email: 'swap-third@example.com' } });
    await h.reconcile('LldapUser', 'swap-a', {});
    await h.reconcile('LldapUser', 'swap-b');
    await h.edit('LldapUser', 'swap-a', { spec: { email: 'swap-b@example.com' } });
    await h.reconcile('LldapUser', 'swap-a', {});
    for (const name of ['swap-a', 'swap-b']) assert.equal((await h.ready('LldapUser', name)).status, 'True');
  });

  it("the operator's own login is nobody's, in any spelling and any namespace, and its resource goes without a trace", async () => {
    for (const namespace of [h.namespace, h.operatorNamespace]) {
      await h.create('LldapUser', 'login', plain('Admin'), { namespace });
      const before = await account('admin');
      const report = await h.reconcile('LldapUser', 'login', { namespace });
      assert.deepEqual([report.reason, report.retry], ['Protected', undefined]);
      assert.match(report.message ?? '', /spec\.username: the operator logs in as Admin, .* Delete this resource/);
      assert.deepEqual(await account('admin'), before);
      await h.remove('LldapUser', 'login', namespace);
      assert.equal(await h.exists('LldapUser', 'login', namespace), false);
    }
  });

  it('the answer to its creation is lost: the next reconcile takes it as ours and creates nothing twice', async () => {
    await h.lldap.fault({ kind: 'drop', only: { operation: 'createUser' }, times: 1 });
    await h.create('LldapUser', 'dropped', plain('dropped'));
    assert.equal((await h.reconcile('LldapUser', 'dropped')).reason, 'LldapUnavailable');
    const cost = await h.cost(() => h.nextRetry());
    assert.deepEqual(cost.mutations, []);
    assert.deepEqual(
      [(await h.ready('LldapUser', 'dropped')).status, (await h.get('LldapUser', 'dropped')).status?.origin],
      ['True', 'created'],
    );
  });

  it('the answer to its creation is lost and the resource is deleted at once: no orphan stays', async () => {
    await h.lldap.fault({ kind: 'drop', only: { operation: 'createUser' }, times: 1 });
    await h.create('LldapUser', 'unborn', plain('unborn'));
    await h.reconcile('LldapUser', 'unborn');
    assert.equal(
      (await h.lldap.users()).some(({ id }) => id === 'unborn'),
      true,
    );
    await h.remove('LldapUser', 'unborn');
    await h.reconcile('LldapUser', 'unborn', {});
    assert.equal(
      (await h.lldap.users()).some(({ id }) => id === 'unborn'),
      false,
    );
    assert.equal(await h.exists('LldapUser', 'unborn'), false);
  });

  it('among 500 other users none is taken as absent or as another', async () => {
    for (let i = 0; i < 500; i++)
      await h.lldap.edit(`mutation { createUser(user: {id: "crowd${i}", email: "crowd${i}@example.com"}) { id } }`);
    await made('in-the-crowd');
    const cost = await h.cost(() => h.reconcile('LldapUser', 'in-the-crowd'));
    assert.deepEqual([cost.lldapReads, cost.mutations], [['user in-the-crowd'], []]);
  });
});
