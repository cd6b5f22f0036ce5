import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { stringify } from 'yaml';
import { API_VERSION, FINALIZER, INSTANCE_LABEL } from '../../shared/names.ts';
import { type LocalKnative, startKnative } from '../local/knative/knative.ts';
import { type Cluster, startCluster } from '../local/kube/cluster.ts';
import { CLUSTER_TIMEOUT_MS } from '../local/kube/shared.ts';
import { type LocalLldap, startLldap } from '../local/lldap/start.ts';
import { ensureTools } from '../local/tools/build.ts';
import { blocksOf, installKnativeKinds, type Place, preparePlace } from './release-pages.ts';

const BUNDLE = fileURLToPath(new URL('../../dist/main.mjs', import.meta.url));

/** Somebody who follows the pages from an empty cluster on: every command of theirs that does not say what it needs. */
describe('Who follows the pages', function () {
  this.timeout(CLUSTER_TIMEOUT_MS);
  let cluster: Cluster;
  let lldap: LocalLldap & { close(): Promise<void> };
  let place: Place;
  let knative: LocalKnative | undefined;
  const places: Place[] = [];

  before(async () => {
    assert.ok(existsSync(BUNDLE), 'build it first: make build');
    lldap = await startLldap({ passwordCost: 'cheap' });
    cluster = await startCluster();
    await installKnativeKinds(cluster);
    place = await newPlace();
  });
  after(async () => {
    await knative?.stop();
    await cluster?.stop();
    await lldap.close();
    for (const each of places) await each.remove();
  });

  async function newPlace(): Promise<Place> {
    const made = await preparePlace(cluster, lldap.admin.password);
    places.push(made);
    return made;
  }

  /** Knative's part: from here on functions run. */
  async function startFunctions(): Promise<void> {
    const { kubectl } = await ensureTools();
    const { stdout: manifests } = await promisify(execFile)(kubectl, ['kustomize', join(place.folder, 'install')]);
    knative = await startKnative({
      cluster,
      manifests,
      command: (args) => [process.execPath, BUNDLE, ...args],
      addresses: {
        'http://lldap.lldap.svc.cluster.local:17170': lldap.url,
        'ldap://lldap.lldap.svc.cluster.local:3890': lldap.ldapUrl,
      },
    });
  }

  const get = async (...what: string[]): Promise<string> => {
    const { stdout, stderr, code } = await cluster.kubectl(['get', ...what]);
    assert.equal(code, 0, stderr);
    return stdout;
  };

  it('of installing has a user that is Ready, whom lldap knows', async () => {
    for (const block of await blocksOf('install.md')) {
      await place.run(block);
      if (block.includes('kubectl apply -k install') && !knative) await startFunctions();
    }
    const alice = (await lldap.users()).find(({ id }) => id === 'alice');
    assert.deepEqual(alice?.groups, ['Developers']);
    assert.equal(await lldap.check('alice', 'correct-horse-battery'), true);
    assert.match(await get('networkpolicies', '-n', 'lldap-operator', '-o', 'name'), /lldap-operator-functions/);
    assert.equal(await get('cronjob', 'lldap-operator-drift', '-n', 'lldap-operator', '-o', 'jsonpath={.spec.suspend}'), 'false');
  });

  it('of configuring has the same account as before', async () => {
    for (const block of await blocksOf('configure.md')) await place.run(block);
    const password = await get('secret', 'lldap-operator-credentials', '-n', 'lldap-operator', '-o', 'jsonpath={.data.password}');
    assert.equal(Buffer.from(password, 'base64').toString(), lldap.admin.password);
  });

  it('of upgrading keeps the settings and has the install Job anew', async () => {
    const uid = () => get('job', 'lldap-operator-install', '-n', 'lldap-operator', '-o', 'jsonpath={.metadata.uid}');
    await cluster.kubectl(['create', 'job', 'lldap-operator-install', '-n', 'lldap-operator', '--image=old']);
    const former = await uid();
    for (const block of await blocksOf('upgrade.md')) await place.run(block);
    assert.notEqual(await uid(), former);
    assert.equal(
      await get('configmap', 'lldap-operator', '-n', 'lldap-operator', '-o', 'jsonpath={.data.LLDAP_URL}'),
      'http://lldap.lldap.svc.cluster.local:17170',
    );
  });

  it('of several instances has another one beside the first', async () => {
    const other = await newPlace();
    for (const block of await blocksOf('multi-instance.md')) await other.run(block);
    assert.equal(await get('configmap', 'lldap-operator', '-n', 'lldap-staging', '-o', 'jsonpath={.data.LLDAP_INSTANCE}'), 'staging');
    const roles = await get('clusterroles', '-o', 'name');
    for (const name of ['lldap-operator-user', 'lldap-operator-user-staging'])
      assert.ok(roles.includes(`clusterrole.rbac.authorization.k8s.io/${name}\n`), name);
    const bound = 'jsonpath={.roleRef.name} {.subjects[0].namespace}';
    assert.equal(await get('clusterrolebinding', 'lldap-operator-user-staging', '-o', bound), 'lldap-operator-user-staging lldap-staging');
  });

  describe('of uninstalling', () => {
    let blocks: string[];
    const run = async (text: string) => {
      const chosen = blocks.filter((block) => block.includes(text));
      assert.equal(chosen.length, 1, text);
      await place.run(chosen[0] ?? '');
    };

    before(async () => {
      blocks = await blocksOf('uninstall.md');
    });

    it('keeps in lldap what shall stay, and ends every resource while the functions run', async () => {
      await run('deletionPolicy');
      await run('delete llm,llu,llg,llas');
      assert.equal(await get('llm,llu,llg,llas', '--all-namespaces', '-o', 'name'), '');
      assert.ok((await lldap.users()).some(({ id }) => id === 'alice'));
      assert.equal(await get('cronjobs,jobs', '-n', 'lldap-operator', '-o', 'name'), '');
    });

    it('deletes Triggers one by one', async () => {
      await run('delete "$trigger"');
      assert.equal(await get('triggers,apiserversources', '-n', 'lldap-operator', '-o', 'name'), '');
      const deletions = (await readFile(cluster.auditLog, 'utf8'))
        .split('\n')
        .filter((line) => line.includes('"verb":"delete"') && line.includes('/lldap-operator/triggers/'))
        .map((line) => JSON.parse(line) as { requestReceivedTimestamp: string; stageTimestamp: string });
      assert.equal(deletions.length, 6);
      for (const [index, { requestReceivedTimestamp }] of deletions.slice(1).entries())
        assert.ok(requestReceivedTimestamp > (deletions[index]?.stageTimestamp ?? ''), `deletion ${index + 2} before the one ahead of it`);
    });

    it('gets rid of a resource whose function has gone', async () => {
      await knative?.stop();
      knative = undefined;
      const metadata = { name: 'left', namespace: 'team', labels: { [INSTANCE_LABEL]: 'default' }, finalizers: [FINALIZER] };
      await cluster.apply(stringify({ apiVersion: API_VERSION, kind: 'LldapGroup', metadata, spec: { displayName: 'Left' } }));
      await cluster.kubectl(['delete', 'llg', 'left', '-n', 'team', '--wait=false']);
      assert.match(await get('llg', '-n', 'team', '-o', 'name'), /left/);
      await run('finalizers');
      assert.equal(await get('llg', '-n', 'team', '-o', 'name'), '');
    });

    it('has nothing left in the cluster', async () => {
      await run('delete -k install');
      const names = await get('clusterroles,clusterrolebindings,networkpolicies', '-A', '-o', 'name');
      assert.deepEqual(
        names.split('\n').filter((name) => name.includes('lldap-operator') && !name.endsWith('-staging')),
        [],
      );
      const namespaced = 'configmaps,serviceaccounts,roles,rolebindings,services.serving.knative.dev,brokers';
      assert.doesNotMatch(await get(namespaced, '-n', 'lldap-operator', '-o', 'name'), /lldap-operator/);
      assert.equal(await get('namespace', 'lldap-operator', '-o', 'jsonpath={.status.phase}'), 'Terminating');
      const { code } = await cluster.kubectl(['wait', '--for=delete', 'crd/lldapusers.lldap-operator.lukidoescode.com', '--timeout=60s']);
      assert.equal(code, 0);
    });
  });
});
