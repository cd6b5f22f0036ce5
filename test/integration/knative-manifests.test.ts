import assert from 'node:assert/strict';
import { KNATIVE_RESOURCES } from '../local/knative/crds.ts';
import { renderManifests, renderWith } from '../local/knative/render.ts';
import { typedManifests } from '../local/knative/typed.ts';
import { rbacKnowsAll } from '../local/kube/access.ts';
import { type Cluster, startCluster } from '../local/kube/cluster.ts';
import { installCrds } from '../local/kube/crds.ts';
import { CLUSTER_TIMEOUT_MS } from '../local/kube/shared.ts';
import { blocksOf, installKnativeKinds } from './support/pages.ts';

const NAMESPACES = ['lldap-operator', 'lldap-second'];
const COMPONENTS = ['ldaps', 'tracing', 'drift', 'network-policies', 'kafka-broker', 'oidc', 'instance'].map(
  (name) => `components/${name}`,
);

/** What the real API server says to everything that is rendered; Knative's own fields are checked where manifests are read. */
describe('The API server', function () {
  this.timeout(CLUSTER_TIMEOUT_MS);
  let cluster: Cluster;

  before(async () => {
    cluster = await startCluster();
    await installCrds(cluster);
    await installKnativeKinds(cluster);
    // With its label of Pod Security, so that pods are judged by it; the other labels are left to those who apply them.
    const [namespace] = typedManifests(await renderManifests()).all.filter(({ kind }) => kind === 'Namespace');
    const labels = Object.entries(namespace?.metadata.labels ?? {}).filter(([label]) => label.startsWith('pod-security.'));
    assert.equal(labels.length, 1);
    for (const name of NAMESPACES) {
      const body = { metadata: { name, labels: Object.fromEntries(labels) } };
      assert.equal((await cluster.request('POST', '/api/v1/namespaces', { body })).code, 201);
    }
  });
  after(() => cluster.stop());

  const kubectl = async (...args: string[]) => {
    const { code, stderr } = await cluster.kubectl(args);
    assert.equal(code, 0, stderr);
  };
  const renderings: Record<string, () => Promise<string>> = {
    'the base': () => renderManifests(),
    ...Object.fromEntries(
      ['all-namespaces', 'single-namespace', 'second-instance'].map((name) => [
        `overlay ${name}`,
        () => renderManifests(`overlays/${name}`),
      ]),
    ),
    ...Object.fromEntries(COMPONENTS.map((component) => [component, () => renderWith([component])])),
    'all components in the second instance': () => renderWith(['overlays/second-instance/settings', ...COMPONENTS]),
    'all components in a single namespace': () => renderWith(COMPONENTS, 'single-namespace'),
  };
  for (const [name, render] of Object.entries(renderings)) {
    it(`takes ${name} as it is, without a warning`, async () => {
      const input = await render();
      const { code, stdout, stderr } = await cluster.kubectl(
        ['apply', '--server-side', '--dry-run=server', '--validate=strict', '-f', '-'],
        { input },
      );
      assert.deepEqual([code, stderr], [0, '']);
      assert.equal(stdout.trim().split('\n').length, typedManifests(input).all.length);
    });
  }

  it('would refuse a field that is misspelt', async () => {
    const input = (await renderManifests()).replace('automountServiceAccountToken', 'automountToken');
    const { code } = await cluster.kubectl(['apply', '--server-side', '--dry-run=server', '--validate=strict', '-f', '-'], { input });
    assert.equal(code, 1);
  });

  it('admits the pods under restricted Pod Security, with all components, too', async () => {
    const pods = `/api/v1/namespaces/${NAMESPACES[0]}/pods`;
    const dryRun = (name: string, spec: object) =>
      cluster.request('POST', `${pods}?dryRun=All`, { body: { metadata: { name }, spec: { ...spec, serviceAccountName: 'pods' } } });
    await cluster.request('POST', `/api/v1/namespaces/${NAMESPACES[0]}/serviceaccounts`, { body: { metadata: { name: 'pods' } } });
    for (const rendered of [await renderManifests(), await renderWith(COMPONENTS)]) {
      const { services, jobs, cronJobs } = typedManifests(rendered);
      const calls = [...jobs.map(({ spec }) => spec), ...cronJobs.map(({ spec }) => spec.jobTemplate.spec)].map(
        ({ template }) => template.spec,
      );
      const functions = services.map(({ spec }) => {
        // What remains when Knative has taken its own fields out.
        const { containerConcurrency, timeoutSeconds, responseStartTimeoutSeconds, ...pod } = spec?.template?.spec ?? assert.fail();
        return pod;
      });
      assert.equal(calls.length + functions.length, 9);
      for (const spec of [...calls, ...functions]) {
        const { code, body } = await dryRun('pod', spec);
        assert.equal(code, 201, JSON.stringify(body));
      }
    }
    assert.equal((await dryRun('careless', { containers: [{ name: 'x', image: 'x' }] })).code, 403);
  });

  it('lets an administrator of a namespace install there, once the operator’s kinds are granted as the page says', async () => {
    const [namespace = ''] = NAMESPACES;
    const [block = assert.fail()] = (await blocksOf('docs/install.md')).filter((each) => each.includes('lldap-installer'));
    // No controller aggregates the role `admin` here: these are what it and Knative's share of it grant.
    const granted = ['view', 'edit', 'admin'].map((role) => `system:aggregate-to-${role}`);
    for (const role of granted)
      await kubectl('create', 'rolebinding', role.replaceAll(':', '-'), '-n', namespace, `--clusterrole=${role}`, '--user=jane');
    await kubectl(
      'create',
      'role',
      'knative',
      '-n',
      namespace,
      '--verb=*',
      `--resource=${KNATIVE_RESOURCES.map((name) => name.replace(/^[^.]+/, '*'))}`,
    );
    await kubectl('create', 'rolebinding', 'knative', '-n', namespace, '--role=knative', '--user=jane');
    await rbacKnowsAll(cluster);
    const input = await renderManifests('overlays/single-namespace');
    const install = () => cluster.kubectl(['apply', '--as=jane', '-f', '-'], { input });
    assert.match((await install()).stderr, /attempting to grant RBAC permissions not currently held/);
    for (const command of block.split('\n').filter((line) => line.startsWith('kubectl create'))) {
      const [, ...args] = command.replaceAll("'", '').split(' ');
      await kubectl(...args);
    }
    await rbacKnowsAll(cluster);
    assert.deepEqual((({ code, stderr }) => [code, stderr])(await install()), [0, '']);
  });
});
