import { createHash } from 'node:crypto';
import { badValue, Refusal } from './texts.ts';

/** Attribute values as lldap stores them: integers canonical, instants in UTC, all else as it was given. */

export type AttributeType = 'STRING' | 'INTEGER' | 'JPEG_PHOTO' | 'DATE_TIME';

/** Throws lldap's one error for a bad integer, date, picture or number of values alike. */
export function normalised(name: string, type: AttributeType, isList: boolean, values: readonly string[]): string[] {
  if (!isList && values.length !== 1) throw new Refusal(badValue(name));
  return values.map((value) => {
    const stored = NORMALISE[type](value);
    if (stored === undefined) throw new Refusal(badValue(name));
    return stored;
  });
}

const NORMALISE: Record<AttributeType, (value: string) => string | undefined> = {
  STRING: (value) => value,
  INTEGER: integer,
  JPEG_PHOTO: picture,
  DATE_TIME: instant,
};

function integer(value: string): string | undefined {
  if (!/^[+-]?\d+$/.test(value)) return undefined;
  const number = BigInt(value.replace(/^\+/, ''));
  return BigInt.asIntN(64, number) === number ? number.toString() : undefined;
}

function picture(value: string): string | undefined {
  if (value === '') return value;
  const bytes = Buffer.from(value, 'base64');
  return bytes.toString('base64') === value && isReadable(bytes) ? value : undefined;
}

/** As lldap's decoder: a picture must reach its first scan; what is missing behind that, or follows the end, is no fault. */
function isReadable(bytes: Buffer): boolean {
  if (bytes.toString('hex', 0, 2) !== 'ffd8') return false;
  let hasSize = false;
  for (let at = 2; at + 4 <= bytes.length; at += 2 + bytes.readUInt16BE(at + 2)) {
    const [prefix, marker = 0] = bytes.subarray(at);
    if (prefix !== 0xff) return false;
    if (marker === 0xda) return hasSize && at + 2 + bytes.readUInt16BE(at + 2) <= bytes.length;
    hasSize ||= marker >= 0xc0 && marker <= 0xc2;
  }
  return false;
}

const DATE_TIME = /^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))$/;

function instant(value: string): string | undefined {
  const match = DATE_TIME.exec(value);
  if (match === null) return undefined;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match.slice(1, 7).map(Number);
  if (hour > 23 || minute > 59 || second > 60) return undefined;
  const [, , , , , , , fraction = '', sign, offsetHours = '0', offsetMinutes = '0'] = match;
  if (Number(offsetHours) > 23 || Number(offsetMinutes) > 59) return undefined;
  const offset = (sign === '-' ? -1 : 1) * (Number(offsetHours) * 60 + Number(offsetMinutes));
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined;
  // A leap second is kept as such, which a Date cannot.
  date.setUTCHours(hour, minute - offset, Math.min(second, 59));
  const time = date.toISOString().slice(-20, -7) + String(second).padStart(2, '0');
  return `${yearOf(date)}${time}${fractionOf(fraction)}+00:00`;
}

/** A zone may lead out of the years of four digits. */
function yearOf(date: Date): string {
  const year = date.getUTCFullYear();
  const digits = String(Math.abs(year)).padStart(4, '0');
  if (year < 0) return `-${digits}`;
  return year > 9999 ? `+${digits}` : digits;
}

/** As lldap prints fractions: with 0, 3, 6 or 9 digits. */
function fractionOf(digits: string): string {
  const nanoseconds = digits
    .slice(0, 9)
    .padEnd(9, '0')
    .replace(/(?:000)+$/, '');
  return nanoseconds === '' ? '' : `.${nanoseconds}`;
}

const START = BigInt(Date.now()) * 1_000_000n - process.hrtime.bigint();

/** Now with nanoseconds, without a zone; each call answers another. */
export function timestamp(): string {
  const now = START + process.hrtime.bigint();
  const text = new Date(Number(now / 1_000_000n)).toISOString().slice(0, 19);
  return text + fractionOf((now % 1_000_000_000n).toString().padStart(9, '0'));
}

/** A version 3 UUID, as lldap makes from name and time of creation: an object that is made again gets another. */
export function uuidOf(name: string, createdAt: string): string {
  const hash = createHash('md5').update(name).update(createdAt).digest();
  hash[6] = ((hash[6] ?? 0) & 0x0f) | 0x30;
  hash[8] = ((hash[8] ?? 0) & 0x3f) | 0x80;
  return hash.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
