import type { API_VERSION } from '../constants.ts';

/** The custom resources as the API server returns them. Their validation is in `crds/`. */

export interface ObjectMeta {
  name: string;
  namespace: string;
  uid: string;
  resourceVersion: string;
  generation: number;
  creationTimestamp: string;
  deletionTimestamp?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  finalizers?: string[];
}

export interface Condition {
  type: string;
  status: 'True' | 'False' | 'Unknown';
  reason: string;
  message: string;
  lastTransitionTime: string;
  observedGeneration?: number;
}

export type Category = 'Unavailable' | 'Unauthenticated' | 'NotReady' | 'Taken' | 'Invalid' | 'Bug';

/** The next retry. Its reconcile event carries `nextTime` as `notbefore`. */
export interface Retry {
  /** RFC 3339 with milliseconds; absent when the broker did not accept the requeue event. */
  nextTime?: string;
  /** Attempts so far, from 1, for this generation and category. */
  attempts: number;
  category: Category;
}

export interface CommonSpec {
  /** `Observe` writes nothing to lldap. */
  managementPolicy?: 'Manage' | 'Observe';
  deletionPolicy?: 'Delete' | 'Retain';
  suspend?: boolean;
}

export interface CommonStatus {
  /** Whether the condition Ready is True; selectable. */
  ready?: boolean;
  /** The generation of the last reconcile that recorded its outcome, successful or not. */
  observedGeneration?: number;
  conditions?: Condition[];
  retry?: Retry;
  lastHandledReconcileAt?: string;
}

export interface AttributeValue {
  name: string;
  value: string[];
}

export interface LldapUserSpec extends CommonSpec {
  username: string;
  email: string;
  displayName?: string;
  firstName?: string;
  lastName?: string;
  attributes?: AttributeValue[];
  passwordPolicy?: 'Manage' | 'InitialOnly' | 'Ignore';
  passwordSecretRef?: { name: string; key: string };
}

/** The status of a resource that owns an object in lldap. */
interface OwningStatus extends CommonStatus {
  /** The folded name that the resource declares; selectable. */
  nameKey?: string;
  /** lldap's uuid; selectable. */
  uuid?: string;
  /** Whether the operator created the object; a copy of the mark's origin, in case the mark is lost. */
  origin?: 'created' | 'adopted';
}

export interface LldapUserStatus extends OwningStatus {
  passwordHash?: string;
  passwordModifiedAt?: string;
  /** Under Observe: whether the password with that hash worked, when lldap's date was this one. */
  passwordTried?: { hash: string; fits: boolean; modifiedAt?: string };
}

export interface LldapGroupSpec extends CommonSpec {
  displayName: string;
  attributes?: AttributeValue[];
  /** Which memberships may join. Absent: those of the group's own namespace, and nobody else's are removed. */
  allowedMemberships?: { namespaces: AllowedNamespaces };
}

export interface AllowedNamespaces {
  from: 'Same' | 'All' | 'Selector';
  /** Of the namespaces' labels, with `Selector`. */
  selector?: LabelSelector;
}

export interface LabelSelector {
  matchLabels?: Record<string, string>;
  matchExpressions?: { key: string; operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist'; values?: string[] }[];
}

export interface LldapGroupStatus extends OwningStatus {
  groupId?: number;
}

export interface LldapMembershipSpec extends CommonSpec {
  userName: string;
  groupName: string;
}

export interface Joined {
  userUuid: string;
  groupId: number;
  /** Selectable. */
  groupUuid: string;
  /** Which of the two names a resource declared at the time. For the other, the object in lldap counted. */
  declared?: AttributeTarget[];
}

export interface LldapMembershipStatus extends CommonStatus {
  /** Folded names; selectable. */
  userKey?: string;
  groupKey?: string;
  joined?: Joined;
  /** A join of a built-in group, or of another namespace's group, whose result is not recorded yet. */
  joining?: Joined;
}

export type AttributeType = 'String' | 'Integer' | 'JpegPhoto' | 'DateTime';
export type AttributeTarget = 'User' | 'Group';

export interface LldapAttributeSchemaSpec extends CommonSpec {
  attributeName: string;
  attributeType: AttributeType;
  target: AttributeTarget;
  isList?: boolean;
  isVisible?: boolean;
  isEditable?: boolean;
}

export interface LldapAttributeSchemaStatus extends CommonStatus {
  /** Whether lldap confirmed that the operator created the definition. */
  created?: boolean;
}

export interface Resource<K extends KindName = KindName, Spec extends CommonSpec = CommonSpec, Status extends CommonStatus = CommonStatus> {
  apiVersion: typeof API_VERSION;
  kind: K;
  metadata: ObjectMeta;
  spec: Spec;
  status?: Status;
}

export type LldapUser = Resource<'LldapUser', LldapUserSpec, LldapUserStatus>;
export type LldapGroup = Resource<'LldapGroup', LldapGroupSpec, LldapGroupStatus>;
export type LldapMembership = Resource<'LldapMembership', LldapMembershipSpec, LldapMembershipStatus>;
export type LldapAttributeSchema = Resource<'LldapAttributeSchema', LldapAttributeSchemaSpec, LldapAttributeSchemaStatus>;

/** Kind to plural: the only place where an event's kind becomes part of a path. */
export const PLURALS = {
  LldapUser: 'lldapusers',
  LldapGroup: 'lldapgroups',
  LldapMembership: 'lldapmemberships',
  LldapAttributeSchema: 'lldapattributeschemas',
} as const;

export type KindName = keyof typeof PLURALS;

export interface ResourceOf {
  LldapUser: LldapUser;
  LldapGroup: LldapGroup;
  LldapMembership: LldapMembership;
  LldapAttributeSchema: LldapAttributeSchema;
}
