import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';
import { API_VERSION, EVENT_TYPE, INSTANCE_LABEL } from '../../shared/constants.ts';
import { type Answer, send } from '../local/knative/http.ts';
import { type LocalKnative, startKnative } from '../local/knative/knative.ts';
import { renderWith } from '../local/knative/render.ts';
import type { Happening } from '../local/knative/story.ts';
import { type Cluster, startCluster } from '../local/kube/cluster.ts';
import { installCrds } from '../local/kube/crds.ts';
import { CLUSTER_TIMEOUT_MS } from '../local/kube/shared.ts';
import { type LocalLldap, startLldap } from '../local/lldap/start.ts';

const BUNDLE = fileURLToPath(new URL('../../dist/main.cjs', import.meta.url));
const OWN = 'lldap-operator';
const AUDIENCE = 'lldap-operator';
const FUNCTIONS = ['user', 'group', 'membership', 'attribute-schema', 'startup', 'requeue'].map((name) => `${OWN}-${name}`);

/** The component for OIDC, done by the real functions with their rights, on a real API server. */
describe('With components/oidc', function () {
  this.timeout(CLUSTER_TIMEOUT_MS);
  let cluster: Cluster;
  let lldap: LocalLldap & { close(): Promise<void> };
  let knative: LocalKnative;
  let team: string;
  const told: Happening[] = [];

  before(async () => {
    assert.ok(existsSync(BUNDLE), 'build it first: make build');
    lldap = await startLldap({ passwordCost: 'cheap' });
    cluster = await startCluster();
    await installCrds(cluster);
    team = await cluster.createNamespace('team');
    await apply(
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: OWN } },
      {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'lldap-operator-credentials', namespace: OWN },
        stringData: { username: lldap.admin.username, password: lldap.admin.password },
      },
      { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'stranger', namespace: team } },
    );
    knative = await startKnative({
      cluster,
      manifests: await renderWith(['components/oidc']),
      command: (args) => [process.execPath, BUNDLE, ...args],
      oidc: true,
      // A function that has gone to zero does not start again while the API server is away.
      idleMs: 3_600_000,
      jobs: 'on demand',
      addresses: {
        'http://lldap.lldap.svc.cluster.local:17170': lldap.url,
        'ldap://lldap.lldap.svc.cluster.local:3890': lldap.ldapUrl,
      },
      onEvent: (happening) => told.push(happening),
    });
  });
  after(async () => {
    await knative?.stop();
    await cluster?.stop();
    await lldap.close();
  });

  const apply = (...objects: object[]) => cluster.apply(objects.map((object) => stringify(object)).join('---\n'));
  const resource = (kind: string, name: string, spec: object) => ({
    apiVersion: API_VERSION,
    kind,
    metadata: { name, namespace: team, labels: { [INSTANCE_LABEL]: 'default' } },
    spec,
  });
  const until = async (holds: () => boolean) => {
    while (!holds()) await sleep(50);
  };
  /** What is under way comes to its end, with all that it leads to. */
  const quiet = async () => {
    for (let seen = -1; seen !== told.length || knative.processes().some(({ inFlight }) => inFlight > 0); ) {
      seen = told.length;
      await sleep(500);
    }
  };
  const all = <W extends Happening['what']>(what: W) => told.filter((each): each is Extract<Happening, { what: W }> => each.what === what);
  /** As a person asks for one. */
  async function createToken(namespace: string, account: string, audience: string): Promise<string> {
    const { code, stdout, stderr } = await cluster.kubectl(['create', 'token', account, '-n', namespace, '--audience', audience]);
    assert.equal(code, 0, stderr);
    return stdout.trim();
  }
  const headersOf = (type: string, token?: string) => ({
    'ce-specversion': '1.0',
    'ce-id': 'by-hand',
    'ce-source': '/test',
    'ce-type': type,
    'ce-kind': 'LldapUser',
    'ce-namespace': team,
    'ce-name': 'alice',
    // What is due already: requeue would post it at once.
    'ce-notbefore': '2026-01-31T12:00:00.000Z',
    prefer: 'return=representation',
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
  });
  const call = (service: string, type: string, token?: string, path = '/'): Promise<Answer> =>
    send('POST', `${knative.serviceUrl(service)}${path}`, headersOf(type, token), Buffer.alloc(0));

  it('the Jobs call startup with a token of their own', async () => {
    for (const run of [knative.runJob('lldap-operator-install'), knative.runCronJob('lldap-operator-startup')]) {
      const { code, output } = await run;
      assert.equal(code, 0, output);
    }
  });

  it('the sources, the Broker and the functions reach each other: a tree of resources is Ready', async () => {
    await apply(
      resource('LldapAttributeSchema', 'color', { attributeName: 'color', attributeType: 'String', target: 'User' }),
      resource('LldapUser', 'alice', {
        username: 'alice',
        email: 'alice@example.com',
        passwordPolicy: 'Ignore',
        attributes: [{ name: 'color', value: ['red'] }],
      }),
      resource('LldapGroup', 'staff', { displayName: 'Staff' }),
      resource('LldapMembership', 'alice-staff', { userName: 'alice', groupName: 'Staff' }),
    );
    const { code, stderr } = await cluster.kubectl([
      ...['wait', 'llas/color', 'llu/alice', 'llg/staff', 'llm/alice-staff', '-n', team],
      ...['--for=condition=Ready', '--timeout=120s'],
    ]);
    assert.equal(code, 0, stderr);
    assert.deepEqual((await lldap.users()).find(({ id }) => id === 'alice')?.groups, ['Staff']);
  });

  it('a retry goes through requeue and back', async () => {
    await apply(resource('LldapMembership', 'waits', { userName: 'alice', groupName: 'Later' }));
    const types = () => all('delivered').flatMap(({ event, trigger }) => (event.name === 'waits' ? [`${event.type} by ${trigger}`] : []));
    await until(
      () =>
        types().includes(`${EVENT_TYPE.requeue} by lldap-operator-requeue`) &&
        types().includes(`${EVENT_TYPE.reconcile} by lldap-operator-membership`),
    );
    await cluster.kubectl(['delete', 'llm', 'waits', '-n', team, '--timeout=120s']);
  });

  it('no event of the installation itself was refused', () => {
    assert.deepEqual(
      all('undelivered').filter(({ why }) => /status 40[13]/.test(why)),
      [],
    );
    assert.deepEqual(
      all('sent').filter(({ status }) => status !== 202),
      [],
    );
  });

  describe('a stranger', () => {
    const tokens: Record<string, () => Promise<string | undefined>> = {
      'without a token': async () => undefined,
      'with a token that is none': async () => 'hush',
      'with a token of another namespace, for the right audience': () => createToken(team, 'stranger', AUDIENCE),
      'with a token of this namespace that is for the Broker': () =>
        createToken(OWN, 'lldap-operator-call-startup', 'eventing.knative.dev/broker/lldap-operator/lldap-operator'),
      'with a token for the API server': () => cluster.tokenFor(OWN, 'lldap-operator-user'),
      'with the token of an administrator of the cluster': async () => cluster.adminToken,
    };
    for (const [who, token] of Object.entries(tokens)) {
      it(`${who} is answered 401 by every function, and nothing happens`, async () => {
        const shown = await token();
        await quiet();
        await lldap.forget();
        const before = told.length;
        const doors = FUNCTIONS.map((name) => [name, '/'] as const);
        for (const [name, path] of [...doors, [`${OWN}-requeue`, '/dead-letter'] as const]) {
          for (const type of Object.values(EVENT_TYPE)) {
            const { status, headers, body } = await call(name, type, shown, path);
            assert.deepEqual([status, headers['www-authenticate']], [401, 'Bearer'], `${name} ${type}`);
            assert.equal(
              body.toString(),
              `Send "Authorization: Bearer" with a token of a ServiceAccount in ${OWN} for the audience ${AUDIENCE}.\n`,
            );
          }
        }
        assert.deepEqual(await lldap.asked(), []);
        const since = told.slice(before);
        assert.deepEqual(
          since.filter(({ what }) => what === 'accepted' || what === 'sent'),
          [],
        );
        const lines = since.flatMap((each) => (each.what === 'log' ? [JSON.parse(each.line) as { message: string }] : []));
        assert.ok(lines.length >= doors.length);
        const others = lines.filter(({ message }) => !['refused a request', 'serving', 'stopped'].includes(message));
        assert.deepEqual(others, []);
        if (shown !== undefined) assert.ok(!JSON.stringify(lines).includes(shown));
      });
    }

    it('is not taken in by the Broker either', async () => {
      const post = (token?: string) => send('POST', knative.brokerUrl, headersOf(EVENT_TYPE.reconcile, token), Buffer.alloc(0));
      assert.equal((await post()).status, 401);
      const token = await createToken(team, 'stranger', 'eventing.knative.dev/broker/lldap-operator/lldap-operator');
      assert.equal((await post(token)).status, 403);
    });

    it('finds the health of a function open', async () => {
      const { status } = await send('GET', `${knative.serviceUrl(`${OWN}-user`)}/health/readiness`, {}, Buffer.alloc(0));
      assert.equal(status, 200);
    });
  });

  it('a person who may make tokens in the namespace calls the functions', async () => {
    const token = await createToken(OWN, 'lldap-operator-call-startup', AUDIENCE);
    const user = await call(`${OWN}-user`, EVENT_TYPE.reconcile, token);
    assert.equal(user.status, 200, user.body.toString());
    assert.equal(JSON.parse(user.body.toString()).name, 'alice');
    const startup = await call(`${OWN}-startup`, EVENT_TYPE.startup, token);
    assert.equal(startup.status, 200, startup.body.toString());
  });

  it('while the API server is away, who calls is asked to come again, and comes in once it is back', async () => {
    const token = await createToken(OWN, 'lldap-operator-call-startup', AUDIENCE);
    assert.equal((await send('GET', `${knative.serviceUrl(`${OWN}-requeue`)}/health/readiness`, {}, Buffer.alloc(0))).status, 200);
    await cluster.stopApiServer();
    const { status, body } = await call(`${OWN}-requeue`, EVENT_TYPE.requeue, token);
    assert.deepEqual([status, body.toString()], [503, 'The API server did not check the token (no answer); deliver the event again.\n']);
    await cluster.startApiServer();
    const again = await call(`${OWN}-requeue`, EVENT_TYPE.requeue, token);
    assert.equal(again.status, 204);
  });

  it('where Eventing has no identities, its webhook refuses the component', async () => {
    const manifests = await renderWith(['components/oidc']);
    await assert.rejects(startKnative({ cluster, manifests, command: (args) => args }), /authentication-oidc is not enabled/);
  });
});
