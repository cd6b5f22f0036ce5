import type { ReconcileContext } from '../../shared/engine/context.ts';
import type { LldapGroup } from '../../shared/kube/resources.ts';
import type { LldapGroupAccount } from '../../shared/lldap/api.ts';
import { foldGroupName } from '../../shared/lldap/names.ts';
import { findObjectOwner } from '../../shared/lookup/owner.ts';
import { type Admission, admit, dependsOnLabels } from '../../shared/rules/consent.ts';
import { markOf } from '../../shared/rules/owner-mark.ts';
import type { ObjectOwner } from '../../shared/rules/ownership.ts';
import { isPrivileged } from '../../shared/rules/policy.ts';

type MembershipContext = ReconcileContext<'LldapMembership'>;

/** `isOthers`: a resource of another namespace owns the group. */
export type Judgement = Admission & { isOthers: boolean };

/**
 * Whether a group's owner admits the memberships of a namespace; see {@link admit}.
 *
 * @param group as just read from lldap
 * @param known a resource that was just read and may be the owner
 */
export async function judge(
  context: MembershipContext,
  group: LldapGroupAccount,
  { namespace = context.resource.metadata.namespace, known }: { namespace?: string; known?: LldapGroup | undefined } = {},
): Promise<Judgement> {
  const { io, policy } = context;
  const owner = await ownerOf(context, group, namespace, known);
  const resource = owner.who === 'resource' ? owner.resource : undefined;
  const isSelected = resource !== undefined && dependsOnLabels(resource, namespace);
  const labels = isSelected ? await io.kube.namespaceLabels(namespace) : undefined;
  const isOthers = resource !== undefined && resource.metadata.namespace !== namespace;
  return { ...admit({ owner, groupName: group.displayName, namespace, labels }, policy), isOthers };
}

/** A privileged namespace needs no consent, so the owner is not looked up for it. */
async function ownerOf(
  { io, policy }: MembershipContext,
  group: LldapGroupAccount,
  namespace: string,
  known: LldapGroup | undefined,
): Promise<ObjectOwner<LldapGroup>> {
  const object = { uuid: group.uuid, name: foldGroupName(group.displayName), mark: markOf(group) };
  if (isPrivileged(policy, namespace) && (!object.mark || object.mark.instance === policy.instance)) return { who: 'nobody' };
  return findObjectOwner(io.lookup, 'LldapGroup', object, policy.instance, known);
}
