import Mocha from 'mocha';

/** Mocha's own report, and a closing line of the form that other tools read: `N passed, N failed`. */
export default class Reporter extends Mocha.reporters.Spec {
  constructor(runner: Mocha.Runner, options: Mocha.MochaOptions) {
    super(runner, options);
    runner.once(Mocha.Runner.constants.EVENT_RUN_END, () => {
      const { passes, failures } = this.stats;
      // After everything else: what the root hooks and mocha itself still print comes first.
      process.once('exit', () => process.stdout.write(`${passes} passed, ${failures} failed\n`));
    });
  }
}
