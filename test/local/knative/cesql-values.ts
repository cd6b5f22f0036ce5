/** How CloudEvents SQL compares: attributes are strings, and a literal's type decides what they are taken for. */

export type Value = string | number | boolean;
export type Comparison = '=' | '!=' | '<>' | '<' | '<=' | '>' | '>=';

/** What makes an event not match: a missing attribute, a value that cannot be cast, a result that is not a boolean. */
export class NoMatch extends Error {}

export function isComparison(text: string): text is Comparison {
  return ['=', '!=', '<>', '<', '<=', '>', '>='].includes(text);
}

export function compare(operator: Comparison, left: Value, right: Value): boolean {
  if (operator === '!=' || operator === '<>') return !compare('=', left, right);
  if (operator === '=') return castLike(right, left) === castLike(left, right);
  const [a, b] = [asInteger(left), asInteger(right)];
  if (operator === '<') return a < b;
  if (operator === '<=') return a <= b;
  return operator === '>' ? a > b : a >= b;
}

/** The other side's type wins over a string: attributes are strings, and `num = 3` compares numbers. */
function castLike(model: Value, value: Value): Value {
  if (typeof value !== 'string' || typeof model === 'string') return value;
  return typeof model === 'number' ? asInteger(value) : asBoolean(value);
}

function asInteger(value: Value): number {
  const text = String(value);
  if (!/^-?\d+$/.test(text)) throw new NoMatch(`${text} is not an integer`);
  return Number(text);
}

export function asBoolean(value: Value): boolean {
  const text = String(value).toLowerCase();
  if (text !== 'true' && text !== 'false') throw new NoMatch(`${text} is not a boolean`);
  return text === 'true';
}

/** `%` is any run of characters, `_` any one, both literal behind a backslash. */
export function likePattern(pattern: string): RegExp {
  const source = pattern.replace(/\\([%_])|([%_])|[.*+?^${}()|[\]\\]/g, (special, escaped?: string, wildcard?: string) => {
    if (escaped !== undefined) return escaped;
    if (wildcard !== undefined) return wildcard === '%' ? '.*' : '.';
    return `\\${special}`;
  });
  return new RegExp(`^${source}$`, 's');
}
