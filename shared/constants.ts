/** Names that are visible outside of the operator: API group, labels, events, built-in groups. */

export const API_GROUP = 'lldap-operator.lukidoescode.com';
export const API_VERSION = `${API_GROUP}/v1alpha1`;

export const INSTANCE_LABEL = `${API_GROUP}/lldap-instance`;
export const VIRTUAL_LABEL = `${API_GROUP}/virtual`;
export const REQUESTED_AT = `${API_GROUP}/requested-at`;
export const FINALIZER = `${API_GROUP}/cleanup`;

/** One field manager for all functions, because no manager can remove a field that another one owns. */
export const FIELD_MANAGER = 'lldap-operator';

/** The attribute in lldap that names an object's owner. It is neither visible nor editable there. */
export const MARK_ATTRIBUTE = 'k8s-owner';

export const EVENT_TYPE = {
  reconcile: 'com.lukidoescode.lldap-operator.reconcile',
  requeue: 'com.lukidoescode.lldap-operator.requeue',
  startup: 'com.lukidoescode.lldap-operator.startup',
} as const;

/** lldap's own groups, recognized by name. lldap protects them by id, which may change. */
export const BUILT_IN_GROUPS = ['lldap_admin', 'lldap_password_manager', 'lldap_strict_readonly'] as const;

/** The Secret in the operator's namespace, created by startup, whose `key` keys the password hashes in `status`. */
export const PASSWORD_KEY_SECRET = 'lldap-operator-password-key';
