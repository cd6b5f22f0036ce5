import { setTimeout } from 'node:timers/promises';
import { type Context, context, type SpanKind as Kind, metrics, propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { NodeSDK } from '@opentelemetry/sdk-node';
import { type Backend, COUNTERS, type Counter, GAUGES, type Gauge, type SpanOptions } from './backend.ts';

/** OpenTelemetry's SDK, loaded only if the environment configures it. */

const SCOPE = 'lldap-knative-operator';
/** For this long, an answer waits for the collector. */
const FLUSH_TIMEOUT_MS = 2_000;

const KINDS: Record<SpanOptions['kind'], Kind> = {
  consumer: SpanKind.CONSUMER,
  producer: SpanKind.PRODUCER,
  client: SpanKind.CLIENT,
  internal: SpanKind.INTERNAL,
};

export function createBackend(name: string, env: NodeJS.ProcessEnv): Backend {
  applyDefaults(name, env);
  const sdk = new NodeSDK();
  sdk.start();
  const tracer = trace.getTracer(SCOPE);
  const meter = metrics.getMeter(SCOPE);
  const counters = Object.fromEntries(Object.entries(COUNTERS).map(([metric, options]) => [metric, meter.createCounter(metric, options)]));
  const latest = observeGauges(meter);

  return {
    span(spanName, { kind, attributes, parent }, work) {
      const from: Context = parent ? propagation.extract(context.active(), parent) : context.active();
      return tracer.startActiveSpan(spanName, { kind: KINDS[kind], ...(attributes && { attributes }) }, from, async (span) => {
        try {
          return await work({
            set: (more) => void span.setAttributes(more),
            fail: (type) => void span.setAttribute('error.type', type).setStatus({ code: SpanStatusCode.ERROR }),
          });
        } catch (error) {
          span.setAttribute('error.type', error instanceof Error ? error.name : 'unknown').setStatus({ code: SpanStatusCode.ERROR });
          throw error;
        } finally {
          span.end();
        }
      });
    },
    headers() {
      if (!trace.getActiveSpan()) return undefined;
      const headers: Record<string, string> = {};
      propagation.inject(context.active(), headers);
      return headers;
    },
    count: (metric: Counter, attributes) => counters[metric]?.add(1, attributes),
    gauge: (metric, values) => void latest.set(metric, values),
    flush: () => atMost(FLUSH_TIMEOUT_MS, Promise.all([flush(trace.getTracerProvider()), flush(metrics.getMeterProvider())])),
    shutdown: () => atMost(FLUSH_TIMEOUT_MS, sdk.shutdown()),
  };
}

/** Sets variables that the standard leaves open, or whose defaults would start unused exporters. */
function applyDefaults(name: string, env: NodeJS.ProcessEnv): void {
  env.OTEL_SERVICE_NAME ??= `lldap-operator-${name}`;
  env.OTEL_LOGS_EXPORTER ??= 'none';
  // Host and process attributes add nothing to a pod's own, and the process's arguments need not be sent.
  env.OTEL_NODE_RESOURCE_DETECTORS ??= 'env';
  const everything = env.OTEL_EXPORTER_OTLP_ENDPOINT;
  if (!everything && !env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT) env.OTEL_TRACES_EXPORTER ??= 'none';
  if (!everything && !env.OTEL_EXPORTER_OTLP_METRICS_ENDPOINT) env.OTEL_METRICS_EXPORTER ??= 'none';
  else env.OTEL_METRICS_EXPORTER ??= 'otlp';
}

type Values = Parameters<Backend['gauge']>[1];

function observeGauges(meter: ReturnType<typeof metrics.getMeter>): Map<Gauge, Values> {
  const latest = new Map<Gauge, Values>();
  for (const [metric, options] of Object.entries(GAUGES)) {
    meter.createObservableGauge(metric, options).addCallback((result) => {
      for (const { value, attributes } of latest.get(metric as Gauge) ?? []) result.observe(value, attributes);
    });
  }
  return latest;
}

/** The API's providers are proxies. The provider behind one can flush, unless it is the no-op provider. */
async function flush(provider: object): Promise<void> {
  const real = 'getDelegate' in provider && typeof provider.getDelegate === 'function' ? (provider.getDelegate() as object) : provider;
  if ('forceFlush' in real && typeof real.forceFlush === 'function') await real.forceFlush();
}

/** A collector that is down delays answers, but never fails them. */
async function atMost(ms: number, work: Promise<unknown>): Promise<void> {
  const done = new AbortController();
  // The SDK logs a failed export itself.
  await Promise.race([Promise.allSettled([work]), setTimeout(ms, undefined, { signal: done.signal })]);
  done.abort();
}
