import { writeFileSync } from 'node:fs';
import Mocha from 'mocha';

/** Mocha's own report, and its counts in the file that `TEST_COUNTS` names. */
export default class Reporter extends Mocha.reporters.Spec {
  constructor(runner: Mocha.Runner, options: Mocha.MochaOptions) {
    super(runner, options);
    runner.once(Mocha.Runner.constants.EVENT_RUN_END, () => {
      const { passes, failures } = this.stats;
      if (process.env.TEST_COUNTS) writeFileSync(process.env.TEST_COUNTS, JSON.stringify({ passes, failures }));
    });
  }
}
