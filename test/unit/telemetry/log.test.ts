import assert from 'node:assert/strict';
import { createLog, type Level } from '../../../shared/telemetry/log.ts';

function lines(least: Level, write: (log: ReturnType<typeof createLog>) => void): Record<string, unknown>[] {
  const written: string[] = [];
  write(createLog(least, (line) => written.push(line)));
  return written.map((line) => {
    assert.ok(line.endsWith('\n'));
    assert.equal(line.indexOf('\n'), line.length - 1);
    return JSON.parse(line) as Record<string, unknown>;
  });
}

describe('shared/telemetry/log', () => {
  it('is one JSON object a line, with time, level and message first', () => {
    const [line] = lines('debug', (log) => log.info('said "this"\nand that', { count: 2, name: undefined }));
    const { time, ...rest } = line ?? {};
    assert.match(String(time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    assert.deepEqual(rest, { level: 'info', message: 'said "this"\nand that', count: 2 });
    assert.deepEqual(Object.keys(line ?? {}).slice(0, 3), ['time', 'level', 'message']);
  });

  const written: Record<Level, Level[]> = {
    debug: ['debug', 'info', 'warn', 'error'],
    info: ['info', 'warn', 'error'],
    warn: ['warn', 'error'],
    error: ['error'],
  };
  for (const [least, levels] of Object.entries(written)) {
    it(`at ${least} holds ${levels.join(', ')}`, () => {
      const all = lines(least as Level, (log) => {
        log.debug('x');
        log.info('x');
        log.warn('x');
        log.error('x');
      });
      assert.deepEqual(
        all.map(({ level }) => level),
        levels,
      );
    });
  }

  it('carries the fields that it was given on every line, at its level', () => {
    const all = lines('info', (log) => {
      const user = log.with({ function: 'user' }).with({ key: 'team/alice' });
      user.debug('unseen');
      user.info('one', { key: 'team/bob' });
      user.warn('two');
      log.error('three');
    });
    assert.deepEqual(
      all.map(({ time: _time, ...rest }) => rest),
      [
        { level: 'info', message: 'one', function: 'user', key: 'team/bob' },
        { level: 'warn', message: 'two', function: 'user', key: 'team/alice' },
        { level: 'error', message: 'three' },
      ],
    );
  });

  it('goes to standard output, if nowhere else', () => {
    const { write } = process.stdout;
    const written: string[] = [];
    process.stdout.write = (line: string | Uint8Array) => written.push(String(line)) > 0;
    try {
      createLog('info').info('said');
    } finally {
      process.stdout.write = write;
    }
    assert.match(written.join(''), /^\{.*"message":"said"\}\n$/);
  });
});
