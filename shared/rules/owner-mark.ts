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
  /** lldap's uuid of the object that an update marked. A creation writes its mark and makes the object in one call. */
  objectUuid?: string;
}

type Attributes = { attributes: readonly AttributeValue[] };
type Marked = Attributes & { uuid: string };

export type Origin = 'created' | 'adopted';

const FORMAT = /^v([12]);([^;]+);([^;/]+)\/([^;/]+);(created|adopted)(?:;([-0-9A-Za-z]+)(?:;([-0-9A-Za-z]+))?)?$/;

/** `v2;<instance>;<namespace>/<name>;<origin>;<uid>[;<uuid of the object>]` */
export function formatMark({ instance, namespace, name, origin, uid, objectUuid }: Mark & { uid: string }): string {
  return ['v2', instance, `${namespace}/${name}`, origin, uid, ...(objectUuid ? [objectUuid] : [])].join(';');
}

/** Undefined for a text that is not a mark, which counts as no mark. */
export function parseMark(text: string | undefined): Mark | undefined {
  const [, version, instance, namespace, name, origin, uid, objectUuid] = FORMAT.exec(text ?? '') ?? [];
  if (!instance || !namespace || !name || !origin || (version === '2') !== (uid !== undefined)) return undefined;
  const mark: Mark = { instance, namespace, name, origin: origin === 'created' ? 'created' : 'adopted' };
  return { ...mark, ...(uid && { uid }), ...(objectUuid && { objectUuid }) };
}

/** The mark among an object's attributes. One that was written for another object counts as no mark: the update reached the wrong one. */
export function markOf(object: Marked): Mark | undefined {
  const mark = parseMark(attribute(object, MARK_ATTRIBUTE));
  return mark?.objectUuid === undefined || mark.objectUuid === object.uuid ? mark : undefined;
}

/** The owner according to an object's mark, in words. */
export function ownerText(kind: KindName, object: Marked): string {
  const mark = markOf(object);
  return mark ? `${kind} ${mark.namespace}/${mark.name}` : 'managed by no resource';
}

/** The first value of an attribute. */
export function attribute(object: Attributes, name: string): string | undefined {
  return object.attributes.find((a) => a.name === name)?.value[0];
}
