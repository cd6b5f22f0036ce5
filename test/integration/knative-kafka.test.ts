import assert from 'node:assert/strict';
import { renderManifests, renderWith } from '../local/knative/render.ts';
import { typedManifests } from '../local/knative/typed.ts';
import { type Cluster, startCluster } from '../local/kube/cluster.ts';
import { CLUSTER_TIMEOUT_MS } from '../local/kube/shared.ts';
import { installKnativeKinds } from './support/pages.ts';

const NAME = 'lldap-operator';

/** On an API server that refuses the changes that Knative's webhooks refuse. */
describe('The Broker of a running installation', function () {
  this.timeout(CLUSTER_TIMEOUT_MS);
  let cluster: Cluster;
  let withKafka: string;

  before(async () => {
    cluster = await startCluster();
    await installKnativeKinds(cluster);
    await cluster.apply(await renderManifests());
    withKafka = await renderWith(['components/kafka-broker']);
  });
  after(() => cluster.stop());

  const patch = (kind: string, name: string, body: object) =>
    cluster.kubectl(['patch', kind, name, '-n', NAME, '--type=merge', '-p', JSON.stringify(body)]);
  const get = async (resource: string, jsonpath: string) => {
    const { stdout, stderr, code } = await cluster.kubectl(['get', resource, '-n', NAME, '-o', `jsonpath=${jsonpath}`]);
    assert.equal(code, 0, stderr);
    return stdout.trim().split(' ');
  };
  const brokers = () => get('brokers', '{.items[*].metadata.name}');
  const brokersOfTriggers = () => get('triggers', '{.items[*].spec.broker}');

  it('cannot be changed to Kafka, nor can its Triggers be given another one', async () => {
    const { spec } = typedManifests(withKafka).brokers[0] ?? assert.fail();
    const changes: [string, string, object][] = [
      ['broker', NAME, { spec: { config: spec?.config } }],
      ['broker', NAME, { metadata: { annotations: { 'eventing.knative.dev/broker.class': 'Kafka' } } }],
      ['trigger', `${NAME}-user`, { spec: { broker: `${NAME}-kafka` } }],
    ];
    for (const change of changes) assert.match((await patch(...change)).stderr, /Immutable (fields|annotations) changed/);
  });

  it('stays with its Triggers beside those on Kafka, which the API server accepts without exception', async () => {
    await cluster.apply(withKafka);
    assert.deepEqual(await brokers(), [NAME, `${NAME}-kafka`]);
    assert.deepEqual((await brokersOfTriggers()).sort(), [...Array(6).fill(NAME), ...Array(6).fill(`${NAME}-kafka`)]);
    assert.deepEqual(await get('apiserversources', '{.items[*].spec.sink.ref.name}'), Array(2).fill(`${NAME}-kafka`));
  });

  it('receives the events again once the component is removed', async () => {
    await cluster.apply(await renderManifests());
    assert.deepEqual(await get('apiserversources', '{.items[*].spec.sink.ref.name}'), Array(2).fill(NAME));
    assert.equal((await brokersOfTriggers()).length, 12);
  });
});
