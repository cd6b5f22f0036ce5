import { MARK_ATTRIBUTE } from '../constants.ts';
import type { AttributeValue, LldapAttributeSchema, LldapGroup, LldapUser } from '../kube/resources.ts';
import { isBuiltInGroup } from '../lldap/names.ts';
import { type Failure, invalid, taken } from './failure.ts';
import { formatMark, type Mark, type Origin } from './owner-mark.ts';
import { isPrivileged, type Policy } from './policy.ts';
import { isLetGo } from './predicates.ts';
import { declaredName, refOf } from './resource-names.ts';

/** Whom an object in lldap belongs to, as found by {@link ownerByMark} and {@link ownerByRecord}. */
export type Owner =
  | { who: 'self'; origin: Origin; marked: boolean }
  /** `ref` is namespace/name. */
  | { who: 'other'; ref: string }
  /** Its mark names another installation. */
  | { who: 'foreign'; instance: string }
  /** `markNamespace`: of a mark whose resource is no more. */
  | { who: 'nobody'; markNamespace?: string; origin?: Origin };

/** An object as lldap has it; `name` is folded. */
export interface OwnedObject {
  uuid: string;
  name: string;
  mark: Mark | undefined;
}

type Owning = LldapUser | LldapGroup;

/**
 * The owner that an object's mark tells.
 *
 * 1. A mark of another installation: foreign.
 * 2. The resource that the mark names by uid.
 * 3. A resource of the same name but another uid (restored, or created again after its predecessor was told to keep the
 *    object) only if it declares the object's name or records the object: what a predecessor kept under another name stays.
 * 4. Neither counts once the operator has let the resource go.
 *
 * @param input.named the resource of the name in the mark, which may be `self`
 * @returns undefined where the mark tells nothing
 */
export function ownerByMark(input: { self: Owning; object: OwnedObject; instance: string; named: Owning | undefined }): Owner | undefined {
  const { self, object, instance, named } = input;
  const { mark } = object;
  if (!mark) return undefined;
  if (mark.instance !== instance) return { who: 'foreign', instance: mark.instance };
  if (!named || isLetGo(named)) return undefined;
  const isMeant = mark.uid === named.metadata.uid;
  if (!isMeant && declaredName(named) !== object.name && named.status?.uuid !== object.uuid) return undefined;
  return refOf(named) === refOf(self) ? { who: 'self', origin: mark.origin, marked: isMeant } : { who: 'other', ref: refOf(named) };
}

/**
 * The owner where the mark tells none: of the resources that record the object and declare its name, the oldest;
 * `self` also where it is about to rename the object. Else nobody.
 */
export function ownerByRecord(input: { self: Owning; object: OwnedObject; recording: readonly Owning[] }): Owner {
  const { self, object, recording } = input;
  const { mark } = object;
  const [owner] = recording
    .filter((r) => !isLetGo(r) && (declaredName(r) === object.name || refOf(r) === refOf(self)))
    .sort(
      (a, b) => a.metadata.creationTimestamp.localeCompare(b.metadata.creationTimestamp) || a.metadata.uid.localeCompare(b.metadata.uid),
    );
  if (!owner) return { who: 'nobody', ...(mark && { markNamespace: mark.namespace, origin: mark.origin }) };
  if (refOf(owner) !== refOf(self)) return { who: 'other', ref: refOf(owner) };
  return { who: 'self', origin: self.status?.origin ?? 'adopted', marked: false };
}

/** With what mark a resource may act on an object, or why it may not. */
type Standing = { origin: Origin; marked: boolean } | Failure;

/**
 * The rules of ownership, for an object that exists.
 *
 * 1. Ours: act. Without a mark, it is written again.
 * 2. Another's: write nothing, delete nothing; it may be freed.
 * 3. Another installation's: never.
 * 4. Nobody's: adopted by privileged namespaces, by the namespace that the mark names, or by all where the
 *    installation says so; naming somebody's account would otherwise be taking it over.
 *
 * @param what the object for a message, like `user alice`
 */
export function standing(owner: Owner, what: string, namespace: string, kind: string, policy: Policy): Standing {
  switch (owner.who) {
    case 'self':
      return { origin: owner.origin, marked: owner.marked };
    case 'other':
      return taken(
        'Conflict',
        `The ${what} in lldap belongs to the ${kind} ${owner.ref}; delete one of the two resources (with deletionPolicy: Retain on the one that shall hand it over), or use another name.`,
      );
    case 'foreign':
      return invalid(
        'NotOurs',
        `The ${what} in lldap belongs to the operator installation of instance "${owner.instance}"; use another name.`,
      );
    case 'nobody':
      if (policy.adoption === 'all' || isPrivileged(policy, namespace) || owner.markNamespace === namespace)
        return { origin: owner.markNamespace === namespace ? (owner.origin ?? 'adopted') : 'adopted', marked: false };
      return invalid(
        'NotOurs',
        owner.markNamespace === undefined
          ? `The ${what} is in lldap already and no resource made it; to take it over, declare it in a privileged namespace, or use another name.`
          : `The ${what} was left in lldap by a resource of the namespace ${owner.markNamespace}; to take it over, declare it there or in a privileged namespace, or use another name.`,
      );
  }
}

/** Accounts in one of lldap's built-in groups are written to from privileged namespaces only: they may have been promoted since. */
export function refusePrivilegedAccount(
  account: { id: string; groups: readonly { displayName: string }[] },
  namespace: string,
  policy: Policy,
): Failure | undefined {
  const group = account.groups.find((g) => isBuiltInGroup(g.displayName));
  if (!group || isPrivileged(policy, namespace)) return undefined;
  return invalid(
    'Forbidden',
    `The user ${account.id} is a member of ${group.displayName}, so only a resource in a privileged namespace may change it; move this resource there, or remove the user from the group.`,
  );
}

/** Whether a definition goes with its resource, and everybody's values with it: what it made and shall not keep, or a privileged namespace says to delete. */
export function mayUndefine({ spec, status, metadata }: LldapAttributeSchema, policy: Policy): boolean {
  if (spec.deletionPolicy === 'Retain') return false;
  return status?.created === true || (spec.deletionPolicy === 'Delete' && isPrivileged(policy, metadata.namespace));
}

/** The mark that this resource puts on an object, as an attribute. */
export function markFor({ metadata: { namespace, name, uid } }: Owning, origin: Origin, { instance }: Policy): AttributeValue {
  return { name: MARK_ATTRIBUTE, value: [formatMark({ instance, namespace, name, uid, origin })] };
}
