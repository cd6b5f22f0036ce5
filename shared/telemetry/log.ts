import { traceIds } from './trace.ts';

/** One JSON object a line on standard output, with the ids of the trace that it belongs to. Callers pass names and numbers, never specs, Secrets or request bodies. */
export interface Log {
  debug(message: string, fields?: Fields): void;
  info(message: string, fields?: Fields): void;
  warn(message: string, fields?: Fields): void;
  error(message: string, fields?: Fields): void;
  /** A log whose every line carries `fields`. */
  with(fields: Fields): Log;
}

export type Fields = Record<string, unknown>;

export const LEVELS = ['debug', 'info', 'warn', 'error'] as const;
export type Level = (typeof LEVELS)[number];

export function createLog(least: Level, write: (line: string) => void = (line) => process.stdout.write(line), base: Fields = {}): Log {
  const at =
    (level: Level) =>
    (message: string, fields: Fields = {}) => {
      if (LEVELS.indexOf(level) < LEVELS.indexOf(least)) return;
      write(`${JSON.stringify({ time: new Date().toISOString(), level, message, ...base, ...traceIds(), ...fields })}\n`);
    };
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    with: (fields) => createLog(least, write, { ...base, ...fields }),
  };
}
