import assert from 'node:assert/strict';
import { nextRun } from './schedule.ts';

describe("A CronJob's schedule in the local Knative", () => {
  const table: [string, string, string][] = [
    ['*/5 * * * *', '2026-11-29T18:02:31Z', '2026-11-29T18:05:00Z'],
    ['*/5 * * * *', '2026-11-29T18:05:00Z', '2026-11-29T18:10:00Z'],
    ['*/5 * * * *', '2026-11-29T23:59:59Z', '2026-11-30T00:00:00Z'],
    ['0 3 * * *', '2026-11-29T18:02:00Z', '2026-11-30T03:00:00Z'],
    ['30 2 1 * *', '2026-11-29T18:02:00Z', '2026-12-01T02:30:00Z'],
    ['0 0 * * 1', '2026-11-29T18:02:00Z', '2026-11-30T00:00:00Z'],
    ['0 0 13 * 5', '2026-11-29T18:02:00Z', '2026-12-04T00:00:00Z'],
    ['10-12,40 * * * *', '2026-11-29T18:11:00Z', '2026-11-29T18:12:00Z'],
    ['10-12,40 * * * *', '2026-11-29T18:12:00Z', '2026-11-29T18:40:00Z'],
    ['0 6-18/4 * * *', '2026-11-29T10:30:00Z', '2026-11-29T14:00:00Z'],
    ['0 0 29 2 *', '2026-11-29T18:02:00Z', '2028-02-29T00:00:00Z'],
  ];
  for (const [schedule, after, next] of table) {
    it(`${schedule} after ${after} is due at ${next}`, () => assert.equal(nextRun(schedule, new Date(after)).getTime(), Date.parse(next)));
  }

  for (const schedule of [
    '',
    '* * * *',
    '* * * * * *',
    '60 * * * *',
    '* 24 * * *',
    '* * 0 * *',
    '5-2 * * * *',
    '*/0 * * * *',
    '@hourly',
    'a * * * *',
    '0 0 30 2 *',
  ]) {
    it(`refuses ${JSON.stringify(schedule)}`, () => assert.throws(() => nextRun(schedule, new Date())));
  }
});
