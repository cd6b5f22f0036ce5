import { writeFileSync } from 'node:fs';
import Mocha from 'mocha';

/** What a group of tests came to; `failed` says of each failure which test it was, and its first line. */
export interface Results {
  passes: number;
  failures: number;
  failed: string[];
}

/** Mocha's own report, and its results in the file that `TEST_RESULTS` names. */
export default class Reporter extends Mocha.reporters.Spec {
  constructor(runner: Mocha.Runner, options: Mocha.MochaOptions) {
    super(runner, options);
    const failed: string[] = [];
    runner.on(Mocha.Runner.constants.EVENT_TEST_FAIL, (test: Mocha.Test, error: Error) => {
      failed.push(`${test.fullTitle()}: ${error.message.split('\n', 1)[0]}`);
    });
    runner.once(Mocha.Runner.constants.EVENT_RUN_END, () => {
      const { passes, failures } = this.stats;
      const results: Results = { passes, failures, failed };
      if (process.env.TEST_RESULTS) writeFileSync(process.env.TEST_RESULTS, JSON.stringify(results));
    });
  }
}
