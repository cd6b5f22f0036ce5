/**
 * The part of CloudEvents SQL that Triggers here may use: AND, OR, XOR, NOT, comparisons, LIKE, IN, EXISTS, literals.
 * Whatever it does not know is an error when the expression is read, never a guess. Two traps of the language are refused
 * as well: NOT binds tighter than any other operator (`NOT type = 'x'` negates the type), and AND and OR have the same
 * precedence. Both want parentheses.
 */

import { asBoolean, compare, isComparison, likePattern, NoMatch, type Value } from './cesql-values.ts';

export type Attributes = Readonly<Record<string, string>>;
type Expression = (attributes: Attributes) => Value;

/**
 * @returns whether an event's attributes match; as measured, a missing attribute or a result that isn't boolean never does
 * @throws SyntaxError at the first thing that isn't known, with the position
 */
export function compileCesql(text: string): (attributes: Attributes) => boolean {
  const parser = new Parser(text);
  const expression = parser.whole();
  return (attributes) => {
    try {
      return expression(attributes) === true;
    } catch (error) {
      if (error instanceof NoMatch) return false;
      throw error;
    }
  };
}

interface Token {
  kind: 'word' | 'string' | 'integer' | 'symbol' | 'end';
  text: string;
  at: number;
}

const TOKEN = /\s*(?:([A-Za-z][A-Za-z0-9]*)|'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|(\d+)|(!=|<>|<=|>=|[=<>(),]))/y;
const KEYWORDS = new Set(['AND', 'OR', 'XOR', 'NOT', 'LIKE', 'IN', 'EXISTS', 'TRUE', 'FALSE']);

function tokenize(text: string): Token[] {
  const tokens: Token[] = [];
  const end = text.trimEnd().length;
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < end) {
    const from = TOKEN.lastIndex;
    const match = TOKEN.exec(text);
    if (!match) throw new SyntaxError(`CESQL: cannot read ${JSON.stringify(text.slice(from).trim())}`);
    tokens.push({ ...tokenOf(match), at: from });
  }
  return [...tokens, { kind: 'end', text: '', at: end }];
}

function tokenOf([, word, single, double, integer, symbol]: RegExpExecArray): Omit<Token, 'at'> {
  if (word !== undefined) return { kind: 'word', text: word };
  if (single !== undefined) return { kind: 'string', text: single.replaceAll("\\'", "'") };
  if (double !== undefined) return { kind: 'string', text: double.replaceAll('\\"', '"') };
  if (integer !== undefined) return { kind: 'integer', text: integer };
  return { kind: 'symbol', text: symbol ?? '' };
}

class Parser {
  readonly #tokens: Token[];
  #next = 0;

  constructor(text: string) {
    this.#tokens = tokenize(text);
  }

  whole(): Expression {
    const expression = this.#logic();
    if (this.#token.kind !== 'end') this.#fail('the end');
    return expression;
  }

  #logic(): Expression {
    let left = this.#comparison();
    const first = this.#token.text;
    while (this.#token.kind === 'word' && ['AND', 'OR', 'XOR'].includes(this.#token.text)) {
      if (this.#token.text !== first) throw new SyntaxError(`CESQL: ${first} and ${this.#token.text} side by side need parentheses`);
      this.#next += 1;
      left = combine(first, left, this.#comparison());
    }
    return left;
  }

  #comparison(): Expression {
    const left = this.#operand();
    const operator = this.#token.text;
    if (this.#token.kind !== 'symbol' || !isComparison(operator)) return left;
    this.#next += 1;
    const right = this.#operand();
    return (attributes) => compare(operator, left(attributes), right(attributes));
  }

  /** An atom with the operators that bind tighter than a comparison. */
  #operand(): Expression {
    const atom = this.#atom();
    const negated = this.#take('NOT');
    if (this.#take('LIKE')) {
      const pattern = likePattern(this.#expect('string').text);
      return (attributes) => pattern.test(String(atom(attributes))) !== negated;
    }
    if (this.#take('IN')) {
      const set = this.#set();
      return (attributes) => {
        const value = atom(attributes);
        return set.some((item) => compare('=', value, item(attributes))) !== negated;
      };
    }
    return negated ? this.#fail('LIKE or IN') : atom;
  }

  #atom(): Expression {
    if (this.#take('NOT')) return this.#negation();
    if (this.#take('EXISTS')) {
      const { text } = this.#expect('word');
      return (attributes) => attributes[text] !== undefined;
    }
    if (this.#take('(')) {
      const inner = this.#logic();
      if (!this.#take(')')) this.#fail(')');
      return inner;
    }
    return this.#literalOrName();
  }

  #negation(): Expression {
    if (!['(', 'EXISTS'].includes(this.#token.text)) this.#fail("'(' or EXISTS after NOT");
    const inner = this.#atom();
    return (attributes) => !asBoolean(inner(attributes));
  }

  #literalOrName(): Expression {
    const { kind, text } = this.#token;
    if (kind === 'symbol' || kind === 'end' || (KEYWORDS.has(text) && !['TRUE', 'FALSE'].includes(text) && kind === 'word'))
      this.#fail('a value');
    this.#next += 1;
    if (kind === 'string') return () => text;
    if (kind === 'integer') return () => Number(text);
    if (text === 'TRUE' || text === 'FALSE') return () => text === 'TRUE';
    if (this.#token.text === '(') throw new SyntaxError(`CESQL: the function ${text} is not known here`);
    if (!/^[a-z0-9]+$/.test(text)) throw new SyntaxError(`CESQL: ${text} is neither a keyword nor an attribute's name`);
    return (attributes) => {
      const value = attributes[text];
      if (value === undefined) throw new NoMatch(`${text} is missing`);
      return value;
    };
  }

  #set(): Expression[] {
    if (!this.#take('(')) this.#fail('(');
    const items = [this.#literalOrName()];
    while (this.#take(',')) items.push(this.#literalOrName());
    if (!this.#take(')')) this.#fail(')');
    return items;
  }

  get #token(): Token {
    return this.#tokens[this.#next] ?? { kind: 'end', text: '', at: 0 };
  }

  #take(text: string): boolean {
    const found = this.#token.text === text && (this.#token.kind === 'word' || this.#token.kind === 'symbol');
    if (found) this.#next += 1;
    return found;
  }

  #expect(kind: Token['kind']): Token {
    const token = this.#token;
    if (token.kind !== kind) this.#fail(`a ${kind}`);
    this.#next += 1;
    return token;
  }

  #fail(wanted: string): never {
    throw new SyntaxError(`CESQL: wanted ${wanted} at ${this.#token.at}, found ${JSON.stringify(this.#token.text)}`);
  }
}

function combine(operator: string, left: Expression, right: Expression): Expression {
  if (operator === 'AND') return (attributes) => asBoolean(left(attributes)) && asBoolean(right(attributes));
  if (operator === 'OR') return (attributes) => asBoolean(left(attributes)) || asBoolean(right(attributes));
  return (attributes) => asBoolean(left(attributes)) !== asBoolean(right(attributes));
}
