import assert from 'node:assert/strict';
import { CLUSTER_TIMEOUT_MS } from '../local/kube/shared.ts';
import { until, World } from './support.ts';

const EVERY_FUNCTION = ['user', 'group', 'membership', 'attribute-schema'].map((name) => `lldap-operator-${name}`);

describe('the whole path, from a manifest through the local Knative to lldap', () => {
  let world: World;
  before(async function () {
    this.timeout(CLUSTER_TIMEOUT_MS);
    world = await World.start();
  });
  after(() => world.stop());

  const namespace = async (name: string) => world.kubectl('create', 'namespace', name);
  const user = (ns: string, name: string, spec: object = {}) =>
    world.resource('LldapUser', ns, name, {
      username: `${ns}-${name}`,
      email: `${name}@${ns}.example.com`,
      passwordPolicy: 'Ignore',
      ...spec,
    });

  it('a tree applied in the worst order is Ready by events alone: every retry is lost, and none is missed', async () => {
    await namespace('tree');
    const endDrop = world.stack.knative.faults.drop((event) => event.attributes.type?.endsWith('.requeue') ?? false);
    await world.apply(
      world.resource('LldapMembership', 'tree', 'member', { userName: 'tree-alice', groupName: 'Tree' }),
      user('tree', 'alice', {
        attributes: [{ name: 'shoe', value: ['42'] }],
        passwordPolicy: 'Manage',
        passwordSecretRef: { name: 'alice', key: 'password' },
      }),
      world.resource('LldapGroup', 'tree', 'tree', { displayName: 'Tree' }),
      world.resource('LldapAttributeSchema', 'tree', 'shoe', { attributeName: 'shoe', attributeType: 'Integer', target: 'User' }),
      world.secret('tree', 'alice', { password: 'a password of a tree' }),
    );
    await world.ready('tree');
    endDrop();
    const [alice] = (await world.lldap.users()).filter(({ id }) => id === 'tree-alice');
    assert.deepEqual(alice?.groups, ['Tree']);
    assert.equal(await world.lldap.check('tree-alice', 'a password of a tree'), true);
  });

  it('fifty reconciles use a handful of connections, and one login a process', async () => {
    await namespace('many');
    await until('all functions are idle', () => EVERY_FUNCTION.every((service) => world.stack.knative.processes(service).length === 0));
    await world.lldap.forget();
    const before = world.happenings.length;
    await world.apply(...Array.from({ length: 50 }, (_, i) => user('many', `user-${i}`)));
    let connections = 0;
    await until('all users are in lldap', async () => {
      connections = Math.max(connections, await world.connections('lldap-operator-user'));
      return (await world.lldap.users()).filter(({ id }) => id.startsWith('many-')).length === 50;
    });
    assert.ok(connections > 0 && connections <= 16, `${connections} connections to the API server`);
    await world.ready('many');
    const asked = await world.lldap.asked();
    const processes = world.happenings.slice(before).filter((h) => h.what === 'ready' && EVERY_FUNCTION.includes(h.service));
    assert.equal(asked.filter(({ operation }) => operation === 'login').length, processes.length);
    assert.equal(asked.filter(({ operation }) => operation === 'createUser').length, 50);
    const { http } = await world.lldap.sockets();
    assert.ok(http <= 16, `${http} connections to lldap`);
  });

  it('lldap goes away while something changes: the status says so, and it heals without a hand', async () => {
    await namespace('outage');
    await world.apply(user('outage', 'bob'));
    await world.ready('outage');
    await world.lldap.stop();
    await world.kubectl('patch', 'llu', 'bob', '-n', 'outage', '--type=merge', '-p', '{"spec":{"displayName":"Bob"}}');
    await until('the status says so', async () => (await world.reason('llu', 'outage', 'bob')) === 'LldapUnavailable');
    await world.lldap.start();
    await world.ready('outage');
    const bob = (await world.lldap.users()).find(({ id }) => id === 'outage-bob');
    assert.equal(bob?.displayName, 'Bob');
  });

  it('a Secret that changes sets the password, and nothing else does', async () => {
    await namespace('secrets');
    await world.apply(
      world.secret('secrets', 'carol', { password: 'first of its kind' }),
      user('secrets', 'carol', { passwordPolicy: 'Manage', passwordSecretRef: { name: 'carol', key: 'password' } }),
    );
    await world.ready('secrets');
    await world.lldap.forget();
    await world.apply(world.secret('secrets', 'carol', { password: 'second of its kind' }));
    await until('the new password works', () => world.lldap.check('secrets-carol', 'second of its kind'));
    await world.ready('secrets');
    const sets = (await world.lldap.asked()).filter(({ operation }) => operation === 'passwordModify');
    assert.equal(sets.length, 1);
  });

  it('the administrator’s password is rotated: the functions go on without a restart', async () => {
    await namespace('rotated');
    const { admin } = world.stack.lldap;
    await world.lldap.setPassword(admin.username, 'another admin password');
    await world.apply({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'lldap-operator-credentials', namespace: 'lldap-operator' },
      stringData: { username: admin.username, password: 'another admin password' },
    });
    await world.apply(user('rotated', 'dave'));
    await world.ready('rotated', 240);
    await world.lldap.setPassword(admin.username, admin.password);
    await world.apply({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'lldap-operator-credentials', namespace: 'lldap-operator' },
      stringData: { username: admin.username, password: admin.password },
    });
  });

  it('SIGTERM in the middle of a reconcile: it finishes, and the process ends with 0', async () => {
    await namespace('term');
    await world.lldap.fault({ kind: 'slow', ms: 1_500, only: { operation: 'createUser' } });
    await world.apply(user('term', 'erin'));
    await until('the creation is under way', async () => world.stack.knative.processes('lldap-operator-user').length > 0);
    await until('lldap is asked', async () =>
      (await world.lldap.asked()).some(({ operation, id }) => operation === 'user' && id === 'term-erin'),
    );
    const before = world.happenings.length;
    await world.stack.knative.kill('lldap-operator-user', 'SIGTERM');
    await world.lldap.heal();
    await world.ready('term');
    const ends = world.happenings.slice(before).filter((h) => h.what === 'stopped' && h.service === 'lldap-operator-user');
    assert.deepEqual(
      ends.slice(0, 1).map((h) => h.what === 'stopped' && h.code),
      [0],
    );
  });

  it('a function that is called directly answers what it found and did; through the broker it answers nothing', async () => {
    const headers = {
      'ce-specversion': '1.0',
      'ce-id': '1',
      'ce-source': 'me',
      'ce-type': 'com.lukidoescode.lldap-operator.reconcile',
      'ce-kind': 'LldapUser',
      'ce-namespace': 'tree',
      'ce-name': 'alice',
    };
    const url = world.stack.knative.serviceUrl('lldap-operator-user');
    const told = await fetch(url, { method: 'POST', headers: { ...headers, prefer: 'return=representation' } });
    assert.equal(told.status, 200);
    const { result, ready, did } = (await told.json()) as { result: string; ready: boolean; did: string[] };
    assert.deepEqual({ result, ready, did }, { result: 'reconciled', ready: true, did: [] });
    const silent = await fetch(url, { method: 'POST', headers });
    assert.equal(silent.status, 204);
  });

  it('what is deleted is gone from lldap, and in the end no process runs', async () => {
    await world.kubectl('delete', 'llm,llu,llg,llas', '--all', '-n', 'tree', '--timeout=120s');
    await world.kubectl('delete', 'llu', '--all', '-A', '--timeout=240s');
    assert.deepEqual(
      (await world.lldap.users()).map(({ id }) => id),
      [world.stack.lldap.admin.username],
    );
    await until('all is idle', () => world.stack.knative.processes().length === 0, 240);
    assert.deepEqual(world.stack.knative.violations, []);
  });
});
