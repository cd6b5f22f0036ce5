import type { Attributes, Backend, Counter, Gauge, Span, SpanOptions } from './backend.ts';

/**
 * Traces and metrics by OpenTelemetry, configured by its standard environment variables alone. Loads and records nothing
 * unless one of them is set, so that telemetry does not slow down cold starts where nobody uses it.
 */

let backend: Backend | undefined;

const ASKING = [
  'OTEL_EXPORTER_OTLP_ENDPOINT',
  'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
  'OTEL_EXPORTER_OTLP_METRICS_ENDPOINT',
  'OTEL_TRACES_EXPORTER',
  'OTEL_METRICS_EXPORTER',
];

/** Loads OpenTelemetry if the environment configures it. `name` is the service's name unless the environment gives one. */
export async function startTelemetry(name: string, env: NodeJS.ProcessEnv): Promise<void> {
  const asked = ASKING.some((variable) => env[variable] && env[variable] !== 'none');
  if (!asked || env.OTEL_SDK_DISABLED === 'true') return;
  const { createBackend } = await import('./otel.ts');
  backend = createBackend(name, env);
}

const SILENT: Span = { set: () => {}, fail: () => {} };

/** Runs `work` in a span. An error that it throws fails the span. */
export function inSpan<T>(name: string, options: SpanOptions, work: (span: Span) => Promise<T>): Promise<T> {
  return backend ? backend.span(name, options, work) : work(SILENT);
}

/** Trace Context headers for an outgoing request, if a span is active. */
export function spanHeaders(): Record<string, string> | undefined {
  return backend?.headers();
}

export function count(metric: Counter, attributes: Attributes): void {
  backend?.count(metric, attributes);
}

export function gauge(metric: Gauge, values: { value: number; attributes?: Attributes }[]): void {
  backend?.gauge(metric, values);
}

/** Sends what was recorded; called before an answer after which the process may be stopped. */
export async function flushTelemetry(): Promise<void> {
  await backend?.flush();
}

export async function stopTelemetry(): Promise<void> {
  await backend?.shutdown();
}
