import assert from 'node:assert/strict';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createEngine } from '../../../shared/engine/engine.ts';
import { kindHandler } from '../../../shared/engine/event-handler.ts';
import type { Kind } from '../../../shared/engine/kind.ts';
import type { LldapUser } from '../../../shared/kube/resources.ts';
import type { Io } from '../../../shared/lookup/io.ts';
import { createLog } from '../../../shared/telemetry/log.ts';
import { policy, user } from '../support/examples.ts';
import { EVENT, useServers } from '../support/servers.ts';

const SOURCE = { ...EVENT, 'ce-type': 'dev.knative.apiserver.resource.update', 'content-type': 'application/json' };

/** An engine of users behind a real server, whose reads wait until the test lets them go on. */
function bench() {
  const open = Promise.withResolvers<void>();
  const reads: string[] = [];
  const statuses: LldapUser['status'][] = [];
  const resource = user();
  const io = {
    kube: {
      get: async (_kind: string, _namespace: string, name: string) => {
        reads.push(name);
        await open.promise;
        return resource;
      },
      applyStatus: async (_resource: LldapUser, status: LldapUser['status']) => {
        statuses.push(status);
        return resource;
      },
      createEvent: async () => {},
    },
    policy: async () => policy(),
    clock: { now: () => 0, monotonic: () => 0 },
    random: () => 0.5,
    log: createLog('error', () => {}),
  } as unknown as Io;
  const kind = {
    name: 'LldapUser',
    refuse: () => undefined,
    hasDependencies: () => false,
    findDependencies: async () => undefined,
    observe: async () => undefined,
    plan: () => ({ steps: [] }),
    findDependents: async () => [],
  } as unknown as Kind<'LldapUser', undefined, undefined, never>;
  const handler = kindHandler('LldapUser', createEngine(kind, io, { maxConcurrentReconciles: 1, retryMaxMs: 1 }));
  return { handler, reads, statuses, open: open.resolve };
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 5));
}

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function bytesInUse(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

describe('shared/engine/engine, behind the server:', () => {
  const { send, start } = useServers();

  it('events that wait for their turn do not keep their objects in memory', async function () {
    this.timeout(120_000);
    const { handler, open } = bench();
    const received = new Set<unknown>();
    const server = await start((event, context) => {
      received.add('target' in event && event.target.name);
      return handler(event, context);
    });
    const photo = 'x'.repeat(500_000);
    const body = Buffer.from(JSON.stringify({ ...user(), spec: { photo } }));
    const before = bytesInUse();
    const names = Array.from({ length: 100 }, (_, i) => `user-${i}`);
    const replies = names.map((name) => send(server.port, { headers: { ...SOURCE, 'ce-name': name }, body }));
    await until(() => received.size === names.length);
    // The last bodies are still on their way through Node when their events have come.
    await until(() => (bytesInUse() - before) / names.length < 100_000);
    open();
    await Promise.all(replies);
  });

  it('a sender that hangs up does not keep a healthy change from its status', async () => {
    const { handler, reads, statuses, open } = bench();
    const server = await start(handler);
    const sender = new AbortController();
    const reply = send(server.port, { signal: sender.signal });
    await until(() => reads.length > 0);
    sender.abort();
    await assert.rejects(reply, { name: 'AbortError' });
    open();
    await until(() => statuses.length > 0);
    assert.deepEqual(
      statuses[0]?.conditions?.map(({ type, status, reason }) => [type, status, reason]),
      [['Ready', 'True', 'Reconciled']],
    );
  });
});
