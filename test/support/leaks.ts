/** What must never be said: every password and token that a test gave to somebody, in any spelling that a program would use. */

const JWT = /eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*/;

/** @returns the texts, cut around the place, that hold one of the secrets or something that is a token */
export function findLeaks(texts: Iterable<string>, secrets: Iterable<string>): string[] {
  const needles = [...secrets].flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1), Buffer.from(secret).toString('base64')]);
  const leaks: string[] = [];
  for (const text of texts) {
    const at = [...needles.map((needle) => text.indexOf(needle)), text.search(JWT)].find((index) => index >= 0);
    if (at !== undefined) leaks.push(text.slice(Math.max(0, at - 100), at + 100));
  }
  return leaks;
}
