/** A setting is missing or wrong. The message is one line that names the setting and its allowed values. */
export class ConfigError extends Error {
  override name = 'ConfigError';
}

/** Reads single settings from environment variables; spaces around a value do not count. All throw {@link ConfigError}. */
export interface Settings {
  optional(name: string): string | undefined;
  /** @param advice what to set, as the end of the error's sentence */
  required(name: string, advice: string): string;
  /** An address without user name or password; the result has no slash at its end. @param schemes such as `https:` */
  url(name: string, schemes: readonly string[]): string;
  /** A whole number from `min` to `max`. */
  number(name: string, fallback: number, min: number, max: number): number;
  choice<T extends string>(name: string, choices: readonly T[], fallback: T): T;
}

export function readSettings(env: NodeJS.ProcessEnv): Settings {
  const optional: Settings['optional'] = (name) => env[name]?.trim() || undefined;
  const required: Settings['required'] = (name, advice) => {
    const value = optional(name);
    if (!value) throw new ConfigError(`${name} is not set: ${advice}.`);
    return value;
  };
  return {
    optional,
    required,
    url(name, schemes) {
      const value = required(name, `give an address that starts with ${schemes.map((scheme) => `${scheme}//`).join(' or ')}`);
      const parsed = URL.canParse(value) ? new URL(value) : undefined;
      if (!parsed?.hostname || !schemes.includes(parsed.protocol) || parsed.username || parsed.password)
        throw new ConfigError(`${name} is not an address of the form ${schemes[0]}//host:port, without user name or password: correct it.`);
      return value.replace(/\/+$/, '');
    },
    number(name, fallback, min, max) {
      const value = optional(name);
      if (value === undefined) return fallback;
      const parsed = /^\d+$/.test(value) ? Number(value) : Number.NaN;
      if (!(parsed >= min && parsed <= max))
        throw new ConfigError(`${name} is "${value}": it must be a whole number from ${min} to ${max}.`);
      return parsed;
    },
    choice(name, choices, fallback) {
      const value = optional(name) ?? fallback;
      const chosen = choices.find((choice) => choice === value);
      if (!chosen) throw new ConfigError(`${name} is "${value}": it must be one of ${choices.join(', ')}.`);
      return chosen;
    },
  };
}
