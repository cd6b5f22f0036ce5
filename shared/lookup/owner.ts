import type { LldapGroup, LldapGroupStatus, LldapUser } from '../kube/resources.ts';
import type { LldapClient, LldapGroupAccount } from '../lldap/api.ts';
import { type OwnedObject, type Owner, ownerByMark, ownerByRecord } from '../rules/ownership.ts';
import { refOf } from '../rules/resource-names.ts';
import type { Lookup } from './lookup.ts';

/**
 * The owner of an object in lldap, by the rules of {@link ownerByMark} and {@link ownerByRecord}.
 *
 * @param self the resource being reconciled; it declares the object's name or records the object
 */
export async function findOwner(lookup: Lookup, self: LldapUser | LldapGroup, object: OwnedObject, instance: string): Promise<Owner> {
  const { mark } = object;
  const isSelf = mark && refOf(self) === `${mark.namespace}/${mark.name}`;
  let named: LldapUser | LldapGroup | undefined = self;
  if (!isSelf) named = mark?.instance === instance ? await lookup.get(self.kind, mark.namespace, mark.name) : undefined;
  return (
    ownerByMark({ self, object, instance, named }) ??
    ownerByRecord({ self, object, recording: await lookup.recording(self.kind, object.uuid) })
  );
}

/** The group that a status records, if id and uuid both match: a restored lldap reuses ids. */
export async function recordedGroup(
  { lldap }: { lldap: LldapClient },
  { groupId, uuid }: LldapGroupStatus = {},
): Promise<LldapGroupAccount | undefined> {
  const group = groupId === undefined ? undefined : await lldap.group(groupId);
  return group?.uuid === uuid ? group : undefined;
}
