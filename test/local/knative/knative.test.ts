import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { stringify } from 'yaml';
import { API_VERSION, EVENT_TYPE, INSTANCE_LABEL } from '../../../shared/constants.ts';
import { type KindName, PLURALS } from '../../../shared/kube/resources.ts';
import { type Cluster, startCluster } from '../kube/cluster.ts';
import { installCrds, LEAST_SPEC } from '../kube/crds.ts';
import { CLUSTER_TIMEOUT_MS } from '../kube/shared.ts';
import { isRecord } from './fields.ts';
import { send } from './http.ts';
import { type LocalKnative, startKnative } from './knative.ts';
import { renderManifests, withSettings } from './render.ts';
import type { Happening } from './story.ts';

const SAMPLE = join(import.meta.dirname, './sample-function.ts');
const NAMESPACE = 'lldap-operator';
const LABELS = { [INSTANCE_LABEL]: 'default' };
const FUNCTION_OF: Record<KindName, string> = {
  LldapUser: 'lldap-operator-user',
  LldapGroup: 'lldap-operator-group',
  LldapMembership: 'lldap-operator-membership',
  LldapAttributeSchema: 'lldap-operator-attribute-schema',
};

/** A cluster of its own: the manifests' names are fixed, and the API server is restarted here. */
describe('The local Knative with the manifests of this project', function () {
  this.timeout(CLUSTER_TIMEOUT_MS);
  let cluster: Cluster;
  let knative: LocalKnative;
  let told: Happening[];

  before(async () => {
    cluster = await startCluster();
    await installCrds(cluster);
  });

  after(() => cluster.stop());

  async function start(idleMs = 3_600_000): Promise<void> {
    told = [];
    const manifests = withSettings(await renderManifests(), { LOG_LEVEL: 'debug' });
    const command = (args: string[]) => [process.execPath, SAMPLE, ...(args[0] === 'call-startup' ? ['job'] : args)];
    knative = await startKnative({ cluster, manifests, command, idleMs, jobs: 'on demand', onEvent: (happening) => told.push(happening) });
    await cluster.apply(
      stringify({
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'lldap-operator-credentials', namespace: NAMESPACE },
        stringData: { username: 'admin', password: 'hidden' },
      }),
    );
  }

  afterEach(async () => {
    knative.violations.length = 0;
    await knative.stop();
  });

  const all = <W extends Happening['what']>(what: W) => told.filter((each): each is Extract<Happening, { what: W }> => each.what === what);
  const until = async (done: () => boolean) => {
    while (!done()) await sleep(20);
  };
  /** The events that functions saw: which function, which path, which resource. */
  const seen = () =>
    all('log').flatMap(({ from, line }) => {
      const record: unknown = JSON.parse(line);
      return isRecord(record) && record.msg === 'event'
        ? [{ from, path: record.path, type: record.type, name: record.name, errorCode: record.errorCode }]
        : [];
    });
  const create = (kind: KindName, name: string) =>
    cluster.apply(
      stringify({ apiVersion: API_VERSION, kind, metadata: { name, namespace: 'default', labels: LABELS }, spec: LEAST_SPEC[kind] }),
    );
  const post = (type: string, extensions: Record<string, string>) =>
    send(
      'POST',
      knative.brokerUrl,
      { 'ce-specversion': '1.0', 'ce-id': randomUUID(), 'ce-source': '/test', 'ce-type': type, ...extensions },
      Buffer.alloc(0),
    );

  it('brings a change of each kind to its own function, which it starts for that', async () => {
    await start();
    assert.deepEqual(knative.processes(), []);
    for (const kind of Object.keys(PLURALS) as KindName[]) await create(kind, `a-${kind.toLowerCase()}`);
    await until(() => seen().length === 4);
    for (const kind of Object.keys(PLURALS) as KindName[]) {
      assert.deepEqual(
        seen().filter(({ from }) => from === FUNCTION_OF[kind]),
        [
          {
            from: FUNCTION_OF[kind],
            path: '/',
            type: 'dev.knative.apiserver.resource.add',
            name: `a-${kind.toLowerCase()}`,
            errorCode: undefined,
          },
        ],
      );
    }
    assert.equal(knative.processes().length, 4);
  });

  it('stops a function that has nothing to do, and starts it again for the next event', async () => {
    await start(200);
    const reconcile = () => post(EVENT_TYPE.reconcile, { 'ce-kind': 'LldapGroup', 'ce-name': 'g' });
    await reconcile();
    await until(() => all('stopped').length === 1);
    assert.deepEqual([all('stopped')[0]?.code, knative.processes()], [0, []]);
    await reconcile();
    await until(() => seen().length === 2);
  });

  it('tells the user function of a labelled Secret, and of no other', async () => {
    await start();
    const secret = (name: string, labels: object) =>
      cluster.apply(
        stringify({
          apiVersion: 'v1',
          kind: 'Secret',
          metadata: { name, namespace: 'default', labels },
          stringData: { password: 'hidden' },
        }),
      );
    await secret('plain', {});
    await secret('labelled', LABELS);
    await until(() => seen().length === 1);
    assert.deepEqual(
      seen().map(({ from, type, name }) => [from, type, name]),
      [['lldap-operator-user', 'dev.knative.apiserver.ref.add', 'labelled']],
    );
  });

  it('turns what a function refuses over to the dead-letter path', async () => {
    await start();
    assert.equal((await post(EVENT_TYPE.reconcile, { 'ce-kind': 'LldapUser', 'ce-name': 'refused' })).status, 202);
    await until(() => seen().some(({ from }) => from === 'lldap-operator-requeue'));
    assert.deepEqual(
      seen().map(({ from, path, errorCode }) => [from, path, errorCode]),
      [
        ['lldap-operator-user', '/', undefined],
        ['lldap-operator-requeue', '/dead-letter', '400'],
      ],
    );
  });

  it('refuses to end quietly after a function answered what a broker takes for a failure', async () => {
    await start();
    await post(EVENT_TYPE.startup, { 'ce-name': 'chatty' });
    await until(() => knative.violations.length > 0);
    await assert.rejects(
      knative.stop(),
      /startup\.lldap-operator\.svc\.cluster\.local answered trigger lldap-operator-startup with 200 and a body of 2 bytes/,
    );
  });

  describe('gives each function', () => {
    const env = async (service: string): Promise<Record<string, string>> =>
      JSON.parse((await send('GET', `${knative.serviceUrl(service)}/env`, {}, Buffer.alloc(0))).body.toString());

    it('its own identity, with just the rights of the manifests', async () => {
      await start();
      const can = async (kubeconfig: string, ...question: string[]) =>
        (await cluster.kubectl(['--kubeconfig', kubeconfig, 'auth', 'can-i', ...question])).stdout.trim();
      const { KUBECONFIG: user = '' } = await env('lldap-operator-user');
      assert.deepEqual(
        [
          await can(user, 'patch', 'lldapusers', '--subresource=status', '-A'),
          await can(user, 'get', 'secrets', '-n', 'default'),
          await can(user, 'list', 'secrets', '-A'),
        ],
        ['yes', 'yes', 'no'],
      );
      const { KUBECONFIG: startup = '' } = await env('lldap-operator-startup');
      assert.deepEqual(
        [await can(startup, 'create', 'lldapgroups'), await can(startup, 'create', 'lldapgroups', '-n', 'default')],
        ['yes', 'no'],
      );
      assert.equal((await env('lldap-operator-requeue')).KUBECONFIG, undefined);
    });

    it("the settings, with addresses that work here, and lldap's account as files", async () => {
      await start();
      const { BROKER_URL, LOG_LEVEL, LLDAP_INSTANCE, CREDENTIALS_DIR } = await env('lldap-operator-user');
      assert.deepEqual([BROKER_URL, LOG_LEVEL, LLDAP_INSTANCE], [knative.brokerUrl, 'debug', 'default']);
      const file = await send(
        'GET',
        `${knative.serviceUrl('lldap-operator-user')}/file?path=${CREDENTIALS_DIR}/username`,
        {},
        Buffer.alloc(0),
      );
      assert.equal(file.body.toString(), 'admin');
    });
  });

  it('runs the Jobs on demand and says how they ended', async () => {
    await start();
    const installed = await knative.runJob('lldap-operator-install');
    assert.deepEqual([installed.code, installed.output], [0, JSON.stringify({ msg: 'started', behaviour: 'job' })]);
    assert.equal((await knative.runCronJob('lldap-operator-startup')).code, 0);
    assert.equal(all('job').length, 2);
    await assert.rejects(knative.runJob('nothing'), /the manifests have no nothing/);
  });

  it('goes on after a restart of the API server; what changed before the source is back may be lost, what changes after is not', async () => {
    await start();
    await cluster.restart();
    // The source is back when it tells of a change; how long that takes, and what it misses, is up to the API server.
    for (let n = 0; !seen().some(({ name }) => String(name).startsWith('restarted-')); n += 1) {
      await create('LldapGroup', `restarted-${n}`);
      await sleep(300);
    }
    await create('LldapGroup', 'afterwards');
    await until(() => seen().some(({ name }) => name === 'afterwards'));
  });
});
