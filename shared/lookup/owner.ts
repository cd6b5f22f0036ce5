import type { LldapGroup, LldapGroupStatus, LldapUser, ResourceOf } from '../kube/resources.ts';
import type { LldapClient, LldapGroupAccount } from '../lldap/api.ts';
import { type ObjectOwner, type OwnedObject, type Owner, ownerByMark, ownerByRecord } from '../rules/ownership.ts';
import { refOf } from '../rules/resource-names.ts';
import type { Lookup } from './lookup.ts';

/**
 * The owner of an object in lldap, by the rules of {@link ownerByMark} and {@link ownerByRecord}, as one resource sees it.
 *
 * @param self the resource being reconciled; it declares the object's name or records the object
 */
export async function findOwner(lookup: Lookup, self: LldapUser | LldapGroup, object: OwnedObject, instance: string): Promise<Owner> {
  const owner = await findObjectOwner(lookup, self.kind, object, instance, self);
  if (owner.who !== 'resource') return owner;
  const { resource, origin, marked } = owner;
  return refOf(resource) === refOf(self) ? { who: 'self', origin, marked } : { who: 'other', ref: refOf(resource) };
}

/** As {@link findOwner}, with the owner itself. */
export async function findObjectOwner<K extends 'LldapUser' | 'LldapGroup'>(
  lookup: Lookup,
  kind: K,
  object: OwnedObject,
  instance: string,
  self?: ResourceOf[K],
): Promise<ObjectOwner<ResourceOf[K]>> {
  const { mark } = object;
  const isSelf = self && (!mark || refOf(self) === `${mark.namespace}/${mark.name}`);
  let named = self;
  if (!isSelf) named = mark?.instance === instance ? await lookup.get(kind, mark.namespace, mark.name) : undefined;
  return ownerByMark({ object, instance, named }) ?? ownerByRecord({ self, object, recording: await lookup.recording(kind, object.uuid) });
}

/** The group that a status records, if id and uuid both match: a restored lldap reuses ids. */
export async function recordedGroup(
  { lldap }: { lldap: LldapClient },
  { groupId, uuid }: LldapGroupStatus = {},
): Promise<LldapGroupAccount | undefined> {
  const group = groupId === undefined ? undefined : await lldap.group(groupId);
  return group?.uuid === uuid ? group : undefined;
}
