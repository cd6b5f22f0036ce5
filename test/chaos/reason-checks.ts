import type { LldapAttributeSchema, LldapGroup, LldapMembership, LldapUser } from '../../shared/kube/resources.ts';
import { fold } from '../local/lldap/definitions.ts';
import { answerTo, holds } from './final-checks.ts';
import type { AnyResource } from './kube-double.ts';
import { ADMIN, type Identity } from './lldap-double.ts';
import {
  declares,
  isBuiltIn,
  isLooking,
  isPrivileged,
  isStalled,
  isUntouchable,
  isVirtual,
  lower,
  mayAdopt,
  mayTakeAway,
  ownership,
  readMark,
  recordedUuid,
  refOf,
} from './ownership-oracle.ts';
import type { World } from './world.ts';

/** Whether what a resource gives as the reason for not being Ready is so, in the end, when nothing fails any more. */
export function justified(world: World, resource: AnyResource, reason: string): boolean {
  if (reason === 'WouldChange') return isLooking(resource) && !holds(world, resource);
  switch (resource.kind) {
    case 'LldapUser':
      return userReason(world, resource, reason);
    case 'LldapGroup':
      return groupReason(world, resource, reason);
    case 'LldapMembership':
      return membershipReason(world, resource, reason);
    case 'LldapAttributeSchema':
      return schemaReason(world, resource, reason);
  }
}

function userReason(world: World, resource: LldapUser, reason: string): boolean {
  const { users } = world.lldap.state;
  const object = world.history.current.objects.find((o) => o.kind === 'LldapUser' && o.name === declares(resource));
  switch (reason) {
    case 'Protected':
      return declares(resource) === ADMIN;
    case 'Forbidden':
      return object !== undefined && isUntouchable(object, resource, world.book);
    case 'EmailTaken':
      return [...users.values()].some((u) => u.id !== declares(resource) && lower(u.email) === lower(resource.spec.email));
    case 'SecretNotFound':
    case 'SecretKeyMissing':
    case 'PasswordTooShort':
      return passwordReason(world, resource) === reason;
    default:
      return ownerReason(world, resource, object, reason) || attributeReason(world, resource, 'User', reason);
  }
}

function passwordReason({ kube, book: _book }: World, { spec, metadata }: LldapUser): string | undefined {
  const ref = spec.passwordSecretRef;
  if (!ref || spec.passwordPolicy === 'Ignore') return undefined;
  const secret = kube.secrets.get(`${metadata.namespace}/${ref.name}`);
  if (!secret) return 'SecretNotFound';
  const data = secret.data?.[ref.key];
  if (data === undefined) return 'SecretKeyMissing';
  return Buffer.from(data, 'base64').toString().length < 8 ? 'PasswordTooShort' : undefined;
}

function groupReason(world: World, resource: LldapGroup, reason: string): boolean {
  const { objects } = world.history.current;
  const recorded = objects.find((o) => o.kind === 'LldapGroup' && o.uuid === resource.status?.uuid);
  const named = objects.find((o) => o.kind === 'LldapGroup' && lower(o.name) === declares(resource));
  switch (reason) {
    case 'Protected':
      return isBuiltIn(resource.spec.displayName) || (recorded !== undefined && isBuiltIn(recorded.name));
    case 'NameTaken':
      return named !== undefined && named.uuid !== recorded?.uuid;
    default:
      return [recorded, named].some((o) => ownerReason(world, resource, o, reason)) || attributeReason(world, resource, 'Group', reason);
  }
}

function ownerReason(world: World, resource: AnyResource, object: Identity | undefined, reason: string): boolean {
  if (!object) return false;
  const owner = ownership(object, resource, world.history.current, world.book);
  if (reason === 'Conflict') return typeof owner === 'object';
  if (reason !== 'NotOurs') return false;
  return owner === 'foreign' || (owner === 'nobody' && !mayAdopt(object, resource.metadata.namespace, world.book));
}

const isReady = (r: AnyResource) => r.status?.conditions?.some((c) => c.type === 'Ready' && c.status === 'True') ?? false;
/** Why it is not Ready; empty if it is. */
export const reasonOf = (r: AnyResource | undefined) =>
  r?.status?.conditions?.find((c) => c.type === 'Ready' && c.status === 'False')?.reason ?? '';
const NOT_SERIOUS = ['Conflict', 'NotOurs', 'Forbidden', 'Protected'];

/** Whether one is rightly waited for: none is Ready, and lldap has none, or one that is theirs who are to come. */
function isAwaited(declaring: AnyResource[], isThere: boolean, isIts: (resource: AnyResource) => boolean): boolean {
  const serious = declaring.filter(
    (r) => !isLooking(r) && !NOT_SERIOUS.includes(reasonOf(r)) && !(r.kind === 'LldapAttributeSchema' && isStalled(r)),
  );
  if (serious.some((r) => isReady(r) && r.metadata.deletionTimestamp === undefined)) return false;
  return !isThere || serious.some(isIts);
}

/** Whether a resource has made or adopted the object. */
function isOf(resource: AnyResource, object: Identity | undefined): boolean {
  return object !== undefined && (recordedUuid(resource) === object.uuid || readMark(object.mark, object.uuid)?.ref === refOf(resource));
}

function attributeReason(world: World, resource: LldapUser | LldapGroup, target: 'User' | 'Group', reason: string): boolean {
  const definitions = world.lldap.state.definitions[target === 'User' ? 'user' : 'group'];
  return (resource.spec.attributes ?? []).some(({ name, value }) => {
    const definition = definitions.get(fold(name));
    if (reason === 'DependencyNotReady') {
      const declaring = world.kube.all('LldapAttributeSchema').filter((s) => s.spec.target === target && declares(s) === lower(name));
      const isLeaving = (s: AnyResource) => s.metadata.deletionTimestamp !== undefined && mayTakeAway(s, world.book) && holds(world, s);
      return isAwaited(declaring, definition !== undefined, isLeaving);
    }
    const isWrong = definition?.attributeType === 'INTEGER' && value.some((v) => v !== '' && !/^[+-]?\d+$/.test(v));
    return reason === 'InvalidValue' && (isWrong || (definition?.isList === false && value.length > 1));
  });
}

function membershipReason(world: World, resource: LldapMembership, reason: string): boolean {
  const { userName, groupName } = resource.spec;
  const user = world.history.current.objects.find((o) => o.kind === 'LldapUser' && o.name === lower(userName));
  const group = world.history.current.objects.find((o) => o.kind === 'LldapGroup' && lower(o.name) === lower(groupName));
  const answer = answerTo(world, resource);
  switch (reason) {
    case 'Forbidden':
      return answer === 'no' || answer === 'out' || (isBuiltIn(groupName) && !isPrivileged(resource.metadata.namespace, world.book));
    case 'NotOurs':
      return answer === 'nobody' || answer === 'foreign';
    case 'UserNotPrivileged': {
      const mark = user && readMark(user.mark, user.uuid);
      return isBuiltIn(groupName) && !(mark?.instance === world.book.instance && isPrivileged(mark.namespace, world.book));
    }
    case 'DependencyNotReady': {
      const declaringUser = world.kube.all('LldapUser').filter((u) => declares(u) === lower(userName));
      const declaringGroup = world.kube
        .all('LldapGroup')
        .filter((g) => declares(g) === lower(groupName) && (!isBuiltIn(groupName) || isVirtual(g, world.book)));
      return (
        answer === 'handed over' ||
        isAwaited(declaringUser, user !== undefined, (u) => isOf(u, user)) ||
        isAwaited(declaringGroup, group !== undefined, (g) => isVirtual(g, world.book) || isOf(g, group))
      );
    }
    default:
      return false;
  }
}

function schemaReason(world: World, resource: LldapAttributeSchema, reason: string): boolean {
  const { definitions } = world.lldap.state;
  const { target, attributeName } = resource.spec;
  const definition = definitions[target === 'User' ? 'user' : 'group'].get(fold(attributeName));
  switch (reason) {
    case 'SchemaMismatch':
      return definition !== undefined && !holds(world, resource);
    case 'RefusedByLldap':
      return definition === undefined && definitions[target === 'User' ? 'group' : 'user'].has(fold(attributeName));
    case 'AttributeInUse':
      return [...world.kube.all('LldapUser'), ...world.kube.all('LldapGroup')].some(
        (r) => r.kind === `Lldap${target}` && r.spec.attributes?.some((a) => lower(a.name) === declares(resource)),
      );
    default:
      return false;
  }
}
