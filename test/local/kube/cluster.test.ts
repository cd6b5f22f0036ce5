import { strict as assert } from 'node:assert';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Cluster, startCluster } from './cluster.ts';
import { CLUSTER_TIMEOUT_MS } from './shared.ts';

const CLUSTER = join(import.meta.dirname, './cluster.ts');
const GONE_WITHIN_MS = 120_000;

describe('a local cluster', () => {
  let cluster: Cluster;
  let namespace: string;

  before(async function () {
    this.timeout(CLUSTER_TIMEOUT_MS);
    cluster = await startCluster();
    namespace = await cluster.createNamespace('local');
    await cluster.apply(`apiVersion: v1\nkind: ServiceAccount\nmetadata: { name: function, namespace: ${namespace} }\n`);
  });
  after(() => cluster?.stop());

  it('gives kubectl, with a version that it knows', async () => {
    const { stdout, stderr, code } = await cluster.kubectl(['version']);
    assert.deepEqual([code, stderr], [0, '']);
    assert.match(stdout, /^Client Version: (v1\.\d+\.\d+)\n[\s\S]*Server Version: \1\n/);
  });

  it('tells a failure of kubectl by its code, and one of apply by an error with the reason', async () => {
    const { stderr, code } = await cluster.kubectl(['get', 'nothing']);
    assert.equal(code, 1);
    assert.match(stderr, /doesn't have a resource type "nothing"/);
    await assert.rejects(cluster.apply('kind: Secret\napiVersion: v1\nmetadata: { name: A_B }\n'), /kubectl apply: .*Invalid/);
  });

  it('lets a ServiceAccount do what RBAC grants, in its own namespace by default, and nothing more', async () => {
    const kubeconfig = await cluster.kubeconfigFor(namespace, 'function');
    const asFunction = (...args: string[]) => cluster.kubectl(['--kubeconfig', kubeconfig, ...args]);
    assert.match((await asFunction('auth', 'whoami')).stdout, new RegExp(`system:serviceaccount:${namespace}:function`));
    assert.match(
      (await asFunction('get', 'secrets')).stderr,
      new RegExp(`cannot list resource "secrets".*in the namespace "${namespace}"`),
    );
  });

  it('gives no token for a ServiceAccount that does not exist', async () => {
    await assert.rejects(cluster.tokenFor(namespace, 'nobody'), /no token for ServiceAccount .*\/nobody: the API server answered 404/);
  });

  it('keeps an audit log of who called what, without any body', async () => {
    const token = await cluster.tokenFor(namespace, 'function');
    await cluster.request('GET', `/api/v1/namespaces/${namespace}/secrets/audited`, { token });
    // Whoever reads while the API server writes may find half of a line at the end.
    const read = async () =>
      (await readFile(cluster.auditLog, 'utf8'))
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line));
    const isAudited = ({ objectRef }: { objectRef?: { name?: string } }) => objectRef?.name === 'audited';
    let events = await read();
    for (; !events.some(isAudited); events = await read()) await sleep(50);
    const event = events.findLast(isAudited);
    assert.equal(event.user.username, `system:serviceaccount:${namespace}:function`);
    assert.deepEqual([event.verb, event.objectRef.resource, event.responseStatus.code], ['get', 'secrets', 403]);
    assert.ok(!events.some((any) => 'requestObject' in any || 'responseObject' in any));
  });

  it('comes back from a restart at the same address, with its objects, tokens and certificate', async () => {
    const token = await cluster.tokenFor(namespace, 'function');
    await cluster.stopApiServer();
    // The first may still be written to a kept connection, whose end is on its way.
    await assert.rejects(cluster.request('GET', '/readyz'));
    await assert.rejects(cluster.request('GET', '/readyz'), /ECONNREFUSED/);
    await cluster.startApiServer();
    const review = await cluster.request('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', {
      token,
      body: { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
    });
    assert.equal(review.code, 201);
    assert.equal((await cluster.request('GET', `/api/v1/namespaces/${namespace}`)).code, 200);
  });
});

describe('the end of a local cluster', () => {
  /** Starts a cluster from a process of its own. */
  async function startElsewhere() {
    const script = `
      const { startCluster } = await import(${JSON.stringify(CLUSTER)});
      const { kubeconfig, url } = await startCluster();
      console.log(JSON.stringify({ kubeconfig, url }));
      setInterval(() => undefined, 1000);`;
    const parent = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
    for await (const line of createInterface(parent.stdout)) {
      const { kubeconfig, url } = JSON.parse(line) as { kubeconfig: string; url: string };
      return { parent, directory: dirname(kubeconfig), port: Number(new URL(url).port) };
    }
    throw new Error('the cluster did not start');
  }

  function listens(port: number): Promise<boolean> {
    return new Promise((resolve) => {
      const socket = connect(port, '127.0.0.1', () => resolve(true)).once('error', () => resolve(false));
      socket.once('connect', () => socket.destroy());
    });
  }

  for (const signal of ['SIGKILL', 'SIGTERM', 'SIGINT'] as const) {
    it(`comes with that of the process that started it, by ${signal}, and leaves neither server nor file`, async function () {
      this.timeout(CLUSTER_TIMEOUT_MS);
      const { parent, directory, port } = await startElsewhere();
      assert.deepEqual([existsSync(directory), await listens(port)], [true, true]);
      parent.kill(signal);
      const deadline = Date.now() + GONE_WITHIN_MS;
      while ((existsSync(directory) || (await listens(port))) && Date.now() < deadline) await sleep(50);
      assert.deepEqual([existsSync(directory), await listens(port)], [false, false]);
    });
  }
});
