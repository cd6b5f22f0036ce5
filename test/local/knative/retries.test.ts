import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { ASYNC, DELIVERY, useBroker } from './use-knative.ts';

describe('The local Broker', () => {
  const { functionUrl, post, received, start, told, until } = useBroker();

  describe('retries', () => {
    for (const status of [404, 408, 409, 429, 500, 501, 502, 503]) {
      it(`after ${status}, by the schedule, then takes the dead letter for done`, async () => {
        await start({ answer: () => ({ status, body: 'short' }), deadLetter: true });
        assert.equal((await post()).status, 202);
        assert.deepEqual(
          received().map(({ path }) => path),
          ['/', '/', '/', '/dead-letter'],
        );
        const letter = received()[3]?.headers ?? {};
        assert.equal(letter['ce-knativeerrorcode'], String(status));
        assert.equal(letter['ce-knativeerrordest'], `${functionUrl()}/`);
        assert.equal(letter['ce-knativeerrordata'], Buffer.from('short').toString('base64'));
        assert.deepEqual([letter['ce-id'], letter['ce-type'], letter['ce-knativebrokerttl']], ['1', 'test.type', '255']);
      });
    }

    for (const status of [400, 401, 403, 410, 412, 413, 422, 425]) {
      it(`never after ${status}: straight to the dead-letter sink`, async () => {
        await start({ answer: () => ({ status }), deadLetter: true });
        await post();
        assert.deepEqual(
          received().map(({ path }) => path),
          ['/', '/dead-letter'],
        );
        assert.equal(received()[1]?.headers['ce-knativeerrordata'], undefined);
      });
    }

    it('a connection error, as code 500', async () => {
      await start({ triggers: [{ subscriber: { uri: 'http://127.0.0.1:1' }, delivery: { ...DELIVERY, retry: 1 } }], deadLetter: true });
      assert.equal((await post()).status, 202);
      assert.deepEqual(
        received().map(({ headers }) => headers['ce-knativeerrorcode']),
        ['500'],
      );
    });

    it('a timeout, whose connection it cuts; the dead letter then tells of no error', async () => {
      await start({ answer: () => undefined, triggers: [{ delivery: { ...DELIVERY, retry: 1, timeout: 'PT0.5S' } }], deadLetter: true });
      await post();
      const tries = told.filter((each) => each.what === 'undelivered').filter(({ to }) => !to.endsWith('/dead-letter'));
      assert.deepEqual(
        tries.map(({ attempt, why }) => [attempt, why]),
        [
          [1, 'timeout'],
          [2, 'timeout'],
        ],
      );
      // On a busy machine the time may be over before a try has a connection, and the letter may need its own second one.
      const cut = received().filter(({ path }) => path === '/');
      assert.ok(cut.length > 0);
      await until(() => cut.every(({ aborted }) => aborted));
      const letters = received().filter(({ path }) => path === '/dead-letter');
      assert.ok(letters.length > 0);
      for (const { headers } of letters)
        assert.deepEqual(
          Object.keys(headers).filter((name) => name.includes('error')),
          [],
        );
    });

    it('nothing when the delivery says no number', async () => {
      await start({ answer: () => ({ status: 503 }), triggers: [{ delivery: { timeout: 'PT10M' } }] });
      assert.equal((await post()).status, 500);
      assert.equal(received().length, 1);
    });
  });

  describe('answers the sender', () => {
    it('after the functions by default: 202 when all is well, 500 when one failed for good', async () => {
      let answered = false;
      await start({
        answer: async () => {
          await sleep(100);
          answered = true;
          return { status: 500 };
        },
        triggers: [{ delivery: { ...DELIVERY, retry: 0 } }],
      });
      assert.equal((await post()).status, 500);
      assert.ok(answered);
      assert.ok(told.some(({ what }) => what === 'lost'));
    });

    it('at once with 202 where it is annotated as asynchronous, whatever the functions do', async () => {
      let release = () => {};
      const gate = new Promise<void>((resolve) => {
        release = resolve;
      });
      await start({
        annotations: ASYNC,
        answer: async () => {
          await gate;
          return { status: 500 };
        },
        triggers: [{ delivery: { ...DELIVERY, retry: 0 } }],
      });
      assert.equal((await post()).status, 202);
      assert.ok(!told.some(({ what }) => what === 'lost'));
      release();
      await until(() => told.some(({ what }) => what === 'lost'));
    });

    it('sends sixty events to one function at once', async () => {
      let open = 0;
      let most = 0;
      await start({
        annotations: ASYNC,
        answer: async () => {
          most = Math.max(most, ++open);
          while (most < 60) await sleep(5);
          open -= 1;
          return { status: 204 };
        },
      });
      await Promise.all(Array.from({ length: 60 }, () => post()));
      await until(() => most === 60);
    });
  });
});
