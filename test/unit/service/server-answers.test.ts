import assert from 'node:assert/strict';
import { MalformedEvent } from '../../../shared/events/parse.ts';
import type { EventHandler } from '../../../shared/service/server.ts';
import { text, useServers } from '../support/servers.ts';

/** What the in-memory channel's dispatcher survives. */
const MOST_BYTES = 768;

describe('shared/service/server, about', () => {
  const { answering, send, start } = useServers();

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
      const { port } = await answering({ status: 503, message: 'the status could\n  not be written' });
      const reply = await send(port);
      assert.deepEqual(text(reply), [503, 'the status could not be written\n']);
      assert.equal(reply.headers['content-type'], 'text/plain; charset=utf-8');
    });

    it('of representation is JSON, with success or failure', async () => {
      const ok = await answering({ status: 200, body: { result: 'reconciled' } });
      const reply = await send(ok.port);
      assert.deepEqual(text(reply), [200, '{"result":"reconciled"}']);
      assert.deepEqual(Object.keys(reply.headers).sort(), ['connection', 'content-length', 'content-type', 'date', 'keep-alive']);
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
});
