import assert from 'node:assert/strict';
import packageJson from '../../../package.json' with { type: 'json' };
import { EVENT_TYPE, INSTANCE_LABEL } from '../../../shared/constants.ts';
import { DEADLINE_MS } from '../../../shared/engine/reconcile.ts';
import { type KindName, PLURALS } from '../../../shared/kube/resources.ts';
import { pluralOf } from '../../local/knative/adapter.ts';
import { durationMs } from '../../local/knative/duration.ts';
import { type Manifests, readManifests } from '../../local/knative/manifests.ts';
import { renderManifests } from '../../local/knative/render.ts';
import { type Typed, typedManifests } from '../../local/knative/typed.ts';
import { CLUSTER_TIMEOUT_MS } from '../../local/kube/shared.ts';

const KIND_FUNCTIONS = ['attribute-schema', 'group', 'membership', 'user'];
const FUNCTIONS = [...KIND_FUNCTIONS, 'requeue', 'startup'].sort();
const COMPONENTS: (string | undefined)[] = [...FUNCTIONS, 'call-startup', 'resources-source', 'secrets-source'];
const NAME = 'lldap-operator';
const VERSION = packageJson.version;
/** How long requeue holds a request at most. */
const LONGEST_HOLD_MS = 330_000;
const COLD_START_MS = 30_000;
/** A call to lldap that is under way when a reconcile has no more time. */
const LAST_CALL_MS = 10_000;

describe('The manifests route events', function () {
  this.timeout(CLUSTER_TIMEOUT_MS);
  let typed: Typed;
  let read: Manifests;

  before(async () => {
    const rendered = await renderManifests();
    typed = typedManifests(rendered);
    read = readManifests(rendered);
  });

  const fullName = (each: string) => `${NAME}-${each}`;
  const trigger = (each: string) =>
    typed.triggers.find(({ metadata }) => metadata?.name === fullName(each)) ?? assert.fail(`no trigger for ${each}`);

  it("are valid by Knative's schemas, and the local Knative understands them", () => {
    assert.deepEqual([typed.brokers.length, typed.sources.length], [1, 2]);
    assert.deepEqual(typed.triggers.map(({ metadata }) => metadata?.name).sort(), FUNCTIONS.map(fullName));
    assert.deepEqual([read.brokers.length, read.sources.length, read.triggers.length], [1, 2, 6]);
  });

  it('are all in the namespace lldap-operator, or in none', () => {
    const clusterWide = ['Namespace', 'ClusterRole', 'ClusterRoleBinding'];
    for (const { kind, metadata } of typed.all)
      assert.equal(metadata.namespace, clusterWide.includes(kind) ? undefined : NAME, `${kind} ${metadata.name}`);
  });

  it('all have the recommended labels', () => {
    for (const { kind, metadata } of typed.all) {
      const { 'app.kubernetes.io/component': component, 'networking.knative.dev/visibility': _, ...labels } = metadata.labels ?? {};
      const { 'pod-security.kubernetes.io/enforce': __, ...recommended } = labels;
      assert.deepEqual(
        recommended,
        {
          'app.kubernetes.io/name': NAME,
          'app.kubernetes.io/part-of': NAME,
          'app.kubernetes.io/instance': typed.config.LLDAP_INSTANCE,
          'app.kubernetes.io/version': VERSION,
        },
        `${kind} ${metadata.name}`,
      );
      // What is the whole installation's belongs to no component.
      const expected = ['Namespace', 'ConfigMap', 'Broker'].includes(kind) ? [undefined] : COMPONENTS;
      assert.ok(expected.includes(component), `${kind} ${metadata.name}: ${component}`);
    }
  });

  it('through a Broker of the class whose address the functions know, which answers before the functions', () => {
    assert.deepEqual(typed.brokers[0]?.metadata?.annotations, {
      'eventing.knative.dev/broker.class': 'MTChannelBasedBroker',
      'messaging.knative.dev/async-handler': 'true',
    });
  });

  it('through a Broker with the configuration of its class, for every default class of the cluster', () => {
    const config = { apiVersion: 'v1', kind: 'ConfigMap', name: 'config-br-default-channel', namespace: 'knative-eventing' };
    assert.deepEqual(typed.brokers[0]?.spec, { config });
  });

  describe('each to the one function that it concerns:', () => {
    const add = 'dev.knative.apiserver.resource.add';
    const table: [string, Record<string, string>, string[]][] = [
      ['a user is added', { type: add, kind: 'LldapUser' }, ['user']],
      ['a group is changed', { type: 'dev.knative.apiserver.resource.update', kind: 'LldapGroup' }, ['group']],
      ['a membership is deleted', { type: 'dev.knative.apiserver.resource.delete', kind: 'LldapMembership' }, ['membership']],
      ['a definition is added', { type: add, kind: 'LldapAttributeSchema' }, ['attribute-schema']],
      ['a Secret is changed', { type: 'dev.knative.apiserver.ref.update', kind: 'Secret' }, ['user']],
      ['a reconcile of a user', { type: EVENT_TYPE.reconcile, kind: 'LldapUser' }, ['user']],
      [
        'a reconcile of a group that was redelivered',
        { type: EVENT_TYPE.reconcile, kind: 'LldapGroup', redelivered: '3', notbefore: 'x' },
        ['group'],
      ],
      ['a reconcile of a membership', { type: EVENT_TYPE.reconcile, kind: 'LldapMembership' }, ['membership']],
      ['a reconcile of a definition', { type: EVENT_TYPE.reconcile, kind: 'LldapAttributeSchema' }, ['attribute-schema']],
      ['a requeue of a user', { type: EVENT_TYPE.requeue, kind: 'LldapUser', notbefore: 'x' }, ['requeue']],
      ['a requeue of a group', { type: EVENT_TYPE.requeue, kind: 'LldapGroup', notbefore: 'x' }, ['requeue']],
      ['a requeue of a membership', { type: EVENT_TYPE.requeue, kind: 'LldapMembership' }, ['requeue']],
      ['a requeue of a definition', { type: EVENT_TYPE.requeue, kind: 'LldapAttributeSchema' }, ['requeue']],
      ['a requeue of nothing', { type: EVENT_TYPE.requeue }, ['requeue']],
      ['a startup', { type: EVENT_TYPE.startup }, ['startup']],
      ['a kind of others', { type: add, kind: 'Deployment' }, []],
      ['a kind that only begins like ours', { type: add, kind: 'LldapUsers' }, []],
      ['a kind in another case', { type: add, kind: 'lldapuser' }, []],
      ['an event without a kind', { type: add }, []],
      ['a reconcile without a kind', { type: EVENT_TYPE.reconcile }, []],
      ["somebody else's requeue", { type: 'com.example.requeue' }, []],
      ["somebody else's startup", { type: 'com.example.lldap-operator.startup' }, []],
    ];
    for (const [sentence, attributes, receivers] of table) {
      it(`${sentence} → ${receivers.join() || 'nobody'}`, () => {
        const event = { specversion: '1.0', id: '1', source: '/test', knativearrivaltime: '2026-11-29T18:00:00Z', ...attributes };
        const got = read.triggers.filter(({ filter }) => filter(event)).map(({ name }) => name);
        assert.deepEqual(got, receivers.map(fullName));
      });
    }
  });

  it('by one CESQL filter each, because a misspelt dialect would match everything', () => {
    for (const { metadata, spec } of typed.triggers) {
      assert.deepEqual(
        spec?.filters?.map((entry) => Object.keys(entry)),
        [['cesql']],
        metadata?.name,
      );
      assert.equal(spec?.filter, undefined);
    }
  });

  it('to the Service of the same name', () => {
    for (const each of FUNCTIONS) {
      assert.deepEqual(trigger(each).spec?.subscriber, {
        ref: { apiVersion: 'serving.knative.dev/v1', kind: 'Service', name: fullName(each) },
      });
      assert.equal(trigger(each).spec?.broker, NAME);
    }
  });

  describe('with a delivery that', () => {
    it('sets every field, because Knative merges nothing', () => {
      for (const each of FUNCTIONS) {
        const fields = ['backoffDelay', 'backoffPolicy', 'retry', 'timeout', ...(each === 'requeue' ? [] : ['deadLetterSink'])];
        assert.deepEqual(Object.keys(trigger(each).spec?.delivery ?? {}).sort(), fields.sort(), each);
      }
    });

    it("ends in requeue's dead-letter path; only requeue's own has no such end", () => {
      const sink = { ref: { apiVersion: 'serving.knative.dev/v1', kind: 'Service', name: fullName('requeue') }, uri: '/dead-letter' };
      for (const each of FUNCTIONS)
        assert.deepEqual(trigger(each).spec?.delivery?.deadLetterSink, each === 'requeue' ? undefined : sink, each);
    });

    it("ends an attempt before the Service's own timeout cuts it", () => {
      for (const each of FUNCTIONS) {
        const { timeoutMs = 0, responseStartMs = 0 } = read.functions.find(({ workload }) => workload.name === fullName(each)) ?? {};
        const timeout = durationMs(trigger(each).spec?.delivery?.timeout ?? '');
        assert.ok(timeout > 0 && timeout < Math.min(timeoutMs, responseStartMs), each);
      }
    });

    it('gives each function the time for a cold start and a whole reconcile', () => {
      for (const each of KIND_FUNCTIONS)
        assert.ok(durationMs(trigger(each).spec?.delivery?.timeout ?? '') >= COLD_START_MS + DEADLINE_MS + LAST_CALL_MS, each);
    });

    it('gives a user event the time to wait behind two thousand passwords', () => {
      assert.ok(durationMs(trigger('user').spec?.delivery?.timeout ?? '') >= 2_000 * 2 * 75);
    });

    it('lets requeue keep a request open for its longest delay, after a cold start', () => {
      assert.ok(durationMs(trigger('requeue').spec?.delivery?.timeout ?? '') >= LONGEST_HOLD_MS + COLD_START_MS);
    });

    it('retries quickly and not often', () => {
      for (const each of FUNCTIONS) {
        const { retry = 0, backoffPolicy, backoffDelay = '' } = trigger(each).spec?.delivery ?? {};
        assert.ok(retry >= 3 && retry <= 8 && backoffPolicy === 'exponential', each);
        const allGaps = durationMs(backoffDelay) * (2 ** retry - 1);
        assert.ok(allGaps > 5_000 && allGaps < 150_000, each);
      }
    });
  });

  describe('from sources that', () => {
    const source = (each: string) =>
      typed.sources.find(({ metadata }) => metadata?.name === fullName(each)) ?? assert.fail(`no source ${each}`);

    it('send the whole object for the four kinds, and only a reference for Secrets', () => {
      const watched = (each: string) => source(each).spec?.resources?.map(({ apiVersion, kind }) => `${apiVersion} ${kind}`);
      assert.deepEqual(
        watched('resources'),
        Object.keys(PLURALS).map((kind) => `lldap-operator.lukidoescode.com/v1alpha1 ${kind}`),
      );
      assert.equal(source('resources').spec?.mode, 'Resource');
      assert.deepEqual(watched('secrets'), ['v1 Secret']);
      assert.equal(source('secrets').spec?.mode, 'Reference');
    });

    it('find the kinds under the plurals that the adapter guesses', () => {
      for (const [kind, plural] of Object.entries(PLURALS) satisfies [string, (typeof PLURALS)[KindName]][])
        assert.equal(pluralOf(kind), plural);
    });

    it('watch the instance that the functions serve, in all namespaces', () => {
      for (const { spec } of typed.sources) {
        assert.deepEqual(spec?.namespaceSelector, {});
        for (const { selector } of spec?.resources ?? [])
          assert.deepEqual(selector, { matchLabels: { [INSTANCE_LABEL]: typed.config.LLDAP_INSTANCE } });
      }
    });

    it('send to the Broker', () => {
      for (const { spec } of typed.sources)
        assert.deepEqual(spec?.sink, { ref: { apiVersion: 'eventing.knative.dev/v1', kind: 'Broker', name: NAME } });
    });
  });
});
