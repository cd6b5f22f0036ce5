import type { Category } from '../kube/resources.ts';
import { LldapError } from '../lldap/api.ts';
import type { Reason } from './reasons.ts';

/** Why a pass did not reach Ready. The category decides what happens next, see `retry.ts`. */
export class Failure extends Error {
  override name = 'Failure';
  readonly category: Category;
  readonly reason: Reason;

  /** `message` names the object, the value and the next step, and holds no secret. */
  constructor(category: Category, reason: Reason, message: string) {
    super(message);
    this.category = category;
    this.reason = reason;
  }
}

/** Only a person can help. */
export function invalid(reason: Reason, message: string): Failure {
  return new Failure('Invalid', reason, message);
}

export function notReady(reason: Reason, message: string): Failure {
  return new Failure('NotReady', reason, message);
}

export function taken(reason: Reason, message: string): Failure {
  return new Failure('Taken', reason, message);
}

/**
 * The decision that an error carries; what is not foreseen is a Bug.
 * Errors of the Kubernetes API don't come here: without it no status can be written.
 */
export function toFailure(error: unknown): Failure {
  if (error instanceof Failure) return error;
  if (error instanceof LldapError) return fromLldap(error);
  return new Failure(
    'Bug',
    'InternalError',
    'The operator met an error that it does not know; its log has the details. It will try again.',
  );
}

function fromLldap(error: LldapError): Failure {
  switch (error.kind) {
    case 'notFound':
      return new Failure(
        'Unavailable',
        'LldapUnavailable',
        `What this pass had just read is gone from lldap, or was never there (${error.message}); it is tried again by itself.`,
      );
    case 'unavailable':
      return new Failure(
        'Unavailable',
        'LldapUnavailable',
        `${sentence(error.message)} It is tried again by itself; see that lldap runs, and that LLDAP_URL and LLDAP_LDAP_URL in the ConfigMap lldap-operator are right.`,
      );
    case 'unauthenticated':
      return new Failure(
        'Unauthenticated',
        'LldapUnauthenticated',
        `lldap refused the operator's credentials; correct the Secret lldap-operator-credentials. (${error.message})`,
      );
    case 'unauthorized':
      return new Failure(
        'Unauthenticated',
        'LldapUnauthorized',
        `The operator's account is no administrator of lldap; add it to lldap_admin. (${error.message})`,
      );
    case 'exists':
      return taken('NameTaken', sentence(error.message));
    case 'undefinedAttribute':
      return notReady(
        'DependencyNotReady',
        `lldap has no attribute ${error.attribute ?? ''}; create an LldapAttributeSchema that defines it, or correct the name.`,
      );
    case 'refused':
      return invalid(
        'RefusedByLldap',
        `lldap refused ${error.attribute ? `the attribute ${error.attribute}` : 'a value'}: ${error.message}; correct it.`,
      );
    case 'protected':
      return invalid('Protected', `lldap protects this object: ${error.message}`);
    case 'unforeseen':
      return new Failure('Bug', 'InternalError', `lldap gave an answer that the operator does not know: ${error.message}`);
  }
}

function sentence(text: string): string {
  return text.endsWith('.') ? text : `${text}.`;
}
