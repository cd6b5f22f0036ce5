import type { AttributeValue, LldapAttributeSchema } from '../kube/resources.ts';
import type { AttributeChange, AttributeDefinition } from '../lldap/api.ts';
import { foldId } from '../lldap/names.ts';
import { truncate } from '../platform/text.ts';
import { type Failure, invalid } from './failure.ts';

/** Custom attributes: checks the spec's values against their definitions, and compares them with lldap's. */

export type Definitions = ReadonlyMap<string, Definition>;

export type Definition = Pick<AttributeDefinition, 'type' | 'isList' | 'isReadonly'>;

/**
 * Why the spec's values do not fit their definitions, or undefined. lldap's own answer hides the cause
 * ("While deserializing attribute …"), so the types are checked here.
 */
export function checkAttributes(desired: readonly AttributeValue[] = [], definitions: Definitions): Failure | undefined {
  for (const { name, value } of desired) {
    const definition = definitions.get(foldId(name));
    if (!definition) continue;
    if (definition.isReadonly)
      return invalid('ReadOnlyAttribute', `spec.attributes: lldap maintains the attribute ${name} itself. Remove it from the spec.`);
    const values = nonEmptyValues(value);
    if (!definition.isList && values.length > 1)
      return invalid(
        'InvalidValue',
        `spec.attributes: ${name} has ${values.length} values, but its definition is not a list. Give one value, or define the attribute with isList: true.`,
      );
    const invalidValue = values.find((v) => canonical(definition.type, v) === undefined);
    if (invalidValue !== undefined)
      return invalid(
        'InvalidValue',
        `spec.attributes: ${name} is ${quote(invalidValue)}, which is not ${FORMS[definition.type]}. Correct the value.`,
      );
  }
  return undefined;
}

/** The definition that a schema asks for, with the API's defaults. */
export function desiredDefinition({ spec }: LldapAttributeSchema) {
  return {
    type: spec.attributeType,
    isList: spec.isList ?? false,
    isVisible: spec.isVisible ?? false,
    isEditable: spec.isEditable ?? false,
  };
}

/** The fields in which lldap's definition is not the one that a schema asks for. */
export function differingFields(schema: LldapAttributeSchema, definition: AttributeDefinition) {
  const desired = desiredDefinition(schema);
  return (Object.keys(desired) as (keyof typeof desired)[])
    .filter((field) => desired[field] !== definition[field])
    .map((field) => ({ field, desired: desired[field], observed: definition[field] }));
}

/**
 * The differences between the spec and lldap. Attributes that the spec does not name stay as they are.
 *
 * @param mark is written, too
 */
export function diffAttributes(
  desired: readonly AttributeValue[] = [],
  observed: readonly AttributeValue[],
  definitions: Definitions,
  mark?: AttributeValue,
): AttributeChange {
  const insertAttributes: AttributeValue[] = [];
  const removeAttributes: string[] = [];
  for (const { name, value } of desired) {
    const folded = foldId(name);
    const type = definitions.get(folded)?.type ?? 'String';
    const want = nonEmptyValues(value);
    const have = nonEmptyValues(observed.find((a) => foldId(a.name) === folded)?.value ?? []);
    if (want.length === have.length && want.every((v, i) => canonical(type, v) === canonical(type, have[i] ?? ''))) continue;
    if (want.length === 0) removeAttributes.push(folded);
    else insertAttributes.push({ name: folded, value: want });
  }
  if (mark) insertAttributes.push(mark);
  return { ...(insertAttributes.length > 0 && { insertAttributes }), ...(removeAttributes.length > 0 && { removeAttributes }) };
}

/** The fields and attributes of a change, by their names. */
export function changedFields({ insertAttributes = [], removeAttributes = [], ...fields }: AttributeChange & object): string {
  const attributes = [...insertAttributes.map(({ name }) => name), ...removeAttributes].map((name) => `the attribute ${name}`);
  return [...Object.keys(fields), ...attributes].join(' and ');
}

/** An empty list, or one empty string, means no value: lldap would store it as one. */
function nonEmptyValues(value: readonly string[]): string[] {
  return value.length === 1 && value[0] === '' ? [] : [...value];
}

const FORMS: Record<AttributeDefinition['type'], string> = {
  String: 'a string',
  Integer: 'a whole number from -9223372036854775808 to 9223372036854775807, in digits',
  DateTime: 'a time in the years 0000 to 9999 (UTC) with its zone, like 2026-01-31T12:00:00Z',
  JpegPhoto: 'a JPEG picture in base64 with its padding and without line breaks',
};

/**
 * One spelling for each value: lldap returns times in UTC and numbers without leading zeros. Undefined for a value that
 * lldap refuses, or returns in a form that it does not accept.
 */
export function canonical(type: AttributeDefinition['type'], value: string): string | undefined {
  switch (type) {
    case 'String':
      return value;
    case 'Integer':
      return canonicalInteger(value);
    case 'DateTime':
      return canonicalTime(value);
    case 'JpegPhoto':
      // Only lldap can tell whether the rest decodes.
      return value.startsWith('/9j/') && Buffer.from(value, 'base64').toString('base64') === value ? value : undefined;
  }
}

function canonicalInteger(value: string): string | undefined {
  if (!/^[+-]?\d{1,100}$/.test(value)) return undefined;
  const number = BigInt(value.replace(/^\+/, ''));
  return BigInt.asIntN(64, number) === number ? String(number) : undefined;
}

/** Of a value in a message, in UTF-16 code units. */
const MAX_QUOTED_LENGTH = 61;

const TIME = /^(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d):(\d\d)(?:\.(\d+))?([Zz]|[+-]\d\d:\d\d)$/;

/** Zones shift whole minutes; JavaScript's dates have no leap seconds and no nanoseconds, lldap's have both. */
function canonicalTime(value: string): string | undefined {
  const [, day, minute, second, fraction = '', zone = ''] = TIME.exec(value) ?? [];
  const [local, utc] = [isoTime(`${day}T${minute}Z`), isoTime(`${day}T${minute}${zone.toUpperCase()}`)];
  // Date takes the 30th of February for the 1st of March, and 24:00 for the next day.
  if (!local.startsWith(`${day}T${minute}`) || Number(second) > 60) return undefined;
  // In UTC the year may leave the four digits, and lldap then returns it with a sign.
  return /^\d{4}-/.test(utc) ? `${utc.slice(0, 17)}${second}.${fraction.slice(0, 9).padEnd(9, '0')}` : undefined;
}

function isoTime(text: string): string {
  const date = new Date(text);
  return Number.isNaN(date.getTime()) ? '' : date.toISOString();
}

function quote(value: string): string {
  return JSON.stringify(truncate(value, MAX_QUOTED_LENGTH));
}
