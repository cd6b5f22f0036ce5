import { FINALIZER, VIRTUAL_LABEL } from '../../shared/constants.ts';
import type { Policy } from '../../shared/rules/policy.ts';
import type { Moment } from './history.ts';
import type { AnyResource } from './kube-double.ts';
import { ADMIN, type Identity } from './lldap-double.ts';

/**
 * The rules of ownership, said once more and on their own: from the resources, the objects in lldap and the
 * configuration at one moment.
 */

export type RuleBook = Pick<Policy, 'instance' | 'operatorNamespace' | 'privilegedNamespaces' | 'adoption'>;

export interface MarkParts {
  instance: string;
  /** namespace/name. */
  ref: string;
  namespace: string;
  origin: string;
  /** Empty in marks of the first format. */
  uid: string;
}

/** @param uuid of the object that bears it: a mark that an update wrote names its object, and says nothing on another one */
export function readMark(text: string | undefined, uuid: string): MarkParts | undefined {
  const [version, instance = '', ref = '', origin = '', uid = '', of = uuid, ...rest] = (text ?? '').split(';');
  if (((version !== 'v1' || uid) && (version !== 'v2' || !uid)) || of !== uuid) return undefined;
  if (!instance || !/^[^/]+\/[^/]+$/.test(ref) || !['created', 'adopted'].includes(origin) || rest.length > 0) return undefined;
  return { instance, ref, namespace: ref.split('/')[0] ?? '', origin, uid };
}

export const refOf = (r: AnyResource) => `${r.metadata.namespace}/${r.metadata.name}`;
export const lower = (name: string) => name.toLowerCase();

/** The name that a user, a group or a definition declares, without case. */
export function declares(resource: AnyResource): string {
  switch (resource.kind) {
    case 'LldapUser':
      return lower(resource.spec.username);
    case 'LldapGroup':
      return lower(resource.spec.displayName);
    case 'LldapAttributeSchema':
      return lower(resource.spec.attributeName);
    case 'LldapMembership':
      return `${lower(resource.spec.userName)} in ${lower(resource.spec.groupName)}`;
  }
}

const BUILT_IN = new Set(['lldap_admin', 'lldap_password_manager', 'lldap_strict_readonly']);
export const isBuiltIn = (groupName: string) => BUILT_IN.has(lower(groupName));

export function isPrivileged(namespace: string, book: RuleBook): boolean {
  return namespace === book.operatorNamespace || book.privilegedNamespaces.has(namespace);
}

export function isVirtual(resource: AnyResource, book: RuleBook): boolean {
  return (
    resource.kind === 'LldapGroup' &&
    resource.metadata.labels?.[VIRTUAL_LABEL] === 'true' &&
    resource.metadata.namespace === book.operatorNamespace &&
    isBuiltIn(resource.spec.displayName)
  );
}

/** A person must help; of a definition: another one is there, so it does not get what it declares. */
export const isStalled = (r: AnyResource) => r.status?.conditions?.some((c) => c.type === 'Stalled' && c.status === 'True') ?? false;

/** It looks and neither owns nor writes anything but by a mark that it has. */
export const isLooking = (r: AnyResource) => r.spec.managementPolicy === 'Observe';

export const recordedUuid = (r: AnyResource) => (r.kind === 'LldapUser' || r.kind === 'LldapGroup' ? r.status?.uuid : undefined);

/** Another's finalizer holds it, and not ours. */
export const isLetGo = ({ metadata }: AnyResource) => metadata.deletionTimestamp !== undefined && !metadata.finalizers?.includes(FINALIZER);

/** Whose an object is, as one resource sees it or none: its own, another's, another installation's or nobody's. */
export function ownership(
  object: Identity,
  self: AnyResource | undefined,
  moment: Moment,
  book: RuleBook,
): 'self' | 'foreign' | 'nobody' | AnyResource {
  const isSelf = (ref: string) => self !== undefined && ref === refOf(self);
  const mark = readMark(object.mark, object.uuid);
  if (mark && mark.instance !== book.instance) return 'foreign';
  const named = mark && (isSelf(mark.ref) ? self : moment.resources.get(`${object.kind} ${mark.ref}`));
  const isMeant = (r: AnyResource) => mark?.uid === r.metadata.uid || declares(r) === lower(object.name) || recordedUuid(r) === object.uuid;
  if (named && (named === self || !isLetGo(named)) && isMeant(named)) return named === self ? 'self' : named;
  const recording = [...moment.resources.values()]
    .filter((r) => r.kind === object.kind && recordedUuid(r) === object.uuid && !isLetGo(r) && !isLooking(r))
    .filter((r) => declares(r) === lower(object.name) || isSelf(refOf(r)))
    .sort(
      (a, b) => a.metadata.creationTimestamp.localeCompare(b.metadata.creationTimestamp) || a.metadata.uid.localeCompare(b.metadata.uid),
    );
  const [owner] = recording;
  if (!owner) return 'nobody';
  return isSelf(refOf(owner)) ? 'self' : owner;
}

/** Whether a resource may write to an object that is there. */
export function mayWrite(object: Identity, self: AnyResource, moment: Moment, book: RuleBook): boolean {
  if (isUntouchable(object, self, book)) return false;
  const owner = ownership(object, self, moment, book);
  if (owner === 'self') return true;
  return owner === 'nobody' && mayAdopt(object, self.metadata.namespace, book);
}

export function mayAdopt(object: Identity, namespace: string, book: RuleBook): boolean {
  return book.adoption === 'all' || isPrivileged(namespace, book) || readMark(object.mark, object.uuid)?.namespace === namespace;
}

/** The operator's own login, lldap's own groups, and from ordinary namespaces whoever is in one of these. */
export function isUntouchable(object: Identity, self: AnyResource, book: RuleBook): boolean {
  if (object.kind === 'LldapGroup') return isBuiltIn(object.name);
  return object.name === ADMIN || (object.memberOf.some(isBuiltIn) && !isPrivileged(self.metadata.namespace, book));
}

/** Whether a resource that is being deleted may delete the object. */
export function mayDelete(object: Identity, self: AnyResource, moment: Moment, book: RuleBook): boolean {
  if ((self.kind !== 'LldapUser' && self.kind !== 'LldapGroup') || isLooking(self)) return false;
  if (isUntouchable(object, self, book) || ownership(object, self, moment, book) !== 'self') return false;
  if (self.spec.deletionPolicy !== undefined) return self.spec.deletionPolicy === 'Delete';
  const mark = readMark(object.mark, object.uuid);
  return (mark?.ref === refOf(self) ? mark.origin : self.status?.origin) === 'created';
}

/** Whether a resource that is being deleted may take its definition with it, as far as it is told: it made it, or is told to. */
export function mayTakeAway({ spec, status, metadata }: AnyResource, book: RuleBook): boolean {
  return (
    (status as { created?: boolean } | undefined)?.created === true ||
    (spec.deletionPolicy === 'Delete' && isPrivileged(metadata.namespace, book))
  );
}
