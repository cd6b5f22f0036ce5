import { API_VERSION, FINALIZER, INSTANCE_LABEL } from '../../../shared/constants.ts';
import type {
  Condition,
  KindName,
  LldapAttributeSchema,
  LldapGroup,
  LldapMembership,
  LldapUser,
  ObjectMeta,
  ResourceOf,
} from '../../../shared/kube/resources.ts';
import type { AttributeDefinition, LldapAccount, LldapGroupAccount } from '../../../shared/lldap/api.ts';
import type { Failure } from '../../../shared/rules/failure.ts';
import type { Policy } from '../../../shared/rules/policy.ts';

/** Plain examples for the tests of pure functions; a test names only what it is about. */

export const INSTANCE = 'main';
export const OPERATOR_NAMESPACE = 'lldap-operator';

type Example<R extends ResourceOf[KindName]> = { spec?: Partial<R['spec']>; status?: R['status']; metadata?: Partial<ObjectMeta> };

function metadata(name: string, over: Partial<ObjectMeta> = {}): ObjectMeta {
  return {
    name,
    namespace: 'team',
    uid: `uid-${over.namespace ?? 'team'}-${name}`,
    resourceVersion: '1',
    generation: 1,
    creationTimestamp: '2026-03-01T10:00:00Z',
    labels: { [INSTANCE_LABEL]: INSTANCE },
    finalizers: [FINALIZER],
    ...over,
  };
}

export function user({ spec, status, metadata: meta }: Example<LldapUser> = {}): LldapUser {
  return {
    apiVersion: API_VERSION,
    kind: 'LldapUser',
    metadata: metadata(meta?.name ?? 'alice', meta),
    spec: { username: 'alice', email: 'alice@example.com', ...spec },
    ...(status && { status }),
  };
}

export function group({ spec, status, metadata: meta }: Example<LldapGroup> = {}): LldapGroup {
  return {
    apiVersion: API_VERSION,
    kind: 'LldapGroup',
    metadata: metadata(meta?.name ?? 'crew', meta),
    spec: { displayName: 'Crew', ...spec },
    ...(status && { status }),
  };
}

export function membership({ spec, status, metadata: meta }: Example<LldapMembership> = {}): LldapMembership {
  return {
    apiVersion: API_VERSION,
    kind: 'LldapMembership',
    metadata: metadata(meta?.name ?? 'alice-crew', meta),
    spec: { userName: 'alice', groupName: 'Crew', ...spec },
    ...(status && { status }),
  };
}

export function schema({ spec, status, metadata: meta }: Example<LldapAttributeSchema> = {}): LldapAttributeSchema {
  return {
    apiVersion: API_VERSION,
    kind: 'LldapAttributeSchema',
    metadata: metadata(meta?.name ?? 'shoe-size', meta),
    spec: { attributeName: 'shoe-size', attributeType: 'Integer', target: 'User', ...spec },
    ...(status && { status }),
  };
}

export function condition(type: string, status: Condition['status'], reason = 'Reconciled', over: Partial<Condition> = {}): Condition {
  return { type, status, reason, message: 'As it was.', lastTransitionTime: '2026-03-01T11:00:00Z', observedGeneration: 1, ...over };
}

export const READY = condition('Ready', 'True');

/** With its e-mail among the attributes, as lldap has it. */
export function account({ attributes = [], ...over }: Partial<LldapAccount> = {}): LldapAccount {
  const made = { id: 'alice', email: 'alice@example.com', uuid: 'uuid-alice', groups: [], ...over };
  return { ...made, attributes: [{ name: 'mail', value: [made.email] }, ...attributes] };
}

export function groupAccount(over: Partial<LldapGroupAccount> = {}): LldapGroupAccount {
  return { id: 7, uuid: 'uuid-crew', displayName: 'Crew', attributes: [], ...over };
}

export function definition(over: Partial<AttributeDefinition> = {}): AttributeDefinition {
  return {
    name: 'shoe-size',
    type: 'Integer',
    isList: false,
    isVisible: false,
    isEditable: false,
    isHardcoded: false,
    isReadonly: false,
    ...over,
  };
}

export function policy(over: Partial<Policy> = {}): Policy {
  return {
    instance: INSTANCE,
    operatorNamespace: OPERATOR_NAMESPACE,
    privilegedNamespaces: new Set(['admins']),
    adoption: 'privileged',
    operatorLogin: 'admin',
    passwordMinLength: 8,
    ...over,
  };
}

/** What a test compares of a failure. */
export function told(failure: Failure | undefined): [category: string, reason: string, message: string] | undefined {
  return failure && [failure.category, failure.reason, failure.message];
}
