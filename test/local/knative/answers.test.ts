import assert from 'node:assert/strict';
import type { FakeAnswer } from './fake-function.ts';
import { ASYNC, URL_OF_BROKER, useBroker } from './use-knative.ts';

describe('The local Broker', () => {
  const { ingress, post, received, start, story, told, until } = useBroker();

  it('lets a function hold an event for long and post another one meanwhile, which arrives at once', async () => {
    const held = Promise.withResolvers<FakeAnswer>();
    await start({ annotations: ASYNC, answer: ({ headers }) => (headers['ce-type'] === 'hold' ? held.promise : { status: 204 }) });
    await post({ 'ce-type': 'hold', 'ce-id': 'held' });
    await until(() => received().length === 1);
    assert.equal((await post({ 'ce-id': 'due' })).status, 202);
    await until(() => received().length === 2);
    held.resolve({ status: 204 });
    await until(() => told.filter(({ what }) => what === 'delivered').length === 2);
    assert.deepEqual(
      received().map(({ headers, aborted }) => [headers['ce-id'], aborted]),
      [
        ['held', false],
        ['due', false],
      ],
    );
  });

  it('redelivers the same event, extensions and all, to a function whose pod goes away', async () => {
    const statuses = [503, 503, 204];
    await start({ answer: () => ({ status: statuses.shift() ?? 500 }) });
    assert.equal((await post({ 'ce-notbefore': '2026-11-29T18:00:00.000Z' })).status, 202);
    const [first, ...others] = received().map(({ headers }) => headers);
    assert.equal(first?.['ce-notbefore'], '2026-11-29T18:00:00.000Z');
    assert.deepEqual(others, [first, first]);
  });

  describe("treats a function's success", () => {
    it('with an event as a reply, which comes back with its own attributes; and says that this must not be', async () => {
      const reply = { 'ce-specversion': '1.0', 'ce-id': 'r', 'ce-type': 'reply', 'ce-source': '/f', 'ce-knativebrokerttl': '9' };
      await start({ answer: ({ headers }) => ({ status: 200, headers: headers['ce-type'] === 'reply' ? {} : reply }) });
      assert.equal((await post()).status, 202);
      assert.deepEqual(
        received().map(({ headers }) => headers['ce-type']),
        ['test.type', 'reply'],
      );
      assert.match(story.violations.join(), /ce- headers: a reply/);
    });

    it('with a body that is no event as a failure without a code; and says that this must not be', async () => {
      await start({ answer: () => ({ status: 200, body: 'OK' }), deadLetter: true });
      await post();
      assert.deepEqual(
        received().map(({ path }) => path),
        ['/', '/', '/', '/dead-letter'],
      );
      assert.equal(received()[3]?.headers['ce-knativeerrorcode'], undefined);
      assert.match(story.violations.join(), /a body of 2 bytes: not a success/);
    });

    it("with an incomplete event as the ingress's 400: no retry, the original in the dead-letter sink", async () => {
      await start({ answer: () => ({ status: 200, headers: { 'ce-specversion': '1.0', 'ce-id': 'r' } }), deadLetter: true });
      await post();
      assert.deepEqual(
        received().map(({ path }) => path),
        ['/', '/dead-letter'],
      );
      const { headers = {} } = received()[1] ?? {};
      assert.deepEqual(
        [headers['ce-type'], headers['ce-knativeerrorcode'], headers['ce-knativeerrordest']],
        ['test.type', '400', URL_OF_BROKER],
      );
    });

    it('and never the event in an error answer', async () => {
      const reply = { 'ce-specversion': '1.0', 'ce-id': 'r', 'ce-type': 'reply', 'ce-source': '/f' };
      await start({ answer: () => ({ status: 400, headers: reply }) });
      await post();
      assert.equal(received().length, 1);
    });

    it('ends a circle of replies when the time to live is used up', async () => {
      const reply = { 'ce-specversion': '1.0', 'ce-id': 'r', 'ce-type': 'reply', 'ce-source': '/f' };
      await start({ answer: () => ({ status: 200, headers: reply }) });
      assert.equal((await post({ 'ce-knativebrokerttl': '5' })).status, 500);
      assert.equal(received().length, 4);
    });
  });

  it('reports an error body that would crash the in-memory dispatcher: 768 bytes are fine, 769 are not', async () => {
    let size = 768;
    await start({ answer: () => ({ status: 400, body: 'x'.repeat(size) }), deadLetter: true });
    await post();
    assert.deepEqual(story.violations, []);
    size = 769;
    await post();
    assert.match(story.violations.join(), /769 bytes: the in-memory dispatcher would crash/);
  });

  it('loses what is in flight when it stops, and works again at the same address', async () => {
    await start({ annotations: ASYNC, answer: () => undefined });
    await post();
    await until(() => received().length === 1);
    await ingress().stop();
    await until(() => told.some(({ what }) => what === 'lost'));
    // The first may still be written to the connection of the one before, whose end is on its way.
    await assert.rejects(post());
    await assert.rejects(post(), { code: 'ECONNREFUSED' });
    await ingress().start();
    await post();
    await until(() => received().length === 2);
  });
});
