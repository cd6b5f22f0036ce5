import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BrokerError, createBroker } from '../../shared/events/broker.ts';
import { loadConfig } from '../../shared/service/config.ts';
import { type FakeFunction, fakeFunction } from '../local/knative/fake-function.ts';
import { renderWith } from '../local/knative/render.ts';
import { typedManifests } from '../local/knative/typed.ts';
import type { Cluster } from '../local/kube/cluster.ts';
import { CLUSTER_TIMEOUT_MS, sharedCluster } from '../local/kube/shared.ts';

const ALICE = { kind: 'LldapUser', namespace: 'team', name: 'alice' } as const;

/** A Broker that asks who posts: what components/oidc mounts is what it takes. */
describe('With components/oidc a function', function () {
  this.timeout(CLUSTER_TIMEOUT_MS);
  let cluster: Cluster;
  let sink: FakeFunction;
  let folder: string;
  let tokenFile: string;

  before(async () => {
    cluster = await sharedCluster();
  });
  beforeEach(async () => {
    sink = await fakeFunction(async () => ({ status: 202 }));
    folder = await mkdtemp(join(tmpdir(), 'broker-token-'));
    tokenFile = join(folder, 'token');
  });
  afterEach(async () => {
    await sink.stop();
    await rm(folder, { recursive: true });
  });

  const sent = () => sink.received.map(({ headers }) => headers.authorization);

  /** What the mounted volume asks the kubelet for. */
  async function projection(): Promise<{ audience: string; path: string; mountPath: string; file: string; account: string }> {
    const { services } = typedManifests(await renderWith(['components/oidc']));
    const spec = services.find(({ metadata }) => metadata?.name === 'lldap-operator-user')?.spec?.template?.spec;
    const [container = assert.fail()] = spec?.containers ?? [];
    const volume = spec?.volumes?.find(({ name }) => name === 'broker-token') as {
      projected: { sources: { serviceAccountToken: Projection }[] };
    };
    const [{ serviceAccountToken: token } = assert.fail()] = volume.projected.sources;
    const mountPath = container.volumeMounts?.find(({ name }) => name === 'broker-token')?.mountPath ?? '';
    const file = container.env?.find(({ name }) => name === 'BROKER_TOKEN_FILE')?.value ?? '';
    return { ...token, mountPath, file, account: spec?.serviceAccountName ?? '' };
  }

  it('is told where the token is mounted', async () => {
    const { mountPath, path, file } = await projection();
    assert.equal(file, join(mountPath, path));
    const required = { LLDAP_INSTANCE: 'x', LLDAP_URL: 'http://x', LLDAP_LDAP_URL: 'ldap://x', BROKER_URL: 'http://x' };
    assert.equal(loadConfig({ ...required, BROKER_TOKEN_FILE: file }).brokerTokenFile, file);
  });

  it('posts with a token of its own account, good for the Broker alone', async () => {
    const { audience, account } = await projection();
    const namespace = await cluster.createNamespace('oidc');
    await cluster.request('POST', `/api/v1/namespaces/${namespace}/serviceaccounts`, { body: { metadata: { name: account } } });
    const { body: made } = await cluster.request('POST', `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`, {
      body: { spec: { audiences: [audience] } },
    });
    await writeFile(tokenFile, `${(made as { status: { token: string } }).status.token}\n`);
    await createBroker(sink.url, 'user', tokenFile).reconcile(ALICE);
    const [, token = ''] = /^Bearer (\S+)$/.exec(sent()[0] ?? '') ?? [];
    const review = async (audiences: string[]) => {
      const { body } = await cluster.request('POST', '/apis/authentication.k8s.io/v1/tokenreviews', {
        body: { spec: { token, audiences } },
      });
      return (body as { status: { authenticated?: boolean; user?: { username: string } } }).status;
    };
    const { authenticated, user } = await review([audience]);
    assert.deepEqual([authenticated, user?.username], [true, `system:serviceaccount:${namespace}:${account}`]);
    assert.notEqual((await review(['https://kubernetes.default.svc'])).authenticated, true);
  });

  it('takes the token that the kubelet has renewed', async () => {
    const broker = createBroker(sink.url, 'user', tokenFile);
    for (const token of ['first', 'second']) {
      await writeFile(tokenFile, token);
      await broker.startup('sweep');
    }
    assert.deepEqual(sent(), ['Bearer first', 'Bearer second']);
  });

  it('takes a token that cannot be read for a broker that does not answer, and names the file', async () => {
    await assert.rejects(createBroker(sink.url, 'user', tokenFile).startup('sweep'), (error: Error) => {
      assert.ok(error instanceof BrokerError);
      assert.equal(error.message, `The broker did not accept the event: the token in ${tokenFile} cannot be read (ENOENT)`);
      return true;
    });
    assert.deepEqual(sent(), []);
  });

  it('posts without any where it is not told of one', async () => {
    await createBroker(sink.url, 'user').startup('sweep');
    assert.deepEqual(sent(), [undefined]);
  });
});

interface Projection {
  audience: string;
  path: string;
}
