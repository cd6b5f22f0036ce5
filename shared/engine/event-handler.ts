import { MalformedEvent, type OperatorEvent } from '../events/parse.ts';
import type { KindName } from '../kube/resources.ts';
import type { Answer, EventContext, EventHandler } from '../service/server.ts';
import type { Engine } from './engine.ts';

type SecretEvent = Extract<OperatorEvent, { what: 'secret' }>;

/**
 * Handles the events of one kind's function.
 *
 * @param onSecret for the one kind that depends on Secrets
 */
export function kindHandler(
  kind: KindName,
  engine: Engine,
  onSecret?: (event: SecretEvent, context: EventContext) => Promise<Answer>,
): EventHandler {
  return async (event, context) => {
    if (event.what === 'secret' && onSecret) return onSecret(event, context);
    if (event.what !== 'resource' && event.what !== 'reconcile')
      throw new MalformedEvent(`a ${event.what} event is not for the function of ${kind}`);
    if (event.target.kind !== kind) throw new MalformedEvent(`the extension "kind" is ${event.target.kind}; this function serves ${kind}`);
    if (event.what === 'resource') {
      // A deleted resource no longer has our finalizer, and one that lost its label is no longer ours.
      if (event.change === 'delete') return { status: 204 };
      return engine.reconcile(event.target, { object: event.object }, context);
    }
    const { notBefore, redelivered } = event;
    return engine.reconcile(event.target, { full: notBefore === undefined || redelivered > 0, ...(notBefore && { notBefore }) }, context);
  };
}
