import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';
import { API_VERSION, INSTANCE_LABEL } from '../../shared/constants.ts';
import { type LocalKnative, startKnative } from '../local/knative/knative.ts';
import { renderManifests } from '../local/knative/render.ts';
import { type Cluster, startCluster } from '../local/kube/cluster.ts';
import { installCrds } from '../local/kube/crds.ts';
import { CLUSTER_TIMEOUT_MS } from '../local/kube/shared.ts';
import { type LocalLldap, startLldap } from '../local/lldap/start.ts';

const BUNDLE = fileURLToPath(new URL('../../dist/main.cjs', import.meta.url));

interface Installation {
  lldap: LocalLldap & { close(): Promise<void> };
  knative: LocalKnative;
}

/** Both overlays on one cluster, each with an lldap and functions of its own. */
describe('Two installations beside each other', function () {
  this.timeout(CLUSTER_TIMEOUT_MS);
  let cluster: Cluster;
  const installations = new Map<string, Installation>();

  before(async () => {
    assert.ok(existsSync(BUNDLE), 'build it first: make build');
    cluster = await startCluster();
    await installCrds(cluster);
    await cluster.kubectl(['create', 'namespace', 'team']);
    await install('default', 'overlays/all-namespaces', 'lldap-operator', 'lldap');
    await install('second', 'overlays/second-instance', 'lldap-second', 'lldap-second');
  });
  after(async () => {
    for (const { knative, lldap } of installations.values()) {
      await knative.stop();
      await lldap.close();
    }
    await cluster?.stop();
  });

  async function install(instance: string, overlay: string, namespace: string, lldapNamespace: string): Promise<void> {
    const lldap = await startLldap({ passwordCost: 'cheap' });
    await apply(
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
      { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'lldap-operator-credentials', namespace }, stringData: lldap.admin },
    );
    const knative = await startKnative({
      cluster,
      manifests: await renderManifests(overlay),
      command: (args) => [process.execPath, BUNDLE, ...args],
      jobs: 'on demand',
      addresses: {
        [`http://lldap.${lldapNamespace}.svc.cluster.local:17170`]: lldap.url,
        [`ldap://lldap.${lldapNamespace}.svc.cluster.local:3890`]: lldap.ldapUrl,
      },
    });
    installations.set(instance, { lldap, knative });
  }

  const apply = (...objects: object[]) => cluster.apply(objects.map((object) => stringify(object)).join('---\n'));
  const of = (instance: string) => installations.get(instance) ?? assert.fail(instance);
  const user = (name: string, instance: string, username = name) => ({
    apiVersion: API_VERSION,
    kind: 'LldapUser',
    metadata: { name, namespace: 'team', labels: { [INSTANCE_LABEL]: instance } },
    spec: { username, email: `${username}@example.com`, passwordPolicy: 'Ignore' },
  });
  const users = async (instance: string) =>
    (await of(instance).lldap.users())
      .map(({ id }) => id)
      .filter((id) => id !== 'admin')
      .sort();

  it('start without complaint, each at its own lldap', async () => {
    for (const { knative } of installations.values()) {
      const { code, output } = await knative.runJob('lldap-operator-install');
      assert.equal(code, 0, output);
    }
    const { stdout } = await cluster.kubectl(['get', 'llg', '-A', '-o', 'jsonpath={range .items[*]}{.metadata.namespace} {end}']);
    assert.deepEqual(stdout.trim().split(' '), [...Array(3).fill('lldap-operator'), ...Array(3).fill('lldap-second')]);
  });

  it('each make the users of their own instance, also of one name, and no others', async () => {
    await apply(user('alice', 'default'), user('bob', 'second'), user('carol', 'default'), user('carol-too', 'second', 'carol'));
    const { code, stderr } = await cluster.kubectl(['wait', 'llu', '--all', '-n', 'team', '--for=condition=Ready', '--timeout=120s']);
    assert.equal(code, 0, stderr);
    assert.deepEqual(
      [await users('default'), await users('second')],
      [
        ['alice', 'carol'],
        ['bob', 'carol'],
      ],
    );
  });

  it('each look, in a sweep, at what is theirs', async () => {
    for (const { knative } of installations.values()) {
      const { code, output } = await knative.runCronJob('lldap-operator-startup');
      assert.equal(code, 0, output);
      // Two users and three virtual groups.
      assert.equal(JSON.parse(output).resources, 5);
    }
  });

  it('each delete what is theirs', async () => {
    const { code, stderr } = await cluster.kubectl(['delete', 'llu', '-l', `${INSTANCE_LABEL}=second`, '-n', 'team', '--timeout=120s']);
    assert.equal(code, 0, stderr);
    assert.deepEqual([await users('default'), await users('second')], [['alice', 'carol'], []]);
  });
});
