import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseAllDocuments, stringify } from 'yaml';
import { until, World } from '../e2e/support.ts';
import { CLUSTER_TIMEOUT_MS } from '../local/kube/shared.ts';

const TEAM = join(import.meta.dirname, '../../docs/examples/team.yaml');
const SOURCES = ['lldap-operator-resources', 'lldap-operator-secrets'];

/** Knative replaces the adapters of both sources whenever a namespace is created or deleted. No sweep runs but where a test asks for it. */
describe('While sources are replaced because of a namespace', function () {
  this.timeout(CLUSTER_TIMEOUT_MS);
  let world: World;
  let team: { kind: string; metadata: { name: string } }[];

  before(async () => {
    world = await World.start();
    team = parseAllDocuments(await readFile(TEAM, 'utf8')).map((document) => document.toJS());
  });
  afterEach(async () => {
    await world.kubectl('delete', 'llm,llu,llg,llas', '--all', '-n', 'team', '--timeout=240s');
    await world.kubectl('delete', 'secret', '--all', '-n', 'team');
    await endNamespace();
  });
  after(() => world.stop());

  const isTeam = ({ kind }: { kind: string }) => kind === 'Namespace';
  const apply = (objects: object[]) => world.stack.cluster.apply(objects.map((object) => stringify(object)).join('---\n'));
  const watching = (who: 'neither' | 'both' | 'new') =>
    world.happenings.flatMap((happening) => (happening.what === 'handover' && happening.watching === who ? [happening.source] : []));

  /** Creates the namespace, or acts on it otherwise, and waits until each source has come to this. */
  async function handover(who: 'neither' | 'both' | 'new', act: () => unknown = () => apply(team.filter(isTeam))): Promise<void> {
    const before = watching(who).length;
    await act();
    await until(`${who} watches`, () => new Set(watching(who).slice(before)).size === SOURCES.length);
  }

  /** What the namespace controller does. */
  async function endNamespace(): Promise<void> {
    await handover('new', async () => {
      await world.kubectl('delete', 'namespace', 'team', '--wait=false');
      const body = { metadata: { name: 'team' }, spec: { finalizers: [] } };
      await world.stack.cluster.request('PUT', '/api/v1/namespaces/team/finalize', { body });
    });
  }

  async function assertTeamInLldap(): Promise<void> {
    const [alice] = (await world.lldap.users()).filter(({ id }) => id === 'alice');
    assert.deepEqual(alice?.groups, ['Developers']);
    assert.equal(await world.lldap.check('alice', 'correct-horse-battery'), true);
  }

  it('a team that is applied together with its namespace becomes Ready', async () => {
    await handover('new', () => world.stack.cluster.apply(TEAM));
    await world.ready('team');
    await assertTeamInLldap();
  });

  it('nothing is created or set twice, although both adapters send every event', async () => {
    const end = world.stack.knative.faults.handover('both');
    await handover('both');
    await world.lldap.forget();
    await apply(team);
    await world.ready('team');
    await handover('new', end);
    await assertTeamInLldap();
    const asked = (await world.lldap.asked()).map(({ operation }) => operation);
    const once = ['createUser', 'createGroupWithDetails', 'addUserAttribute', 'addUserToGroup', 'passwordModify'];
    assert.deepEqual(asked.filter((operation) => once.includes(operation)).sort(), once.sort());
  });

  it('everything that neither adapter saw is Ready after the next sweep', async () => {
    const end = world.stack.knative.faults.handover('neither');
    await handover('neither');
    await apply(team);
    await handover('new', end);
    // The sources are back, and have nothing to tell of what is there already.
    await apply([world.resource('LldapGroup', 'default', 'sentinel', { displayName: 'Sentinel' })]);
    await world.ready('default');
    const { length: unseen } = await world.unready('team', 0);
    assert.equal(unseen, 4);
    assert.equal((await world.stack.knative.runCronJob('lldap-operator-startup')).code, 0);
    await world.ready('team');
    await assertTeamInLldap();
  });

  it('a namespace that is deleted with all that is in it leaves nothing in lldap', async () => {
    await handover('new');
    await apply(team);
    await world.ready('team');
    await world.kubectl('delete', 'namespace', 'team', '--wait=false');
    await world.kubectl('delete', 'llm,llu,llg,llas,secrets', '--all', '-n', 'team', '--timeout=240s');
    assert.ok(!(await world.lldap.users()).some(({ id }) => id === 'alice'));
    assert.ok(!(await world.lldap.groups()).some(({ displayName }) => displayName === 'Developers'));
  });
});
