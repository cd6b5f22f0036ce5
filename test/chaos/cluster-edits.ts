import { REQUESTED_AT } from '../../shared/constants.ts';
import type { KindName } from '../../shared/kube/resources.ts';
import { LABELS } from './installation.ts';
import { type AnyResource, FOREIGN_CONDITION } from './kube-double.ts';
import { declares } from './ownership-oracle.ts';
import type { Place, Steps } from './schedule.ts';
import type { World } from './world.ts';

/** What users and other controllers do in the cluster; what the API server would refuse does not happen. */
export const PEOPLE: Steps<World, 'apply' | 'delete' | 'request' | 'touch' | 'label' | 'secret'> = {
  apply(world, { kind, at, spec }) {
    const { namespace, name } = split(at);
    const current = world.kube.get(kind, namespace, name);
    if (!current) world.kube.create(kind, namespace, name, LABELS, spec);
    else if (mayBecome(current, spec)) world.kube.changeSpec(current, spec);
  },
  delete(world, { kind, at }) {
    const current = found(world, kind, at);
    if (current) world.kube.delete(current);
  },
  request(world, { kind, at, token }) {
    const current = found(world, kind, at);
    if (current) world.kube.changeMetadata(current, { annotations: { ...current.metadata.annotations, [REQUESTED_AT]: token } });
  },
  touch(world, { kind, at, what }) {
    const current = found(world, kind, at);
    if (!current) return;
    world.count('kube: another controller writes');
    const version = current.metadata.resourceVersion;
    if (what === 'annotation') world.kube.changeMetadata(current, { annotations: { ...current.metadata.annotations, audited: version } });
    else if (what === 'condition') world.kube.changeStatus(current, { ...current.status, conditions: audited(current) });
    else world.kube.changeMetadata(current, { finalizers: toggled(current.metadata.finalizers ?? [], current) });
  },
  label(world, { namespace, team }) {
    world.kube.namespaceLabels = new Map(world.kube.namespaceLabels).set(namespace, team === null ? {} : { team });
    world.history.note(false);
    world.isLossy = true;
    world.count('kube: a namespace gets another label');
  },
  secret(world, { at, data, labelled }) {
    const { namespace, name } = split(at);
    if (data === null) {
      world.kube.deleteSecret(at);
      return;
    }
    const encoded = Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')]));
    world.kube.putSecret({ metadata: { name, namespace, labels: labelled ? LABELS : {} }, data: encoded });
  },
};

function split(at: Place): { namespace: string; name: string } {
  const [namespace = '', name = ''] = at.split('/');
  return { namespace, name };
}

function found(world: World, kind: KindName, at: Place): AnyResource | undefined {
  const { namespace, name } = split(at);
  return world.kube.get(kind, namespace, name);
}

/** What the rules of the CRDs let a spec become. */
function mayBecome(current: AnyResource, spec: AnyResource['spec']): boolean {
  const next = { ...current, spec } as AnyResource;
  if (current.kind === 'LldapGroup') return true;
  if (declares(next) !== declares(current)) return false;
  if (current.kind !== 'LldapAttributeSchema' || next.kind !== 'LldapAttributeSchema') return true;
  const fixed = ({ attributeType, target, isList, isVisible, isEditable }: typeof current.spec) =>
    JSON.stringify([attributeType, target, isList, isVisible, isEditable]);
  return fixed(current.spec) === fixed(next.spec);
}

function audited({ status, metadata }: AnyResource) {
  const lastTransitionTime = metadata.creationTimestamp;
  const rest = (status?.conditions ?? []).filter((c) => c.type !== FOREIGN_CONDITION);
  const message = `at ${metadata.resourceVersion}`;
  return [...rest, { type: FOREIGN_CONDITION, status: 'True' as const, reason: 'Audited', message, lastTransitionTime }];
}

const FOREIGN_FINALIZER = 'example.com/audit';

/** To what is being deleted nobody may add one. */
function toggled(finalizers: readonly string[], { metadata }: AnyResource): string[] {
  if (finalizers.includes(FOREIGN_FINALIZER)) return finalizers.filter((f) => f !== FOREIGN_FINALIZER);
  return metadata.deletionTimestamp === undefined ? [FOREIGN_FINALIZER, ...finalizers] : [...finalizers];
}
