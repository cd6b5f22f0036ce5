import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Addresses, INGRESS_HOST } from './addresses.ts';
import { type Answer, send } from './http.ts';
import type { Host, Objects } from './sandbox.ts';
import { LocalService } from './serving.ts';
import { type Happening, Story } from './story.ts';
import type { FunctionModel, Workload } from './workload.ts';

const SAMPLE = join(import.meta.dirname, './sample-function.ts');

describe('A local Knative Service', () => {
  const configMaps = new Map<string, Record<string, string>>();
  const secrets = new Map<string, Record<string, Buffer>>();
  let service: LocalService;
  let told: Happening[];
  let story: Story;

  async function start(workload: Partial<Workload> = {}, model: Partial<FunctionModel> = {}, idleMs = 60_000): Promise<void> {
    story = new Story();
    told = [];
    story.listen((happening) => told.push(happening));
    const addresses = new Addresses();
    addresses.set(INGRESS_HOST, 12_345);
    const objects: Objects = {
      configMap: async (_, name) => configMaps.get(name),
      secret: async (_, name) => secrets.get(name),
      kubeconfigFor: async (namespace, serviceAccount) => `/kubeconfig-of-${namespace}-${serviceAccount}`,
      tokenFor: async (namespace, serviceAccount, audience) => `token-of-${namespace}-${serviceAccount}-for-${audience}`,
    };
    const host: Host = { objects, addresses, story, command: (args) => [process.execPath, SAMPLE, ...args] };
    const plain = {
      namespace: 'ns',
      name: 'f',
      serviceAccount: 'f',
      mountsToken: true,
      args: [],
      env: {},
      configMaps: [],
      volumes: [],
    };
    service = new LocalService(
      {
        workload: { ...plain, ...workload },
        readinessPath: '/health/readiness',
        minScale: 0,
        timeoutMs: 600_000,
        responseStartMs: 600_000,
        ...model,
      },
      host,
      idleMs,
    );
    await service.start();
    await service.warm();
  }

  const call = (path = '/', method = 'POST'): Promise<Answer> => send(method, service.url + path, {}, Buffer.alloc(0));
  const env = async (): Promise<Record<string, string>> => JSON.parse((await call('/env', 'GET')).body.toString());
  const all = <W extends Happening['what']>(what: W) => told.filter((each): each is Extract<Happening, { what: W }> => each.what === what);
  const until = async (done: () => boolean | Promise<boolean>) => {
    while (!(await done())) await sleep(10);
  };
  const holding = () => until(() => service.processes().some(({ inFlight }) => inFlight > 0));

  afterEach(async () => {
    await service.stop();
    configMaps.clear();
    secrets.clear();
    assert.deepEqual(service.processes(), []);
  });

  it('has no process until the first request, which waits for readiness, and one for all that come meanwhile', async () => {
    await start({ args: ['slow'] });
    assert.deepEqual(service.processes(), []);
    const answers = await Promise.all(Array.from({ length: 10 }, () => call()));
    assert.deepEqual(
      answers.map(({ status }) => status),
      Array(10).fill(204),
    );
    const [ready, second] = all('ready');
    assert.ok(ready && !second && ready.ms >= 300);
  });

  it('goes back to zero with SIGTERM when no request is in flight any more, and comes again', async () => {
    await start({}, {}, 100);
    await call();
    await until(() => all('stopped').length === 1);
    const [stopped] = all('stopped');
    assert.deepEqual([stopped?.code, stopped?.signal, service.processes()], [0, null, []]);
    assert.equal((await call()).status, 204);
    assert.equal(all('ready').length, 2);
  });

  it('keeps the process as long as one request is in flight', async () => {
    await start({}, {}, 50);
    const held = call('/hold');
    await holding();
    await sleep(300);
    assert.equal(service.processes()[0]?.state, 'ready');
    await call('/release');
    assert.equal((await held).status, 204);
    await until(() => all('stopped').length === 1);
  });

  it('keeps one process from the start with min-scale 1', async () => {
    await start({}, { minScale: 1 }, 20);
    assert.equal(service.processes().length, 1);
    await sleep(100);
    assert.equal(service.processes().length, 1);
  });

  it('during a rollout has two processes: the old one finishes what it has, the new one takes what comes', async () => {
    await start();
    const held = call('/hold');
    await holding();
    const [old] = service.processes();
    const rolled = service.rollout();
    await until(() => service.processes().length === 2);
    assert.equal((await call()).status, 204);
    assert.equal((await held).status, 503);
    await rolled;
    const [stopped] = all('stopped');
    assert.deepEqual([stopped?.pid, stopped?.code], [old?.pid, 0]);
    assert.notEqual(service.processes()[0]?.pid, old?.pid);
  });

  it('evicts with SIGTERM: the next request starts a successor', async () => {
    await start();
    await call();
    const [old] = service.processes();
    await service.kill('SIGTERM');
    assert.deepEqual(service.processes(), []);
    await call();
    assert.notEqual(service.processes()[0]?.pid, old?.pid);
  });

  it('answers 502 to what was in flight when the process died, and starts it again', async () => {
    await start();
    const held = call('/hold');
    await holding();
    await service.kill('SIGKILL');
    assert.equal((await held).status, 502);
    await until(() => all('ready').length === 2);
    assert.equal(all('crashed')[0]?.signal, 'SIGKILL');
  });

  it('starts again a process that ends by itself', async () => {
    await start();
    assert.equal((await call('/exit')).status, 502);
    await until(() => all('ready').length === 2);
    assert.equal(all('crashed')[0]?.code, 3);
  });

  it('answers 503 when the process never gets ready', async () => {
    await start({ args: ['broken'] });
    assert.equal((await call()).status, 503);
    assert.equal(all('crashed').length, 5);
  });

  it('kills a process that ignores SIGTERM when its grace period is over', async () => {
    await start({ args: ['stubborn'] }, { timeoutMs: 300 });
    await call();
    await service.kill('SIGTERM');
    assert.equal(all('stopped')[0]?.signal, 'SIGKILL');
  });

  it('answers 504 when the answer does not start in time', async () => {
    await start({}, { responseStartMs: 200 });
    await call();
    assert.equal((await call('/hold')).status, 504);
  });

  it("cuts the function's connection when the caller goes away", async () => {
    await start();
    await call();
    const outgoing = httpRequest(`${service.url}/hold`, { method: 'POST', agent: false }).end();
    const failed = once(outgoing, 'error');
    await holding();
    outgoing.destroy(new Error('gone'));
    await failed;
    await until(() => service.processes()[0]?.inFlight === 0);
  });

  describe('gives its process', () => {
    it("Knative's own variables, the ConfigMap's, and its own over these; local addresses for cluster-local ones", async () => {
      configMaps.set('settings', {
        BROKER_URL: `http://${INGRESS_HOST}/ns/broker`,
        LOG_LEVEL: 'info',
        LLDAP_URL: 'http://lldap.lldap.svc.cluster.local:17170',
      });
      await start({ configMaps: ['settings'], env: { LOG_LEVEL: 'debug' } });
      const { PORT, PATH, HOME, BROKER_URL, LOG_LEVEL, LLDAP_URL, KUBECONFIG, K_SERVICE, ...rest } = await env();
      assert.ok(PORT && PATH && HOME);
      assert.equal(BROKER_URL, 'http://127.0.0.1:12345/ns/broker');
      assert.deepEqual([LOG_LEVEL, LLDAP_URL], ['debug', 'http://lldap.lldap.svc.cluster.local:17170']);
      assert.deepEqual([KUBECONFIG, K_SERVICE], ['/kubeconfig-of-ns-f', 'f']);
      assert.deepEqual(Object.keys(rest).sort(), ['K_CONFIGURATION', 'K_REVISION']);
    });

    it('no way to the API server when its ServiceAccount mounts no token', async () => {
      await start({ mountsToken: false });
      assert.equal((await env()).KUBECONFIG, undefined);
    });

    it('its Secret as files, where the variable that names the mount path leads; a changed Secret changes the files', async () => {
      secrets.set('credentials', { username: Buffer.from('admin'), password: Buffer.from('one') });
      await start({ env: { DIR: '/etc/x/credentials' }, volumes: [{ mountPath: '/etc/x/credentials', secret: 'credentials' }] });
      const { DIR } = await env();
      const read = async (key: string) => (await call(`/file?path=${DIR}/${key}`, 'GET')).body.toString();
      assert.deepEqual([await read('username'), await read('password')], ['admin', 'one']);
      secrets.set('credentials', { username: Buffer.from('admin'), password: Buffer.from('two') });
      await until(async () => (await read('password')) === 'two');
    });

    it('a token of its ServiceAccount for one audience as a file, where the variable leads', async () => {
      await start({ env: { FILE: '/etc/x/token' }, volumes: [{ mountPath: '/etc/x', audience: 'them', path: 'token' }] });
      const { FILE } = await env();
      assert.equal((await call(`/file?path=${FILE}`, 'GET')).body.toString(), 'token-of-ns-f-for-them');
    });

    it('nothing before its Secret exists: the request waits for it', async () => {
      await start({ volumes: [{ mountPath: '/etc/x', secret: 'credentials' }] });
      const answer = call();
      await until(() => all('warning').some(({ message }) => message === 'waits for Secret ns/credentials'));
      secrets.set('credentials', { username: Buffer.from('admin') });
      assert.equal((await answer).status, 204);
    });
  });

  it('tells what its process writes, line by line', async () => {
    await start();
    await call();
    await until(() => all('log').length === 2);
    assert.deepEqual(
      all('log').map(({ line }) => JSON.parse(line).msg),
      ['started', 'event'],
    );
  });
});
