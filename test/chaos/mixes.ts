import type { Mix } from './generate.ts';

/** Percent of the schedules, by what they are made of. */
export const MIXES: Record<string, { percent: number; mix: Mix }> = {
  'people and races': { percent: 15, mix: { processes: 3, minutesApart: 0, weights: { passing: 5, asking: 5 } } },
  faults: { percent: 35, mix: { processes: 3, minutesApart: 0, weights: { passing: 5, asking: 5, failing: 3 } } },
  'faults, clocks apart, forged events': {
    percent: 15,
    mix: { processes: 3, minutesApart: 30, weights: { passing: 5, asking: 5, failing: 3, telling: 1 } },
  },
  'hands in lldap, restores': {
    percent: 15,
    mix: { processes: 2, minutesApart: 0, weights: { passing: 6, asking: 6, touching: 3, restoring: 1 } },
  },
  everything: {
    percent: 15,
    mix: { processes: 3, minutesApart: 30, weights: { passing: 10, asking: 10, failing: 4, telling: 1, touching: 2, restoring: 1 } },
  },
  'late writes of processes that died': { percent: 5, mix: { processes: 2, minutesApart: 0, weights: { passing: 5, asking: 5, late: 1 } } },
};
