import assert from 'node:assert/strict';
import type { Summary } from '../../functions/startup/run.ts';
import { API_VERSION, BUILT_IN_GROUPS, INSTANCE_LABEL, PASSWORD_KEY_SECRET, VIRTUAL_LABEL } from '../../shared/constants.ts';
import { KubeError } from '../../shared/kube/errors.ts';
import { type Harness, startHarness, useHarness } from './support/harness.ts';

const NAMES = ['lldap-admin', 'lldap-password-manager', 'lldap-strict-readonly'];

describe('startup', () => {
  const h = useHarness();
  const byHand = (query: string) => h.lldap.edit(`mutation { ${query} }`);
  const virtual = (name: string) => h.get('LldapGroup', name, h.operatorNamespace);
  const keySecret = async () => {
    const { body } = await h.cluster.request('GET', `/api/v1/namespaces/${h.operatorNamespace}/secrets/${PASSWORD_KEY_SECRET}`);
    return body as { data?: { key?: string }; metadata: { resourceVersion: string } };
  };
  const builtIn = async (name: string) => (await h.lldap.groups()).find(({ displayName }) => displayName === name);
  /** A resource that a lost event left behind, so that every sweep has something to find. */
  const lost = async (name: string) => {
    await h.create('LldapGroup', name, { displayName: name });
    return () => h.posted.reconcile.some(({ target }) => target.name === name);
  };
  const marksOf = ({ ok, marksDefined }: Awaited<ReturnType<Harness['startup']>>) => [ok, marksDefined];
  const told = async () => (await h.events('lldap-operator', h.operatorNamespace)).filter(({ reason }) => reason === 'StartupFailed');

  it('shows no text of a tenant’s choice in its warning, though an edit of a resource may carry any managedFields', async () => {
    const mine = await h.create('LldapGroup', 'forged', { displayName: 'forged' });
    const entry = {
      manager: 'call +49 30 1234567: <the admin’s password>',
      operation: 'Apply',
      apiVersion: API_VERSION,
      time: '2026-01-01T00:00:00Z',
      fieldsType: 'FieldsV1',
      fieldsV1: { 'f:status': { 'f:conditions': { 'k:{"type":"Ready"}': { '.': {}, 'f:type': {} } } } },
      subresource: 'status',
    };
    const { managedFields } = mine.metadata as { managedFields?: object[] };
    const body = { ...mine, metadata: { ...mine.metadata, managedFields: [...(managedFields ?? []), entry] } };
    const answer = await h.cluster.request('PUT', `/apis/${API_VERSION}/namespaces/${h.namespace}/lldapgroups/forged`, { body });
    assert.equal(answer.code, 200, JSON.stringify(answer.body));
    const { warnings } = await h.startup();
    assert.match(warnings.join(), /^Another operator \(call49301234567theadminspassword\) writes the status of LldapGroup .*\/forged/);
    await h.remove('LldapGroup', 'forged');
  });

  it('makes a virtual group for each built-in one, Ready with its id and uuid, and makes nothing in lldap', async () => {
    for (const [i, name] of NAMES.entries()) {
      const { metadata, spec, status } = await virtual(name);
      const group = await builtIn(BUILT_IN_GROUPS[i] ?? '');
      assert.deepEqual(metadata.labels, { [INSTANCE_LABEL]: h.instance, [VIRTUAL_LABEL]: 'true' });
      assert.equal(metadata.finalizers, undefined);
      assert.deepEqual(
        [spec.displayName, status?.groupId, status?.uuid, status?.nameKey],
        [group?.displayName, group?.id, group?.uuid, group?.displayName],
      );
      assert.equal((await h.ready('LldapGroup', name, h.operatorNamespace)).status, 'True');
    }
    assert.equal((await h.lldap.groups()).length, 3);
  });

  it('with nothing to do reads the built-in groups by their ids, and writes nothing anywhere', async () => {
    const cost = await h.cost(async () => assert.equal((await h.startup()).ok, true));
    assert.deepEqual([cost.kubeWrites, cost.mutations], [[], []]);
    assert.deepEqual(
      cost.lldapReads.filter((read) => read.startsWith('group')),
      ['group 1', 'group 2', 'group 3'],
    );
    assert.ok(cost.kubeReads.length <= 6, JSON.stringify(cost.kubeReads));
  });

  it('brings back a virtual group that a person deleted, and mends one that a person changed', async () => {
    await h.remove('LldapGroup', 'lldap-admin', h.operatorNamespace);
    await h.edit('LldapGroup', 'lldap-password-manager', { spec: { displayName: 'something else' } }, h.operatorNamespace);
    await h.editStatus('LldapGroup', 'lldap-strict-readonly', { groupId: 77 }, h.operatorNamespace);
    const edited = await h.reconcile('LldapGroup', 'lldap-password-manager', { namespace: h.operatorNamespace });
    assert.match(edited.message ?? '', /built-in group lldap_password_manager .*startup restores spec.displayName/);
    assert.deepEqual(edited.did, []);
    assert.equal((await h.startup()).virtualGroupsWritten, 3);
    for (const [i, name] of NAMES.entries()) {
      const { spec, status } = await virtual(name);
      assert.deepEqual([spec.displayName, status?.groupId], [BUILT_IN_GROUPS[i], (await builtIn(BUILT_IN_GROUPS[i] ?? ''))?.id]);
    }
  });

  it('follows a built-in group that lldap made anew, and wakes its memberships, which join it', async () => {
    await h.create(
      'LldapUser',
      'pm',
      { username: 'pm', email: 'pm@example.com', passwordPolicy: 'Ignore' },
      { namespace: h.operatorNamespace },
    );
    await h.create('LldapMembership', 'pm', { userName: 'pm', groupName: 'lldap_password_manager' }, { namespace: h.operatorNamespace });
    for (const kind of ['LldapUser', 'LldapMembership'] as const)
      await h.reconcile(kind, 'pm', { namespace: h.operatorNamespace, full: true });
    const before = await builtIn('lldap_password_manager');
    await byHand(`deleteGroup(groupId: ${before?.id}) { ok }`);
    await h.startup();
    const missing = await h.ready('LldapGroup', 'lldap-password-manager', h.operatorNamespace);
    assert.equal(missing.status, 'False');
    assert.match(missing.message, /lldap_password_manager.*restart lldap/);
    h.posted.reconcile = [];

    await h.lldap.stop();
    await h.lldap.start();
    // The first run may meet a kept connection that has just ended.
    if (!(await h.startup()).ok) assert.equal((await h.startup()).ok, true);
    const after = await builtIn('lldap_password_manager');
    assert.notEqual(after?.id, before?.id);
    assert.equal((await virtual('lldap-password-manager')).status?.groupId, after?.id);
    await h.deliverEvents();
    assert.deepEqual((await builtIn('lldap_password_manager'))?.members, ['pm']);
  });

  it('defines the mark for users and groups, hidden and not editable, and only where it is missing', async () => {
    const fields = '{ attributes { name attributeType isList isVisible isEditable } }';
    const query = `{ schema { userSchema ${fields} groupSchema ${fields} } }`;
    const read = async () => {
      const { schema } = (await h.lldap.edit(query)) as { schema: Record<string, { attributes: { name: string }[] }> };
      return Object.values(schema).map(({ attributes }) => attributes.find(({ name }) => name === 'k8s-owner'));
    };
    const definition = { name: 'k8s-owner', attributeType: 'STRING', isList: false, isVisible: false, isEditable: false };
    assert.deepEqual(await read(), [definition, definition]);
    await byHand('deleteGroupAttribute(name: "k8s-owner") { ok }');
    assert.equal((await h.startup()).marksDefined, 1);
    assert.deepEqual(await read(), [definition, definition]);
    assert.equal((await h.startup()).marksDefined, 0);
  });

  it('the mark is defined so that people may write it: it fails and says so, until that definition is deleted', async () => {
    await byHand('deleteUserAttribute(name: "k8s-owner") { ok }');
    await byHand('addUserAttribute(name: "k8s-owner", attributeType: STRING, isList: false, isVisible: false, isEditable: true) { ok }');
    const summary = await h.startup();
    assert.equal(summary.ok, false);
    assert.match(summary.problems.join(), /k8s-owner of users .*not editable.*delete the definition/);
    await byHand('deleteUserAttribute(name: "k8s-owner") { ok }');
    const after = await h.startup();
    assert.deepEqual([after.ok, after.marksDefined], [true, 1]);
  });

  it('makes the key of the password hashes once, also when two processes start at once, and never changes it', async () => {
    const before = await keySecret();
    assert.equal(Buffer.from(before.data?.key ?? '', 'base64').length, 32);
    await h.startup();
    assert.deepEqual(await keySecret(), before);
    await h.cluster.request('DELETE', `/api/v1/namespaces/${h.operatorNamespace}/secrets/${PASSWORD_KEY_SECRET}`);
    const summaries = await Promise.all([h.startup(), h.startup('sweep', h.another()), h.startup('sweep', h.another())]);
    assert.deepEqual(
      summaries.map(({ ok }) => ok),
      [true, true, true],
    );
    const after = await keySecret();
    assert.notEqual(after.data?.key, before.data?.key);
    await h.startup();
    assert.deepEqual(await keySecret(), after);
  });

  it('a key Secret that holds no key is named, never overwritten, and does not keep the sweep from what needs no key', async () => {
    const url = `/api/v1/namespaces/${h.operatorNamespace}/secrets/${PASSWORD_KEY_SECRET}`;
    const { data } = await keySecret();
    await h.cluster.request('PATCH', url, { body: { data: { key: null } }, contentType: 'application/merge-patch+json' });
    const found = await lost('keyless');
    h.posted.reconcile = [];
    const summary = await h.startup();
    assert.equal(summary.ok, false);
    assert.match(summary.problems.join(), new RegExp(PASSWORD_KEY_SECRET));
    assert.equal((await keySecret()).data?.key, undefined);
    assert.equal(found(), true);
    await h.cluster.request('PATCH', url, { body: { data }, contentType: 'application/merge-patch+json' });
    assert.equal((await h.startup()).ok, true);
  });

  it('lldap is down: it fails and names the settings to look at, the sweep runs all the same, and one Event an hour tells', async () => {
    const found = await lost('down');
    const before = (await told()).length;
    await h.lldap.stop();
    for (const mode of ['sweep', 'drift'] as const) {
      h.posted.reconcile = [];
      const summary = await h.startup(mode);
      assert.equal(summary.ok, false);
      assert.match(summary.problems.join('\n'), /LLDAP_URL.*LLDAP_LDAP_URL/s);
      assert.equal(found(), true, mode);
    }
    for (let minutes = 0; minutes < 55; minutes += 5) {
      h.clock.advance(5 * 60_000);
      await h.startup();
    }
    const events = (await told()).slice(before);
    assert.ok(events.length >= 1 && events.length <= 3, JSON.stringify(events.map(({ note }) => note)));
    assert.equal(events[0]?.type, 'Warning');
    h.clock.advance(60 * 60_000);
    await h.startup();
    assert.equal((await told()).length, before + events.length + 1);
    await h.lldap.start();
    if (!(await h.startup()).ok) assert.equal((await h.startup()).ok, true);
  });

  for (const [what, operation, problem] of [
    ['LDAP alone is down', 'bind', /LLDAP_LDAP_URL/],
    ['GraphQL alone is down', 'apiVersion', /LLDAP_URL/],
  ] as const) {
    it(`${what}: it fails and names that setting, and does what the other allows`, async () => {
      await h.lldap.fault({ kind: 'text', text: 'no', only: { operation } });
      const summary = await h.startup();
      assert.deepEqual([summary.ok, summary.problems.length], [false, 1]);
      assert.match(summary.problems[0] ?? '', problem);
    });
  }

  it('lldap refuses the credentials: it fails and names their Secret, and says neither of them', async () => {
    h.credentials = { username: 'admin', password: 'wrong-password-of-admin' };
    await h.restart();
    const summary = await h.startup();
    assert.equal(summary.ok, false);
    assert.match(summary.problems.join(), /lldap-operator-credentials/);
    assert.doesNotMatch(JSON.stringify([summary, h.logs, await told()]), /wrong-password-of-admin/);
  });

  it('the account is no administrator of lldap: it fails and says so', async () => {
    await byHand('createUser(user: {id: "humble", email: "humble@example.com"}) { id }');
    await h.lldap.setPassword('humble', 'humble-password-1');
    h.credentials = { username: 'humble', password: 'humble-password-1' };
    await h.restart();
    assert.match((await h.startup()).problems.join(), /lldap_admin/);
    h.credentials = h.lldap.admin;
    await h.restart();
    assert.equal((await h.startup()).ok, true);
  });

  it('the broker does not take the events: it fails and names that setting', async () => {
    await lost('unposted');
    h.breakBroker(true);
    const summary = await h.startup();
    assert.equal(summary.ok, false);
    assert.match(summary.problems.join(), /BROKER_URL/);
  });

  it('the mark is lost and the API server does not answer a list: the next run defines it, and asks for everything', async () => {
    await h.create('LldapGroup', 'steady', { displayName: 'steady' });
    await h.reconcile('LldapGroup', 'steady');
    await byHand('deleteGroupAttribute(name: "k8s-owner") { ok }');
    h.interfere = async (_by, { method, path }) => {
      if (method === 'GET' && path.includes('/lldapmemberships?')) throw new KubeError(500, 'internal error');
    };
    assert.deepEqual(marksOf(await h.startup()), [false, 0]);
    h.interfere = async () => {};
    assert.deepEqual(marksOf(await h.startup()), [true, 1]);
    assert.ok(h.posted.reconcile.some(({ target }) => target.name === 'steady'));
  });

  it('the mark is lost and the broker does not take the events: it says how everything is asked for later', async () => {
    await byHand('deleteGroupAttribute(name: "k8s-owner") { ok }');
    h.breakBroker(true);
    const summary = await h.startup();
    assert.match(summary.problems.join('\n'), /BROKER_URL.*\n.*run startup again with mode full/);
    assert.equal(summary.asked, false);
    h.breakBroker(false);
    assert.equal((await h.startup('full')).asked, true);
    assert.ok(h.posted.reconcile.some(({ target }) => target.name === 'steady'));
  });

  it('the API server does not answer a list: it fails, names the rights to look at, and keeps the virtual groups all the same', async () => {
    await h.remove('LldapGroup', 'lldap-admin', h.operatorNamespace);
    h.interfere = async (_by, { method, path }) => {
      if (method === 'GET' && path.includes('/lldapmemberships?')) throw new KubeError(500, 'internal error');
    };
    const summary = await h.startup();
    h.interfere = async () => {};
    assert.equal(summary.ok, false);
    assert.match(summary.problems.join(), /lldap-operator-startup/);
    assert.equal((await h.ready('LldapGroup', 'lldap-admin', h.operatorNamespace)).status, 'True');
  });

  it('on a fresh installation the key is there before any user is asked for', async () => {
    await h.cluster.request('DELETE', `/api/v1/namespaces/${h.operatorNamespace}/secrets/${PASSWORD_KEY_SECRET}`);
    await lost('after-key');
    let posted = -1;
    h.interfere = async (_by, { method, path }) => {
      if (method === 'POST' && path.endsWith('/secrets')) posted = h.posted.reconcile.length;
    };
    await h.startup();
    h.interfere = async () => {};
    assert.deepEqual([posted, h.posted.reconcile.length > 0], [0, true]);
  });

  it('runs that come while one is under way are one run after it, of all their modes', async () => {
    const found = await lost('once');
    const later = new Promise<Summary[]>((resolve) => {
      h.interfere = async () => {
        h.interfere = async () => {};
        resolve(Promise.all([h.startup('sweep'), h.startup('full'), h.startup('drift')]));
      };
    });
    assert.deepEqual((await h.startup()).modes, ['sweep']);
    for (const { modes } of await later) assert.deepEqual(modes, ['sweep', 'full', 'drift']);
    assert.equal(found(), true);
    assert.equal(h.posted.reconcile.filter(({ target }) => target.name === 'once').length, 2);
  });

  it('an address of lldap is none: that is one problem, and no other setting is named', async () => {
    const wrong = await startHarness({ LLDAP_LDAP_URL: 'lldap:3890' });
    const summary = await wrong.startup();
    await wrong.close();
    assert.equal(summary.ok, false);
    assert.deepEqual(summary.problems, [
      'LLDAP_LDAP_URL is not an address of the form ldap://host:port, without user name or password: correct it.',
    ]);
  });
});
