import { MARK_ATTRIBUTE } from '../constants.ts';
import type { AttributeValue, KindName } from '../kube/resources.ts';

/** The owner of an object in lldap, written by the same call that creates the object. */
export interface Mark {
  instance: string;
  namespace: string;
  name: string;
  /** `metadata.uid` of the owner: another resource of the same name is not the owner. Absent in marks of the first format. */
  uid?: string;
  /** Whether the operator made the object, or took over one that was there. */
  origin: Origin;
}

export type Origin = 'created' | 'adopted';

const FORMAT = /^v([12]);([^;]+);([^;/]+)\/([^;/]+);(created|adopted)(?:;([-0-9A-Za-z]+))?$/;

/** `v2;<instance>;<namespace>/<name>;<origin>;<uid>`; without a uid, the first format. */
export function formatMark({ instance, namespace, name, origin, uid }: Mark): string {
  return `${uid ? 'v2' : 'v1'};${instance};${namespace}/${name};${origin}${uid ? `;${uid}` : ''}`;
}

/** Undefined for anything that is no mark of ours: such a value counts as none. */
export function parseMark(text: string | undefined): Mark | undefined {
  const [, version, instance, namespace, name, origin, uid] = FORMAT.exec(text ?? '') ?? [];
  if (!instance || !namespace || !name || !origin || (version === '2') !== (uid !== undefined)) return undefined;
  return { instance, namespace, name, origin: origin === 'created' ? 'created' : 'adopted', ...(uid && { uid }) };
}

/** The mark among an object's attributes. */
export function markOf(object: { attributes: readonly AttributeValue[] }): Mark | undefined {
  return parseMark(attribute(object, MARK_ATTRIBUTE));
}

/** The owner of an object by its mark, for a message. */
export function ownerText(kind: KindName, object: { attributes: readonly AttributeValue[] }): string {
  const mark = markOf(object);
  return mark ? `${kind} ${mark.namespace}/${mark.name}` : 'managed by no resource';
}

/** The first value of an attribute. */
export function attribute(object: { attributes: readonly AttributeValue[] }, name: string): string | undefined {
  return object.attributes.find((a) => a.name === name)?.value[0];
}
