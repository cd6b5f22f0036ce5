import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import type { Client } from 'ldapts';
import { shareConnection } from '../../../shared/lldap/ldap-connection.ts';

interface FakeClient {
  name: number;
  isConnected: boolean;
  unbind(): Promise<void>;
}

/** Each opening waits for the test, unless `opensAtOnce`. */
function bench({ opensAtOnce = true } = {}) {
  const opened: FakeClient[] = [];
  const openings: ReturnType<typeof Promise.withResolvers<void>>[] = [];
  const connection = shareConnection(async () => {
    const opening = Promise.withResolvers<void>();
    const name = openings.push(opening);
    if (opensAtOnce) opening.resolve();
    await opening.promise;
    const client: FakeClient = {
      name,
      isConnected: true,
      unbind: async () => {
        client.isConnected = false;
      },
    };
    opened.push(client);
    return client as unknown as Client;
  });
  /** Uses the connection until `work` ends, and tells which it was. */
  const use = (work: Promise<unknown> = Promise.resolve()) =>
    connection.use(async (client) => {
      await work;
      return (client as unknown as FakeClient).name;
    });
  const open = () => opened.filter(({ isConnected }) => isConnected).map(({ name }) => name);
  return { connection, use, open, opened, openings };
}

describe('the shared LDAP connection', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
  afterEach(() => mock.timers.reset());
  const pass = async (ms: number) => {
    mock.timers.tick(ms);
    await turn();
  };

  it('is opened once for callers that come at once, and kept for those that come soon', async () => {
    const { use, openings } = bench();
    assert.deepEqual(await Promise.all([use(), use(), use()]), [1, 1, 1]);
    await pass(1_999);
    assert.deepEqual([await use(), openings.length], [1, 1]);
  });

  it('is closed after two seconds without a caller, counted from the last', async () => {
    const { use, open } = bench();
    await use();
    await pass(1_500);
    await use();
    await pass(1_999);
    assert.deepEqual(open(), [1]);
    await pass(1);
    assert.deepEqual(open(), []);
    assert.equal(await use(), 2);
  });

  it('stays open while one caller works, though others have ended', async () => {
    const { use, open } = bench();
    const end = Promise.withResolvers<void>();
    const slow = use(end.promise);
    await use();
    await pass(10_000);
    assert.deepEqual(open(), [1]);
    end.resolve();
    await slow;
    await pass(2_000);
    assert.deepEqual(open(), []);
  });

  it('is closed after a caller that failed, too', async () => {
    const { use, open } = bench();
    await assert.rejects(use(Promise.reject(new Error('no'))), { message: 'no' });
    await pass(2_000);
    assert.deepEqual(open(), []);
  });

  it('is opened again, once for all, after it was lost', async () => {
    const { use, opened, openings } = bench();
    await use();
    for (const client of opened) client.isConnected = false;
    assert.deepEqual([await Promise.all([use(), use()]), openings.length], [[2, 2], 2]);
  });

  it('that cannot be opened is told to all who wait, and opened again for the next', async () => {
    const { use, openings } = bench({ opensAtOnce: false });
    const both = Promise.allSettled([use(), use()]);
    await turn();
    openings[0]?.reject(new Error('refused'));
    assert.deepEqual(
      (await both).map((result) => result.status === 'rejected' && result.reason.message),
      ['refused', 'refused'],
    );
    const next = use();
    await turn();
    openings[1]?.resolve();
    assert.equal(await next, 2);
  });

  it('is closed when told, also before it is open, or when there is none', async () => {
    const { connection, use, open, openings } = bench({ opensAtOnce: false });
    await connection.close();
    const waiting = use();
    await turn();
    const closing = connection.close();
    openings[0]?.resolve();
    await Promise.all([waiting, closing]);
    assert.deepEqual(open(), []);
  });

  it('that cannot be opened is closed without another error', async () => {
    const { connection, use, openings } = bench({ opensAtOnce: false });
    const waiting = use();
    await turn();
    const closing = connection.close();
    openings[0]?.reject(new Error('refused'));
    await assert.rejects(waiting, { message: 'refused' });
    await closing;
  });

  it('stays when the opening of the one before it fails late', async () => {
    const { connection, use, openings } = bench({ opensAtOnce: false });
    const first = use();
    await turn();
    void connection.close();
    const second = use();
    await turn();
    openings[0]?.reject(new Error('refused'));
    await assert.rejects(first, { message: 'refused' });
    openings[1]?.resolve();
    assert.deepEqual([await second, await use(), openings.length], [2, 2, 2]);
  });

  it('is opened anew for a caller that found it lost while it was closed', async () => {
    const { connection, use, opened } = bench();
    await use();
    for (const client of opened) client.isConnected = false;
    const next = use();
    await connection.close();
    assert.equal(await next, 2);
  });
});
