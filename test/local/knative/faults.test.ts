import assert from 'node:assert/strict';
import { ASYNC, useBroker } from './use-knative.ts';

describe('The local Broker', () => {
  const { faults, post, received, start, until } = useBroker();

  describe('with a fault', () => {
    const undo: (() => void)[] = [];
    afterEach(() =>
      undo.splice(0).forEach((each) => {
        each();
      }),
    );
    const id =
      (wanted: string) =>
      ({ attributes }: { attributes: Readonly<Record<string, string>> }) =>
        attributes.id === wanted;
    const ids = () => received().map(({ headers }) => headers['ce-id']);

    it('drops what matches, and nothing once the fault is undone', async () => {
      await start({});
      const end = faults.drop(id('1'));
      await post();
      await post({ 'ce-id': '2' });
      end();
      await post();
      assert.deepEqual(ids(), ['2', '1']);
    });

    it('repeats', async () => {
      await start({});
      undo.push(faults.repeat(id('1'), 3));
      await post();
      assert.deepEqual(ids(), ['1', '1', '1']);
    });

    it('delays', async () => {
      await start({ annotations: ASYNC });
      undo.push(faults.delay(id('1'), 100));
      const began = performance.now();
      for (const each of ['1', '2']) await post({ 'ce-id': each });
      await until(() => received().length === 2);
      assert.deepEqual(ids().sort(), ['1', '2']);
      const [delayed = assert.fail()] = received().filter(({ headers }) => headers['ce-id'] === '1');
      // Which of the two came first is a matter of the machine.
      assert.ok(delayed.at - began > 99);
    });

    it('turns the order round', async () => {
      await start({ annotations: ASYNC });
      undo.push(faults.reorder(() => true, 3));
      for (const each of ['1', '2', '3']) await post({ 'ce-id': each });
      await until(() => received().length === 3);
      assert.deepEqual(ids(), ['3', '2', '1']);
    });

    it('lets go what it holds when a reordering is undone', async () => {
      await start({ annotations: ASYNC });
      const end = faults.reorder(() => true, 3);
      await post();
      end();
      await until(() => received().length === 1);
    });

    it('refuses with a status, or cuts the connection', async () => {
      await start({});
      undo.push(faults.refuse(id('1'), 503), faults.refuse(id('2'), 'reset'));
      assert.equal((await post()).status, 503);
      await assert.rejects(post({ 'ce-id': '2' }), { code: 'ECONNRESET' });
      assert.equal((await post({ 'ce-id': '3' })).status, 202);
    });
  });
});
