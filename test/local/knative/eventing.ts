import { INGRESS_HOST, serviceHost } from './addresses.ts';
import { durationMs } from './duration.ts';
import type { Fields } from './fields.ts';
import { type Filter, triggerFilter } from './filter.ts';

/** Brokers, Triggers and sources as the manifests describe them. */

export interface Broker {
  namespace: string;
  name: string;
  /** The ingress answers at once; by default it answers only after all functions, with their retries, have. */
  asynchronous: boolean;
}

export interface Delivery {
  /** Further tries after the first. */
  retry: number;
  backoffPolicy?: 'linear' | 'exponential';
  backoffDelayMs?: number;
  timeoutMs?: number;
  deadLetterSink?: string;
  /** Whom a token for the sink is for. */
  deadLetterAudience?: string;
}

export interface Trigger {
  namespace: string;
  name: string;
  broker: string;
  filter: Filter;
  subscriber: string;
  /** Whom a token for the subscriber is for. */
  audience?: string;
  delivery: Delivery;
}

export interface Source {
  namespace: string;
  name: string;
  serviceAccount: string;
  mode: 'Resource' | 'Reference';
  /** Which namespaces are watched, as a query parameter of the API server: all by an empty one, only its own without. */
  namespaceSelector?: string;
  resources: SourceResource[];
  sink: string;
}

/** Who may post to a Broker, where Eventing asks for tokens. */
export interface EventPolicy {
  namespace: string;
  broker: string;
  /** Full names of ServiceAccounts. */
  subjects: string[];
}

export interface SourceResource {
  apiVersion: string;
  kind: string;
  /** As a query parameter of the API server. */
  labelSelector: string;
}

/** What Knative falls back to when neither the Trigger nor the Broker says anything. */
const DEFAULT_DELIVERY: Delivery = { retry: 10, backoffPolicy: 'exponential', backoffDelayMs: 200 };

export function readBroker(object: Fields): Broker {
  const { namespace, name, annotations } = readMetadata(object);
  const {
    'messaging.knative.dev/async-handler': asyncHandler,
    'eventing.knative.dev/broker.class': brokerClass = 'MTChannelBasedBroker',
    ...others
  } = annotations;
  if (brokerClass !== 'MTChannelBasedBroker') throw new Error(`the local Knative has no Broker of the class ${brokerClass}`);
  const unknown = Object.keys(others).find((annotation) => annotation.includes('knative.dev/'));
  if (unknown !== undefined) throw new Error(`the local Knative does not know the annotation ${unknown}`);
  const spec = object.optionalObject('spec');
  // The channel's kind.
  spec?.leave('config');
  spec?.done();
  object.done();
  return { namespace, name, asynchronous: asyncHandler === 'true' };
}

export function readTrigger(object: Fields): Trigger {
  const { namespace, name } = readMetadata(object);
  const spec = object.object('spec');
  const delivery = spec.optionalObject('delivery');
  const { address, audience } = readDestination(spec.object('subscriber'), namespace);
  const trigger = {
    namespace,
    name,
    broker: spec.string('broker'),
    filter: triggerFilter(spec),
    subscriber: address,
    ...(audience !== undefined && { audience }),
    delivery: delivery ? readDelivery(delivery, namespace) : DEFAULT_DELIVERY,
  };
  spec.done();
  object.done();
  return trigger;
}

/** Nothing is merged: without `retry` there is none, whatever the Broker says. */
function readDelivery(delivery: Fields, namespace: string): Delivery {
  const policy = delivery.optionalString('backoffPolicy');
  if (policy !== undefined && policy !== 'linear' && policy !== 'exponential')
    throw new Error(`${delivery.path}: no such backoffPolicy: ${policy}`);
  const backoffDelay = delivery.optionalString('backoffDelay');
  const timeout = delivery.optionalString('timeout');
  const deadLetterSink = delivery.optionalObject('deadLetterSink');
  const sink = deadLetterSink && readDestination(deadLetterSink, namespace);
  const result: Delivery = {
    retry: delivery.optionalNumber('retry') ?? 0,
    ...(policy && { backoffPolicy: policy }),
    ...(backoffDelay !== undefined && { backoffDelayMs: durationMs(backoffDelay) }),
    ...(timeout !== undefined && { timeoutMs: durationMs(timeout) }),
    ...(sink && { deadLetterSink: sink.address }),
    ...(sink?.audience !== undefined && { deadLetterAudience: sink.audience }),
  };
  if (result.timeoutMs === 0) throw new Error(`${delivery.path}.timeout is zero`);
  delivery.done();
  return result;
}

export function readSource(object: Fields): Source {
  const { namespace, name } = readMetadata(object);
  const spec = object.object('spec');
  const mode = spec.optionalString('mode') ?? 'Reference';
  if (mode !== 'Resource' && mode !== 'Reference') throw new Error(`${spec.path}: no such mode: ${mode}`);
  const namespaceSelector = labelSelector(spec.optionalObject('namespaceSelector'));
  const source: Source = {
    namespace,
    name,
    serviceAccount: spec.optionalString('serviceAccountName') ?? 'default',
    mode,
    ...(namespaceSelector !== undefined && { namespaceSelector }),
    resources: spec.objects('resources').map(readSourceResource),
    sink: readDestination(spec.object('sink'), namespace).address,
  };
  spec.done();
  object.done();
  return source;
}

function readSourceResource(resource: Fields): SourceResource {
  const result = {
    apiVersion: resource.string('apiVersion'),
    kind: resource.string('kind'),
    labelSelector: labelSelector(resource.optionalObject('selector')) ?? '',
  };
  resource.done();
  return result;
}

/** @throws Error for what only a real cluster knows */
export function readEventPolicy(object: Fields): EventPolicy {
  const { namespace } = readMetadata(object);
  const spec = object.object('spec');
  const [to, second] = spec.objects('to');
  if (!to || second) throw new Error(`${spec.path}: the local Knative knows policies to one Broker`);
  const broker = to.object('ref');
  broker.leave('apiVersion', 'kind');
  const policy = { namespace, broker: broker.string('name'), subjects: spec.objects('from').map((from) => readSubject(from, namespace)) };
  for (const each of [broker, to, spec, object]) each.done();
  return policy;
}

function readSubject(from: Fields, namespace: string): string {
  const ref = from.optionalObject('ref');
  const identity = ref && identityOf(ref.string('apiVersion'), ref.string('kind'), ref.string('name'));
  const sub = identity ? `system:serviceaccount:${namespace}:${identity}` : from.string('sub');
  for (const each of [ref, from]) each?.done();
  return sub;
}

/** The ServiceAccount that Eventing makes for an object; the real one shortens names that are too long. */
export function identityOf(apiVersion: string, kind: string, name: string): string {
  return `${name}-oidc-${apiVersion.replace(/\/.*/, '')}-${kind}`.toLowerCase();
}

function labelSelector(selector: Fields | undefined): string | undefined {
  const labels = selector && Object.entries(selector.map('matchLabels')).map(([label, value]) => `${label}=${value}`);
  selector?.done();
  return labels?.join(',');
}

/** A `ref` gives the address, a relative `uri` beside it the path; a `uri` alone is the address. */
function readDestination(destination: Fields, ownNamespace: string): { address: string; audience?: string } {
  const audience = destination.optionalString('audience');
  return { address: readAddress(destination, ownNamespace), ...(audience !== undefined && { audience }) };
}

function readAddress(destination: Fields, ownNamespace: string): string {
  const ref = destination.optionalObject('ref');
  const uri = destination.optionalString('uri');
  destination.done();
  if (!ref) return new URL(uri ?? '').href;
  const type = `${ref.string('apiVersion')} ${ref.string('kind')}`;
  const name = ref.string('name');
  const namespace = ref.optionalString('namespace') ?? ownNamespace;
  ref.done();
  return `${addressOf(type, namespace, name)}${uri ?? ''}`;
}

function addressOf(type: string, namespace: string, name: string): string {
  if (type === 'serving.knative.dev/v1 Service') return `http://${serviceHost(namespace, name)}`;
  if (type === 'eventing.knative.dev/v1 Broker') return `http://${INGRESS_HOST}/${namespace}/${name}`;
  throw new Error(`the local Knative does not know the address of a ${type}`);
}

export interface Metadata {
  namespace: string;
  name: string;
  annotations: Record<string, string>;
}

/** Also consumes what tells the kind, which the caller knows by now. */
export function readMetadata(object: Fields): Metadata {
  object.leave('apiVersion', 'kind', 'status');
  const metadata = object.object('metadata');
  metadata.leave('labels');
  const result = { namespace: metadata.string('namespace'), name: metadata.string('name'), annotations: metadata.map('annotations') };
  metadata.done();
  return result;
}
