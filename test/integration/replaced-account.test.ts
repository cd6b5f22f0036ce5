import assert from 'node:assert/strict';
import { FINALIZER } from '../../shared/constants.ts';
import type { KubeRequest } from '../../shared/kube/connection.ts';
import type { LldapUserSpec } from '../../shared/kube/resources.ts';
import { useHarness } from './support/harness.ts';

/** lldap has no preconditions: an account may be replaced by another resource's between the operator's read and its write. */
describe('An account that is replaced while a resource is reconciled', () => {
  const h = useHarness();
  let other: string;

  before(async () => {
    other = await h.cluster.createNamespace('tenant');
    await h.startup();
  });

  const managed = async (username: string, namespace: string, password: string): Promise<LldapUserSpec> => {
    await h.secret(username, { password }, { namespace });
    return { username, email: `${username}@${namespace}.example.com`, passwordSecretRef: { name: username, key: 'password' } };
  };
  const byHand = (mutation: string) => h.lldap.edit(`mutation { ${mutation} }`);
  const byPerson = (name: string) => async () =>
    void (await byHand(`createUser(user: {id: "${name}", email: "${name}@example.com"}) { id }`));
  const seen = async (username: string) => (await h.lldap.users()).find(({ id }) => id === username) ?? assert.fail('not there');

  /** At the first request that fits, the account becomes one that the resource of this name in `other` has just created. */
  const replaceAt = (username: string, fits: (request: KubeRequest) => boolean) => {
    let isDone = false;
    h.interfere = async (by, request) => {
      if (isDone || by === 'startup' || !fits(request)) return;
      isDone = true;
      const mark = await h.mark('LldapUser', username, 'created', other);
      const user = `{id: "${username}", email: "${username}@${other}.example.com", attributes: [{name: "k8s-owner", value: ["${mark}"]}]}`;
      await h.lldap.edit(`mutation { deleteUser(userId: "${username}") { ok } }`);
      await h.lldap.edit(`mutation { createUser(user: ${user}) { id } }`);
    };
  };
  const isSecret = ({ method, path }: KubeRequest) => method === 'GET' && path.includes('/secrets/');
  const isStatus = ({ method, path }: KubeRequest) => method === 'PATCH' && path.includes('/status');
  const asked = () => h.posted.reconcile.map(({ target }) => `${target.kind} ${target.namespace}/${target.name}`);

  it('a tenant who creates the account anew during its join of lldap_admin is taken out again, and the membership waits', async () => {
    await h.create('LldapUser', 'root', await managed('root', h.operatorNamespace, 'the password of root'), {
      namespace: h.operatorNamespace,
    });
    await h.reconcile('LldapUser', 'root', { namespace: h.operatorNamespace });
    await h.create('LldapUser', 'root', await managed('root', other, 'the password of a tenant'), { namespace: other });
    await h.create('LldapMembership', 'root', { userName: 'root', groupName: 'lldap_admin' }, { namespace: h.operatorNamespace });
    replaceAt('root', isStatus);
    const report = await h.reconcile('LldapMembership', 'root', { namespace: h.operatorNamespace });
    assert.equal(report.reason, 'UserNotPrivileged');
    assert.deepEqual((await seen('root')).groups, []);
    assert.equal((await h.get('LldapMembership', 'root', h.operatorNamespace)).status?.joining, undefined);
  });

  it('a tenant is taken out by the next reconcile if the process died during the join, which the sweep asks for', async () => {
    await h.create('LldapUser', 'died', await managed('died', h.operatorNamespace, 'the password of died'), {
      namespace: h.operatorNamespace,
    });
    await h.reconcile('LldapUser', 'died', { namespace: h.operatorNamespace });
    await h.create('LldapUser', 'died', await managed('died', other, 'the password of a tenant'), { namespace: other });
    await h.create('LldapMembership', 'died', { userName: 'died', groupName: 'lldap_admin' }, { namespace: h.operatorNamespace });
    replaceAt('died', isStatus);
    // All that the process would have done after the join gets no answer.
    const process = h.another();
    const replace = h.interfere;
    let writes = 0;
    h.interfere = async (by, request) => {
      if (by === 'membership' && isStatus(request) && writes++ > 0) throw new Error('the process is no more');
      await replace(by, request);
      if (by === 'membership' && isStatus(request))
        await h.lldap.fault({ kind: 'status', status: 503, only: { operation: 'user', id: 'died' } });
    };
    await assert.rejects(h.reconcile('LldapMembership', 'died', { namespace: h.operatorNamespace, by: process }), /the process is no more/);
    await h.lldap.heal();
    h.interfere = async () => {};
    assert.deepEqual((await seen('died')).groups, ['lldap_admin']);
    await h.restart();
    h.posted.reconcile = [];
    await h.startup();
    await h.deliverEvents();
    assert.deepEqual((await seen('died')).groups, []);
    assert.equal((await h.ready('LldapMembership', 'died', h.operatorNamespace)).reason, 'UserNotPrivileged');
  });

  it('a tenant is taken out also while the account’s own resource is not Ready, and though the membership is suspended or kept', async () => {
    for (const [name, spec] of Object.entries({ waiting: {}, suspended: { suspend: true }, kept: { deletionPolicy: 'Retain' } })) {
      const groups = [...(await h.lldap.groups())];
      const admins = groups.find(({ displayName }) => displayName === 'lldap_admin') ?? assert.fail('no lldap_admin');
      await h.create('LldapUser', name, await managed(name, other, 'short'), { namespace: other });
      await h.reconcile('LldapUser', name, { namespace: other });
      await h.lldap.edit(`mutation { addUserToGroup(userId: "${name}", groupId: ${admins.id}) { ok } }`);
      await h.create('LldapMembership', name, { userName: name, groupName: 'lldap_admin' }, { namespace: h.operatorNamespace });
      await h.edit('LldapMembership', name, { metadata: { finalizers: [FINALIZER] }, spec }, h.operatorNamespace);
      // As a process left it that died within the join.
      const joining = { userUuid: 'of another account', groupId: admins.id, groupUuid: admins.uuid };
      await h.editStatus('LldapMembership', name, { joining }, h.operatorNamespace);
      if (name === 'kept') await h.remove('LldapMembership', name, h.operatorNamespace);
      await h.reconcile('LldapMembership', name, { namespace: h.operatorNamespace });
      assert.deepEqual((await seen(name)).groups, [], name);
    }
  });

  it('by a join that was confirmed long ago, a tenant’s account leaves lldap_admin, and one that a person created and put there stays', async () => {
    const admins = (await h.lldap.groups()).find(({ displayName }) => displayName === 'lldap_admin') ?? assert.fail('no lldap_admin');
    const privileged = { namespace: h.operatorNamespace };
    for (const [name, create, groups] of [
      ['late-tenant', async () => {}, []],
      ['late-person', async () => byPerson('late-person')(), ['lldap_admin']],
    ] as const) {
      await h.create('LldapUser', name, { username: name, email: `${name}@example.com`, passwordPolicy: 'Ignore' }, privileged);
      await h.reconcile('LldapUser', name, { full: true, ...privileged });
      await h.create('LldapMembership', name, { userName: name, groupName: 'lldap_admin' }, privileged);
      assert.equal((await h.reconcile('LldapMembership', name, { full: true, ...privileged })).ready, true);
      await h.remove('LldapUser', name, h.operatorNamespace);
      await h.reconcile('LldapUser', name, privileged);
      await create();
      await h.create('LldapUser', name, await managed(name, other, 'the password of a tenant'), { namespace: other });
      await h.reconcile('LldapUser', name, { namespace: other, full: true });
      await byHand(`addUserToGroup(userId: "${name}", groupId: ${admins.id}) { ok }`);
      const report = await h.reconcile('LldapMembership', name, { full: true, ...privileged });
      assert.equal(report.reason, 'UserNotPrivileged', name);
      assert.deepEqual((await seen(name)).groups, groups, name);
    }
  });

  it('a password that reached it logs nobody in, and its owner is asked to set its own', async () => {
    await h.create('LldapUser', 'rotated', await managed('rotated', h.namespace, 'the first of ours'));
    await h.reconcile('LldapUser', 'rotated');
    await h.create('LldapUser', 'rotated', await managed('rotated', other, 'the password of theirs'), { namespace: other });
    await h.reconcile('LldapUser', 'rotated', { namespace: other });
    await h.secret('rotated', { password: 'the second of ours' });
    h.posted.reconcile = [];
    replaceAt('rotated', isSecret);
    const report = await h.reconcile('LldapUser', 'rotated');
    assert.equal(report.ready, false);
    assert.equal(await h.lldap.check('rotated', 'the second of ours'), false);
    assert.deepEqual(asked(), [`LldapUser ${other}/rotated`]);
    await h.deliverEvents();
    assert.equal(await h.lldap.check('rotated', 'the password of theirs'), true);
    assert.equal((await h.reconcile('LldapUser', 'rotated')).reason, 'Conflict');
    assert.equal((await h.ready('LldapUser', 'rotated', other)).status, 'True');
  });

  it('an edit that reached it is set right by its owner, who keeps it, and the mark in it counts as none', async () => {
    await h.create('LldapUser', 'edited', await managed('edited', h.namespace, 'the password of ours'));
    await h.reconcile('LldapUser', 'edited');
    await h.create(
      'LldapUser',
      'edited',
      { ...(await managed('edited', other, 'the password of theirs')), firstName: '' },
      { namespace: other },
    );
    await h.reconcile('LldapUser', 'edited', { namespace: other });
    await h.lldap.edit('mutation { updateUser(user: {id: "edited", removeAttributes: ["k8s-owner"]}) { ok } }');
    await h.edit('LldapUser', 'edited', { spec: { email: 'changed@example.com', firstName: 'Ours' } });
    h.posted.reconcile = [];
    replaceAt('edited', isSecret);
    assert.equal((await h.reconcile('LldapUser', 'edited')).ready, false);
    // What was written to it names no owner any more; the resource that created it records it.
    const { uuid } = await seen('edited');
    await h.editStatus('LldapUser', 'edited', { uuid, origin: 'created' }, other);
    assert.deepEqual(asked(), [`LldapUser ${other}/edited`]);
    await h.deliverEvents();
    const { email, attributes } = await seen('edited');
    assert.deepEqual([email, attributes.first_name], [`edited@${other}.example.com`, undefined]);
    assert.deepEqual(attributes['k8s-owner'], [await h.updatedMark('LldapUser', 'edited', 'created', other)]);
    assert.equal((await h.reconcile('LldapUser', 'edited')).reason, 'Conflict');
  });

  /** A tenant's resource of the name waits while a privileged one has the account, whose mark somebody removed. */
  const withTenantInWait = async (name: string) => {
    const privileged = { namespace: h.operatorNamespace };
    await h.create('LldapUser', name, { username: name, email: `${name}@example.com`, passwordPolicy: 'Ignore' }, privileged);
    assert.equal((await h.reconcile('LldapUser', name, { full: true, ...privileged })).ready, true);
    await h.create('LldapMembership', name, { userName: name, groupName: 'lldap_admin' }, privileged);
    assert.equal((await h.reconcile('LldapMembership', name, { full: true, ...privileged })).ready, true);
    await h.create('LldapUser', name, await managed(name, other, 'the password of a tenant'), { namespace: other });
    assert.equal((await h.reconcile('LldapUser', name, { namespace: other })).reason, 'Conflict');
    await byHand(`updateUser(user: {id: "${name}", removeAttributes: ["k8s-owner"]}) { ok }`);
  };
  /** Between the reading of lldap and the writing to it, at the question who records the account. */
  const isOwnerLookup = ({ method, path }: KubeRequest) => method === 'GET' && path.includes('status.uuid');
  const once = (fits: (request: KubeRequest) => boolean, replace: () => Promise<void>) => {
    let isDone = false;
    h.interfere = async (by, request) => {
      if (isDone || by !== 'user' || !fits(request)) return;
      isDone = true;
      await replace();
    };
    return () => assert.equal(isDone, true);
  };
  /** What events, two sweeps and a full run make of it. */
  const recover = async () => {
    h.interfere = async () => {};
    await h.lldap.heal();
    await h.restart();
    for (const mode of ['sweep', 'full', 'sweep'] as const) {
      await h.startup(mode);
      await h.deliverEvents();
    }
  };

  for (const end of ['the process died', 'lldap did not answer'] as const)
    it(`a tenant whose account got a privileged resource’s mark is no administrator, though ${end} right after the write`, async () => {
      const name = end === 'the process died' ? 'marked-died' : 'marked-lost';
      await withTenantInWait(name);
      const wasReplaced = once(isOwnerLookup, async () => {
        await byHand(`deleteUser(userId: "${name}") { ok }`);
        await h.reconcile('LldapUser', name, { namespace: other, full: true, by: h.another() });
        assert.equal((await h.ready('LldapUser', name, other)).status, 'True');
        if (end === 'lldap did not answer') return h.lldap.fault({ kind: 'drop', only: { operation: 'updateUser', id: name }, times: 1 });
        await h.lldap.fault({ kind: 'status', status: 503, only: { operation: 'user', id: name } });
        h.interfere = async (_by, request) => {
          if (isStatus(request)) throw new Error('the process is no more');
        };
      });
      const reconciled = h.reconcile('LldapUser', name, { namespace: h.operatorNamespace, full: true, by: h.another() });
      if (end === 'the process died') await assert.rejects(reconciled, /the process is no more/);
      else assert.equal((await reconciled).reason, 'LldapUnavailable');
      wasReplaced();
      assert.notDeepEqual((await seen(name)).attributes['k8s-owner'], [await h.mark('LldapUser', name, 'created', other)]);
      await recover();
      assert.equal(await h.lldap.check(name, 'the password of a tenant'), true);
      const { groups, attributes } = await seen(name);
      assert.deepEqual(groups, []);
      assert.deepEqual(attributes['k8s-owner'], [await h.updatedMark('LldapUser', name, 'created', other)]);
    });

  it('a tenant whose mark reached a person’s account by an unanswered write does not own it', async () => {
    await h.create('LldapUser', 'bob', await managed('bob', other, 'the password of a tenant'), { namespace: other });
    assert.equal((await h.reconcile('LldapUser', 'bob', { namespace: other, full: true })).ready, true);
    await byHand('updateUser(user: {id: "bob", removeAttributes: ["k8s-owner"]}) { ok }');
    const wasReplaced = once(isOwnerLookup, async () => {
      await byHand('deleteUser(userId: "bob") { ok }');
      await byHand('createUser(user: {id: "bob", email: "bob@example.com"}) { id }');
      await h.lldap.fault({ kind: 'drop', only: { operation: 'updateUser', id: 'bob' }, times: 1 });
    });
    assert.equal((await h.reconcile('LldapUser', 'bob', { namespace: other, full: true })).reason, 'LldapUnavailable');
    wasReplaced();
    await recover();
    assert.equal(await h.lldap.check('bob', 'the password of a tenant'), false);
    assert.equal((await h.ready('LldapUser', 'bob', other)).reason, 'NotOurs');
    await h.remove('LldapUser', 'bob', other);
    await h.reconcile('LldapUser', 'bob', { namespace: other });
    assert.ok(await seen('bob'));
  });

  /** The tenant's account gets another owner while the tenant's new password is under way, and lldap does not answer that. */
  const withStrayPassword = async (name: string, replace: () => Promise<void>) => {
    await h.create('LldapUser', name, await managed(name, other, 'the first of a tenant'), { namespace: other });
    assert.equal((await h.reconcile('LldapUser', name, { namespace: other, full: true })).ready, true);
    await h.secret(name, { password: 'the second of a tenant' }, { namespace: other });
    const wasReplaced = once(isSecret, async () => {
      await byHand(`deleteUser(userId: "${name}") { ok }`);
      await replace();
      await h.lldap.fault({ kind: 'drop', only: { operation: 'passwordModify', id: name }, times: 1 });
    });
    assert.equal((await h.reconcile('LldapUser', name, { namespace: other, full: true })).reason, 'LldapUnavailable');
    wasReplaced();
    h.interfere = async () => {};
    assert.equal(await h.lldap.check(name, 'the second of a tenant'), true);
  };
  const byPrivileged = (name: string) => async () => {
    await h.create(
      'LldapUser',
      name,
      { username: name, email: `${name}@example.com`, passwordPolicy: 'Ignore' },
      { namespace: h.operatorNamespace },
    );
    await h.reconcile('LldapUser', name, { namespace: h.operatorNamespace, full: true, by: h.another() });
    assert.equal((await h.ready('LldapUser', name, h.operatorNamespace)).status, 'True');
  };

  for (const [name, owner, replace, reason] of [
    ['stray-privileged', 'a privileged resource that leaves passwords to people', byPrivileged, 'Conflict'],
    ['stray-person', 'a person', byPerson, 'NotOurs'],
  ] as const) {
    it(`a password that reached the account of ${owner} logs nobody in, though lldap did not answer, and is tried once`, async () => {
      await withStrayPassword(name, replace(name));
      await h.lldap.heal();
      const cost = await h.cost(() => h.reconcile('LldapUser', name, { namespace: other, full: true }));
      assert.deepEqual(cost.passwords, [`bind ${name}`, `passwordModify ${name}`]);
      assert.equal((await h.ready('LldapUser', name, other)).reason, reason);
      assert.equal(await h.lldap.check(name, 'the second of a tenant'), false);
      assert.deepEqual((await h.cost(() => h.reconcile('LldapUser', name, { namespace: other, full: true }))).passwords, []);
    });

    it(`a password that reached the account of ${owner} logs nobody in, though the resource is deleted right after`, async () => {
      const deleted = `${name}-deleted`;
      await withStrayPassword(deleted, replace(deleted));
      await h.remove('LldapUser', deleted, other);
      assert.equal((await h.reconcile('LldapUser', deleted, { namespace: other })).result, 'deleted');
      assert.equal(await h.lldap.check(deleted, 'the second of a tenant'), false);
      assert.ok(await seen(deleted));
    });
  }

  it('a password that a person gave the account that replaced ours stays', async () => {
    await h.create('LldapUser', 'given', await managed('given', other, 'the password of a tenant'), { namespace: other });
    assert.equal((await h.reconcile('LldapUser', 'given', { namespace: other, full: true })).ready, true);
    await byHand('deleteUser(userId: "given") { ok }');
    await byPerson('given')();
    await h.lldap.setPassword('given', 'the password of a person');
    const cost = await h.cost(() => h.reconcile('LldapUser', 'given', { namespace: other, full: true }));
    assert.deepEqual(cost.passwords, ['bind given']);
    assert.equal(await h.lldap.check('given', 'the password of a person'), true);
  });

  it('the owner of an account that replaced ours is asked again if the broker did not accept the event', async () => {
    await h.create('LldapUser', 'unasked', await managed('unasked', h.namespace, 'the password of ours'));
    await h.reconcile('LldapUser', 'unasked');
    await h.create('LldapUser', 'unasked', await managed('unasked', other, 'the password of theirs'), { namespace: other });
    await h.reconcile('LldapUser', 'unasked', { namespace: other });
    await byHand('deleteUser(userId: "unasked") { ok }');
    await h.reconcile('LldapUser', 'unasked', { namespace: other, full: true });
    h.breakBroker(true);
    await h.deliver('LldapUser', 'unasked');
    h.breakBroker(false);
    h.posted.reconcile = [];
    await h.reconcile('LldapUser', 'unasked');
    assert.deepEqual(asked(), [`LldapUser ${other}/unasked`]);
    h.posted.reconcile = [];
    await h.reconcile('LldapUser', 'unasked');
    assert.deepEqual(asked(), []);
  });

  it('what somebody deleted in lldap is made again by its own resource, which a membership that misses it asks', async () => {
    await h.create('LldapUser', 'lost', await managed('lost', h.namespace, 'the password of lost'));
    await h.create('LldapGroup', 'lost', { displayName: 'Lost' });
    await h.reconcile('LldapUser', 'lost');
    await h.reconcile('LldapGroup', 'lost');
    const { groupId } = (await h.get('LldapGroup', 'lost')).status ?? {};
    await h.lldap.edit(`mutation { deleteUser(userId: "lost") { ok } }`);
    await h.lldap.edit(`mutation { deleteGroup(groupId: ${groupId}) { ok } }`);
    await h.create('LldapMembership', 'lost', { userName: 'lost', groupName: 'Lost' });
    h.posted.reconcile = [];
    const report = await h.reconcile('LldapMembership', 'lost');
    assert.deepEqual([report.reason, asked()], ['DependencyNotReady', [`LldapUser ${h.namespace}/lost`, `LldapGroup ${h.namespace}/lost`]]);
    assert.match(
      report.message ?? '',
      /lldap no longer has the object of the LldapUser .*\/lost\. The operator has asked that resource to create it again\./,
    );
    await h.deliverEvents();
    assert.equal((await h.ready('LldapMembership', 'lost')).status, 'True');
  });
});
