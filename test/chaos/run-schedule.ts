import { checkEnd } from './final-checks.ts';
import type { AnyResource } from './kube-double.ts';
import { isLooking } from './ownership-oracle.ts';
import { createRandom } from './random.ts';
import { justified, reasonOf } from './reason-checks.ts';
import type { Schedule } from './schedule.ts';
import { take } from './steps.ts';
import { Violation, World } from './world.ts';

const MINUTE = 60_000;
/** Between two runs of the CronJob. */
const SWEEP_EVERY = 5 * MINUTE;
/** After this much time without faults the next sweep finds everything, when clocks agree. */
const BOUND = 8 * MINUTE;
/** Between two attempts, with its jitter. */
const LONGEST_DELAY = 330_000;
/** What is counted, beside the faults: schedules in which no event was lost, so that they settled before a sweep. */
export const WITHOUT_SWEEP = 'settled without a sweep';
/** What a run of startup and its events lead to, the pause after the run before included. */
const MOMENT = 10_000;

/** Plays a schedule to its end. @throws Violation with the first rule that did not hold */
export async function play(schedule: Schedule, trace?: (line: string) => void): Promise<World> {
  const world = new World(schedule);
  try {
    world.course.trace = trace;
    world.broker.post({ what: 'startup', mode: 'sweep' });
    if (schedule.installed) await world.course.runUntil(world.scheduler.now + MOMENT, createRandom(0));
    for (const step of schedule.steps) {
      trace?.(JSON.stringify(step));
      await take(world, step);
    }
    heal(world);
    trace?.('the faults are over');
    if (!world.isLossy && !world.needsFull && world.residue.size === 0) await withoutSweep(world, schedule);
    await calm(world, schedule);
    await patience(world, schedule);
    checkEnd(world);
    await quiet(world, schedule);
  } finally {
    world.scheduler.close();
  }
  return world;
}

function heal(world: World): void {
  world.course.failing = [];
  world.untold = 0;
  for (const process of world.processes) process.frozen = false;
  world.lldap.setPassword(world.lldap.credentials.username, world.lldap.credentials.password);
  const admins = world.lldap.state.groups.get(1);
  if (admins && !admins.members.has(world.lldap.credentials.username)) world.lldap.directory.addMember(world.lldap.credentials.username, 1);
  world.history.note(true);
}

/** Where no event is lost, the broker is enough: four of the longest delays, and all is well without a sweep. */
async function withoutSweep(world: World, { calmSeed }: Schedule): Promise<void> {
  await world.course.runUntil(world.scheduler.now + 4 * LONGEST_DELAY, createRandom(calmSeed));
  checkEnd(world, { swept: false });
  world.count(WITHOUT_SWEEP);
}

/** The CronJob goes on as ever; the first run after the bound is the last. */
async function calm(world: World, schedule: Schedule): Promise<void> {
  const random = createRandom(schedule.calmSeed);
  const start = world.scheduler.now;
  const bound = BOUND + apart(schedule);
  let next = start + schedule.phase * 1000;
  for (; next < start + bound; next += SWEEP_EVERY) {
    await world.course.runUntil(next, random);
    world.broker.post({ what: 'startup', mode: 'sweep' });
  }
  await world.course.runUntil(next, random);
  if (world.needsFull || world.residue.size > 0) {
    // What only a look at lldap finds may leave others to look again, and these the next sweep finds.
    world.broker.post({ what: 'startup', mode: world.needsFull ? 'full' : 'drift' });
    next += SWEEP_EVERY;
    await world.course.runUntil(next, random);
  }
  world.broker.post({ what: 'startup', mode: 'sweep' });
  await world.course.runUntil(next + MOMENT, random);
}

/** Nobody tells who waits for an e-mail address or a group's name that these are free: the next attempt finds out. */
async function patience(world: World, { calmSeed }: Schedule): Promise<void> {
  const waitsInVain = (resource: AnyResource) => {
    const reason = reasonOf(resource);
    return (reason === 'EmailTaken' || reason === 'NameTaken') && !justified(world, resource, reason);
  };
  for (let runs = 0; runs < 3 && [...world.kube.resources.values()].some(waitsInVain); runs++) {
    await world.course.runUntil(world.scheduler.now + SWEEP_EVERY, createRandom(calmSeed));
    world.broker.post({ what: 'startup', mode: 'sweep' });
    await world.course.runUntil(world.scheduler.now + MOMENT, createRandom(calmSeed));
  }
}

/**
 * Everything is looked at twice more, and nothing is written, but for a retry that is due. The first look alone may
 * find that what a resource waits for has changed since, which its status then says.
 */
async function quiet(world: World, schedule: Schedule): Promise<void> {
  for (const isFirst of [true, false]) {
    const until = world.scheduler.now + MOMENT + apart(schedule);
    const isDue = (key: string) => Date.parse(world.kube.resources.get(key)?.status?.retry?.nextTime ?? '') <= until;
    const due = new Set([...world.kube.resources.keys()].filter(isDue).map((key) => `status ${key}`));
    world.writes.length = 0;
    await lookAtAll(world, schedule);
    const isUnsure = (key: string) => {
      const resource = world.kube.resources.get(key);
      // What is under Observe is told nothing, so its conditions are as of its last look.
      if (resource && isLooking(resource)) return true;
      return reasonOf(resource) !== '' || (resource?.kind === 'LldapUser' && world.invariants.contested.has(resource.status?.uuid ?? ''));
    };
    const isExcused = (write: string) => due.has(write) || (isFirst && isUnsure(write.replace(/^status /, '')));
    const written = world.writes.filter((write) => !isExcused(write));
    if (written.length > 0) throw new Violation(`what is settled is not written again: ${written.join(', ')}`);
    checkEnd(world, { looked: true });
  }
}

async function lookAtAll(world: World, { calmSeed }: Schedule): Promise<void> {
  world.course.trace?.('all is looked at once more');
  world.broker.post({ what: 'startup', mode: 'full' });
  await world.course.runUntil(world.scheduler.now + MOMENT, createRandom(calmSeed));
}

/** Milliseconds between the clock that is most ahead and the one that is most behind. */
function apart({ skews }: Schedule): number {
  return (Math.max(0, ...skews) - Math.min(0, ...skews)) * MINUTE;
}
