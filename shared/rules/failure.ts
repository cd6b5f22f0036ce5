import type { Category } from '../kube/resources.ts';
import { LldapError } from '../lldap/api.ts';
import type { Reason } from './reasons.ts';

/** Why a resource is not Ready. The category decides what happens next; see `retry.ts`. */
export class Failure extends Error {
  override name = 'Failure';
  readonly category: Category;
  readonly reason: Reason;

  /** @param message names the object, the value and the next step, and holds no secret */
  constructor(category: Category, reason: Reason, message: string) {
    super(message);
    this.category = category;
    this.reason = reason;
  }
}

/** A failure that only a person can resolve. */
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
 * The failure that an error amounts to; an unexpected error is a Bug.
 * Errors of the Kubernetes API do not come here: without it no status can be written.
 */
export function toFailure(error: unknown): Failure {
  if (error instanceof Failure) return error;
  if (error instanceof LldapError) return fromLldap(error);
  return new Failure('Bug', 'InternalError', "Unexpected error; see the operator's log. The operator retries.");
}

function fromLldap(error: LldapError): Failure {
  switch (error.kind) {
    case 'notFound':
      return new Failure(
        'Unavailable',
        'LldapUnavailable',
        `An object that the operator had just read no longer exists in lldap (${error.message}). The operator retries.`,
      );
    case 'unavailable':
      return new Failure(
        'Unavailable',
        'LldapUnavailable',
        `${sentence(error.message)} The operator retries. Check that lldap runs, and LLDAP_URL and LLDAP_LDAP_URL in the ConfigMap lldap-operator.`,
      );
    case 'unauthenticated':
      return new Failure(
        'Unauthenticated',
        'LldapUnauthenticated',
        `lldap refused the operator's credentials. Correct the Secret lldap-operator-credentials. (${error.message})`,
      );
    case 'unauthorized':
      return new Failure(
        'Unauthenticated',
        'LldapUnauthorized',
        `The operator's account is not an lldap administrator. Add it to lldap_admin. (${error.message})`,
      );
    case 'exists':
      return taken('NameTaken', sentence(error.message));
    case 'undefinedAttribute':
      return notReady(
        'DependencyNotReady',
        `lldap has no attribute ${error.attribute ?? ''}. Create an LldapAttributeSchema for it, or correct spec.attributes.`,
      );
    case 'refused':
      return invalid(
        'RefusedByLldap',
        `lldap refused ${error.attribute ? `the attribute ${error.attribute}` : 'a value'}: ${error.message}. Correct it.`,
      );
    case 'protected':
      return invalid('Protected', `lldap protects this object: ${error.message}`);
    case 'unforeseen':
      return new Failure('Bug', 'InternalError', `Unexpected answer from lldap: ${error.message}`);
  }
}

function sentence(text: string): string {
  return text.endsWith('.') ? text : `${text}.`;
}
