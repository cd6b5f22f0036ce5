import { registerHooks } from 'node:module';
import type { Attributes, Backend, Counter, Gauge, SpanOptions } from '../../../shared/telemetry/backend.ts';
import { startTelemetry } from '../../../shared/telemetry/telemetry.ts';

/** Stands in for OpenTelemetry's SDK, whose providers would stay for all tests of the process. */

export interface RecordedSpan extends SpanOptions {
  name: string;
  attributes: Attributes;
  failed?: string;
}

export interface Recording {
  spans: RecordedSpan[];
  counts: [metric: Counter, attributes: Attributes][];
  gauges: Partial<Record<Gauge, { value: number; attributes?: Attributes }[]>>;
  flush: () => Promise<void>;
  isShutDown: boolean;
  /** The Trace Context headers of the active span. */
  headers: Record<string, string> | undefined;
}

const newRecording = (): Recording => ({
  spans: [],
  counts: [],
  gauges: {},
  flush: async () => {},
  isShutDown: false,
  headers: undefined,
});
let current: Recording | undefined;
/** For each SDK that was started: the arguments. */
export const started: [name: string, env: NodeJS.ProcessEnv][] = [];

/** What takes the place of `otel.ts`. Records nothing but during the tests that asked for it. */
export function createBackend(...args: (typeof started)[number]): Backend {
  started.push(args);
  return {
    async span(name, options, work) {
      const span: RecordedSpan = { name, ...options, attributes: { ...options.attributes } };
      current?.spans.push(span);
      return work({
        set: (attributes) => void Object.assign(span.attributes, attributes),
        fail: (type) => void Object.assign(span, { failed: type }),
      });
    },
    headers: () => current?.headers,
    count: (metric, attributes) => void current?.counts.push([metric, attributes]),
    gauge: (metric, values) => void (current && Object.assign(current.gauges, { [metric]: values })),
    flush: async () => current?.flush(),
    shutdown: async () => void (current && Object.assign(current, { isShutDown: true })),
  };
}

/** While `work` runs, an import of `otel.ts` gets this file. */
export async function withoutSdk<T>(work: () => Promise<T>): Promise<T> {
  const hooks = registerHooks({
    resolve: (specifier, context, next) =>
      specifier === './otel.ts' ? { url: import.meta.url, format: 'module-typescript', shortCircuit: true } : next(specifier, context),
  });
  try {
    return await work();
  } finally {
    hooks.deregister();
  }
}

/** To be called in a `describe`: what is recorded during each of its tests. */
export function useTelemetry(): Recording {
  const recording = newRecording();
  before(() => withoutSdk(() => startTelemetry('test', { OTEL_TRACES_EXPORTER: 'otlp' })));
  beforeEach(() => {
    current = Object.assign(recording, newRecording());
  });
  afterEach(() => {
    current = undefined;
  });
  return recording;
}
