import { isRecord, type Target } from '../events/parse.ts';
import type { KindName, Resource } from '../kube/resources.ts';
import { REQUESTED_AT } from '../names.ts';
import type { Answer, EventContext } from '../server.ts';
import { count, inSpan } from '../telemetry.ts';
import { isSettled, unhandledToken } from './decide.ts';
import { createEchoes } from './echoes.ts';
import type { Report, Settings } from './journal.ts';
import type { Io, Kind } from './kind.ts';
import { runPass } from './pass.ts';
import { createQueue, type Hints } from './queue.ts';

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
  reconcile(target: Target, occasion: Occasion, context: Pick<EventContext, 'signal' | 'representation'>): Promise<Answer>;
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
 * 8. One status write a pass, none if nothing differs, never over another's write.
 * 9. A retry's event is accepted by the broker before the status names it.
 * 10. Without a status written there is no success: 503, and the broker comes again.
 */
export function createEngine<K extends KindName, Dependencies, Observed, Step>(
  kind: Kind<K, Dependencies, Observed, Step>,
  io: Io,
  settings: Settings,
): Engine {
  const echoes = createEchoes();
  const pass = async (target: Target, hints: Hints, signal: AbortSignal): Promise<Report> => {
    const attributes = { 'k8s.namespace.name': target.namespace, 'lldap_operator.resource.name': target.name };
    const report = await inSpan(`reconcile ${kind.name}`, { kind: 'internal', attributes }, async (span) => {
      const made = await runPass(kind, io, settings, echoes, target, hints, signal);
      span.set({ 'lldap_operator.result': made.result, ...(made.reason && { 'lldap_operator.reason': made.reason }) });
      return made;
    });
    const { message, ...fields } = report;
    count('lldap_operator.reconciles', { kind: kind.name, result: report.result, ...(report.reason && { reason: report.reason }) });
    io.log[QUIET.has(report.result) ? 'debug' : 'info']('reconciled', { ...fields, ...(message && { detail: message }) });
    return report;
  };
  const queue = createQueue<Report>(
    settings.maxPasses,
    (key, hints, signal) => {
      const [namespace = '', name = ''] = key.split('/');
      return pass({ kind: kind.name, namespace, name }, hints, signal);
    },
    (report) => report.result === 'unwritten',
  );

  /** By the event's own data nothing is to be done. */
  const needless = (object: unknown): boolean => {
    const resource = asResource(object);
    return resource !== undefined && (isSettled(resource) || (unhandledToken(resource) === undefined && echoes.has(resource)));
  };

  return {
    async reconcile(target, { object, full, notBefore }, { signal, representation }) {
      const success = (body: object): Answer => (representation ? { status: 200, body } : { status: 204 });
      if (needless(object)) return success({ result: 'unchanged', ...target, did: [] });
      const submitted = await queue.submit(`${target.namespace}/${target.name}`, {
        signal,
        ...(full && { full }),
        ...(notBefore && { notBefore }),
        ...(object !== undefined && { needless: () => needless(object) }),
      });
      if (submitted === 'collapsed') return success({ result: 'collapsed', ...target });
      const report = submitted.result;
      if (report.result !== 'unwritten') return success(report);
      return { status: 503, message: report.message ?? 'the status could not be written', ...(representation && { body: report }) };
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
