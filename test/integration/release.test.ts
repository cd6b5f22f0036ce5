import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { renderManifests } from '../local/knative/render.ts';
import { typedManifests } from '../local/knative/typed.ts';
import { type Cluster, startCluster } from '../local/kube/cluster.ts';
import { CLUSTER_TIMEOUT_MS } from '../local/kube/shared.ts';
import { changes } from '../unit/manifests/changes.ts';
import { blocksOf, installKnativeKinds, type Place, preparePlace } from './support/pages.ts';

const IMAGE = 'registry.example.com/lldap-knative-operator:0.1.0';

describe('make release', function () {
  this.timeout(CLUSTER_TIMEOUT_MS);
  let cluster: Cluster;
  let place: Place;

  before(async () => {
    cluster = await startCluster();
    await installKnativeKinds(cluster);
    place = await preparePlace(cluster, 'hush');
  });
  after(async () => {
    await cluster.stop();
    await place.remove();
  });

  const read = (file: string) => readFile(join(place.folder, 'dist', file), 'utf8');

  it('writes all that there is, with the image’s name', async () => {
    await place.run(`make release IMAGE=${IMAGE}`);
    const install = await read('install.yaml');
    assert.deepEqual(
      changes(await renderManifests('overlays/all-namespaces'), install).filter((change) => !change.endsWith(`.image: ${IMAGE}`)),
      [],
    );
    const { services, jobs, cronJobs } = typedManifests(install);
    assert.equal(install.split(`image: ${IMAGE}\n`).length - 1, services.length + jobs.length + cronJobs.length);
    const kinds = [...(await read('crds.yaml')).matchAll(/^kind: (\w+)$/gm)].map(([, kind]) => kind);
    assert.deepEqual(kinds.sort(), [
      ...Array(4).fill('CustomResourceDefinition'),
      'ValidatingAdmissionPolicy',
      'ValidatingAdmissionPolicyBinding',
    ]);
  });

  it('names the image as the manifests do when it is told no other', async () => {
    await place.run('make release');
    assert.deepEqual(changes(await renderManifests('overlays/all-namespaces'), await read('install.yaml')), []);
  });

  it('divides the same for kn: each Service in a file, and all that kn cannot create', async () => {
    await place.run('make release OVERLAY=single-namespace');
    const { services, brokers, sources, all } = typedManifests(await read('install.yaml'));
    const files = await readdir(join(place.folder, 'dist/kn/services'));
    assert.deepEqual(files.sort(), services.map(({ metadata }) => `${metadata?.name}.yaml`).sort());
    const others = typedManifests(await read('kn/others.yaml'));
    assert.equal(others.all.length, all.length - services.length - brokers.length - sources.length);
    await place.run('make release');
    assert.equal(typedManifests(await read('kn/others.yaml')).sources.length, 2);
  });

  it('is what the README installs', async () => {
    const [demo, test, install = assert.fail(), ...others] = await blocksOf('README.md');
    // The first has a test of its own, test/e2e/demo.test.ts; the second runs this one.
    assert.deepEqual([demo, test, others], ['make demo\n', 'make test\n', []]);
    await place.run(install);
    const { stdout } = await cluster.kubectl(['get', 'services.serving.knative.dev', '-n', 'lldap-operator', '-o', 'name']);
    assert.equal(stdout.trim().split('\n').length, 6);
  });

  it('prints which overlay and which image it wrote', async () => {
    for (const overlay of ['all-namespaces', 'single-namespace']) {
      const printed = await place.run(`make release OVERLAY=${overlay} IMAGE=${IMAGE} 2>&1`);
      assert.equal(printed, `Wrote dist/crds.yaml, dist/install.yaml and dist/kn/ from the overlay ${overlay}, with the image ${IMAGE}.\n`);
    }
  });

  it('warns when IMAGE is not set, since a cluster can rarely pull the default', async () => {
    assert.match(await place.run('make release 2>&1'), /^Warning: IMAGE is not set, so the files name lldap-knative-operator:/m);
  });

  it('lists the overlays when it is told one that does not exist, and writes nothing', async () => {
    const before = await read('install.yaml');
    await assert.rejects(place.run('make release OVERLAY=nowhere'), (error: Error) => {
      assert.match(
        error.message,
        /\nThere is no overlay nowhere\. Set OVERLAY to one of all-namespaces, second-instance, single-namespace\.\n$/,
      );
      return true;
    });
    assert.equal(await read('install.yaml'), before);
  });

  it('says what to install where there is no kubectl', async () => {
    const env = { PATH: dirname(process.execPath) };
    const failed = promisify(execFile)(process.execPath, ['scripts/release.ts'], { cwd: place.folder, env });
    await assert.rejects(failed, (error: Error & { stderr?: string }) => {
      assert.equal(error.stderr, 'kubectl is needed: install it and put it on the PATH.\n');
      return true;
    });
  });
});
