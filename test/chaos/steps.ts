import { PEOPLE } from './cluster-edits.ts';
import { ADMIN } from './lldap-double.ts';
import { byHand, HANDS } from './lldap-edits.ts';
import { createRandom, type Random } from './random.ts';
import type { Step, Steps } from './schedule.ts';
import type { World } from './world.ts';

/** Carries out one step of a schedule; what cannot be done as things are is left out. */
export async function take(world: World, step: Step): Promise<void> {
  await (STEPS[step.do] as (world: World, step: Step) => void | Promise<void>)(world, step);
  if (world.isRestored) world.ledger.forgotten(world.history.current);
  if (world.violation) throw world.violation;
}

const STEPS: Steps<World, Step['do']> = {
  ...PEOPLE,
  ...HANDS,

  run: (world, { actions, seed }) => some(world, actions, createRandom(seed)),
  async until(world, { call }) {
    await world.course.runUntil(world.scheduler.now, createRandom(0), () =>
      world.scheduler.calls.some((c) => `${c.by.name}/${c.by.slot} ${c.service} ${c.what}`.includes(call)),
    );
  },
  wait: (world, { seconds, seed }) => world.course.runUntil(world.scheduler.now + seconds * 1000, createRandom(seed)),
  async stall(world, { seconds, seed }) {
    await world.course.stall(world.scheduler.now + seconds * 1000, createRandom(seed));
    world.count('time: all stand still');
  },

  fail(world, { service, fault, calls }) {
    world.course.failing.push({ service, fault, left: calls });
  },
  async crash(world, { after, pick, seed }) {
    const random = createRandom(seed);
    await some(world, after, random);
    const process = one(world.busy, pick);
    if (!process) return;
    world.crash(process, random);
    world.count('process: crash');
  },
  async crashLate(world, { after, pick, seed }) {
    await some(world, after, createRandom(seed));
    const process = one(world.busy, pick);
    if (!process) return;
    world.crash(process, 'late');
    world.count('process: crash, its calls arrive late');
  },
  async freeze(world, { after, pick, seed }) {
    await some(world, after, createRandom(seed));
    const process = one(world.busy, pick);
    if (!process) return;
    process.frozen = true;
    world.count('process: freeze');
  },
  thaw(world, { pick }) {
    const process = one(
      world.processes.filter((p) => p.frozen),
      pick,
    );
    if (process) process.frozen = false;
  },
  rollout(world, { name }) {
    for (const process of world.processes.filter((p) => p.name === name)) world.rollout(process);
    world.count('process: rollout');
  },
  brokerDies(world) {
    world.broker.die();
    world.isLossy = true;
    world.count('broker: death');
  },
  sourceDown(world, { changes }) {
    world.untold += changes;
  },
  event(world, { what, pick }) {
    const { queue } = world.broker;
    const event = one(queue, pick);
    if (!event) return;
    if (what === 'drop') {
      queue.splice(queue.indexOf(event), 1);
      world.isLossy = true;
    }
    if (what === 'delay') event.due = world.scheduler.now + 60_000 * (1 + (pick % 3));
    if (what === 'repeat') queue.push({ ...event, seq: world.scheduler.nextSeq() });
    world.count(`event: ${what}`);
  },
  async giveUp(world, { after, pick, seed }) {
    await some(world, after, createRandom(seed));
    const flight = one([...world.broker.inFlight], pick);
    if (!flight) return;
    world.broker.giveUp(flight);
    world.count('broker: gives a request up');
  },
  logout(world) {
    world.lldap.auth.logout(`nonsense+${ADMIN}`);
    world.count('lldap: logout');
  },
  rotate(world, { what }) {
    const { lldap } = world;
    const next = `admin-password-${world.scheduler.nextSeq()}`;
    if (what !== 'file') lldap.setPassword(ADMIN, next);
    if (what !== 'password') lldap.credentials = { username: ADMIN, password: next };
    world.count('lldap: rotation of the operator’s password');
  },
  demote(world) {
    byHand(world, (directory) => directory.removeMember(ADMIN, 1), false);
    world.count('lldap: operator demoted');
  },

  forge(world, { event }) {
    world.broker.post(event);
    world.count('event: forged');
  },
  startup(world, { mode }) {
    world.broker.post({ what: 'startup', mode });
  },
};

async function some(world: World, actions: number, random: Random): Promise<void> {
  for (let i = 0; i < actions; i++) if (!(await world.course.act(random))) return;
}

function one<T>(all: readonly T[], pick: number): T | undefined {
  return all[pick % Math.max(all.length, 1)];
}
