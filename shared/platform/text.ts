/** Shortens texts without leaving half a character, which UTF-8 cannot represent. */

/**
 * Returns the text, or its beginning and `sign` if it is too long.
 *
 * @param max length of the result in UTF-16 code units
 */
export function truncate(text: string, max: number, sign = '…'): string {
  return text.length <= max ? text : `${text.slice(0, max - sign.length).replace(/[\uD800-\uDBFF]$/, '')}${sign}`;
}

/** Copies the beginning of a text, since a slice would keep the whole text in memory. @param max in UTF-16 code units */
export function copyStart(text: string, max: number): string {
  return Buffer.from(text.slice(0, max), 'utf16le').toString('utf16le');
}

/** As {@link truncate}. @param max length of the result in bytes of UTF-8 */
export function truncateBytes(text: string, max: number, sign = '…'): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= max) return text;
  // An incomplete character decodes to the replacement character.
  return `${bytes.toString('utf8', 0, max - Buffer.byteLength(sign)).replace(/\uFFFD+$/, '')}${sign}`;
}
