/** The names that the operator shares with the outside: API group, labels, events, built-in groups. */

export const API_GROUP = 'lldap-operator.lukidoescode.com';
export const API_VERSION = `${API_GROUP}/v1alpha1`;

export const INSTANCE_LABEL = `${API_GROUP}/lldap-instance`;
export const VIRTUAL_LABEL = `${API_GROUP}/virtual`;
export const REQUESTED_AT = `${API_GROUP}/requested-at`;
export const FINALIZER = `${API_GROUP}/cleanup`;

/** One manager for all functions: no manager can clear a field that another one owns. */
export const FIELD_MANAGER = 'lldap-operator';

/** The attribute in lldap that names an object's owner; hidden and not editable there. */
export const MARK_ATTRIBUTE = 'k8s-owner';

export const EVENT_TYPE = {
  reconcile: 'com.lukidoescode.lldap-operator.reconcile',
  requeue: 'com.lukidoescode.lldap-operator.requeue',
  startup: 'com.lukidoescode.lldap-operator.startup',
} as const;

/** lldap's own groups, recognised by name: its guards go by id and can be lost. */
export const BUILT_IN_GROUPS = ['lldap_admin', 'lldap_password_manager', 'lldap_strict_readonly'] as const;

/** The Secret (in the operator's namespace, made by startup) whose key `key` turns passwords into hashes for `status`. */
export const PASSWORD_KEY_SECRET = 'lldap-operator-password-key';
