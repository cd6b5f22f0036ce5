import { REQUESTED_AT } from '../constants.ts';
import { isRecord, type Target } from '../events/parse.ts';
import type { KindName, Resource } from '../kube/resources.ts';
import type { Io } from '../lookup/io.ts';
import { isSettled, unhandledToken } from '../rules/predicates.ts';
import type { Answer, EventContext } from '../service/server.ts';
import { count, inSpan } from '../telemetry/telemetry.ts';
import type { Kind, Report, Settings } from './kind.ts';
import { createEchoes, versionOf } from './own-writes.ts';
import { createQueue, type Hints, type Request } from './queue.ts';
import { createPass, type Outcome } from './reconcile.ts';

/** What an event says besides its target. */
export interface Occasion {
  /** The event's own copy of the resource, unchecked. */
  object?: unknown;
  full?: boolean;
  notBefore?: string;
}

/** Results that tell nobody anything new. */
const QUIET = new Set<Report['result']>(['gone', 'ignored', 'unchanged', 'waiting']);

export interface Engine {
  /** Handles one event; see {@link createEngine}. */
  reconcile(target: Target, occasion: Occasion, context: Pick<EventContext, 'representation'>): Promise<Answer>;
}

/**
 * Reconciles the resources of one kind.
 *
 * 1. A settled resource costs no call, whatever source event carries it; neither does the echo of an own write.
 * 2. One pass at a time per resource; events that come meanwhile lead to one more pass, and none is forgotten.
 * 3. The resource is always read anew; an event is a hint and never believed.
 * 4. A retry that is due is not started by anything but itself, a full reconcile or a new generation.
 * 5. The finalizer stands before the first mutation, and goes last.
 * 6. Every mutation is because of a difference that this pass has read.
 * 7. What succeeded is in the status, even if a later step failed.
 * 8. One status write a pass, none if nothing differs, never over another's write; ahead of it one more where a step
 *    must not be forgotten.
 * 9. A retry's event is accepted by the broker before the status names it.
 * 10. Without a status written there is no success: 503, and the broker comes again.
 */
export function createEngine<K extends KindName, Dependencies, Observed, Step>(
  kind: Kind<K, Dependencies, Observed, Step>,
  io: Io,
  settings: Settings,
): Engine {
  const echoes = createEchoes();
  const pass = createPass(kind, io, settings, echoes);
  const traced = async (target: Target, hints: Hints): Promise<Outcome> => {
    const attributes = { 'k8s.namespace.name': target.namespace, 'lldap_operator.resource.name': target.name };
    const outcome = await inSpan(`reconcile ${kind.name}`, { kind: 'internal', attributes }, async (span) => {
      const made = await pass(target, hints);
      const { result, reason } = made.report;
      span.set({ 'lldap_operator.result': result, ...(reason && { 'lldap_operator.reason': reason }) });
      return made;
    });
    const { report } = outcome;
    count('lldap_operator.reconciles', { kind: kind.name, result: report.result, ...(report.reason && { reason: report.reason }) });
    const { message, ...fields } = report;
    io.log[QUIET.has(report.result) ? 'debug' : 'info']('reconciled', { ...fields, ...(message && { detail: message }) });
    return outcome;
  };
  const queue = createQueue<Outcome>(
    settings.maxPasses,
    (key, hints) => {
      const [namespace = '', name = ''] = key.split('/');
      return traced({ kind: kind.name, namespace, name }, hints);
    },
    ({ unfinished }) => unfinished,
    echoes.has,
  );

  /** Only what is handed to it outlives the wait for a turn: objects may be large, and thousands of events wait. */
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
      if (resource && (isSettled(resource) || (version && echoes.has(version)))) {
        const report: Report = { result: 'unchanged', ...target, did: [] };
        return Promise.resolve(representation ? { status: 200, body: report } : { status: 204 });
      }
      const request = { ...(full && { full }), ...(notBefore && { notBefore }), ...(version && { version }) };
      return submit(target, request, representation);
    },
  };
}

/** An event's object, if all that the fast exit reads of it has the form of a resource; anybody may have sent it. */
function asResource(object: unknown): Resource | undefined {
  if (!isRecord(object) || !isRecord(object.metadata)) return undefined;
  const { uid, resourceVersion, finalizers = [], annotations = {} } = object.metadata;
  const { conditions = [] }: { conditions?: unknown } = isRecord(object.status) ? object.status : {};
  const isResource =
    typeof uid === 'string' &&
    typeof resourceVersion === 'string' &&
    Array.isArray(finalizers) &&
    isRecord(annotations) &&
    ['string', 'undefined'].includes(typeof annotations[REQUESTED_AT]) &&
    Array.isArray(conditions) &&
    conditions.every(isRecord);
  return isResource ? (object as unknown as Resource) : undefined;
}
