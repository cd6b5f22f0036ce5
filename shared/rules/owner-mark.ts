import { MARK_ATTRIBUTE } from '../constants.ts';
import type { AttributeValue, KindName } from '../kube/resources.ts';

/** The owner of an object, kept in an attribute of the object in lldap and written by the call that creates it. */
export interface Mark {
  instance: string;
  namespace: string;
  name: string;
  /** `metadata.uid` of the owner, since another resource may take its name. Absent in marks of the first format. */
  uid?: string;
  /** Whether the operator created the object or adopted an existing one. */
  origin: Origin;
}

export type Origin = 'created' | 'adopted';

const FORMAT = /^v([12]);([^;]+);([^;/]+)\/([^;/]+);(created|adopted)(?:;([-0-9A-Za-z]+))?$/;

/** `v2;<instance>;<namespace>/<name>;<origin>;<uid>`; without a uid, the first format. */
export function formatMark({ instance, namespace, name, origin, uid }: Mark): string {
  return `${uid ? 'v2' : 'v1'};${instance};${namespace}/${name};${origin}${uid ? `;${uid}` : ''}`;
}

/** Undefined for a text that is not a mark, which counts as no mark. */
export function parseMark(text: string | undefined): Mark | undefined {
  const [, version, instance, namespace, name, origin, uid] = FORMAT.exec(text ?? '') ?? [];
  if (!instance || !namespace || !name || !origin || (version === '2') !== (uid !== undefined)) return undefined;
  return { instance, namespace, name, origin: origin === 'created' ? 'created' : 'adopted', ...(uid && { uid }) };
}

/** The mark among an object's attributes. */
export function markOf(object: { attributes: readonly AttributeValue[] }): Mark | undefined {
  return parseMark(attribute(object, MARK_ATTRIBUTE));
}

/** The owner according to an object's mark, in words. */
export function ownerText(kind: KindName, object: { attributes: readonly AttributeValue[] }): string {
  const mark = markOf(object);
  return mark ? `${kind} ${mark.namespace}/${mark.name}` : 'managed by no resource';
}

/** The first value of an attribute. */
export function attribute(object: { attributes: readonly AttributeValue[] }, name: string): string | undefined {
  return object.attributes.find((a) => a.name === name)?.value[0];
}
