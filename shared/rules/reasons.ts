/** The reasons of conditions and of Kubernetes Events, each with what it means; the documentation is checked against this table. */
export const REASONS = {
  Reconciled: 'lldap holds what the resource asks for.',
  Suspended: 'spec.suspend is true: nothing is done until it is false again.',

  LldapUnavailable: 'lldap did not answer, or answered with an error of its own. Retried.',
  LldapUnauthenticated: 'lldap refused the operator’s credentials. Retried; the credentials are read again each time.',
  LldapUnauthorized: 'The operator’s account is not an lldap administrator. Retried.',
  DeadlineExceeded: 'The pass ran out of time, or its caller went away, before all was done. Retried, from where it stopped.',

  DependencyNotReady: 'A user, group or attribute that the resource names is not there yet. Retried, and woken as soon as it is.',
  DependenciesReady: 'Everything that the resource names is there.',
  FoundInLldap: 'The user and the group are in lldap, and at least one of them is no Ready resource’s.',
  SecretNotFound: 'The password’s Secret does not exist. Retried.',
  SecretKeyMissing: 'The password’s Secret lacks the key. Retried.',
  PasswordKeyMissing: 'The Secret with the installation’s password key does not exist yet; startup creates it. Retried.',
  UserNotPrivileged: 'A membership of a built-in group waits for a user that a privileged namespace owns. Retried.',
  AttributeInUse: 'An attribute’s definition is not deleted while resources use the attribute. Retried.',

  EmailTaken: 'Another user in lldap has the e-mail address. Retried.',
  NameTaken: 'Another group in lldap has the name. Retried.',
  Conflict: 'Another resource owns the object in lldap. Nothing is written; retried.',

  NotOurs: 'The object in lldap belongs to nobody, or to another installation, and this namespace may not adopt it. A person must decide.',
  Forbidden: 'Only a privileged namespace may do this. A person must decide.',
  Protected: 'lldap’s built-in groups and the operator’s own login are never taken over, renamed or deleted. A person must decide.',
  InvalidValue: 'A value in the spec, or the Secret’s password, is not of the form that it must have. A person must correct it.',
  ReadOnlyAttribute: 'lldap keeps this attribute itself. A person must remove it from the spec.',
  SchemaMismatch: 'lldap has the attribute with another definition, which cannot be edited. A person must decide.',
  PasswordTooShort: 'The password is shorter than the installation allows. A person must change the Secret.',
  RefusedByLldap: 'lldap refused a value. A person must correct it.',

  PasswordSynced: 'lldap has the Secret’s password.',
  PasswordNotManaged: 'passwordPolicy is Ignore: the password is not the operator’s.',
  PasswordInitialOnly: 'A password was set once; passwordPolicy InitialOnly leaves it as it is.',
  PasswordUnchecked: 'The pass failed before it came to the password.',

  RivalOperator: 'Another operator writes the status of the same resources. A person must stop one of the two.',
  StartupFailed: 'A run of startup met a problem, which the Event names with the setting to look at. The next run tries again.',

  InternalError: 'The operator met something it does not know; its log has the details. Retried.',
} as const;

export type Reason = keyof typeof REASONS;
