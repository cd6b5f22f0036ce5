import type { AttributeValue } from '../kube/resources.ts';
import { MARK_ATTRIBUTE } from '../names.ts';

/** The owner's name on an object in lldap, written by the same call that creates the object. */
export interface Mark {
  instance: string;
  namespace: string;
  name: string;
  /** Whether the operator made the object, or took over one that was there. */
  origin: Origin;
}

export type Origin = 'created' | 'adopted';

const FORMAT = /^v1;([^;]+);([^;/]+)\/([^;/]+);(created|adopted)$/;

export function formatMark(mark: Mark): string {
  return `v1;${mark.instance};${mark.namespace}/${mark.name};${mark.origin}`;
}

/** Undefined for anything that is no mark of ours: such a value counts as none. */
export function parseMark(text: string | undefined): Mark | undefined {
  const [, instance, namespace, name, origin] = FORMAT.exec(text ?? '') ?? [];
  if (!instance || !namespace || !name || !origin) return undefined;
  return { instance, namespace, name, origin: origin === 'created' ? 'created' : 'adopted' };
}

/** The mark among an object's attributes. */
export function markOf(object: { attributes: readonly AttributeValue[] }): Mark | undefined {
  return parseMark(attribute(object, MARK_ATTRIBUTE));
}

/** The first value of an attribute. */
export function attribute(object: { attributes: readonly AttributeValue[] }, name: string): string | undefined {
  return object.attributes.find((a) => a.name === name)?.value[0];
}
