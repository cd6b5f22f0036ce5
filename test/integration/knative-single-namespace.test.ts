import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';
import { API_VERSION, INSTANCE_LABEL } from '../../shared/constants.ts';
import { send } from '../local/knative/http.ts';
import { type LocalKnative, startKnative } from '../local/knative/knative.ts';
import { renderWith } from '../local/knative/render.ts';
import type { Happening } from '../local/knative/story.ts';
import { type Cluster, startCluster } from '../local/kube/cluster.ts';
import { installCrds } from '../local/kube/crds.ts';
import { CLUSTER_TIMEOUT_MS } from '../local/kube/shared.ts';
import { type LocalLldap, startLldap } from '../local/lldap/start.ts';

const BUNDLE = fileURLToPath(new URL('../../dist/main.cjs', import.meta.url));
const OWN = 'lldap-operator';

/** The overlay for a single namespace with the component for LDAPS, done by the real functions with the Roles' rights. */
describe('An installation of a single namespace', function () {
  this.timeout(CLUSTER_TIMEOUT_MS);
  let cluster: Cluster;
  let lldap: LocalLldap & { close(): Promise<void> };
  let knative: LocalKnative;
  let elsewhere: string;

  before(async () => {
    assert.ok(existsSync(BUNDLE), 'build it first: make build');
    lldap = await startLldap({ passwordCost: 'cheap' });
    cluster = await startCluster();
    await installCrds(cluster);
    elsewhere = await cluster.createNamespace('elsewhere');
    await apply(
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: OWN, labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } } },
      secret('lldap-operator-credentials', lldap.admin),
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'lldap-ca', namespace: OWN }, data: { 'ca.crt': lldap.ca } },
    );
    knative = await startKnative({
      cluster,
      manifests: await renderWith(['components/ldaps'], 'single-namespace'),
      command: (args) => [process.execPath, BUNDLE, ...args],
      jobs: 'on demand',
      addresses: {
        'http://lldap.lldap.svc.cluster.local:17170': lldap.url,
        'ldaps://lldap.lldap.svc.cluster.local:6360': lldap.ldapsUrl,
      },
    });
  });
  after(async () => {
    await knative?.stop();
    await cluster?.stop();
    await lldap.close();
  });

  const apply = (...objects: object[]) => cluster.apply(objects.map((object) => stringify(object)).join('---\n'));
  const metadata = (name: string, namespace = OWN) => ({ name, namespace, labels: { [INSTANCE_LABEL]: 'default' } });
  const secret = (name: string, data: object) => ({ apiVersion: 'v1', kind: 'Secret', metadata: metadata(name), stringData: data });
  const user = (name: string, spec: object, namespace = OWN) => ({
    apiVersion: API_VERSION,
    kind: 'LldapUser',
    metadata: metadata(name, namespace),
    spec: { username: name, email: `${name}@example.com`, ...spec },
  });
  const wait = async (resource: string) => {
    const { code, stderr } = await cluster.kubectl(['wait', resource, '-n', OWN, '--for=condition=Ready', '--timeout=120s']);
    assert.equal(code, 0, stderr);
  };
  const until = async (holds: () => Promise<boolean>) => {
    while (!(await holds())) await sleep(100);
  };

  it('starts without complaint: lldap over LDAPS, the virtual groups, the sweep', async () => {
    const { code, output } = await knative.runJob('lldap-operator-install');
    assert.equal(code, 0, output);
    await wait('llg/lldap-admin');
  });

  it('makes a user with a password, and a member of a group', async () => {
    await apply(
      secret('alice', { password: 'first of alice' }),
      user('alice', { passwordSecretRef: { name: 'alice', key: 'password' } }),
      { apiVersion: API_VERSION, kind: 'LldapGroup', metadata: metadata('team'), spec: { displayName: 'Team' } },
      {
        apiVersion: API_VERSION,
        kind: 'LldapMembership',
        metadata: metadata('alice-team'),
        spec: { userName: 'alice', groupName: 'Team' },
      },
    );
    await wait('llu/alice');
    await wait('llm/alice-team');
    assert.equal(await lldap.check('alice', 'first of alice'), true);
    assert.deepEqual((await lldap.users()).find(({ id }) => id === 'alice')?.groups, ['Team']);
  });

  it('hears of a Secret that changes', async () => {
    await apply(secret('alice', { password: 'second of alice' }));
    await until(() => lldap.check('alice', 'second of alice'));
  });

  it('leaves resources of other namespaces alone, by event and by sweep', async () => {
    await apply(user('mallory', { passwordPolicy: 'Ignore' }, elsewhere), user('bob', { passwordPolicy: 'Ignore' }));
    await wait('llu/bob');
    assert.equal((await knative.runCronJob('lldap-operator-startup')).code, 0);
    const { stdout } = await cluster.kubectl(['get', 'llu', 'mallory', '-n', elsewhere, '-o', 'jsonpath={.status}{.metadata.finalizers}']);
    assert.equal(stdout, '');
    assert.ok(!(await lldap.users()).some(({ id }) => id === 'mallory'));
  });

  it('answers the event of a Secret of another namespace once, as one that is not its own', async () => {
    const told: Happening[] = [];
    const end = knative.listen((happening) => told.push(happening));
    const event = {
      'ce-specversion': '1.0',
      'ce-id': 'secret-elsewhere',
      'ce-source': '/test',
      'ce-type': 'dev.knative.apiserver.ref.update',
      'ce-kind': 'Secret',
      'ce-namespace': elsewhere,
      'ce-name': 'password',
    };
    assert.equal((await send('POST', knative.brokerUrl, event, Buffer.alloc(0))).status, 202);
    const tries = () =>
      told.flatMap((each) =>
        (each.what === 'delivered' || each.what === 'undelivered') && each.event.id === event['ce-id'] ? [{ status: 0, ...each }] : [],
      );
    await until(async () => tries().length > 0);
    end();
    assert.deepEqual(
      tries().map(({ what, trigger, status }) => ({ what, trigger, status })),
      [{ what: 'delivered', trigger: 'lldap-operator-user', status: 204 }],
    );
  });

  it('has no right outside its namespace', async () => {
    for (const account of ['user', 'startup', 'secrets-source']) {
      const kubeconfig = await cluster.kubeconfigFor(OWN, `lldap-operator-${account}`);
      const can = async (...where: string[]) =>
        (await cluster.kubectl(['--kubeconfig', kubeconfig, 'auth', 'can-i', 'get', 'secrets', ...where])).stdout.trim();
      assert.deepEqual([await can('-n', OWN), await can('-n', elsewhere)], ['yes', 'no'], account);
    }
  });

  it('deletes what it made', async () => {
    const { code, stderr } = await cluster.kubectl(['delete', 'llm,llu,llg', '--all', '-n', OWN, '--timeout=120s']);
    assert.equal(code, 0, stderr);
    assert.deepEqual(
      (await lldap.users()).map(({ id }) => id),
      [lldap.admin.username],
    );
  });
});
