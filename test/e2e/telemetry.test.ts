import assert from 'node:assert/strict';
import { COUNTERS, GAUGES } from '../../shared/telemetry/backend.ts';
import { CLUSTER_TIMEOUT_MS } from '../local/kube/shared.ts';
import { type OtlpReceiver, startReceiver } from './otlp-receiver.ts';
import { until, World } from './support.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const PASSWORD = 'a password that no trace may hold';

describe('telemetry, with a real OTLP receiver', () => {
  let world: World;
  let receiver: OtlpReceiver;
  before(async function () {
    this.timeout(CLUSTER_TIMEOUT_MS);
    receiver = await startReceiver();
    world = await World.start({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' } });
    await world.kubectl('create', 'namespace', 'traced');
  });
  after(async () => {
    await world.stop();
    await receiver.close();
  });

  const inTrace = () => receiver.spans().filter(({ traceId }) => traceId === TRACE);

  it('one trace goes from an event through functions, a retry and a event to every call, under one id', async () => {
    await world.apply(world.resource('LldapGroup', 'traced', 'group', { displayName: 'Traced' }));
    await world.ready('traced');
    await world.lldap.stop();
    // What is not of this trace is lost, so that nothing else makes the user Ready or wakes the membership.
    const endDrop = world.stack.knative.faults.drop(
      ({ attributes: { type, kind }, carried: { traceparent } }) =>
        !traceparent?.includes(TRACE) && !(type === 'dev.knative.apiserver.resource.add' && kind === 'LldapMembership'),
    );
    await world.apply(
      world.secret('traced', 'alice', { password: PASSWORD }),
      world.resource('LldapUser', 'traced', 'alice', {
        username: 'traced-alice',
        email: 'alice@traced.example.com',
        passwordSecretRef: { name: 'alice', key: 'password' },
      }),
      world.resource('LldapMembership', 'traced', 'member', { userName: 'traced-alice', groupName: 'Traced' }),
    );
    await until('the membership waits', async () => (await world.reason('llm', 'traced', 'member')) !== '');
    await fetch(world.stack.knative.brokerUrl, {
      method: 'POST',
      headers: {
        'ce-specversion': '1.0',
        'ce-id': 'traced',
        'ce-source': 'me',
        'ce-type': 'com.lukidoescode.lldap-operator.reconcile',
        'ce-kind': 'LldapUser',
        'ce-namespace': 'traced',
        'ce-name': 'alice',
        traceparent: `00-${TRACE}-00f067aa0ba902b7-01`,
      },
    });
    await until('the traced pass waits', async () => (await world.reason('llu', 'traced', 'alice')) === 'LldapUnavailable');
    await world.lldap.start();
    await world.ready('traced');
    endDrop();
    const needed = [
      ['lldap-operator-user', 'CloudEvents Process com.lukidoescode.lldap-operator.reconcile'],
      ['lldap-operator-user', 'reconcile LldapUser'],
      ['lldap-operator-user', 'CloudEvents Create com.lukidoescode.lldap-operator.requeue'],
      ['lldap-operator-requeue', 'CloudEvents Process com.lukidoescode.lldap-operator.requeue'],
      ['lldap-operator-requeue', 'CloudEvents Create com.lukidoescode.lldap-operator.reconcile'],
      ['lldap-operator-user', 'createUser'],
      ['lldap-operator-user', 'ldap set'],
      ['lldap-operator-user', 'PATCH'],
      ['lldap-operator-membership', 'reconcile LldapMembership'],
      ['lldap-operator-membership', 'addUserToGroup'],
    ];
    const missing = () => {
      const spans = inTrace();
      return needed.filter(([service, name]) => !spans.some((span) => span.service === service && span.name === name));
    };
    await until('all spans arrive', () => missing().length === 0).catch(() => assert.deepEqual(missing(), []));
  });

  it('spans hang together: each has its parent in the trace, or is the caller’s', async () => {
    const orphans = () => {
      const spans = inTrace();
      const ids = new Set([...spans.map(({ spanId }) => spanId), '00f067aa0ba902b7']);
      return spans.filter(({ parentSpanId }) => !ids.has(parentSpanId)).map(({ service, name }) => `${service} ${name}`);
    };
    // A parent ends, and is sent, after its children.
    await until('all parents arrive', () => orphans().length === 0).catch(() => assert.deepEqual(orphans(), []));
  });

  it('log lines carry the ids of their trace', async () => {
    const reconciled = () =>
      world.happenings.flatMap((h) =>
        h.what === 'log' && h.line.includes('"message":"reconciled"') && h.line.includes(TRACE) ? [h.line] : [],
      );
    await until('a reconcile is logged', () => reconciled().length > 0);
    const { span_id } = JSON.parse(reconciled()[0] ?? '{}') as { span_id?: string };
    assert.match(span_id ?? '', /^[0-9a-f]{16}$/);
  });

  it('metrics say what waits and why, when the last sweep was, and what was done', async () => {
    await world.apply(world.resource('LldapMembership', 'traced', 'lonely', { userName: 'nobody', groupName: 'Traced' }));
    await until('it waits', async () => (await world.reason('llm', 'traced', 'lonely')) === 'DependencyNotReady');
    await world.stack.knative.runCronJob('lldap-operator-startup');
    const latest = (metric: string) => receiver.points().filter((point) => point.metric === metric);
    await until('the sweep is measured', () =>
      latest('lldap_operator.resources.not_ready').some(({ attributes }) => attributes.reason === 'DependencyNotReady'),
    );
    assert.equal(latest('lldap_operator.sweep.success').at(-1)?.value, 1);
    assert.equal(latest('lldap_operator.lldap.reachable').at(-1)?.value, 1);
    assert.ok((latest('lldap_operator.sweep.last_success').at(-1)?.value ?? 0) > 1_700_000_000);
    assert.ok(latest('lldap_operator.retry.oldest').length > 0);
    assert.ok(
      latest('lldap_operator.reconciles').some(
        ({ attributes }) => attributes.kind === 'LldapUser' && attributes.reason === 'LldapUnavailable',
      ),
    );
    assert.ok(
      latest('lldap_operator.lldap.calls').some(({ attributes }) => attributes.operation === 'createUser' && attributes.outcome === 'ok'),
    );
    const known: Record<string, { unit: string }> = { ...COUNTERS, ...GAUGES };
    for (const { metric, unit } of receiver.points().filter(({ metric }) => metric.startsWith('lldap_operator')))
      assert.equal(unit, known[metric]?.unit, metric);
  });

  it('neither traces nor metrics hold a password, a token or an e-mail address', () => {
    const sent = receiver.text();
    for (const secret of [PASSWORD, world.stack.lldap.admin.password, 'Bearer ', 'alice@traced.example.com']) {
      for (const form of [secret, Buffer.from(secret).toString('base64'), encodeURIComponent(secret)])
        assert.ok(!sent.includes(form), form);
    }
  });
});
