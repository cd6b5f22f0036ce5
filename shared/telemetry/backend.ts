/** The interface between `telemetry.ts` and `otel.ts`, and the metrics' names. */

export type Attributes = Record<string, string | number | boolean>;

/** The part of an OpenTelemetry span that is used here. */
export interface Span {
  set(attributes: Attributes): void;
  /** Marks the span as failed. `type` is the standard attribute `error.type`. */
  fail(type: string): void;
}

export interface SpanOptions {
  kind: 'consumer' | 'producer' | 'client' | 'internal';
  attributes?: Attributes;
  /** Trace Context headers of the caller, if the span continues its trace. */
  parent?: Record<string, string>;
}

/** Implemented by `otel.ts`. */
export interface Backend {
  span<T>(name: string, options: SpanOptions, work: (span: Span) => Promise<T>): Promise<T>;
  /** Trace Context headers of the active span. */
  headers(): Record<string, string> | undefined;
  count(metric: Counter, attributes: Attributes): void;
  /** Replaces all earlier values of the metric. */
  gauge(metric: Gauge, values: { value: number; attributes?: Attributes }[]): void;
  flush(): Promise<void>;
  shutdown(): Promise<void>;
}

/** Names, units and descriptions of the metrics. A test checks the documentation against them. */
export const COUNTERS = {
  'lldap_operator.reconciles': { unit: '{reconcile}', description: 'Reconciles of a resource, by kind and result.' },
  'lldap_operator.lldap.calls': { unit: '{call}', description: 'Calls to lldap, by operation and outcome.' },
} as const;

export const GAUGES = {
  'lldap_operator.memberships.forbidden': {
    unit: '{resource}',
    description: 'Memberships that the owner of their group does not allow.',
  },
  'lldap_operator.resources.not_ready': {
    unit: '{resource}',
    description: 'Resources that were not Ready at the last sweep, by kind and reason.',
  },
  'lldap_operator.retry.oldest': {
    unit: 's',
    description: 'The longest time that a resource with a retry had not been Ready at the last sweep.',
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
