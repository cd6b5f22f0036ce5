import assert from 'node:assert/strict';
import { useHarness } from './support/harness.ts';

const RESOURCES = 50;

describe('lldap is down for two minutes while fifty resources change', () => {
  const h = useHarness();
  const names = Array.from({ length: RESOURCES }, (_, i) => `group-${i}`);
  before(async () => {
    await Promise.all(
      names.map(async (name) => {
        const object = await h.create('LldapGroup', name, { displayName: name });
        await h.reconcile('LldapGroup', name, { object });
      }),
    );
  });

  it('each is tried after about 5, 15, 45 and 105 s, with one status write and one live retry each, and all are Ready by themselves', async () => {
    await h.lldap.stop();
    const down = h.clock.now();
    const seconds = () => (h.clock.now() - down) / 1000;
    const attempts: number[] = [];
    const writes = await h.cost(async () => {
      const objects = await Promise.all(names.map((name) => h.edit('LldapGroup', name, { spec: { displayName: `${name}-renamed` } })));
      await Promise.all(objects.map((object) => h.reconcile('LldapGroup', object.metadata.name, { object })));
      assertOneRetryEach();
      while (seconds() < 105) {
        assert.equal(await h.nextRetry(), true);
        attempts.push(seconds());
        // Every write of a status comes back as an event; none of them starts a chain of its own.
        await Promise.all(names.map(async (name) => h.reconcile('LldapGroup', name, { object: await h.get('LldapGroup', name) })));
        assertOneRetryEach();
      }
    });
    assert.deepEqual(attempts, [5, 15, 45, 105]);
    assert.deepEqual(writes.mutations, []);
    const statusWrites = writes.kubeWrites.filter(({ path }) => path.includes('/status'));
    assert.equal(statusWrites.length, RESOURCES * (1 + attempts.length));

    await h.lldap.start();
    assert.equal(await h.nextRetry(), true);
    assert.equal(seconds(), 405);
    for (const name of names) assert.equal((await h.ready('LldapGroup', name)).status, 'True', name);
    assert.equal(h.posted.requeue.length, 0);
    const renamed = (await h.lldap.groups()).filter(({ displayName }) => displayName.endsWith('-renamed'));
    assert.equal(renamed.length, RESOURCES);
  });

  function assertOneRetryEach(): void {
    const targets = h.posted.requeue.map(({ target }) => target.name);
    assert.equal(new Set(targets).size, RESOURCES);
    assert.equal(targets.length, RESOURCES);
  }
});
