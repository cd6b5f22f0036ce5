import assert from 'node:assert/strict';
import { rm, writeFile } from 'node:fs/promises';
import { Agent, createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, Socket, type Server as TcpServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { createHttp, type Http, HttpError, type HttpErrorCode, type HttpOptions, parseJson } from '../../../shared/platform/http.ts';
import { selfSigned } from '../../local/lldap/certificate.ts';

describe('shared/platform/http', () => {
  const servers: (Server | TcpServer)[] = [];
  const clients: Http[] = [];

  afterEach(async () => {
    for (const client of clients.splice(0)) client.close();
    for (const server of servers.splice(0)) {
      if ('closeAllConnections' in server) server.closeAllConnections();
      await new Promise((done) => server.close(done));
    }
  });

  const listen = async (server: Server | TcpServer): Promise<number> => {
    servers.push(server);
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    return (server.address() as AddressInfo).port;
  };
  /** By a server that never closes a connection because it is idle. */
  const serve = async (listener: RequestListener) => `http://127.0.0.1:${await listen(createServer({ keepAliveTimeout: 0 }, listener))}`;
  const certificate = selfSigned();
  const serveSecurely = async () => {
    const server = createSecureServer({ ...certificate, keepAliveTimeout: 0 }, (request, response) => {
      if (request.url === '/first') response.end();
      else request.socket.destroy();
    });
    return `https://127.0.0.1:${await listen(server)}`;
  };
  const client = (options: Partial<HttpOptions>) => {
    const made = createHttp({ timeoutMs: 60_000, keepAliveMs: 4000, ...options });
    clients.push(made);
    return made;
  };
  const failure = async (promise: Promise<unknown>): Promise<HttpError> => {
    const outcome = await promise.then(
      (answer) => new Error(`answered ${JSON.stringify(answer)}`),
      (error: unknown) => error,
    );
    assert.ok(outcome instanceof HttpError, inspect(outcome));
    return outcome;
  };

  it('hands back any status with its text, sends the body as it is and follows no redirect', async () => {
    const seen: string[] = [];
    const baseURL = await serve((request, response) => {
      let body = '';
      request.on('data', (chunk) => {
        body += chunk;
      });
      request.on('end', () => {
        seen.push(`${request.method} ${request.url} ${request.headers['content-type']} ${body}`);
        response.writeHead(request.url === '/moved' ? 302 : 503, { location: '/elsewhere' });
        response.end('{"a": 1}');
      });
    });
    const http = client({ baseURL });
    const headers = { 'Content-Type': 'application/json' };
    const answer = await http.request({ method: 'PATCH', url: '/x', body: '{"é":1}', headers });
    assert.deepEqual([answer.status, answer.text], [503, '{"a": 1}']);
    await http.request({ method: 'POST', url: '/x', body: ' no JSON ', headers });
    assert.equal((await http.request({ method: 'GET', url: '/moved' })).status, 302);
    assert.deepEqual(seen, ['PATCH /x application/json {"é":1}', 'POST /x application/json  no JSON ', 'GET /moved undefined ']);
  });

  it('says who asks', async () => {
    const baseURL = await serve((request, response) => response.end(request.headers['user-agent']));
    assert.equal((await client({ baseURL }).request({ method: 'GET', url: '/' })).text, 'lldap-knative-operator');
  });

  describe('with a file that holds a token', () => {
    const tokenFile = join(tmpdir(), `token-${process.pid}`);
    afterEach(() => rm(tokenFile, { force: true }));

    it('sends the token that is in the file at that time, since it is renewed', async () => {
      const baseURL = await serve((request, response) => response.end(request.headers.authorization));
      const http = client({ baseURL, tokenFile });
      for (const token of ['first', 'second']) {
        await writeFile(tokenFile, `${token}\n`);
        assert.equal((await http.request({ method: 'GET', url: '/' })).text, `Bearer ${token}`);
      }
    });

    it('says which file cannot be read, and asks nothing', async () => {
      const baseURL = await serve(() => assert.fail('asked'));
      const error = await failure(client({ baseURL, tokenFile }).request({ method: 'GET', url: '/' }));
      assert.deepEqual([error.code, error.message], ['other', `the token in ${tokenFile} cannot be read (ENOENT)`]);
    });
  });

  it('sends no token of its own without such a file', async () => {
    const baseURL = await serve((request, response) => response.end(request.headers.authorization ?? 'none'));
    assert.equal((await client({ baseURL }).request({ method: 'GET', url: '/' })).text, 'none');
  });

  it('closes its connections when it is closed, with and without TLS', async () => {
    const plain = await serve((_, response) => response.end());
    for (const baseURL of [plain, await serveSecurely()]) {
      const http = client({ baseURL, ca: certificate.cert, keepAliveMs: 60_000 });
      const gone = new Promise((resolve) => {
        servers.at(baseURL === plain ? 0 : 1)?.once('connection', (socket: Socket) => socket.once('close', resolve));
      });
      await http.request({ method: 'GET', url: '/first' });
      http.close();
      await gone;
    }
  });

  describe('says of a connection', () => {
    const { createConnection } = Agent.prototype as unknown as { createConnection: unknown };
    afterEach(() => void Object.assign(Agent.prototype, { createConnection }));
    const failWith = (code: unknown) => {
      const fail = () => new Socket().destroy(Object.assign(new Error('hush'), code === undefined ? {} : { code }));
      Object.assign(Agent.prototype, { createConnection: fail });
    };

    type Failure = [code: unknown, means: HttpErrorCode, message: string];
    const each = (means: HttpErrorCode, codes: string[], message: string) =>
      codes.map((code): Failure => [code, means, message.replace('CODE', code)]);
    const failures: Failure[] = [
      ...each(
        'refused',
        ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'EADDRNOTAVAIL'],
        'no connection (CODE)',
      ),
      ...each('reset', ['ECONNRESET', 'EPIPE'], 'the connection was lost before the answer was complete'),
      ...each('tls', ['EPROTO', 'ERR_SSL_WRONG_VERSION_NUMBER', 'CERT_HAS_EXPIRED'], 'the TLS handshake failed (CODE)'),
      ['ETIMEDOUT', 'timeout', 'the connection timed out'],
      ['EMFILE', 'other', 'the request failed (EMFILE)'],
      [5, 'other', 'the request failed'],
      [undefined, 'other', 'the request failed'],
    ];
    for (const [code, means, message] of failures) {
      it(`that fails by ${code}: ${means}`, async () => {
        failWith(code);
        const error = await failure(client({}).request({ method: 'GET', url: 'http://127.0.0.1:1/' }));
        assert.deepEqual([error.code, error.message], [means, message]);
      });
    }
  });

  it('uses no proxy from the environment', async () => {
    const baseURL = await serve((_, response) => response.end('direct'));
    process.env.http_proxy = 'http://127.0.0.1:9';
    try {
      assert.equal((await client({ baseURL }).request({ method: 'GET', url: '/' })).text, 'direct');
    } finally {
      delete process.env.http_proxy;
    }
  });

  it('keeps a connection between requests, which a slow one does not end', async () => {
    const sockets = new Set<unknown>();
    const baseURL = await serve((request, response) => {
      sockets.add(request.socket);
      setTimeout(() => response.end(), 120);
    });
    const patient = client({ baseURL, keepAliveMs: 60_000 });
    for (let i = 0; i < 2; i++) await patient.request({ method: 'GET', url: '/' });
    assert.equal(sockets.size, 1);
    // The second takes the connection in the moment in which the first, slower than the limit of idleness, leaves it.
    const http = client({ baseURL, keepAliveMs: 50, maxSockets: 1 });
    await Promise.all(Array.from({ length: 2 }, () => http.request({ method: 'GET', url: '/' })));
    assert.equal(sockets.size, 2);
  });

  it('gives an idle connection up, whether or not the server does', async () => {
    const closed: unknown[] = [];
    const baseURL = await serve((request, response) => {
      request.socket.once('close', () => closed.push(request.socket));
      response.end();
    });
    await client({ baseURL, keepAliveMs: 50 }).request({ method: 'GET', url: '/' });
    while (closed.length === 0) await new Promise((done) => setTimeout(done, 10));
  });

  it('uses no connection again that lldap closes, unannounced, after it refused a token', async () => {
    const sockets: unknown[] = [];
    const baseURL = await serve((request, response) => {
      sockets.push(request.socket);
      response.writeHead(401).end();
    });
    const http = client({ baseURL });
    for (let i = 0; i < 3; i++) assert.equal((await http.request({ method: 'POST', url: '/', body: 'x' })).status, 401);
    assert.equal(new Set(sockets).size, 3);
  });

  it('opens no more connections than allowed', async () => {
    const sockets = new Set<unknown>();
    const baseURL = await serve((request, response) => {
      sockets.add(request.socket);
      response.end();
    });
    const http = client({ baseURL, maxSockets: 2 });
    await Promise.all(Array.from({ length: 12 }, () => http.request({ method: 'GET', url: '/' })));
    assert.equal(sockets.size, 2);
  });

  it('says of a request that cannot be sent only that it failed', async () => {
    const headers = { Authorization: 'Bearer hush\nhush' };
    for (const request of [{ url: 'no address' }, { url: 'http://127.0.0.1:1/', headers }]) {
      const error = await failure(client({}).request({ method: 'GET', ...request }));
      assert.equal(error.code, 'other');
      assert.doesNotMatch(error.message, /hush/);
    }
  });

  it('says refused when nobody listens', async () => {
    const error = await failure(client({}).request({ method: 'GET', url: 'http://127.0.0.1:1/' }));
    assert.equal(error.code, 'refused');
  });

  /** Has a connection, so that the next request is sent in the moment in which its time begins. */
  const connected = async (http: Http) => {
    assert.equal((await http.request({ method: 'GET', url: '/first', timeoutMs: 60_000 })).status, 200);
  };

  it('says timeout when the answer does not come, or trickles', async () => {
    const baseURL = await serve((request, response) => {
      if (request.url === '/first') response.end();
      if (request.url !== '/trickle') return;
      response.write('a');
      const timer = setInterval(() => response.write('a'), 20);
      response.on('close', () => clearInterval(timer));
    });
    const http = client({ baseURL, timeoutMs: 100 });
    for (const url of ['/never', '/trickle']) {
      await connected(http);
      const error = await failure(http.request({ method: 'POST', url, body: 'x' }));
      assert.deepEqual([error.code, error.message], ['timeout', 'no answer within 100 ms']);
    }
  });

  it('says timeout for a request that got no connection of the pool', async () => {
    const baseURL = await serve((request, response) => {
      if (request.url === '/first') response.end();
    });
    const http = client({ baseURL, maxSockets: 1 });
    await connected(http);
    const first = failure(http.request({ method: 'GET', url: '/', timeoutMs: 400 }));
    const second = await failure(http.request({ method: 'GET', url: '/', timeoutMs: 100 }));
    assert.equal(second.code, 'timeout');
    assert.equal((await first).code, 'timeout');
  });

  it('says reset for a request that waited for the connection of another', async () => {
    const baseURL = await serve((request, response) => {
      if (request.url === '/first') response.end();
      else request.socket.destroy();
    });
    for (const secure of [false, true]) {
      const http = client({ baseURL: secure ? await serveSecurely() : baseURL, ca: certificate.cert, maxSockets: 1 });
      const [, second] = await Promise.all([
        http.request({ method: 'GET', url: '/first' }),
        failure(http.request({ method: 'GET', url: '/' })),
      ]);
      assert.equal(second.code, 'reset', `secure: ${secure}`);
    }
  });

  it('trusts the given certificates for https', async () => {
    const baseURL = await serveSecurely();
    assert.equal((await client({ baseURL, ca: certificate.cert }).request({ method: 'GET', url: '/first' })).status, 200);
    const error = await failure(client({ baseURL }).request({ method: 'GET', url: '/first' }));
    assert.equal(error.code, 'tls');
    assert.match(error.message, /SELF_SIGNED/);
  });

  it('says reset when the server hangs up, before or in the middle of its answer', async () => {
    const baseURL = await serve((request, response) => {
      if (request.url === '/middle') {
        response.writeHead(200, { 'content-length': '100' });
        response.write('half', () => request.socket.destroy());
      } else request.socket.destroy();
    });
    for (const url of ['/before', '/middle']) {
      const error = await failure(client({ baseURL }).request({ method: 'GET', url }));
      assert.equal(error.code, 'reset', url);
    }
  });

  it('says tls when the server does not speak it', async () => {
    const port = await listen(
      createTcpServer((socket) =>
        socket
          .on('error', () => undefined)
          .resume()
          .end('hello\r\n\r\n'),
      ),
    );
    const error = await failure(client({}).request({ method: 'GET', url: `https://127.0.0.1:${port}/` }));
    assert.equal(error.code, 'tls');
  });

  it('refuses an answer that is too large', async () => {
    const baseURL = await serve((_, response) => {
      const chunk = Buffer.alloc(1024 * 1024);
      const more = () => {
        while (!response.destroyed && response.write(chunk));
      };
      response.on('drain', more);
      more();
    });
    const error = await failure(client({ baseURL }).request({ method: 'GET', url: '/' }));
    assert.equal(error.code, 'large');
    assert.match(error.message, /larger than/);
  });

  it('refuses an answer above the limit of its request, and takes one at it', async () => {
    const baseURL = await serve((_, response) => response.end('x'.repeat(1_000)));
    const get = (maxBytes: number) => client({ baseURL }).request({ method: 'GET', url: '/', maxBytes });
    assert.equal((await get(1_000)).text.length, 1_000);
    const error = await failure(get(999));
    assert.deepEqual([error.code, error.message], ['large', 'the answer is larger than 999 bytes']);
  });

  it('keeps header, body and URL out of everything an error can print', async () => {
    const baseURL = await serve((request) => request.socket.destroy());
    const error = await failure(
      client({ baseURL }).request({
        method: 'POST',
        url: '/hush-url',
        body: '{"password":"hush-body"}',
        headers: { Authorization: 'Bearer hush-token', 'Content-Type': 'application/json' },
      }),
    );
    assert.doesNotMatch(`${inspect(error, { depth: 10, showHidden: true })} ${JSON.stringify(error)} ${error.stack}`, /hush/);
    assert.equal(error.cause, undefined);
  });

  it('reads JSON, and nothing else', () => {
    assert.deepEqual(parseJson('{"a":[1]}'), { a: [1] });
    for (const text of ['', '{', '<html>']) assert.equal(parseJson(text), undefined);
  });
});
