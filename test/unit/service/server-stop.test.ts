import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request, Server } from 'node:http';
import { connect } from 'node:net';
import { type Answer, type EventContext, serve } from '../../../shared/service/server.ts';
import { createLog } from '../../../shared/telemetry/log.ts';
import { EVENT, useServers } from '../support/servers.ts';

describe('shared/service/server, at its ends:', () => {
  const { answering, send, start } = useServers();

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

    for (const [what, said] of [
      ['nothing was ever asked', ''],
      ['a request never ends its head', 'POST / HTTP/1.1\r\nHost: a\r\n'],
    ] as const) {
      it(`ends although there are connections on which ${what}, and finishes what is under way on others`, async () => {
        const { server, reply, end } = await underWay();
        const silent = connect(server.port, '127.0.0.1');
        const gone = once(silent, 'close');
        silent.on('error', () => {}).write(said);
        // Answered after the silent connection was taken.
        assert.equal((await send(server.port, { method: 'GET', path: '/health/readiness' })).status, 200);
        server.stop();
        await gone;
        end.resolve({ status: 204 });
        assert.equal((await reply).status, 204);
        await server.closed;
      });
    }

    it('answers what comes on a connection that is open already, and closes it', async () => {
      const server = await answering({ status: 204 });
      const silent = connect(server.port, '127.0.0.1');
      const gone = once(silent, 'close');
      let answer = '';
      silent.on('data', (chunk) => {
        answer += chunk;
      });
      // Answered after the silent connection was accepted.
      await send(server.port, { method: 'GET', path: '/health/readiness' });
      server.stop();
      silent.write('GET /health/readiness HTTP/1.1\r\nHost: a\r\n\r\n');
      await gone;
      assert.match(answer, /^HTTP\/1\.1 200 .*\r\nconnection: close\r\n/is);
      await server.closed;
    });

    it('ends although an answer is on its way that nobody reads', async () => {
      const server = await answering({ status: 200, body: 'x'.repeat(20_000_000) });
      const sent = request({ host: '127.0.0.1', port: server.port, method: 'POST', headers: EVENT }).end();
      const [response] = (await once(sent, 'response')) as [IncomingMessage];
      response.on('error', () => {});
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
    await assert.rejects(serve({ port, log: createLog('error', () => {}), routes: {} }), {
      name: 'ConfigError',
      message: `PORT is ${port}, which another process uses: give a port that is free.`,
    });
  });

  const failures: Record<string, [code: string, name: string, message: string]> = {
    'that it may not open, and says which it may': [
      'EACCES',
      'ConfigError',
      'PORT is 80, which this user may not open: give one above 1023.',
    ],
    'that fails for another reason, and says which': ['EMFILE', 'Error', 'listen EMFILE'],
  };
  for (const [what, [code, name, message]] of Object.entries(failures)) {
    it(`does not start on a port ${what}`, async () => {
      Server.prototype.listen = function listen(this: Server) {
        process.nextTick(() => this.emit('error', Object.assign(new Error(`listen ${code}`), { code })));
        return this;
      };
      try {
        await assert.rejects(serve({ port: 80, log: createLog('error', () => {}), routes: {} }), { name, message });
      } finally {
        Reflect.deleteProperty(Server.prototype, 'listen');
      }
    });
  }
});
