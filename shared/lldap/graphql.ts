import type { Clock } from '../platform/clock.ts';
import { type Http, parseJson } from '../platform/http.ts';
import type { SpanOptions } from '../telemetry/backend.ts';
import type { Log } from '../telemetry/log.ts';
import { count, inSpan } from '../telemetry/telemetry.ts';
import { LldapError } from './api.ts';
import { answerError, statusError, textError } from './errors.ts';
import type { Operation } from './operations.ts';
import { ask, type Session } from './session.ts';
import { isErrorAnswer } from './validate.ts';

/** Runs one operation. Throws {@link LldapError}. */
export type Call = <Result>(operation: Operation<Result>, variables?: Record<string, unknown>) => Promise<Result>;

/**
 * Makes one HTTP request per operation. If lldap refuses the token, or says that the operator lacks the rights (a token
 * carries the groups of the time when it was made), the session renews the token, once for all concurrent calls, and
 * each call is repeated once.
 */
export function createCall({ http, session, log, clock }: { http: Http; session: Session; log: Log; clock: Clock }): Call {
  const attempt = async <Result>(operation: Operation<Result>, variables: Record<string, unknown>, token: string): Promise<Result> => {
    const started = clock.monotonic();
    const recordCall = (outcome: string) => {
      count('lldap_operator.lldap.calls', { operation: operation.name, outcome });
      log.debug('lldap call', { operation: operation.name, outcome, ms: Math.round(clock.monotonic() - started) });
    };
    try {
      const result = await inSpan(operation.name, spanOf(operation), () => request(http, operation, variables, token));
      recordCall('ok');
      return result;
    } catch (error) {
      recordCall(error instanceof LldapError ? error.kind : 'bug');
      throw error;
    }
  };

  return async (operation, variables = {}) => {
    const token = await session.token();
    try {
      return await attempt(operation, variables, withRights(session, token));
    } catch (error) {
      if (!isKind(error, 'unauthenticated') && !isKind(error, 'unauthorized')) throw error;
    }
    const fresh = withRights(session, await session.renew(token));
    try {
      return await attempt(operation, variables, fresh);
    } catch (error) {
      if (isKind(error, 'unauthenticated')) session.forget(fresh);
      throw error;
    }
  };
}

/**
 * lldap does not refuse every request of an account that is no administrator. It omits hidden attributes, so the operator's
 * mark would seem to be missing.
 */
function withRights(session: Session, token: string): string {
  if (session.lacksRights(token)) throw new LldapError('unauthorized', "the operator's account is not in lldap_admin");
  return token;
}

export function isKind(error: unknown, kind: LldapError['kind']): boolean {
  return error instanceof LldapError && error.kind === kind;
}

function spanOf({ name, mutation }: Operation<unknown>): SpanOptions {
  const attributes = { 'graphql.operation.name': name, 'graphql.operation.type': mutation ? 'mutation' : 'query', 'peer.service': 'lldap' };
  return { kind: 'client', attributes };
}

async function request<Result>(
  http: Http,
  operation: Operation<Result>,
  variables: Record<string, unknown>,
  token: string,
): Promise<Result> {
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
  const body = JSON.stringify({ operationName: operation.name, query: operation.document, variables });
  const answer = await ask(http, { method: 'POST', url: '/api/graphql', headers, body, maxBytes: operation.maxBytes });
  if (answer.status !== 200) throw statusError(answer.status);
  const data = parseJson(answer.text);
  if (isErrorAnswer(data)) throw textError(data.errors[0].message, [token, ...textsOf(variables)]);
  if (!operation.validate(data)) throw answerError(`${operation.name} brought no result`);
  return data.data.result;
}

/** Every text in a request's variables. */
function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value === 'object' && value !== null) return Object.values(value).flatMap(textsOf);
  return [];
}
