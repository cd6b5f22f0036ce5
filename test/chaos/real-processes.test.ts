import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { OVERDUE_MS } from '../../functions/startup/unsettled.ts';
import { until, World } from '../e2e/support.ts';
import { CLUSTER_TIMEOUT_MS } from '../local/kube/shared.ts';

/**
 * Real processes and a real API server, while everything around them fails in turn and 200 resources change. Nothing
 * is believed to be lucky: what must hold is looked up in lldap at the end, after one sweep.
 */

const NAMESPACE = 'chaos';
const COUNTS = { users: 120, groups: 40, memberships: 40 };
const PASSWORD = 'a password for all of chaos';
/** In place of 5 minutes, so that one retry fits into the test. */
const RETRY_MAX_SECONDS = '5';

describe('real processes, while everything around them fails', () => {
  let world: World;
  before(async function () {
    this.timeout(CLUSTER_TIMEOUT_MS);
    world = await World.start({ settings: { RETRY_MAX_SECONDS, LLDAP_MAX_CONCURRENT_REQUESTS: '8' }, idleMs: 5_000 });
    await world.kubectl('create', 'namespace', NAMESPACE);
  });
  after(() => world.stop());

  const wanted = new Map<string, string>();
  const user = (i: number, displayName: string) => {
    wanted.set(`chaos-${i}`, displayName);
    // Every fourth has a password: each costs lldap's only thread 70 ms.
    const password = i % 4 === 0 ? { passwordSecretRef: { name: 'password', key: 'password' } } : { passwordPolicy: 'Ignore' };
    return world.resource('LldapUser', NAMESPACE, `user-${i}`, {
      username: `chaos-${i}`,
      email: `user-${i}@chaos.example.com`,
      displayName,
      ...password,
    });
  };
  const group = (i: number, displayName: string) => world.resource('LldapGroup', NAMESPACE, `group-${i}`, { displayName });
  const numbers = (count: number) => Array.from({ length: count }, (_, i) => i);

  it('two hundred resources converge within one retry and one sweep, with no hand laid on', async function () {
    this.timeout(600_000);
    const { knative, cluster } = world.stack;
    await world.apply(world.secret(NAMESPACE, 'password', { password: PASSWORD }));
    await world.apply(
      ...numbers(COUNTS.users).map((i) => user(i, `User ${i}`)),
      ...numbers(COUNTS.groups).map((i) => group(i, `Chaos ${i}`)),
      ...numbers(COUNTS.memberships).map((i) =>
        world.resource('LldapMembership', NAMESPACE, `member-${i}`, { userName: `chaos-${i}`, groupName: `Chaos ${i}` }),
      ),
    );

    const healed = async (next: () => Promise<unknown>) => {
      await world.lldap.heal();
      await next();
    };
    const restarted = async (part: { stop(): Promise<void>; start(): Promise<void> }) => {
      await part.stop();
      await part.start();
    };
    /** One that is at zero has nothing to lose. */
    const kill = async (service: string, signal: NodeJS.Signals) => {
      if (knative.processes(service).length > 0) await knative.kill(service, signal);
    };
    const faults: [string, () => Promise<unknown>][] = [
      ['the user function is killed', () => kill('lldap-operator-user', 'SIGKILL')],
      ['lldap is stopped', () => world.lldap.stop()],
      ['lldap is back', () => world.lldap.start()],
      ['the user function is told to stop', () => kill('lldap-operator-user', 'SIGTERM')],
      ['lldap accepts and never answers', () => world.lldap.fault({ kind: 'hang' })],
      ['lldap is slow', () => healed(() => world.lldap.fault({ kind: 'slow', ms: 300 }))],
      ['lldap answers 502 with a page', () => healed(() => world.lldap.fault({ kind: 'status', status: 502 }))],
      ['lldap answers half of a JSON text', () => healed(() => world.lldap.fault({ kind: 'brokenJson' }))],
      ['lldap loses its answers', () => healed(() => world.lldap.fault({ kind: 'drop', times: 20 }))],
      ['lldap is well, and the API server restarts', () => healed(() => cluster.restart())],
      ['the broker restarts, and forgets', () => restarted(knative.broker)],
      ['the sources restart, and are silent about what they missed', () => restarted(knative.sources)],
      ['requeue is killed with what it holds', () => kill('lldap-operator-requeue', 'SIGKILL')],
      ['the user function is rolled out', () => knative.rollout('lldap-operator-user')],
    ];
    const deleted = new Set<number>();
    for (const [n, [what, strike]] of faults.entries()) {
      await attempt(what, strike);
      const changed = numbers(15)
        .map((i) => (n * 15 + i) % COUNTS.users)
        .filter((i) => !deleted.has(i));
      await attempt('people change users', () => world.apply(...changed.map((i) => user(i, `User ${i}, changed ${n}`))));
      const doomed = COUNTS.users - 1 - n;
      deleted.add(doomed);
      wanted.delete(`chaos-${doomed}`);
      const remove = ['delete', 'llu', `user-${doomed}`, '-n', NAMESPACE, '--wait=false', '--ignore-not-found'];
      await attempt('people delete a user', () => world.kubectl(...remove));
      await sleep(1_500);
    }
    await world.lldap.heal();
    const ended = performance.now();
    const sweep = () => until('the sweep runs', async () => (await knative.runCronJob('lldap-operator-startup')).code === 0);
    await sweep();
    if ((await world.unready(NAMESPACE, 60)).length > 0) {
      // The broker forgot retries, and a sweep takes a retry for lost only when it is so late.
      await sleep(OVERDUE_MS + Number(RETRY_MAX_SECONDS) * 1_100 - (performance.now() - ended));
      await sweep();
    }
    await world.ready(NAMESPACE, 300);
    console.log(`      converged ${((performance.now() - ended) / 1000).toFixed(1)} s after the last of ${faults.length} faults`);

    const users = await world.lldap.users();
    const found = new Map(users.filter(({ id }) => id.startsWith('chaos-')).map(({ id, displayName }) => [id, displayName]));
    assert.deepEqual([...found].sort(), [...wanted].sort());
    const groups = (await world.lldap.groups()).filter(({ displayName }) => displayName.startsWith('Chaos'));
    assert.deepEqual(
      groups.map(({ displayName }) => displayName).sort(),
      numbers(COUNTS.groups)
        .map((i) => `Chaos ${i}`)
        .sort(),
    );
    for (const i of numbers(COUNTS.memberships))
      assert.deepEqual(users.find(({ id }) => id === `chaos-${i}`)?.groups, [`Chaos ${i}`], `chaos-${i}`);
    for (const i of numbers(COUNTS.users)
      .filter((n) => n % 4 === 0 && !deleted.has(n))
      .slice(0, 10))
      assert.ok(await world.lldap.check(`chaos-${i}`, PASSWORD), `chaos-${i}`);
  });

  /** What people and operators of a cluster do when it does not answer: they do it again. */
  async function attempt(what: string, work: () => Promise<unknown>): Promise<void> {
    await until(what, () =>
      work().then(
        () => true,
        () => false,
      ),
    );
  }
});
