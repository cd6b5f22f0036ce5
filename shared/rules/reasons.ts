/** The reasons of conditions and of Kubernetes Events, with their meaning. The Troubleshooting page repeats this table word for word. */
export const REASONS = {
  Reconciled: 'lldap holds what the resource asks for.',
  Observed: 'managementPolicy is Observe, and lldap holds what the resource asks for.',
  WouldChange: 'managementPolicy is Observe, so the operator writes nothing. With Manage, it would change lldap. A person must decide.',
  Suspended: 'spec.suspend is true. The operator does nothing until it is false.',

  LldapUnavailable: 'lldap did not answer, or answered with an error of its own. Retried.',
  LldapUnauthenticated: "lldap refused the operator's credentials. Retried with the credentials read again.",
  LldapUnauthorized: "The operator's account is not an lldap administrator. Retried.",
  DeadlineExceeded: 'The reconcile ran out of time. Retried; it continues where it stopped.',

  DependencyNotReady:
    'A user, group or attribute that the resource names does not exist yet. Retried, and reconciled as soon as it exists.',
  DependenciesReady: 'Everything that the resource names exists.',
  FoundInLldap: 'lldap has the user and the group, and at least one of them belongs to no Ready resource.',
  SecretNotFound: "The password's Secret does not exist. Retried.",
  SecretKeyMissing: "The password's Secret lacks the key. Retried.",
  PasswordKeyMissing: "The Secret with the installation's password key does not exist yet. The startup function creates it. Retried.",
  UserNotPrivileged: 'Only users that a privileged namespace owns may join a built-in group. Retried.',
  AttributeInUse: 'The operator does not delete the definition of an attribute while a resource names it. Retried.',

  EmailTaken: 'Another user in lldap has the e-mail address. Retried.',
  NameTaken: 'Another group in lldap has the name. Retried.',
  Conflict: 'Another resource owns the object in lldap. Nothing is written. Retried.',

  NotOurs:
    'No resource of this installation owns the object in lldap, and this namespace may neither adopt it nor add members to it. A person must decide.',
  Forbidden: 'Only a privileged namespace may do this, or a namespace that the owner of the group allows. A person must decide.',
  Protected: "lldap's built-in objects and the operator's own account are never adopted, renamed or deleted. A person must decide.",
  InvalidValue: "A value in the spec, or the Secret's password, has the wrong form. A person must correct it.",
  ReadOnlyAttribute: 'lldap maintains this attribute itself. A person must remove it from the spec.',
  SchemaMismatch: 'lldap has the attribute with another definition, which it cannot edit. A person must decide.',
  PasswordTooShort: 'The password is shorter than the installation allows. A person must change the Secret.',
  RefusedByLldap: 'lldap refused a value. A person must correct it.',

  PasswordSynced: "lldap has the Secret's password.",
  PasswordNotManaged: 'passwordPolicy is Ignore: the operator does not manage the password.',
  PasswordInitialOnly: 'passwordPolicy is InitialOnly: a password was set once, and the operator leaves it as it is.',
  PasswordUnchecked: 'The reconcile failed before it reached the password.',

  RivalOperator: 'Another operator writes the status of the same resources. A person must stop one of the two.',
  StartupFailed: 'A run of startup met a problem. The Event names the setting to check. The next run tries again.',

  InternalError: "Unexpected error; the operator's log has the details. Retried.",
} as const;

export type Reason = keyof typeof REASONS;
