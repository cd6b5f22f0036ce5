import { traceIds } from './trace.ts';

/** Writes one JSON object a line to standard output, with the ids of the current trace. Callers pass names and numbers, never specs, Secrets or request bodies. */
export interface Log {
  debug(message: string, fields?: Fields): void;
  info(message: string, fields?: Fields): void;
  warn(message: string, fields?: Fields): void;
  error(message: string, fields?: Fields): void;
  /** A log that adds `fields` to every line. */
  with(fields: Fields): Log;
}

export type Fields = Record<string, unknown>;

export const LEVELS = ['debug', 'info', 'warn', 'error'] as const;
export type Level = (typeof LEVELS)[number];

export function createLog(minLevel: Level, write: (line: string) => void = (line) => process.stdout.write(line), base: Fields = {}): Log {
  const at =
    (level: Level) =>
    (message: string, fields: Fields = {}) => {
      if (LEVELS.indexOf(level) < LEVELS.indexOf(minLevel)) return;
      write(`${JSON.stringify({ time: new Date().toISOString(), level, message, ...base, ...traceIds(), ...fields })}\n`);
    };
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    with: (fields) => createLog(minLevel, write, { ...base, ...fields }),
  };
}
