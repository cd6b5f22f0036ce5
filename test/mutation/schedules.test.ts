import fc from 'fast-check';
import { scheduleOf } from '../chaos/generate.ts';
import { MIXES } from '../chaos/profiles.ts';
import { play } from '../chaos/run-schedule.ts';

/** So few that each change of the engine can be tried with them. */
describe('a few random schedules', () => {
  for (const [name, { mix }] of Object.entries(MIXES)) {
    it(name, () =>
      fc.assert(
        fc.asyncProperty(scheduleOf(mix), async (schedule) => void (await play(schedule))),
        { numRuns: 5, seed: 1, endOnFailure: true },
      ),
    );
  }
});
