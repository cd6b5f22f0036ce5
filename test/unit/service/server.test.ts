import assert from 'node:assert/strict';
import { type OutgoingHttpHeaders, request } from 'node:http';
import { gzipSync } from 'node:zlib';
import { MalformedEvent, type OperatorEvent } from '../../../shared/events/parse.ts';
import { KubeError } from '../../../shared/kube/errors.ts';
import { Refusal } from '../../../shared/service/authentication.ts';
import type { Answer, EventContext, EventHandler } from '../../../shared/service/server.ts';
import { traceHeaders } from '../../../shared/telemetry/trace.ts';
import { EVENT, type Sent, text, useServers } from '../support/servers.ts';

describe('shared/service/server', () => {
  const { answering, log, send, start } = useServers();

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
      assert.match(log(), /"level":"warn".*"status":400/);
    });

    it('that the handler finds malformed is refused, too', async () => {
      const { port } = await start(async () => {
        throw new MalformedEvent('a startup event is not for the function of LldapUser');
      });
      assert.deepEqual(text(await send(port)), [400, 'a startup event is not for the function of LldapUser\n']);
    });

    it('that fails tells its sender nothing of why, and the log everything', async () => {
      const { port } = await start(async () => {
        throw new TypeError('hush');
      });
      assert.deepEqual(text(await send(port)), [500, 'internal error\n']);
      assert.match(log(), /"level":"error".*TypeError: hush.*server\.test\.ts/);
    });

    it('that fails by an answer of the API server tells its sender nothing of that, and gets no status of its', async () => {
      const { port } = await start(async () => {
        throw new KubeError(403, 'secrets "hush" is forbidden');
      });
      assert.deepEqual(text(await send(port)), [500, 'internal error\n']);
    });

    const big = (bytes: number) => ({
      headers: { ...EVENT, 'content-type': 'application/json' },
      body: JSON.stringify({ x: 'x'.repeat(bytes - 8) }),
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
        const reply = await send(port, sent);
        assert.deepEqual([...text(reply), reply.headers['content-type']], [404, 'not found', 'text/plain; charset=utf-8']);
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

  describe('where callers are asked who they are', () => {
    const refusing = (status: 401 | 503) =>
      start(
        async () => assert.fail('asked'),
        { '/dead-letter': async () => assert.fail('asked') },
        async (authorization) => {
          if (authorization !== 'Bearer right') throw new Refusal(status, 'Send a token.');
        },
      );

    for (const path of ['/', '/dead-letter', '/else']) {
      it(`a stranger is refused at ${path}, with one line, and nothing of what was sent is read`, async () => {
        const { port } = await refusing(401);
        const reply = await send(port, { path, headers: { ...EVENT, authorization: 'Bearer hush' }, body: 'x'.repeat(3_000_000) });
        assert.deepEqual(text(reply), [401, 'Send a token.\n']);
        assert.deepEqual([reply.headers['www-authenticate'], reply.headers['content-type']], ['Bearer', 'text/plain; charset=utf-8']);
        assert.match(log(), /"level":"warn","message":"refused a request","path":"[^"]*","status":401,"reason":"Send a token\."/);
        assert.doesNotMatch(log(), /hush/);
      });
    }

    it('an event whose sender could not be checked is delivered again', async () => {
      const { port } = await refusing(503);
      const reply = await send(port);
      assert.deepEqual([...text(reply), reply.headers['www-authenticate']], [503, 'Send a token.\n', undefined]);
    });

    it('whoever may is served', async () => {
      const { port } = await start(
        async () => ({ status: 204 }),
        {},
        async () => {},
      );
      assert.equal((await send(port)).status, 204);
    });

    for (const probe of ['/health/liveness', '/health/readiness']) {
      it(`${probe} is open to everybody`, async () => {
        const { port } = await refusing(401);
        assert.equal((await send(port, { method: 'GET', path: probe, headers: {} })).status, 200);
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
});
