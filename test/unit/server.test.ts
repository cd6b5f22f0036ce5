import assert from 'node:assert/strict';
import { Agent, type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from 'node:http';
import { gzipSync } from 'node:zlib';
import { MalformedEvent, type OperatorEvent } from '../../shared/events/parse.ts';
import { traceHeaders } from '../../shared/events/trace.ts';
import { createLog } from '../../shared/log.ts';
import { type Answer, type EventContext, type EventHandler, serve } from '../../shared/server.ts';

const EVENT = {
  'ce-specversion': '1.0',
  'ce-id': '1',
  'ce-source': '/test',
  'ce-type': 'com.lukidoescode.lldap-operator.reconcile',
  'ce-kind': 'LldapUser',
  'ce-namespace': 'team',
  'ce-name': 'alice',
};
/** What the in-memory channel's dispatcher survives. */
const MOST_BYTES = 768;

interface Reply {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

describe('shared/server', () => {
  const agent = new Agent({ keepAlive: true });
  const stops: (() => Promise<void>)[] = [];
  let lines: string[];

  beforeEach(() => {
    lines = [];
  });
  afterEach(async () => {
    for (const stop of stops.splice(0)) await stop();
  });
  after(() => agent.destroy());

  async function start(handler: EventHandler, more: Record<string, EventHandler> = {}) {
    const log = createLog('debug', (line) => lines.push(line));
    const server = await serve({ port: 0, log, routes: { '/': handler, ...more } });
    stops.push(async () => {
      server.stop();
      await server.closed;
    });
    return server;
  }
  const answering = (answer: Answer) => start(async () => answer);

  interface Sent {
    method?: string;
    path?: string;
    headers?: OutgoingHttpHeaders;
    body?: string | Buffer;
    signal?: AbortSignal;
  }
  function send(port: number, { method = 'POST', path = '/', headers = EVENT, body, signal }: Sent = {}): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const options = { host: '127.0.0.1', port, method, path, headers, agent, ...(signal && { signal }) };
      const sent = request(options, async (response) => {
        const chunks: Buffer[] = [];
        for await (const chunk of response) chunks.push(chunk as Buffer);
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) });
      });
      sent.on('error', reject);
      sent.end(body);
    });
  }
  const text = ({ status, body }: Reply) => [status, body.toString()];

  describe('an answer', () => {
    it('of success is 204 without body, type or event headers, which would make it a failed delivery', async () => {
      const { port } = await answering({ status: 204 });
      const { status, headers, body } = await send(port);
      assert.deepEqual([status, body.length], [204, 0]);
      assert.deepEqual(Object.keys(headers).sort(), ['connection', 'date', 'keep-alive']);
    });

    it('outlives the broker’s idle connections', async () => {
      const { port } = await answering({ status: 204 });
      assert.equal((await send(port)).headers['keep-alive'], 'timeout=95');
    });

    it('of failure is one short line', async () => {
      const { port } = await answering({ status: 503, message: 'the status could\nnot be written' });
      const reply = await send(port);
      assert.deepEqual(text(reply), [503, 'the status could not be written\n']);
      assert.equal(reply.headers['content-type'], 'text/plain; charset=utf-8');
    });

    it('of representation is JSON, with success or failure', async () => {
      const ok = await answering({ status: 200, body: { result: 'settled' } });
      assert.deepEqual(text(await send(ok.port)), [200, '{"result":"settled"}']);
      const bad = await answering({ status: 503, message: 'no', body: { result: 'unwritten' } });
      assert.deepEqual(text(await send(bad.port)), [503, '{"result":"unwritten"}']);
    });

    const long: Record<string, EventHandler> = {
      'of ours': async () => ({ status: 503, message: 'x'.repeat(5000) }),
      'of ours in wide characters': async () => ({ status: 503, message: '€'.repeat(5000) }),
      'of ours in the widest characters': async () => ({ status: 500, message: '😀'.repeat(5000) }),
      'about a malformed event': async () => {
        throw new MalformedEvent('€'.repeat(5000));
      },
      'that was unforeseen': async () => {
        throw new Error('€'.repeat(5000));
      },
    };
    for (const [name, handler] of Object.entries(long)) {
      it(`never brings down the broker’s dispatcher by a long message ${name}`, async () => {
        const { port } = await start(handler);
        const { status, body } = await send(port);
        assert.ok(status >= 400);
        assert.ok(body.length > 0 && body.length <= MOST_BYTES, `${body.length} bytes`);
        assert.equal(body.toString().includes('\uFFFD'), false);
      });
    }
  });

  describe('a request', () => {
    it('reaches the handler of its path, as an event', async () => {
      const seen: [string, OperatorEvent][] = [];
      const handler =
        (path: string): EventHandler =>
        async (event) => {
          seen.push([path, event]);
          return { status: 204 };
        };
      const { port } = await start(handler('/'), { '/dead-letter': handler('/dead-letter') });
      await send(port);
      await send(port, { path: '/dead-letter' });
      const event = { what: 'reconcile', target: { kind: 'LldapUser', namespace: 'team', name: 'alice' }, redelivered: 0 };
      assert.deepEqual(seen, [
        ['/', event],
        ['/dead-letter', event],
      ]);
    });

    it('that is no event is refused with the reason, and the handler is not asked', async () => {
      const { port } = await start(async () => assert.fail('asked'));
      assert.deepEqual(text(await send(port, { headers: { ...EVENT, 'ce-name': '../x' } })), [
        400,
        'the extension "name" is "../x", not an object\'s name\n',
      ]);
      assert.match(lines.join(''), /"level":"warn".*"status":400/);
    });

    it('that the handler finds malformed is refused, too', async () => {
      const { port } = await start(async () => {
        throw new MalformedEvent('events of startup are not for LldapUser');
      });
      assert.deepEqual(text(await send(port)), [400, 'events of startup are not for LldapUser\n']);
    });

    it('that fails tells its sender nothing of why, and the log everything', async () => {
      const { port } = await start(async () => {
        throw new TypeError('hush');
      });
      assert.deepEqual(text(await send(port)), [500, 'internal error\n']);
      assert.match(lines.join(''), /"level":"error".*TypeError: hush.*server\.test\.ts/);
    });

    const big = (bytes: number) => ({
      headers: { ...EVENT, 'content-type': 'application/json' },
      body: JSON.stringify('x'.repeat(bytes - 2)),
    });

    it('of 3 MB is refused, and the next event works', async () => {
      const { port } = await answering({ status: 204 });
      assert.deepEqual(text(await send(port, big(3_000_000))), [413, 'request entity too large\n']);
      assert.equal((await send(port)).status, 204);
    });

    it('of 1.5 MB, as large as objects may be, is taken', async () => {
      const { port } = await answering({ status: 204 });
      assert.equal((await send(port, big(1_500_000))).status, 204);
    });

    it('that grows when it is unpacked is refused, and the next event works', async () => {
      const { port } = await answering({ status: 204 });
      const headers = { ...EVENT, 'content-type': 'application/json', 'content-encoding': 'gzip' };
      assert.equal((await send(port, { headers, body: gzipSync(Buffer.alloc(30_000_000)) })).status, 413);
      assert.equal((await send(port)).status, 204);
    });

    it('that breaks off in the middle does no harm', async () => {
      const { port } = await answering({ status: 204 });
      await new Promise<void>((resolve) => {
        const sent = request({ host: '127.0.0.1', port, method: 'POST', headers: { ...EVENT, 'content-length': 1000 } });
        sent.on('error', () => resolve());
        sent.write('{', () => sent.destroy(new Error('gone')));
      });
      assert.equal((await send(port)).status, 204);
    });

    const others: Record<string, Sent> = {
      'to another path': { path: '/metrics' },
      'to read': { method: 'GET', headers: {} },
      'to delete': { method: 'DELETE' },
    };
    for (const [name, sent] of Object.entries(others)) {
      it(`${name} is not found`, async () => {
        const { port } = await start(async () => assert.fail('asked'));
        assert.deepEqual(text(await send(port, sent)), [404, 'not found']);
      });
    }

    for (const probe of ['/health/liveness', '/health/readiness']) {
      it(`to ${probe} says that the process serves, whatever its handlers do`, async () => {
        const end = Promise.withResolvers<Answer>();
        const { port } = await start(() => end.promise);
        const reply = send(port);
        const { status, body } = await send(port, { method: 'GET', path: probe, headers: {} });
        assert.deepEqual([status, body.length], [200, 0]);
        end.resolve({ status: 204 });
        assert.equal((await reply).status, 204);
      });
    }
  });

  describe('the handler is told', () => {
    async function context(headers: OutgoingHttpHeaders): Promise<EventContext> {
      const seen = Promise.withResolvers<EventContext>();
      const { port } = await start(async (_event, given) => {
        seen.resolve(given);
        return { status: 204 };
      });
      await send(port, { headers: { ...EVENT, ...headers } });
      return seen.promise;
    }

    const preferences: Record<string, boolean> = {
      'return=representation': true,
      'respond-async, return=representation; wait=10': true,
      'return=minimal': false,
      'return=representations': false,
      reply: false,
    };
    for (const [prefer, representation] of Object.entries(preferences)) {
      it(`whether the sender wants to know what was done: Prefer: ${prefer}`, async () => {
        assert.equal((await context({ prefer })).representation, representation);
      });
    }

    it('that a sender that says nothing wants nothing', async () => assert.equal((await context({})).representation, false));

    it('with what status a dead letter failed', async () => {
      assert.equal((await context({ 'ce-knativeerrorcode': '503' })).errorCode, 503);
      assert.equal('errorCode' in (await context({})), false);
      assert.equal('errorCode' in (await context({ 'ce-knativeerrorcode': 'timeout' })), false);
    });

    it('of the trace that the request is part of', async () => {
      const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
      let headers: Record<string, string> = {};
      const { port } = await start(async () => {
        await Promise.resolve();
        headers = traceHeaders();
        return { status: 204 };
      });
      await send(port, { headers: { ...EVENT, traceparent, tracestate: 'k=v' } });
      assert.deepEqual(headers, { traceparent, tracestate: 'k=v' });
    });

    it('when the sender has gone', async () => {
      const gone = Promise.withResolvers<void>();
      const asked = Promise.withResolvers<void>();
      const { port } = await start(async (_event, { signal }) => {
        signal.addEventListener('abort', () => gone.resolve(), { once: true });
        asked.resolve();
        await gone.promise;
        return { status: 204 };
      });
      const sender = new AbortController();
      const reply = send(port, { signal: sender.signal });
      await asked.promise;
      sender.abort();
      await assert.rejects(reply, { name: 'AbortError' });
      await gone.promise;
    });

    it('nothing of the kind when the sender got its answer', async () => {
      const { signal } = await context({});
      await send((await answering({ status: 204 })).port);
      assert.equal(signal.aborted, false);
    });
  });

  describe('told to stop, the server', () => {
    /** A request whose end the test decides. */
    async function underWay() {
      const asked = Promise.withResolvers<EventContext>();
      const end = Promise.withResolvers<Answer>();
      const server = await start(async (_event, context) => {
        asked.resolve(context);
        return end.promise;
      });
      const reply = send(server.port);
      return { server, reply, end, context: await asked.promise };
    }

    it('finishes what is under way, tells it, and ends', async () => {
      const { server, reply, end, context } = await underWay();
      assert.equal(context.stopping.aborted, false);
      server.stop();
      assert.equal(context.stopping.aborted, true);
      await assert.rejects(send(server.port), { code: 'ECONNREFUSED' });
      end.resolve({ status: 204 });
      const { status, headers } = await reply;
      assert.deepEqual([status, headers.connection], [204, 'close']);
      await server.closed;
    });

    it('ends, too, when what was under way fails', async () => {
      const { server, reply, end } = await underWay();
      server.stop();
      end.reject(new Error('unforeseen'));
      assert.equal((await reply).status, 500);
      await server.closed;
    });

    it('ends although connections are idle', async () => {
      const server = await answering({ status: 204 });
      await send(server.port);
      server.stop();
      await server.closed;
    });

    it('may be told twice', async () => {
      const server = await answering({ status: 204 });
      server.stop();
      server.stop();
      await server.closed;
    });
  });

  it('does not start on a port that another has', async () => {
    const { port } = await answering({ status: 204 });
    await assert.rejects(serve({ port, log: createLog('error', () => {}), routes: {} }), { code: 'EADDRINUSE' });
  });
});
