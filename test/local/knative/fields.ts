/** Reading manifests field by field, so that nothing written there is passed over in silence. */

/**
 * One object of a manifest. Whoever reads it asks for its fields by name; `done()` then refuses those that nobody asked
 * for: they are misspelt, or something that the local Knative does not do yet.
 */
export class Fields {
  readonly path: string;
  readonly #values: Record<string, unknown>;
  readonly #asked = new Set<string>();

  /** @throws Error when `value` is not an object */
  constructor(value: unknown, path: string) {
    if (!isRecord(value)) throw new Error(`${path} is not an object`);
    this.path = path;
    this.#values = value;
  }

  has(name: string): boolean {
    return this.#values[name] !== undefined;
  }

  string(name: string): string {
    return this.#typed(name, 'string', isString);
  }

  optionalString(name: string): string | undefined {
    return this.has(name) ? this.string(name) : this.#absent(name);
  }

  number(name: string): number {
    return this.#typed(name, 'number', (value) => typeof value === 'number');
  }

  optionalNumber(name: string): number | undefined {
    return this.has(name) ? this.number(name) : this.#absent(name);
  }

  optionalBoolean(name: string): boolean | undefined {
    return this.has(name) ? this.#typed(name, 'boolean', (value) => typeof value === 'boolean') : this.#absent(name);
  }

  object(name: string): Fields {
    return new Fields(this.#ask(name), `${this.path}.${name}`);
  }

  optionalObject(name: string): Fields | undefined {
    return this.has(name) ? this.object(name) : this.#absent(name);
  }

  /** The objects of a list; none when it is absent. */
  objects(name: string): Fields[] {
    if (!this.has(name)) return this.#absent(name) ?? [];
    const list = this.#typed(name, 'list', (value) => Array.isArray(value));
    return list.map((item, index) => new Fields(item, `${this.path}.${name}[${index}]`));
  }

  /** The strings of a list; none when it is absent. */
  strings(name: string): string[] {
    if (!this.has(name)) return this.#absent(name) ?? [];
    return this.#typed(name, 'list of strings', (value): value is string[] => Array.isArray(value) && value.every(isString));
  }

  /** A map from strings to strings; empty when it is absent. */
  map(name: string): Record<string, string> {
    if (!this.has(name)) return this.#absent(name) ?? {};
    return this.#typed(
      name,
      'map of strings',
      (value): value is Record<string, string> => isRecord(value) && Object.values(value).every(isString),
    );
  }

  /** Fields that only a real cluster acts on. */
  leave(...names: string[]): void {
    for (const name of names) this.#asked.add(name);
  }

  /** The object as it is written. */
  all(): Record<string, unknown> {
    this.leave(...Object.keys(this.#values));
    return this.#values;
  }

  /** @throws Error naming the fields that nobody asked for */
  done(): void {
    const unknown = Object.keys(this.#values).filter((name) => !this.#asked.has(name));
    if (unknown.length > 0) throw new Error(`the local Knative does not do what ${this.path} says in: ${unknown.join(', ')}`);
  }

  #ask(name: string): unknown {
    this.#asked.add(name);
    return this.#values[name];
  }

  #absent(name: string): undefined {
    this.#asked.add(name);
    return undefined;
  }

  #typed<T>(name: string, type: string, is: (value: unknown) => value is T): T {
    const value = this.#ask(name);
    if (!is(value)) throw new Error(`${this.path}.${name} is not a ${type}`);
    return value;
  }
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isString(value: unknown): value is string {
  return typeof value === 'string';
}
