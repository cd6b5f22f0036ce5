/** Shortens texts without leaving half a character, which UTF-8 cannot hold. */

/**
 * The text, or its beginning and `sign` where it is longer.
 *
 * @param max length of the result in UTF-16 code units
 */
export function truncate(text: string, max: number, sign = '…'): string {
  return text.length <= max ? text : `${text.slice(0, max - sign.length).replace(/[\uD800-\uDBFF]$/, '')}${sign}`;
}

/** The beginning of a text as a text of its own; a slice would keep all of it in memory. @param max in UTF-16 code units */
export function copyStart(text: string, max: number): string {
  return Buffer.from(text.slice(0, max), 'utf16le').toString('utf16le');
}

/** As {@link truncate}. @param max length of the result in bytes of UTF-8 */
export function truncateBytes(text: string, max: number, sign = '…'): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= max) return text;
  // A character that is cut through decodes to the replacement character.
  return `${bytes.toString('utf8', 0, max - Buffer.byteLength(sign)).replace(/\uFFFD+$/, '')}${sign}`;
}
