/** What telemetry is asked for, and by which names; `telemetry.ts` asks, `otel.ts` supplies. */

export type Attributes = Record<string, string | number | boolean>;

/** The part of an OpenTelemetry span that is used here. */
export interface Span {
  set(attributes: Attributes): void;
  /** Marks it as failed; `type` is the standard attribute `error.type`. */
  fail(type: string): void;
}

export interface SpanOptions {
  kind: 'consumer' | 'producer' | 'client' | 'internal';
  attributes?: Attributes;
  /** Trace Context headers of the caller, where this begins a piece of its trace. */
  parent?: Record<string, string>;
}

/** What `otel.ts` supplies once it is loaded. */
export interface Backend {
  span<T>(name: string, options: SpanOptions, work: (span: Span) => Promise<T>): Promise<T>;
  /** Trace Context headers of the span that is active. */
  headers(): Record<string, string> | undefined;
  count(metric: Counter, attributes: Attributes): void;
  /** Replaces all that was recorded for the metric before. */
  gauge(metric: Gauge, values: { value: number; attributes?: Attributes }[]): void;
  flush(): Promise<void>;
  shutdown(): Promise<void>;
}

/** Names, units and meanings of the metrics, in one place; the documentation is checked against it. */
export const COUNTERS = {
  'lldap_operator.reconciles': { unit: '{reconcile}', description: 'Reconciles of a resource, by kind and result.' },
  'lldap_operator.lldap.calls': { unit: '{call}', description: 'Calls to lldap, by operation and outcome.' },
} as const;

export const GAUGES = {
  'lldap_operator.resources.not_ready': {
    unit: '{resource}',
    description: 'Resources that are not Ready, by kind and reason, as the last sweep found them.',
  },
  'lldap_operator.retry.oldest': {
    unit: 's',
    description: 'For how long the resource that waits longest has not been Ready, as the last sweep found it.',
  },
  'lldap_operator.sweep.last_success': {
    unit: 's',
    description: 'When the last run of startup without problems ended, in seconds since the epoch.',
  },
  'lldap_operator.sweep.success': { unit: '1', description: '1 if the last run of startup met no problem, else 0.' },
  'lldap_operator.lldap.reachable': { unit: '1', description: '1 if lldap answered the last run of startup over HTTP and LDAP, else 0.' },
  'lldap_operator.requeue.delayed': { unit: '{retry}', description: 'Retries that requeue delays until they are due.' },
} as const;

export type Counter = keyof typeof COUNTERS;
export type Gauge = keyof typeof GAUGES;
