import assert from 'node:assert/strict';
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingHttpHeaders, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Connection, connect, type KubeRequest } from '../../../shared/kube/connection.ts';
import { KubeError } from '../../../shared/kube/errors.ts';
import { withTrace } from '../../../shared/telemetry/trace.ts';
import { selfSigned } from '../../local/lldap/certificate.ts';
import { useTelemetry } from '../support/telemetry.ts';

const TRACE = { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`, tracestate: 'k=v' };
const GET: KubeRequest = { method: 'GET', path: '/api/v1/namespaces/team/secrets/alice' };

describe('shared/kube/connection', () => {
  const recorded = useTelemetry();
  const cleanups: (() => unknown)[] = [];
  let received: { request: string; headers: IncomingHttpHeaders; body: string }[];
  let sockets: Set<Socket>;
  let answer: (response: ServerResponse) => void;

  beforeEach(() => {
    received = [];
    sockets = new Set();
    answer = (response) => response.end('{}');
  });
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });

  const listener: RequestListener = async (request, response) => {
    sockets.add(request.socket);
    let body = '';
    for await (const chunk of request) body += chunk;
    received.push({ request: `${request.method} ${request.url}`, headers: request.headers, body });
    answer(response);
  };
  async function listen(server: Server): Promise<number> {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    cleanups.push(() => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    });
    return (server.address() as AddressInfo).port;
  }
  const serve = async () => `http://127.0.0.1:${await listen(createServer({ keepAliveTimeout: 0 }, listener))}`;

  async function writeConfig(
    cluster: { server: string; [more: string]: string },
    { user = {}, context = {} }: { user?: object; context?: object } = {},
  ): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), 'kubeconfig-'));
    cleanups.push(() => rm(folder, { recursive: true }));
    const file = join(folder, 'config');
    const config = {
      // client-node takes no http: address without this.
      clusters: [{ name: 'c', cluster: { ...cluster, 'insecure-skip-tls-verify': cluster.server.startsWith('http:') } }],
      users: [{ name: 'u', user }],
      contexts: [{ name: 'x', context: { cluster: 'c', user: 'u', ...context } }],
      'current-context': 'x',
    };
    await writeFile(file, JSON.stringify(config));
    return file;
  }
  function open(kubeconfig?: string): Connection {
    const connection = connect(kubeconfig);
    cleanups.push(() => connection.close());
    return connection;
  }
  const openDefault = async () => open(await writeConfig({ server: await serve() }));
  async function failure(promise: Promise<unknown>): Promise<KubeError> {
    const error = await promise.catch((thrown: unknown) => thrown);
    assert.ok(error instanceof KubeError, String(error));
    return error;
  }

  describe('a kubeconfig', () => {
    it('names the API server, and the token to send to it', async () => {
      answer = (response) => response.end('{"kind":"Secret"}');
      const connection = open(await writeConfig({ server: await serve() }, { user: { token: 'tokens-token' } }));
      assert.deepEqual(await connection.request(GET), { kind: 'Secret' });
      const [{ request, headers } = assert.fail('no request')] = received;
      assert.deepEqual([request, headers.authorization, headers.accept], [`GET ${GET.path}`, 'Bearer tokens-token', 'application/json']);
    });

    it('is the one that KUBECONFIG names, if no other is given', async () => {
      const { KUBECONFIG } = process.env;
      cleanups.push(() => {
        if (KUBECONFIG === undefined) delete process.env.KUBECONFIG;
        else process.env.KUBECONFIG = KUBECONFIG;
      });
      process.env.KUBECONFIG = await writeConfig({ server: await serve() }, { context: { namespace: 'lldap-operator' } });
      assert.equal(await open().namespace(), 'lldap-operator');
    });

    it('names the namespace, which is "default" if it does not', async () => {
      const server = 'http://127.0.0.1:1';
      assert.equal(await open(await writeConfig({ server }, { context: { namespace: 'lldap-operator' } })).namespace(), 'lldap-operator');
      assert.equal(await open(await writeConfig({ server })).namespace(), 'default');
    });

    it('names the certificate to trust', async () => {
      const { key, cert } = selfSigned();
      const server = `https://127.0.0.1:${await listen(createSecureServer({ key, cert }, listener))}`;
      const trusting = open(await writeConfig({ server, 'certificate-authority-data': Buffer.from(cert).toString('base64') }));
      assert.deepEqual(await trusting.request(GET), {});
      const other = await failure(open(await writeConfig({ server })).request(GET));
      assert.match(other.message, /^The API server did not answer: the TLS handshake failed/);
    });

    it('that names no cluster is an error, until another one is there', async () => {
      const file = await writeConfig({ server: await serve() }, { context: { cluster: 'other' } });
      const connection = open(file);
      for (let i = 0; i < 2; i++) assert.equal((await failure(connection.request(GET))).message, 'the kubeconfig names no cluster');
      await copyFile(await writeConfig({ server: await serve() }), file);
      assert.deepEqual(await connection.request(GET), {});
    });
  });

  describe('a pod', () => {
    const { cert, key } = selfSigned();
    let serviceAccount: string;

    beforeEach(async () => {
      serviceAccount = await mkdtemp(join(tmpdir(), 'service-account-'));
      cleanups.push(() => rm(serviceAccount, { recursive: true }));
      for (const [name, text] of Object.entries({ token: 'first', 'ca.crt': cert, namespace: 'lldap-operator' }))
        await writeFile(join(serviceAccount, name), text);
    });
    function openIn(host: string, port: number, kubeconfig?: string): Connection {
      const variables = { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: String(port), KUBECONFIG: kubeconfig };
      for (const [name, value] of Object.entries(variables)) setVariable(name, value);
      const connection = connect(undefined, serviceAccount);
      cleanups.push(() => connection.close());
      return connection;
    }
    function setVariable(name: string, value: string | undefined): void {
      const before = process.env[name];
      cleanups.push(() => {
        if (before === undefined) delete process.env[name];
        else process.env[name] = before;
      });
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
    const secure = () => listen(createSecureServer({ key, cert }, listener));

    it('has its address, namespace and certificate from Kubernetes, and sends the token that is mounted at the time', async () => {
      const connection = openIn('127.0.0.1', await secure());
      assert.equal(await connection.namespace(), 'lldap-operator');
      await connection.request(GET);
      await writeFile(join(serviceAccount, 'token'), 'second\n');
      await connection.request(GET);
      assert.deepEqual(
        received.map(({ headers }) => headers.authorization),
        ['Bearer first', 'Bearer second'],
      );
    });

    it('trusts no other certificate', async () => {
      await writeFile(join(serviceAccount, 'ca.crt'), selfSigned().cert);
      assert.match((await failure(openIn('127.0.0.1', await secure()).request(GET))).message, /the TLS handshake failed/);
      assert.deepEqual(received, []);
    });

    it('reaches an API server with an IPv6 address', async () => {
      // Nobody listens there. A wrong address would be another error.
      assert.match((await failure(openIn('::1', 1).request(GET))).message, /: no connection \(E/);
    });

    it('says which token cannot be read', async () => {
      const connection = openIn('127.0.0.1', await secure());
      await connection.request(GET);
      await rm(join(serviceAccount, 'token'));
      const message = `The API server did not answer: the token in ${serviceAccount}/token cannot be read (ENOENT)`;
      assert.equal((await failure(connection.request(GET))).message, message);
    });

    it('prefers the kubeconfig that KUBECONFIG names', async () => {
      const kubeconfig = await writeConfig({ server: await serve() }, { context: { namespace: 'other' } });
      const connection = openIn('127.0.0.1', 1, kubeconfig);
      assert.equal(await connection.namespace(), 'other');
      assert.deepEqual(await connection.request(GET), {});
    });
  });

  it('the token is read again for each request, since it expires', async () => {
    const apiVersion = 'client.authentication.k8s.io/v1';
    const server = await serve();
    const credential = await writeConfig({ server });
    const connection = open(await writeConfig({ server }, { user: { exec: { apiVersion, command: 'cat', args: [credential] } } }));
    for (const token of ['first', 'second']) {
      const status = { token, expirationTimestamp: '2020-01-01T00:00:00Z' };
      await writeFile(credential, JSON.stringify({ apiVersion, kind: 'ExecCredential', status }));
      await connection.request(GET);
    }
    assert.deepEqual(
      received.map(({ headers }) => headers.authorization),
      ['Bearer first', 'Bearer second'],
    );
  });

  describe('a request', () => {
    it('carries its body as JSON, unless it says another type, and none without a body', async () => {
      const connection = await openDefault();
      await connection.request({ method: 'POST', path: '/a', body: { b: 1 } });
      await connection.request({ method: 'PATCH', path: '/a', body: [], contentType: 'application/json-patch+json' });
      await connection.request({ method: 'DELETE', path: '/a' });
      assert.deepEqual(
        received.map(({ request, headers, body }) => [request, headers['content-type'], body]),
        [
          ['POST /a', 'application/json', '{"b":1}'],
          ['PATCH /a', 'application/json-patch+json', '[]'],
          ['DELETE /a', undefined, ''],
        ],
      );
    });

    it('carries texts that YAML cannot hold as they are', async () => {
      const connection = await openDefault();
      const texts = ['\u007f', '\u0085', '\u009f', '\u2028', '\u2029', '\ufeff', '\ufffe', '\uffff'];
      await connection.request({ method: 'PATCH', path: '/a', body: { texts } });
      const [{ body } = assert.fail('no request')] = received;
      assert.match(body, /^[ -~]*$/);
      assert.ok(body.includes('\\u0085') && body.includes('\\ufeff'));
      assert.deepEqual(JSON.parse(body), { texts });
    });

    it('carries all other texts and values as they are, and a replacement for half a character', async () => {
      const connection = await openDefault();
      await connection.request({ method: 'PATCH', path: '/a', body: { text: 'é😀"\n', half: 'a\ud83d', count: 1, is: true, none: null } });
      assert.equal(received[0]?.body, '{"text":"é😀\\"\\n","half":"a\ufffd","count":1,"is":true,"none":null}');
    });

    it('continues the trace that it belongs to, in a span without its query, which holds names', async () => {
      const connection = await openDefault();
      await withTrace(TRACE, () => connection.request({ method: 'GET', path: '/apis/x?fieldSelector=status.userKey%3Dalice' }));
      const { traceparent, tracestate } = received[0]?.headers ?? {};
      assert.deepEqual({ traceparent, tracestate }, TRACE);
      const attributes = {
        'http.request.method': 'GET',
        'url.path': '/apis/x',
        'peer.service': 'kube-apiserver',
        'http.response.status_code': 200,
      };
      assert.deepEqual(recorded.spans, [{ name: 'GET', kind: 'client', attributes }]);
    });
  });

  describe('an answer', () => {
    const problem = JSON.stringify({ message: 'secrets "alice" is forbidden', reason: 'Forbidden' });
    const answers: [status: number, body: string, message: string, reason: string][] = [
      [403, problem, 'secrets "alice" is forbidden', 'Forbidden'],
      [300, '{}', 'HTTP 300', ''],
      [502, '<html>', 'HTTP 502', ''],
      [500, '{"message":1,"reason":2}', 'HTTP 500', ''],
    ];
    for (const [status, body, message, reason] of answers) {
      it(`${status} ${body} is an error with what it says`, async () => {
        const connection = await openDefault();
        answer = (response) => response.writeHead(status).end(body);
        const error = await failure(connection.request(GET));
        assert.deepEqual([error.status, error.message, error.reason], [status, message, reason]);
        assert.equal(recorded.spans[0]?.attributes['http.response.status_code'], status);
      });
    }

    it('201 is a success', async () => {
      const connection = await openDefault();
      answer = (response) => response.writeHead(201).end('{"a":1}');
      assert.deepEqual(await connection.request(GET), { a: 1 });
    });

    it('that does not come is an error without a status', async () => {
      const error = await failure(open(await writeConfig({ server: 'http://127.0.0.1:1' })).request(GET));
      const message = 'The API server did not answer: no connection (ECONNREFUSED)';
      assert.deepEqual([error.status, error.message, error.reason, error.brief], [0, message, '', message]);
    });

    it('that is too large is an error that says so, for less can be asked for', async () => {
      const connection = await openDefault();
      answer = (response) => response.end(Buffer.alloc(64 * 1024 * 1024 + 1, 32));
      assert.deepEqual([(await failure(connection.request(GET))).reason, sockets.size], ['AnswerTooLarge', 1]);
    });
  });

  it('one connection serves requests one after another, and at most sixteen serve many at once', async () => {
    const connection = await openDefault();
    for (let i = 0; i < 3; i++) await connection.request(GET);
    assert.equal(sockets.size, 1);
    await Promise.all(Array.from({ length: 60 }, () => connection.request(GET)));
    assert.ok(sockets.size <= 16, `${sockets.size} connections`);
  });

  it('is closed with all its connections, or before it has any', async () => {
    connect().close();
    const connection = await openDefault();
    await connection.request(GET);
    const [socket = assert.fail('no connection')] = sockets;
    const closed = new Promise((resolve) => socket.once('close', resolve));
    connection.close();
    await closed;
  });
});
