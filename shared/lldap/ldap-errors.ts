import { LldapError } from './api.ts';

/**
 * Classifies an error of `ldapts`. A numeric `code` is lldap's result code, a text is Node's, and lost connections and
 * timeouts have only a message. Messages are never repeated: lldap's contain DNs, and may contain more in later versions.
 */
export function ldapError(error: unknown): LldapError {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (typeof code === 'number') return resultError(code, error);
  if (typeof code === 'string') return new LldapError('unavailable', `no connection to lldap's LDAP port (${code})`);
  if (isAbout(error, 'Connection timeout')) return new LldapError('unavailable', "no connection to lldap's LDAP port in time");
  if (isAbout(error, 'Operation timed out')) return new LldapError('unavailable', "lldap's LDAP port does not answer in time");
  return new LldapError('unavailable', "the connection to lldap's LDAP port was lost");
}

function resultError(code: number, error: unknown): LldapError {
  switch (code) {
    case 1:
      // For the password of a user that does not exist, lldap answers an internal error.
      if (isAbout(error, 'EntityNotFound')) return new LldapError('notFound', 'lldap does not have the user');
      break;
    case 34:
    case 64:
      return new LldapError('refused', "lldap's LDAP port does not accept the name made of the user id and the base DN");
    case 49:
      return new LldapError('unauthenticated', "lldap's LDAP port refuses the credentials of the operator");
    case 50:
      return new LldapError('unauthorized', "lldap does not allow the operator's account to set this password: it must be in lldap_admin");
    case 51:
    case 52:
      return new LldapError('unavailable', `lldap's LDAP port is not ready (result ${code})`);
  }
  return new LldapError('unforeseen', `lldap's LDAP port answers with an error (result ${code})`);
}

function isAbout(error: unknown, text: string): boolean {
  return error instanceof Error && error.message.includes(text);
}
