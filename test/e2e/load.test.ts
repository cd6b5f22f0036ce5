import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { API_VERSION } from '../../shared/constants.ts';
import { type KindName, PLURALS } from '../../shared/kube/resources.ts';
import { createLimiter } from '../../shared/platform/concurrency.ts';
import { CLUSTER_TIMEOUT_MS } from '../local/kube/shared.ts';
import { until, World } from './support.ts';

/** All at once. Each password costs lldap 70 ms of its only thread, so by default only some users have one. */
const PASSWORDS = Number(process.env.LOAD_PASSWORDS ?? 150);
const USERS = Math.max(900, PASSWORDS);
const GROUPS = 100;
const SCHEMAS = 100;
const MEMBERSHIPS = 900;
const TOTAL = USERS + GROUPS + SCHEMAS + MEMBERSHIPS;

const MAX_CALLS = 8;
/** What a function may use before the platform ends it. */
const MEMORY_LIMIT_MB = 512;
/** How long the broker lets an event wait. */
const TRIGGER_TIMEOUT_MS = 540_000;

describe(`a burst of ${TOTAL} resources of all kinds at once`, () => {
  let world: World;
  before(async function () {
    this.timeout(CLUSTER_TIMEOUT_MS);
    world = await World.start({ settings: { LLDAP_MAX_CONCURRENT_REQUESTS: String(MAX_CALLS), LOG_LEVEL: 'info' }, idleMs: 10_000 });
    await world.kubectl('create', 'namespace', 'load');
  });
  after(() => world.stop());

  it('is worked off within bounds: of memory, of calls to lldap, of the time that an event waits', async function () {
    this.timeout(1_200_000);
    const watch = new Watch(world);
    const started = performance.now();
    await world.apply(world.secret('load', 'password', { password: 'a password for the load' }));
    await create(resources());
    const applied = performance.now();
    await until('everything is Ready', async () => (await notReady()) === 0, 1_100);
    const ready = performance.now();
    const peaks = await watch.end();
    console.log(
      `      ${TOTAL} resources, ${PASSWORDS} with a password: created in ${seconds(started, applied)} s, all Ready after ${seconds(started, ready)} s`,
    );
    for (const [service, mb] of peaks.memoryMb) console.log(`      ${service.padEnd(34)} at most ${mb.toFixed(0)} MB`);
    console.log(`      lldap: at most ${peaks.http} connections over HTTP and ${peaks.ldap} over LDAP`);

    for (const [service, mb] of peaks.memoryMb) assert.ok(mb < MEMORY_LIMIT_MB, `${service} used ${mb} MB`);
    assert.ok(peaks.http <= 5 * MAX_CALLS, `${peaks.http} connections over HTTP`);
    // Two operations and the connection that user keeps; startup's check, and what is being closed.
    assert.ok(peaks.ldap <= 5, `${peaks.ldap} connections over LDAP`);
    assert.equal(peaks.unhealthy, 0);
    // A delivery that meets a function on its way to zero is repeated by the broker; none may be given up, or have waited too long.
    assert.deepEqual(
      world.happenings.filter((h) => h.what === 'lost'),
      [],
    );
    const slowest = Math.max(
      ...world.happenings.map((h) => ((h.what === 'delivered' || h.what === 'undelivered') && !h.trigger.endsWith('requeue') ? h.ms : 0)),
    );
    assert.ok(slowest < TRIGGER_TIMEOUT_MS, `an event waited ${slowest} ms`);
    assert.equal((await world.lldap.users()).filter(({ id }) => id.startsWith('load-')).length, USERS);
  });

  function* resources(): Generator<[KindName, string, object]> {
    for (let i = 0; i < MEMBERSHIPS; i++)
      yield ['LldapMembership', `member-${i}`, { userName: `load-${i % USERS}`, groupName: `Load ${i % GROUPS}` }];
    for (let i = 0; i < USERS; i++) {
      const password = i < PASSWORDS ? { passwordSecretRef: { name: 'password', key: 'password' } } : { passwordPolicy: 'Ignore' };
      const attributes = i % 9 === 0 ? { attributes: [{ name: `load-${i % SCHEMAS}`, value: ['x'] }] } : {};
      yield ['LldapUser', `user-${i}`, { username: `load-${i}`, email: `load-${i}@example.com`, ...password, ...attributes }];
    }
    for (let i = 0; i < GROUPS; i++) yield ['LldapGroup', `group-${i}`, { displayName: `Load ${i}` }];
    for (let i = 0; i < SCHEMAS; i++)
      yield ['LldapAttributeSchema', `schema-${i}`, { attributeName: `load-${i}`, attributeType: 'String', target: 'User' }];
  }

  async function create(all: Iterable<[KindName, string, object]>): Promise<void> {
    const limited = createLimiter(16);
    await Promise.all(
      [...all].map(([kind, name, spec]) =>
        limited(async () => {
          const { code, body } = await world.stack.cluster.request('POST', `/apis/${API_VERSION}/namespaces/load/${PLURALS[kind]}`, {
            body: world.resource(kind, 'load', name, spec),
          });
          assert.equal(code, 201, JSON.stringify(body));
        }),
      ),
    );
  }

  async function notReady(): Promise<number> {
    await sleep(2_000);
    const path = '-o=jsonpath={range .items[*]}{.status.conditions[?(@.type=="Ready")].status}{"\\n"}{end}';
    const lines = (await world.kubectl('get', 'llu,llg,llm,llas', '-n', 'load', path)).trim().split('\n');
    return TOTAL - lines.filter((line) => line === 'True').length;
  }

  function seconds(from: number, to: number): string {
    return ((to - from) / 1000).toFixed(0);
  }
});

/** Looks every half second at what must stay bounded. */
class Watch {
  readonly #world: World;
  readonly #memoryMb = new Map<string, number>();
  #http = 0;
  #ldap = 0;
  #unhealthy = 0;
  #ended = false;
  readonly #done: Promise<void>;

  constructor(world: World) {
    this.#world = world;
    this.#done = this.#run();
  }

  async #run(): Promise<void> {
    while (!this.#ended) {
      await Promise.all([this.#lookAtProcesses(), this.#lookAtLldap()]);
      await sleep(500);
    }
  }

  async #lookAtProcesses(): Promise<void> {
    for (const { service, pid, state } of this.#world.stack.knative.processes()) {
      const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
      const peak = Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1] ?? 0) / 1024;
      this.#memoryMb.set(service, Math.max(this.#memoryMb.get(service) ?? 0, peak));
      if (state !== 'ready') continue;
      const health = await fetch(`${this.#world.stack.knative.serviceUrl(service)}/health/readiness`).then(
        (answer) => answer.ok,
        () => false,
      );
      if (!health) this.#unhealthy++;
    }
  }

  async #lookAtLldap(): Promise<void> {
    const { http, ldap } = await this.#world.lldap.connections();
    this.#http = Math.max(this.#http, http);
    this.#ldap = Math.max(this.#ldap, ldap);
  }

  async end() {
    this.#ended = true;
    await this.#done;
    return { memoryMb: this.#memoryMb, http: this.#http, ldap: this.#ldap, unhealthy: this.#unhealthy };
  }
}
