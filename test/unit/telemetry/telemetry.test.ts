import assert from 'node:assert/strict';
import { started, useTelemetry, withoutSdk } from '../support/telemetry.ts';

type Telemetry = typeof import('../../../shared/telemetry/telemetry.ts');

let imports = 0;
/** As in a process that has just started. */
const load = async (): Promise<Telemetry> => import(`../../../shared/telemetry/telemetry.ts?${++imports}`);

describe('shared/telemetry/telemetry', () => {
  const recorded = useTelemetry();

  const environments: Record<string, [env: NodeJS.ProcessEnv, loads: boolean]> = {
    'no variable': [{}, false],
    'an endpoint': [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' }, true],
    'an endpoint for traces': [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://collector:4318/v1/traces' }, true],
    'an endpoint for metrics': [{ OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'http://collector:4318/v1/metrics' }, true],
    'an exporter of traces': [{ OTEL_TRACES_EXPORTER: 'console' }, true],
    'an exporter of metrics': [{ OTEL_METRICS_EXPORTER: 'console' }, true],
    'exporters that export nothing': [{ OTEL_TRACES_EXPORTER: 'none', OTEL_METRICS_EXPORTER: 'none' }, false],
    'an empty endpoint': [{ OTEL_EXPORTER_OTLP_ENDPOINT: '' }, false],
    'variables that ask for no export': [{ OTEL_SERVICE_NAME: 'x', OTEL_SDK_DISABLED: 'false' }, false],
    'an endpoint, and the SDK disabled': [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318', OTEL_SDK_DISABLED: 'true' }, false],
    'an endpoint, and the SDK not disabled': [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318', OTEL_SDK_DISABLED: 'false' }, true],
  };
  for (const [name, [env, loads]] of Object.entries(environments)) {
    it(`${loads ? 'loads the SDK' : 'loads nothing'} for ${name}`, async () => {
      const { startTelemetry, inSpan } = await load();
      started.length = 0;
      await withoutSdk(() => startTelemetry('user', env));
      assert.deepEqual(started, loads ? [['user', env]] : []);
      assert.equal(await inSpan('work', { kind: 'internal' }, async () => 'done'), 'done');
      assert.equal(recorded.spans.length, loads ? 1 : 0);
    });
  }

  it('without an SDK, does the work within spans and records nothing', async () => {
    const { count, flushTelemetry, gauge, inSpan, spanHeaders, stopTelemetry } = await load();
    const work = inSpan('work', { kind: 'client' }, async (span) => {
      span.set({ a: 1 });
      span.fail('timeout');
      return spanHeaders();
    });
    assert.equal(await work, undefined);
    count('lldap_operator.lldap.calls', {});
    gauge('lldap_operator.requeue.delayed', [{ value: 1 }]);
    await flushTelemetry();
    await stopTelemetry();
    assert.deepEqual([recorded.spans, recorded.counts, recorded.gauges, recorded.isShutDown], [[], [], {}, false]);
  });

  it('with an SDK, records spans and metrics, sends them when told, and ends', async () => {
    const { count, flushTelemetry, gauge, inSpan, spanHeaders, startTelemetry, stopTelemetry } = await load();
    await withoutSdk(() => startTelemetry('user', { OTEL_TRACES_EXPORTER: 'otlp' }));
    recorded.headers = { traceparent: 'of the span' };
    let flushes = 0;
    recorded.flush = async () => void flushes++;
    const work = inSpan('work', { kind: 'client', attributes: { a: 1 }, parent: { traceparent: 'of the caller' } }, async (span) => {
      span.set({ b: 2 });
      span.fail('timeout');
      return spanHeaders();
    });
    assert.deepEqual(await work, { traceparent: 'of the span' });
    count('lldap_operator.lldap.calls', { outcome: 'ok' });
    gauge('lldap_operator.requeue.delayed', [{ value: 1 }]);
    assert.deepEqual(recorded.spans, [
      { name: 'work', kind: 'client', attributes: { a: 1, b: 2 }, parent: { traceparent: 'of the caller' }, failed: 'timeout' },
    ]);
    assert.deepEqual(recorded.counts, [['lldap_operator.lldap.calls', { outcome: 'ok' }]]);
    assert.deepEqual(recorded.gauges, { 'lldap_operator.requeue.delayed': [{ value: 1 }] });
    await flushTelemetry();
    assert.deepEqual([flushes, recorded.isShutDown], [1, false]);
    await stopTelemetry();
    assert.equal(recorded.isShutDown, true);
  });
});
