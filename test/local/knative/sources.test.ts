import assert from 'node:assert/strict';
import { connect, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { stringify } from 'yaml';
import { API_GROUP, API_VERSION, INSTANCE_LABEL } from '../../../shared/constants.ts';
import type { Cluster } from '../kube/cluster.ts';
import { CLUSTER_TIMEOUT_MS, sharedCluster } from '../kube/shared.ts';
import { Addresses } from './addresses.ts';
import { type FakeFunction, fakeFunction, type Received } from './fake-function.ts';
import { Faults } from './faults.ts';
import { readManifests } from './manifests.ts';
import { LocalSource, type SourceCluster } from './sources.ts';
import { Story } from './story.ts';

const USERS = { apiVersion: API_VERSION, kind: 'LldapUser' };

describe('A local ApiServerSource on a real API server', function () {
  this.timeout(CLUSTER_TIMEOUT_MS);
  let cluster: Cluster;
  let namespace: string;
  let sink: FakeFunction;
  let answers: (request: Received) => number | Promise<number>;
  let source: LocalSource;
  let faults: Faults;
  let warnings: string[];
  /** Who watched, one after the other, while adapters were replaced. */
  let handovers: string[];

  before(async () => {
    cluster = await sharedCluster();
  });

  beforeEach(async () => {
    namespace = await cluster.createNamespace('source');
    answers = () => 202;
    sink = await fakeFunction(async (request) => ({ status: await answers(request) }));
    faults = new Faults();
    warnings = [];
    handovers = [];
  });

  afterEach(async () => {
    await source?.stop();
    await sink.stop();
    await cluster.kubectl(['delete', 'clusterrole,clusterrolebinding', namespace, '--ignore-not-found']);
  });

  const account = () => ({ metadata: { name: 'source', namespace } });
  const labels = () => ({ [INSTANCE_LABEL]: namespace });

  /** The source's account may watch these everywhere, or nothing. */
  async function allow(resources: string[], apiGroup = API_GROUP): Promise<void> {
    const subjects = [{ kind: 'ServiceAccount', name: 'source', namespace }];
    const objects = [
      { apiVersion: 'v1', kind: 'ServiceAccount', ...account() },
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRole',
        metadata: { name: namespace },
        rules: [{ apiGroups: [apiGroup], resources, verbs: ['get', 'list', 'watch'] }],
      },
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRoleBinding',
        metadata: { name: namespace },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: namespace },
        subjects,
      },
    ];
    await cluster.apply(objects.map((object) => stringify(object)).join('---\n'));
  }

  function newSource(spec: object = {}, through: SourceCluster = cluster): LocalSource {
    const selector = { matchLabels: labels() };
    const whole = {
      serviceAccountName: 'source',
      mode: 'Resource',
      namespaceSelector: {},
      resources: [{ ...USERS, selector }],
      sink: { uri: sink.url },
      ...spec,
    };
    const manifest = { apiVersion: 'sources.knative.dev/v1', kind: 'ApiServerSource', metadata: { name: 's', namespace }, spec: whole };
    const story = new Story();
    story.listen((happening) => {
      if (happening.what === 'warning' || happening.what === 'violation') warnings.push(happening.message);
      if (happening.what === 'handover') handovers.push(happening.watching);
    });
    const [model = assert.fail()] = readManifests(stringify(manifest)).sources;
    source = new LocalSource(model, through, { addresses: new Addresses(), story, faults });
    return source;
  }

  async function startSource(spec: object = {}): Promise<void> {
    await allow(['lldapusers']);
    await newSource(spec).start();
  }

  const path = (name = '', inNamespace = namespace) => `/apis/${API_VERSION}/namespaces/${inNamespace}/lldapusers${name && `/${name}`}`;
  const user = (name: string, more: object = {}) => ({
    ...USERS,
    metadata: { name, labels: labels(), ...more },
    spec: { username: name, email: `${name}@example.com`, passwordPolicy: 'Ignore' },
  });
  const create = (name: string, more?: object, inNamespace = namespace) => call('POST', path('', inNamespace), { body: user(name, more) });
  const patch = (name: string, body: object, subresource = '') =>
    call('PATCH', `${path(name)}${subresource}`, { body, contentType: 'application/merge-patch+json' });
  const remove = (name: string) => call('DELETE', path(name), {});

  async function call(method: string, url: string, options: { body?: unknown; contentType?: string }): Promise<void> {
    const { code, body } = await cluster.request(method, url, options);
    assert.ok(code < 300, `${method} ${url}: ${code} ${JSON.stringify(body)}`);
  }

  const got = () => sink.received.map(({ headers }) => `${String(headers['ce-type']).split('.').pop()} ${headers['ce-name']}`);
  const until = async (done: () => boolean) => {
    while (!done()) await sleep(10);
  };
  /** Waits for `last`, so that what should not have come before it would be seen. */
  const gotUntil = async (last: string) => {
    await until(() => got().includes(last));
    return got();
  };

  it('sends an event with the measured headers and the whole object', async () => {
    await startSource();
    await create('alice');
    await until(() => sink.received.length === 1);
    const [{ headers, body } = assert.fail()] = sink.received;
    const { host, connection, 'content-length': length, 'ce-id': id, 'ce-time': time, ...rest } = headers;
    assert.ok(host && connection && length && /^[0-9a-f-]{36}$/.test(String(id)) && Date.parse(String(time)) > 0);
    assert.deepEqual(rest, {
      'ce-specversion': '1.0',
      'ce-type': 'dev.knative.apiserver.resource.add',
      'ce-source': cluster.url,
      'ce-subject': `/apis/${API_VERSION}/namespaces/${namespace}/lldapusers/alice`,
      'ce-kind': 'LldapUser',
      'ce-apiversion': API_VERSION,
      'ce-name': 'alice',
      'ce-namespace': namespace,
      'content-type': 'application/json',
      'kn-namespace': namespace,
    });
    const { kind, metadata, spec } = JSON.parse(body);
    assert.deepEqual([kind, metadata.name, spec.username], ['LldapUser', 'alice', 'alice']);
    assert.ok(metadata.resourceVersion && metadata.managedFields);
  });

  it('tells of status, label and finalizer writes as updates, and of a write that changes nothing not at all', async () => {
    await startSource();
    await create('alice');
    await patch('alice', { status: { observedGeneration: 1 } }, '/status');
    await patch('alice', { metadata: { annotations: { a: 'b' } } });
    await patch('alice', { metadata: { annotations: { a: 'b' } } });
    await patch('alice', { metadata: { finalizers: ['example.com/x'] } });
    await remove('alice');
    await patch('alice', { metadata: { finalizers: [] } });
    assert.deepEqual(await gotUntil('delete alice'), [
      'add alice',
      'update alice',
      'update alice',
      'update alice',
      'update alice',
      'delete alice',
    ]);
    const [deleting, deleted] = sink.received.slice(-2).map(({ body }) => JSON.parse(body).metadata);
    assert.ok(deleting.deletionTimestamp);
    assert.ok(Number(deleted.resourceVersion) > Number(deleting.resourceVersion), 'the version is that of the deletion');
  });

  it('says nothing of what existed before it started, or of what changed while it was stopped', async () => {
    await allow(['lldapusers']);
    await create('before');
    await newSource().start();
    await create('during');
    await gotUntil('add during');
    await source.stop();
    await create('meanwhile');
    await patch('before', { metadata: { annotations: { a: 'b' } } });
    await remove('during');
    await source.start();
    await create('after');
    assert.deepEqual(await gotUntil('add after'), ['add during', 'add after']);
  });

  it('takes a label that comes or goes for the coming and going of the object, and sees no other instance', async () => {
    await startSource();
    await create('other', { labels: { [INSTANCE_LABEL]: 'another' } });
    await create('alice');
    const secret = (value: string | null) => ({ metadata: { labels: { x: value } } });
    await source.stop();
    await newSource({ resources: [{ ...USERS, selector: { matchLabels: { ...labels(), x: 'y' } } }] }).start();
    await patch('alice', secret('y'));
    await patch('alice', secret(null));
    assert.deepEqual((await gotUntil('delete alice')).slice(-2), ['add alice', 'delete alice']);
    assert.ok(!got().some((each) => each.endsWith('other')));
  });

  it('watches all namespaces, or only its own without a namespaceSelector', async () => {
    const elsewhere = await cluster.createNamespace('elsewhere');
    await startSource();
    await create('alice', {}, elsewhere);
    await gotUntil('add alice');
    await source.stop();
    await newSource({ namespaceSelector: undefined }).start();
    await create('bob', {}, elsewhere);
    await create('carol');
    assert.deepEqual(await gotUntil('add carol'), ['add alice', 'add carol']);
  });

  describe('replaces its adapter when a namespace is created or deleted', () => {
    const newNamespace = async (suffix = 'new', metadata: object = {}) => {
      const name = `${namespace}-${suffix}`;
      await call('POST', '/api/v1/namespaces', { body: { metadata: { name, ...metadata } } });
      return name;
    };
    const replaced = (times: number) => until(() => handovers.filter((watching) => watching === 'new').length === times);

    it('and tells of every change meanwhile', async () => {
      await startSource();
      const created = newNamespace();
      const names = Array.from({ length: 20 }, (_, index) => `user-${index}`);
      for (const name of names) await create(name);
      const other = await created;
      await replaced(1);
      await call('DELETE', `/api/v1/namespaces/${other}`, {});
      // No controller ends a deleted namespace here.
      await call('PUT', `/api/v1/namespaces/${other}/finalize`, { body: { metadata: { name: other }, spec: { finalizers: [] } } });
      await replaced(2);
      await create('last');
      assert.deepEqual(new Set(await gotUntil('add last')), new Set([...names, 'last'].map((name) => `add ${name}`)));
      assert.deepEqual(handovers, ['both', 'new', 'both', 'new']);
    });

    it('but tells nothing of what changes after the old adapter has gone and before the new one watches', async () => {
      await startSource();
      const end = faults.handover('neither');
      await newNamespace();
      await until(() => handovers.includes('neither'));
      await create('alice');
      end();
      await replaced(1);
      await create('bob');
      assert.deepEqual(await gotUntil('add bob'), ['add bob']);
    });

    it('and tells everything twice, with other ids, while both watch', async () => {
      await startSource();
      const end = faults.handover('both');
      await newNamespace();
      await until(() => handovers.includes('both'));
      await create('alice');
      await until(() => sink.received.length === 2);
      end();
      await replaced(1);
      await create('bob');
      assert.deepEqual(await gotUntil('add bob'), ['add alice', 'add alice', 'add bob']);
      assert.equal(new Set(sink.received.map(({ headers }) => headers['ce-id'])).size, 3);
    });

    it('which a source of its own namespace does not', async () => {
      await startSource({ namespaceSelector: undefined });
      await newNamespace();
      await create('alice');
      await gotUntil('add alice');
      assert.deepEqual(handovers, []);
    });

    it('with the labels that it selects, and no other', async () => {
      await startSource({ namespaceSelector: { matchLabels: labels() } });
      await create('in-a-namespace-without-the-label');
      await newNamespace();
      const labelled = await newNamespace('labelled', { labels: labels() });
      await replaced(1);
      await create('alice', {}, labelled);
      await gotUntil('add alice');
      await call('PATCH', `/api/v1/namespaces/${namespace}`, {
        body: { metadata: { labels: labels() } },
        contentType: 'application/merge-patch+json',
      });
      await replaced(2);
      await create('bob');
      assert.deepEqual(await gotUntil('add bob'), ['add alice', 'add bob']);
    });
  });

  it('in Reference mode sends a reference, and nothing that a Secret holds', async () => {
    await allow(['secrets'], '');
    await newSource({ mode: 'Reference', resources: [{ apiVersion: 'v1', kind: 'Secret', selector: { matchLabels: labels() } }] }).start();
    await call('POST', `/api/v1/namespaces/${namespace}/secrets`, {
      body: { metadata: { name: 'pw', labels: labels() }, stringData: { password: 'hidden' } },
    });
    await until(() => sink.received.length === 1);
    const [{ headers, body } = assert.fail()] = sink.received;
    assert.deepEqual(
      [headers['ce-type'], headers['ce-subject']],
      ['dev.knative.apiserver.ref.add', `/apis/v1/namespaces/${namespace}/secrets/pw`],
    );
    assert.equal(body, JSON.stringify({ kind: 'Secret', namespace, name: 'pw', apiVersion: 'v1' }));
  });

  it('sends one event after the other, each when the one before is answered', async () => {
    const gate = Promise.withResolvers<number>();
    answers = () => gate.promise;
    await startSource();
    await create('first');
    await create('second');
    await until(() => sink.received.length === 1);
    await sleep(200);
    assert.deepEqual(got(), ['add first']);
    gate.resolve(202);
    assert.deepEqual(await gotUntil('add second'), ['add first', 'add second']);
  });

  it('tries again with the same id after 503, and drops an event after 500', async () => {
    const statuses = [503, 503, 202, 500, 202];
    answers = () => statuses.shift() ?? assert.fail('one event too many');
    await startSource();
    for (const each of ['alice', 'bob', 'carol']) await create(each);
    assert.deepEqual(await gotUntil('add carol'), ['add alice', 'add alice', 'add alice', 'add bob', 'add carol']);
    assert.equal(new Set(sink.received.map(({ headers }) => headers['ce-id'])).size, 3);
  });

  it('gives up after six tries', async () => {
    answers = ({ headers }) => (headers['ce-name'] === 'alice' ? 404 : 202);
    await startSource();
    for (const each of ['alice', 'bob']) await create(each);
    assert.deepEqual(await gotUntil('add bob'), [...Array(6).fill('add alice'), 'add bob']);
  });

  it('refuses to start without the rights, and names the one that is missing', async () => {
    await allow(['lldapgroups']);
    await assert.rejects(newSource().start(), /ServiceAccount source-\w+\/source may not get lldapusers/);
  });

  it('skips a kind that its group does not have, and watches the others', async () => {
    await allow(['lldapusers', 'lldapthings']);
    const selector = { matchLabels: labels() };
    await newSource({
      resources: [
        { apiVersion: API_VERSION, kind: 'LldapThing', selector },
        { ...USERS, selector },
      ],
    }).start();
    assert.match(warnings.join(), /no lldapthings in .*: skipped/);
    await create('alice');
    await gotUntil('add alice');
  });

  it('waits for a group that does not exist yet', async () => {
    const group = `${namespace}.example.com`;
    await allow(['things'], group);
    const started = newSource({ resources: [{ apiVersion: `${group}/v1`, kind: 'Thing' }] }).start();
    await until(() => warnings.includes(`waits for ${group}/v1`));
    const schema = { openAPIV3Schema: { type: 'object' } };
    await cluster.apply(
      stringify({
        apiVersion: 'apiextensions.k8s.io/v1',
        kind: 'CustomResourceDefinition',
        metadata: { name: `things.${group}` },
        spec: {
          group,
          scope: 'Namespaced',
          names: { plural: 'things', kind: 'Thing' },
          versions: [{ name: 'v1', served: true, storage: true, schema }],
        },
      }),
    );
    await started;
    // Not by kubectl, which finds new kinds later.
    const thing = { apiVersion: `${group}/v1`, kind: 'Thing', metadata: { name: 'one' } };
    await call('POST', `/apis/${group}/v1/namespaces/${namespace}/things`, { body: thing });
    await gotUntil('add one');
    await cluster.kubectl(['delete', 'crd', `things.${group}`, '--wait=false']);
  });

  it('loses nothing when only the network between is cut', async () => {
    await allow(['lldapusers']);
    const wire = await cuttable(cluster.url);
    try {
      await newSource(
        {},
        {
          url: wire.url,
          ca: cluster.ca,
          adminToken: cluster.adminToken,
          tokenFor: cluster.tokenFor.bind(cluster),
          request: cluster.request.bind(cluster),
        },
      ).start();
      await create('alice');
      await gotUntil('add alice');
      wire.cut();
      await create('bob');
      await remove('alice');
      wire.mend();
      assert.deepEqual(await gotUntil('delete alice'), ['add alice', 'add bob', 'delete alice']);
    } finally {
      await source.stop();
      wire.end();
    }
  });
});

/** A way to the API server that can be cut. */
async function cuttable(url: string): Promise<{ url: string; cut(): void; mend(): void; end(): void }> {
  const sockets = new Set<Socket>();
  let whole = true;
  const server = createServer((socket) => {
    if (!whole) return void socket.destroy();
    const upstream = connect(Number(new URL(url).port), '127.0.0.1');
    for (const each of [socket, upstream]) {
      sockets.add(each);
      each.on('error', () => each.destroy()).on('close', () => sockets.delete(each));
    }
    socket.pipe(upstream).pipe(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('not listening');
  const cut = () => {
    whole = false;
    for (const socket of sockets) socket.destroy();
  };
  const mend = () => {
    whole = true;
  };
  const end = () => {
    cut();
    server.close();
  };
  return { url: `https://127.0.0.1:${address.port}`, cut, mend, end };
}
