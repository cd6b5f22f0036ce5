import { REQUESTED_AT } from '../constants.ts';
import { isRecord, type Target } from '../events/parse.ts';
import type { KindName, Resource } from '../kube/resources.ts';
import type { Io } from '../lookup/io.ts';
import { isSteady, unhandledToken } from '../rules/predicates.ts';
import type { Answer, EventContext } from '../service/server.ts';
import { count, inSpan } from '../telemetry/telemetry.ts';
import type { Kind, Report, Settings } from './kind.ts';
import { createOwnWrites, versionOf } from './own-writes.ts';
import { createQueue, type Demand, type Request } from './queue.ts';
import { createReconciler, type Outcome } from './reconcile.ts';

/** What an event says besides its target. */
export interface EventHint {
  /** The event's own copy of the resource, unchecked. */
  object?: unknown;
  full?: boolean;
  notBefore?: string;
}

/** Results without news, which are logged at level debug. */
const QUIET_RESULTS = new Set<Report['result']>(['gone', 'ignored', 'unchanged', 'waiting']);

export interface Engine {
  /** Handles one event; see {@link createEngine}. */
  reconcile(target: Target, hint: EventHint, context: Pick<EventContext, 'representation'>): Promise<Answer>;
}

/**
 * Reconciles the resources of one kind.
 *
 * 1. A source event about a resource in steady state costs no call, nor does the event of an own write.
 * 2. One reconcile at a time per resource. Events that come meanwhile lead to one more, and none is forgotten.
 * 3. The resource is always read afresh; an event is a hint and never believed.
 * 4. Only the retry itself, a full reconcile or a new generation starts a resource that has a retry due.
 * 5. The finalizer is added before the first mutation and removed last.
 * 6. Every mutation follows from a difference that this reconcile has read.
 * 7. The status keeps what succeeded, even if a later step failed.
 * 8. A reconcile writes the status once, or not at all if nothing differs, and never over another's write. It writes it
 *    once more before a step that must not be forgotten.
 * 9. The broker accepts a retry's event before the status names it.
 * 10. A reconcile that cannot write its status answers 503, and the broker delivers the event again.
 */
export function createEngine<K extends KindName, Dependencies, Observed, Step>(
  kind: Kind<K, Dependencies, Observed, Step>,
  io: Io,
  settings: Settings,
): Engine {
  const ownWrites = createOwnWrites();
  const reconcile = createReconciler(kind, io, settings, ownWrites);
  const tracedReconcile = async (target: Target, demand: Demand): Promise<Outcome> => {
    const attributes = { 'k8s.namespace.name': target.namespace, 'lldap_operator.resource.name': target.name };
    const outcome = await inSpan(`reconcile ${kind.name}`, { kind: 'internal', attributes }, async (span) => {
      const made = await reconcile(target, demand);
      const { result, reason } = made.report;
      span.set({ 'lldap_operator.result': result, ...(reason && { 'lldap_operator.reason': reason }) });
      return made;
    });
    const { report } = outcome;
    count('lldap_operator.reconciles', { kind: kind.name, result: report.result, ...(report.reason && { reason: report.reason }) });
    const { message, ...fields } = report;
    io.log[QUIET_RESULTS.has(report.result) ? 'debug' : 'info']('reconciled', { ...fields, ...(message && { detail: message }) });
    return outcome;
  };
  const queue = createQueue<Outcome>(
    settings.maxConcurrentReconciles,
    (key, demand) => {
      const [namespace = '', name = ''] = key.split('/');
      return tracedReconcile({ kind: kind.name, namespace, name }, demand);
    },
    ({ unfinished }) => unfinished,
    ownWrites.has,
  );

  /** Keeps nothing else of the event while it waits in the queue: objects may be large, and thousands of events wait. */
  async function submit(target: Target, request: Request, representation: boolean): Promise<Answer> {
    const submitted = await queue.submit(`${target.namespace}/${target.name}`, request);
    const report = submitted === 'collapsed' ? { result: submitted, ...target } : submitted.result.report;
    const body = representation ? { body: report } : {};
    if (report.result === 'unwritten') return { status: 503, message: report.message ?? 'the status could not be written', ...body };
    return representation ? { status: 200, body: report } : { status: 204 };
  }

  return {
    reconcile(target, { object, full, notBefore }, { representation }) {
      const resource = asResource(object);
      const version = resource && unhandledToken(resource) === undefined ? versionOf(resource) : undefined;
      if (resource && (isSteady(resource) || (version && ownWrites.has(version)))) {
        const report: Report = { result: 'unchanged', ...target, did: [] };
        return Promise.resolve(representation ? { status: 200, body: report } : { status: 204 });
      }
      const request = { ...(full && { full }), ...(notBefore && { notBefore }), ...(version && { version }) };
      return submit(target, request, representation);
    },
  };
}

/** An event's object, if every field read here has a resource's form; anybody may have sent it. */
function asResource(object: unknown): Resource | undefined {
  if (!isRecord(object) || !isRecord(object.metadata)) return undefined;
  const { uid, resourceVersion, finalizers = [], annotations = {} } = object.metadata;
  const { conditions = [] }: { conditions?: unknown } = isRecord(object.status) ? object.status : {};
  const isResource =
    isIdentifier(uid) &&
    isIdentifier(resourceVersion) &&
    Array.isArray(finalizers) &&
    isRecord(annotations) &&
    ['string', 'undefined'].includes(typeof annotations[REQUESTED_AT]) &&
    Array.isArray(conditions) &&
    conditions.every(isRecord);
  return isResource ? (object as unknown as Resource) : undefined;
}

/** The API server's are shorter; longer ones are not kept while a request waits. */
function isIdentifier(value: unknown): boolean {
  return typeof value === 'string' && value.length <= 64;
}
