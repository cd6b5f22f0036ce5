import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { stringify } from 'yaml';
import { parseEvent } from '../../shared/events/parse.ts';
import { type FakeFunction, fakeFunction } from '../local/knative/fake-function.ts';
import { parseManifests } from '../local/knative/manifests.ts';
import { typedManifests } from '../local/knative/typed.ts';
import { type Cluster, startCluster } from '../local/kube/cluster.ts';
import { installCrds } from '../local/kube/crds.ts';
import { CLUSTER_TIMEOUT_MS } from '../local/kube/shared.ts';
import { ensureKn } from '../local/tools/build.ts';
import { changes } from '../unit/manifests/changes.ts';
import { blocksOf, installKnativeKinds, type Place, preparePlace } from './support/pages.ts';

const NAME = 'lldap-operator';

/**
 * The page's commands with the real kn, on an API server that keeps Knative's kinds and does nothing about them: so kn
 * does not wait for what becomes of a Service, and its event goes to an address instead of into the cluster.
 */
describe('The page about kn', function () {
  this.timeout(CLUSTER_TIMEOUT_MS);
  let cluster: Cluster;
  let place: Place;
  let blocks: string[];
  let sink: FakeFunction;

  before(async () => {
    sink = await fakeFunction(async () => ({ status: 202 }));
    cluster = await startCluster();
    await installCrds(cluster);
    await installKnativeKinds(cluster);
    place = await preparePlace(cluster, 'hush', [dirname(await ensureKn())]);
    blocks = await blocksOf('docs/kn.md');
  });
  after(async () => {
    await cluster?.stop();
    await place?.remove();
    await sink.stop();
  });

  /** Runs the blocks that hold the text, which is at least one. */
  async function run(text: string): Promise<string> {
    const chosen = blocks.filter((block) => block.includes(text));
    assert.ok(chosen.length > 0, `no block with ${text}`);
    const outputs: string[] = [];
    for (const block of chosen) {
      const here = block
        .replace(/kn service (apply|update) /g, 'kn service $1 --no-wait ')
        .replace(/--to broker:\S+ --namespace default/, `--to ${sink.url}`);
      outputs.push(await place.run(here));
    }
    return outputs.join('\n');
  }

  /** As the API server has it, but for what it adds itself. */
  async function created(resource: string): Promise<string> {
    const { stdout, stderr, code } = await cluster.kubectl(['get', resource, '-n', NAME, '-o', 'json']);
    assert.equal(code, 0, stderr);
    const objects = JSON.parse(stdout).items.map(
      (object: { metadata: Record<string, unknown> & { annotations?: Record<string, string> } }) => {
        const { creationTimestamp, generation, managedFields, resourceVersion, uid, annotations, ...metadata } = object.metadata;
        const { 'kubectl.kubernetes.io/last-applied-configuration': _, ...kept } = annotations ?? {};
        return { ...object, metadata: { ...metadata, ...(Object.keys(kept).length > 0 && { annotations: kept }) } };
      },
    );
    return objects.map((object: object) => stringify(object)).join('---\n');
  }

  async function manifest(kind: string, apiVersion: string): Promise<string> {
    const all = parseManifests(await readFile(join(place.folder, 'dist/install.yaml'), 'utf8')).map((object) => object.all());
    const chosen = all.filter((object) => object.kind === kind && object.apiVersion === apiVersion);
    assert.ok(chosen.length > 0, kind);
    return chosen.map((object) => stringify(object)).join('---\n');
  }

  const labelsGone = (kind: string, name: string, labels: string[]) =>
    labels.map((label) => `${kind} ${name} .metadata.labels.app.kubernetes.io/${label}: gone`);

  it('begins as any installation, and leaves to kubectl what kn has no words for', async () => {
    await run('make release');
    await run('others.yaml');
    const others = typedManifests(await readFile(join(place.folder, 'dist/kn/others.yaml'), 'utf8'));
    assert.deepEqual([others.services, others.brokers, others.sources], [[], [], []]);
    assert.equal(others.triggers.length, 6);
    assert.deepEqual(changes(await manifest('Trigger', 'eventing.knative.dev/v1'), await created('triggers')), []);
  });

  it('makes the Broker of the manifest, without labels', async () => {
    await run('kn broker create');
    const found = changes(await manifest('Broker', 'eventing.knative.dev/v1'), await created('brokers'));
    assert.deepEqual(found, labelsGone('Broker', NAME, ['instance', 'name', 'part-of', 'version']));
  });

  it('makes the Services of the manifests', async () => {
    await run('kn service apply');
    assert.deepEqual(changes(await manifest('Service', 'serving.knative.dev/v1'), await created('services.serving.knative.dev')), []);
  });

  it('makes the sources of the manifests, without labels, and names the Broker’s namespace', async () => {
    await run('kn source apiserver create');
    const expected = ['resources', 'secrets'].flatMap((source) => [
      ...labelsGone('ApiServerSource', `${NAME}-${source}`, ['component', 'instance', 'name', 'part-of', 'version']),
      `ApiServerSource ${NAME}-${source} .spec.sink.ref.namespace: ${NAME}`,
    ]);
    const found = changes(await manifest('ApiServerSource', 'sources.knative.dev/v1'), await created('apiserversources'));
    assert.deepEqual(found, expected.sort());
  });

  it('shows what is there', async () => {
    const shown = await run('kn trigger list');
    for (const name of ['user', 'group', 'membership', 'attribute-schema', 'startup', 'requeue'])
      assert.match(shown, new RegExp(`^${NAME}-${name} +${NAME} +ksvc:${NAME}-${name} `, 'm'));
    for (const name of ['resources', 'secrets']) assert.match(shown, new RegExp(`^${NAME}-${name} +ApiServerSource .*broker:${NAME}`, 'm'));
    assert.match(shown, /Annotations: .*MTChannelBasedBroker, messaging\.knative\.dev/);
    assert.match(shown, /cesql:\s+kind IN \('LldapUser', 'Secret'\)/);
  });

  it('changes a function, and back', async () => {
    await run('kn service update');
    const found = changes(await manifest('Service', 'serving.knative.dev/v1'), await created('services.serving.knative.dev'));
    // kn notes the image that it was told, and when.
    assert.deepEqual(
      found.filter((change) => !change.includes('client.knative.dev/')),
      [],
    );
  });

  it('sends an event that startup understands', async () => {
    await run('kn event send');
    const [{ headers, body } = assert.fail()] = sink.received;
    assert.deepEqual(parseEvent(headers, Buffer.from(body)), { what: 'startup', mode: 'full' });
  });

  it('is run here from its first block to its last', () => {
    const run = [
      'make release',
      'others.yaml',
      'kn broker create',
      'kn service apply',
      'kn source apiserver create',
      'kn trigger list',
      'kn service update',
      'kn event send',
    ];
    assert.deepEqual(
      blocks.filter((block) => !run.some((text) => block.includes(text))),
      [],
    );
  });
});
