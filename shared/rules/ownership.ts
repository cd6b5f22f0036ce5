import { MARK_ATTRIBUTE } from '../constants.ts';
import type { AttributeValue, LldapAttributeSchema, LldapGroup, LldapUser } from '../kube/resources.ts';
import type { AttributeDefinition } from '../lldap/api.ts';
import { isBuiltInGroup } from '../lldap/names.ts';
import { differingFields } from './attributes.ts';
import { type Failure, invalid, taken } from './failure.ts';
import { formatMark, type Mark, type Origin } from './owner-mark.ts';
import { isPrivileged, type Policy } from './policy.ts';
import { isObserved, isReleased } from './predicates.ts';
import { declaredName, refOf } from './resource-names.ts';

type Owning = LldapUser | LldapGroup;

type Foreign = {
  who: 'foreign';
  /** Another installation, according to the mark. */
  instance: string;
};
type Nobody = {
  who: 'nobody';
  /** The namespace in a mark whose resource no longer exists. */
  markNamespace?: string;
  origin?: Origin;
};

/** The owner of an object in lldap; see {@link ownerByMark} and {@link ownerByRecord}. `marked`: whether the mark is the resource's own. */
export type ObjectOwner<R extends Owning = Owning> = { who: 'resource'; resource: R; origin: Origin; marked: boolean } | Foreign | Nobody;

/** The owner as one resource sees it; `ref` is namespace/name. */
export type Owner = { who: 'self'; origin: Origin; marked: boolean } | { who: 'other'; ref: string } | Foreign | Nobody;

/** An object in lldap; `name` is folded. */
export interface OwnedObject {
  uuid: string;
  name: string;
  mark: Mark | undefined;
}

/**
 * The owner according to an object's mark.
 *
 * 1. A mark of another installation: foreign.
 * 2. The resource that the mark names, if it has the mark's uid.
 * 3. With another uid (restored, or created again after its predecessor kept the object), only if it declares the
 *    object's name or records the object: an object that a predecessor kept under another name is not its own.
 * 4. Neither, once the operator has removed its finalizer from the resource.
 *
 * @param input.named the resource with the name in the mark
 * @returns undefined where the mark names no owner
 */
export function ownerByMark<R extends Owning>(input: {
  object: OwnedObject;
  instance: string;
  named: R | undefined;
}): Exclude<ObjectOwner<R>, Nobody> | undefined {
  const { object, instance, named } = input;
  const { mark } = object;
  if (!mark) return undefined;
  if (mark.instance !== instance) return { who: 'foreign', instance: mark.instance };
  if (!named || isReleased(named)) return undefined;
  const marked = mark.uid === named.metadata.uid;
  if (!marked && declaredName(named) !== object.name && named.status?.uuid !== object.uuid) return undefined;
  return { who: 'resource', resource: named, origin: mark.origin, marked };
}

/**
 * The owner where the mark names none: the oldest resource that records the object and declares its name. `self` counts
 * even if it declares another name, since it is about to rename the object. A resource under Observe owns only what a mark
 * says. Otherwise nobody.
 */
export function ownerByRecord<R extends Owning>(input: {
  self: Owning | undefined;
  object: OwnedObject;
  recording: readonly R[];
}): Exclude<ObjectOwner<R>, Foreign> {
  const { self, object, recording } = input;
  const { mark } = object;
  const [resource] = recording
    .filter((r) => !isReleased(r) && !isObserved(r) && (declaredName(r) === object.name || (self && refOf(r) === refOf(self))))
    .sort((a, b) => (ageOf(a) < ageOf(b) ? -1 : 1));
  if (!resource) return { who: 'nobody', ...(mark && { markNamespace: mark.namespace, origin: mark.origin }) };
  return { who: 'resource', resource, origin: resource.status?.origin ?? 'adopted', marked: false };
}

/** Orders resources from the oldest, and those of one second by uid. */
function ageOf({ metadata }: Owning): string {
  return `${metadata.creationTimestamp} ${metadata.uid}`;
}

/** The mark with which a resource may change an object, or why it may not. */
type Access = { origin: Origin; marked: boolean } | Failure;

/**
 * Decides whether a resource may change an existing object.
 *
 * 1. Its own object: yes. A missing mark is written again.
 * 2. Another resource's: no; retried, since the other may let it go.
 * 3. Another installation's: never.
 * 4. Nobody's: privileged namespaces adopt it, as does the namespace that the mark names. With `adoption: all`, every
 *    namespace does. Otherwise naming somebody's account would take it over.
 *
 * @param what the object in a message, like `user alice`
 */
export function authorize(owner: Owner, what: string, namespace: string, kind: string, policy: Policy): Access {
  switch (owner.who) {
    case 'self':
      return { origin: owner.origin, marked: owner.marked };
    case 'other':
      return taken(
        'Conflict',
        `The ${what} in lldap belongs to the ${kind} ${owner.ref}. Use another name, or delete one of the two resources. ${handOver(owner.ref, namespace, policy)}`,
      );
    case 'foreign':
      return invalid(
        'NotOurs',
        `The ${what} in lldap belongs to the operator installation of instance "${owner.instance}". Use another name.`,
      );
    case 'nobody':
      if (policy.adoption === 'all' || isPrivileged(policy, namespace) || owner.markNamespace === namespace)
        return { origin: owner.markNamespace === namespace ? (owner.origin ?? 'adopted') : 'adopted', marked: false };
      return invalid(
        'NotOurs',
        owner.markNamespace === undefined
          ? `The ${what} already exists in lldap and no resource owns it. Declare it in a privileged namespace to adopt it, or use another name.`
          : `A deleted resource of the namespace ${owner.markNamespace} left the ${what} in lldap. Declare it there or in a privileged namespace to adopt it, or use another name.`,
      );
  }
}

/** How the owner hands an object over: an ordinary namespace cannot adopt what another namespace left. */
function handOver(owner: string, namespace: string, policy: Policy): string {
  if (owner.startsWith(`${namespace}/`) || isPrivileged(policy, namespace) || policy.adoption === 'all')
    return `To hand the object over to this resource, set deletionPolicy: Retain on ${owner} before you delete it.`;
  return 'Only a resource in a privileged namespace can adopt the object as it is.';
}

/** Only privileged namespaces change members of built-in groups, who may have been promoted since their resource was created. */
export function refusePrivilegedAccount(
  account: { id: string; groups: readonly { displayName: string }[] },
  namespace: string,
  policy: Policy,
): Failure | undefined {
  const group = account.groups.find((g) => isBuiltInGroup(g.displayName));
  if (!group || isPrivileged(policy, namespace)) return undefined;
  return invalid(
    'Forbidden',
    `The user ${account.id} is a member of ${group.displayName}, so only a resource in a privileged namespace may change it. Move this resource there, or remove the user from the group.`,
  );
}

/**
 * Whether deleting a schema deletes lldap's definition and everybody's values: if lldap's is the one that the schema
 * asks for, and the schema created it or a privileged namespace says so.
 */
export function mayDeleteDefinition(schema: LldapAttributeSchema, definition: AttributeDefinition, policy: Policy): boolean {
  const { spec, status, metadata } = schema;
  if (spec.deletionPolicy === 'Retain' || definition.isHardcoded || differingFields(schema, definition).length > 0) return false;
  return status?.created === true || (spec.deletionPolicy === 'Delete' && isPrivileged(policy, metadata.namespace));
}

/**
 * A resource's mark for an object, as an attribute.
 *
 * @param objectUuid of the object that an update marks; lldap may have another object under its id when the update arrives
 */
export function markFor(resource: Owning, origin: Origin, { instance }: Policy, objectUuid?: string): AttributeValue {
  const { namespace, name, uid } = resource.metadata;
  return { name: MARK_ATTRIBUTE, value: [formatMark({ instance, namespace, name, uid, origin, ...(objectUuid && { objectUuid }) })] };
}
