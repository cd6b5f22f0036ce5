import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { timestamp } from '../../shared/clock.ts';

const DIST = join(import.meta.dirname, '../../dist');
const FUNCTIONS = ['user', 'group', 'membership', 'attribute-schema', 'startup', 'requeue'];
/** Nobody listens there. */
const NOWHERE = '127.0.0.1:1';

interface Started {
  child: ChildProcess;
  port: number;
}

interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

describe('the bundle', () => {
  let directory: string;
  let env: Record<string, string>;
  const children: ChildProcess[] = [];

  before(async () => {
    assert.ok(existsSync(join(DIST, 'main.mjs')), 'build it first: make build');
    directory = await mkdtemp(join(tmpdir(), 'bundle-'));
    await writeFile(join(directory, 'username'), 'admin');
    await writeFile(join(directory, 'password'), 'hush');
    const kubeconfig = join(directory, 'kubeconfig');
    const named = (kind: string, what: object) => [{ name: 'here', [kind]: what }];
    await writeFile(
      kubeconfig,
      JSON.stringify({
        'current-context': 'here',
        contexts: named('context', { cluster: 'here', user: 'here', namespace: 'lldap-operator' }),
        clusters: named('cluster', { server: `https://${NOWHERE}` }),
        users: named('user', { token: 'hush' }),
      }),
    );
    env = {
      LLDAP_INSTANCE: 'main',
      LLDAP_URL: `http://${NOWHERE}`,
      LLDAP_LDAP_URL: `ldap://${NOWHERE}`,
      BROKER_URL: `http://${NOWHERE}/lldap-operator/lldap-operator`,
      CREDENTIALS_DIR: directory,
      KUBECONFIG: kubeconfig,
      HOME: directory,
      LOG_LEVEL: 'debug',
      PORT: '0',
    };
  });
  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL');
  });
  after(() => rm(directory, { recursive: true }));

  function run(args: string[], settings: Record<string, string>): ChildProcess {
    const child = spawn(process.execPath, [join(DIST, 'main.mjs'), ...args], { env: { ...env, ...settings }, stdio: 'pipe' });
    children.push(child);
    return child;
  }

  async function end(child: ChildProcess): Promise<Ended> {
    const ended: Ended = { code: null, stdout: '', stderr: '' };
    for (const stream of ['stdout', 'stderr'] as const)
      child[stream]?.on('data', (chunk) => {
        ended[stream] += chunk;
      });
    [ended.code] = await once(child, 'close');
    return ended;
  }

  /** Starts a function, until it says that it serves. */
  async function start(name: string, settings: Record<string, string> = {}): Promise<Started> {
    const child = run([name], settings);
    let stderr = '';
    child.stderr?.on('data', (chunk) => {
      stderr += chunk;
    });
    assert.ok(child.stdout);
    for await (const line of createInterface({ input: child.stdout })) {
      const { message, port } = JSON.parse(line) as { message: string; port: number };
      if (message !== 'serving') continue;
      child.stdout.resume();
      return { child, port };
    }
    return assert.fail(`${name} did not start: ${stderr}`);
  }

  async function stop({ child }: Started): Promise<number | null> {
    child.kill('SIGTERM');
    const [code] = await once(child, 'close');
    return code;
  }

  function event(type: string, extensions: Record<string, string> = {}): RequestInit {
    const attributes = { specversion: '1.0', id: '1', source: '/test', type: `com.lukidoescode.lldap-operator.${type}`, ...extensions };
    return { method: 'POST', headers: Object.fromEntries(Object.entries(attributes).map(([name, value]) => [`ce-${name}`, value])) };
  }
  const about = (kind: string) => ({ kind, namespace: 'team', name: 'alice' });
  const post = async (port: number, init: RequestInit): Promise<[number, string]> => {
    const answer = await fetch(`http://127.0.0.1:${port}/`, init);
    return [answer.status, await answer.text()];
  };

  describe('while lldap, the API server and the broker are all down', () => {
    for (const name of FUNCTIONS) {
      it(`${name} starts, is ready, and ends with 0 when told to`, async () => {
        const started = await start(name);
        for (const probe of ['liveness', 'readiness'])
          assert.equal((await fetch(`http://127.0.0.1:${started.port}/health/${probe}`)).status, 200);
        assert.equal(await stop(started), 0);
      });
    }

    const kinds = { user: 'LldapUser', group: 'LldapGroup', membership: 'LldapMembership', 'attribute-schema': 'LldapAttributeSchema' };
    for (const [name, kind] of Object.entries(kinds)) {
      it(`${name} asks for an event again, in one short line, and goes on`, async () => {
        const started = await start(name);
        for (let i = 0; i < 2; i++) {
          assert.deepEqual(await post(started.port, event('reconcile', about(kind))), [
            503,
            'the API server did not take what the pass had to write\n',
          ]);
        }
        assert.equal(await stop(started), 0);
      });
    }

    it('startup says what it could not reach and which setting to look at, and no secret', async () => {
      const started = await start('startup');
      const init = event('startup');
      const [status, body] = await post(started.port, { ...init, headers: { ...init.headers, prefer: 'return=representation' } });
      assert.equal(status, 503);
      const { ok, problems } = JSON.parse(body) as { ok: boolean; problems: string[] };
      assert.equal(ok, false);
      for (const setting of ['LLDAP_URL', 'LLDAP_LDAP_URL', 'ServiceAccount lldap-operator-startup'])
        assert.ok(
          problems.some((problem) => problem.includes(`look at `) && problem.includes(setting)),
          setting,
        );
      assert.doesNotMatch(body, /hush/);
      assert.equal(await stop(started), 0);
    });
  });

  describe('requeue', () => {
    const due = (ms: number) => event('requeue', { ...about('LldapUser'), notbefore: timestamp(Date.now() + ms) });

    it('told to stop while it holds events, gives them back and ends with 0', async () => {
      const started = await start('requeue');
      const twice = [due(300_000), due(400_000)].map((init) => [post(started.port, init), post(started.port, init)]);
      // That one of two alike is answered shows that the other is held.
      for (const alike of twice) assert.deepEqual(await Promise.race(alike), [204, '']);
      assert.equal(await stop(started), 0);
      for (const alike of twice) {
        const answers = await Promise.all(alike);
        assert.deepEqual(answers.sort(), [
          [204, ''],
          [503, 'stopping; deliver again\n'],
        ]);
      }
    });

    it('posts what is due to the broker', async () => {
      const received: IncomingHttpHeaders[] = [];
      const broker = createServer((request, response) => {
        received.push(request.headers);
        response.writeHead(202).end();
      }).listen(0, '127.0.0.1');
      await once(broker, 'listening');
      const started = await start('requeue', { BROKER_URL: `http://127.0.0.1:${(broker.address() as AddressInfo).port}/` });
      assert.deepEqual(await post(started.port, due(-1000)), [204, '']);
      assert.deepEqual([received[0]?.['ce-type'], received[0]?.['ce-name']], ['com.lukidoescode.lldap-operator.reconcile', 'alice']);
      assert.equal(await stop(started), 0);
      broker.closeAllConnections();
      broker.close();
    });

    it('asks for what the broker does not take again', async () => {
      const started = await start('requeue');
      assert.deepEqual(await post(started.port, due(-1000)), [503, 'the broker did not take the reconcile event\n']);
      assert.equal(await stop(started), 0);
    });
  });

  describe('ends at once, with 1 and exactly one line, when', () => {
    const credentials = 'give the Secret both "username" and "password".';
    const cases: Record<string, [fn: string, settings: Record<string, string>, line: string]> = {
      'a setting is missing': [
        'requeue',
        { LLDAP_INSTANCE: '' },
        'LLDAP_INSTANCE is not set: give the value of the lldap-instance label that this installation serves.',
      ],
      'an address is none': [
        'requeue',
        { LLDAP_URL: 'lldap' },
        'LLDAP_URL is not an address of the form http://host:port, without user name or password: correct it.',
      ],
      'an address holds a password': [
        'user',
        { LLDAP_LDAP_URL: 'ldap://admin:hush@lldap' },
        'LLDAP_LDAP_URL is not an address of the form ldap://host:port, without user name or password: correct it.',
      ],
      'the broker has no address': [
        'startup',
        { BROKER_URL: '' },
        'BROKER_URL is not set: give an address that starts with http:// or https://.',
      ],
      'a number is none': ['group', { MAX_PASSES: 'many' }, 'MAX_PASSES is "many": it must be a whole number from 1 to 1000.'],
      'a choice is none': ['membership', { ADOPTION: 'some' }, 'ADOPTION is "some": it must be one of privileged, all.'],
      'the credentials are not mounted': [
        'user',
        { CREDENTIALS_DIR: '' },
        'CREDENTIALS_DIR is not set: mount the Secret with "username" and "password" and name its folder.',
      ],
      'the credentials are somewhere else': [
        'attribute-schema',
        { CREDENTIALS_DIR: '/nowhere' },
        `The credentials' key "username" cannot be read (ENOENT): ${credentials}`,
      ],
    };
    for (const [name, [fn, settings, line]] of Object.entries(cases)) {
      it(name, async () => {
        assert.deepEqual(await end(run([fn], settings)), { code: 1, stdout: '', stderr: `lldap-operator ${fn}: ${line}\n` });
      });
    }

    const names = 'name one of user, group, membership, attribute-schema, startup, requeue, call.';
    for (const name of ['users', 'constructor', '']) {
      it(`there is no function "${name}"`, async () => {
        assert.deepEqual(await end(run([name], {})), { code: 1, stdout: '', stderr: `"${name}" is no function: ${names}\n` });
      });
    }
  });

  it('requeue needs no credentials', async () => {
    assert.equal(await stop(await start('requeue', { CREDENTIALS_DIR: '' })), 0);
  });

  describe('the command of the Jobs', () => {
    async function call(
      args: string[],
      answer: (response: ServerResponse) => void,
    ): Promise<Ended & { asked: [IncomingHttpHeaders, string][] }> {
      const asked: [IncomingHttpHeaders, string][] = [];
      const server = createServer(async (request, response) => {
        let body = '';
        for await (const chunk of request) body += chunk;
        asked.push([request.headers, body]);
        answer(response);
      }).listen(0, '127.0.0.1');
      await once(server, 'listening');
      const ended = await end(run(['call', ...args], { STARTUP_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` }));
      server.close();
      return { ...ended, asked };
    }

    it('asks startup for a run of its mode, shows the summary and ends with 0', async () => {
      const { asked, ...ended } = await call(['full'], (response) => response.writeHead(200).end('{"ok":true}'));
      assert.deepEqual(ended, { code: 0, stdout: '{"ok":true}\n', stderr: '' });
      const [[headers, body]] = asked as [[IncomingHttpHeaders, string]];
      assert.equal(body, '{"mode":"full"}');
      assert.deepEqual(
        [headers['ce-type'], headers['ce-specversion'], headers.prefer, headers['content-type']],
        ['com.lukidoescode.lldap-operator.startup', '1.0', 'return=representation', 'application/json'],
      );
    });

    it('asks for a sweep when no mode is given', async () => {
      const { asked } = await call([], (response) => response.writeHead(200).end('{}'));
      assert.equal(asked[0]?.[1], '{"mode":"sweep"}');
    });

    it('fails, visibly, when startup did', async () => {
      const { code, stdout } = await call([], (response) =>
        response.writeHead(503).end('{"ok":false,"problems":["lldap does not answer"]}'),
      );
      assert.deepEqual([code, stdout], [1, '{"ok":false,"problems":["lldap does not answer"]}\n']);
    });

    it('fails, visibly, when startup does not answer', async () => {
      assert.deepEqual(await end(run(['call'], { STARTUP_URL: `http://${NOWHERE}/` })), {
        code: 1,
        stdout: '',
        stderr: 'startup did not answer: no connection (ECONNREFUSED)\n',
      });
    });

    it('needs an address', async () => {
      assert.deepEqual(await end(run(['call'], {})), {
        code: 1,
        stdout: '',
        stderr: 'STARTUP_URL is not set: give the address of the startup function.\n',
      });
    });
  });

  describe('loads only what it needs:', () => {
    /** A text that only this package's code has. */
    const marks = {
      axios: 'ERR_BAD_OPTION_VALUE',
      ldapts: '1.3.6.1.4.1.1466.20037',
      'client-node': 'KUBERNETES_SERVICE_HOST',
      opentelemetry: 'OTEL_BSP_SCHEDULE_DELAY',
    };
    const compiler = 'schema with key or id';

    /** The packages among the files that the process had loaded when it ended, as V8 itself tells. */
    async function loadedBy(work: (port: number) => Promise<unknown>): Promise<string[]> {
      const coverage = await mkdtemp(join(directory, 'coverage-'));
      const started = await start('user', { NODE_V8_COVERAGE: coverage });
      await work(started.port);
      assert.equal(await stop(started), 0);
      const files = new Set<string>();
      for (const file of await readdir(coverage)) {
        const { result } = JSON.parse(await readFile(join(coverage, file), 'utf8')) as { result: { url: string }[] };
        for (const { url } of result) if (url.startsWith('file:') && url.includes('/dist/')) files.add(url);
      }
      assert.ok(files.size > 3, 'no files');
      const texts = [...files].map((url) => readFileSync(new URL(url), 'utf8'));
      return Object.entries(marks).flatMap(([name, mark]) => (texts.some((text) => text.includes(mark)) ? [name] : []));
    }

    it('a function that serves, and has had no event, has loaded no client at all', async () => {
      assert.deepEqual(await loadedBy((port) => fetch(`http://127.0.0.1:${port}/health/readiness`)), []);
    });

    it('its first event loads what leads to the API server, and nothing for passwords or telemetry', async () => {
      assert.deepEqual(await loadedBy((port) => post(port, event('reconcile', about('LldapUser')))), ['axios', 'client-node']);
    });

    it('all of that is in the bundle, each in a file of its own, but not the compiler of schemas', () => {
      const files = readdirSync(DIST, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.mjs'));
      const holding = (mark: string) => files.filter((file) => readFileSync(join(DIST, file), 'utf8').includes(mark));
      const holders = Object.values(marks).map((mark) => holding(mark).join());
      assert.equal(new Set(holders).size, 4);
      assert.ok(!holders.includes(''));
      assert.ok(readFileSync(join(DIST, '../node_modules/ajv/dist/core.js'), 'utf8').includes(compiler));
      assert.deepEqual(holding(compiler), []);
    });
  });
});
