import assert from 'node:assert/strict';
import { FINALIZER, REQUESTED_AT } from '../../../shared/constants.ts';
import { createEngine, type EventHint } from '../../../shared/engine/engine.ts';
import type { Kind } from '../../../shared/engine/kind.ts';
import { KubeError } from '../../../shared/kube/errors.ts';
import type { LldapUser } from '../../../shared/kube/resources.ts';
import type { Io } from '../../../shared/lookup/io.ts';
import { Failure } from '../../../shared/rules/failure.ts';
import { REASONS, type Reason } from '../../../shared/rules/reasons.ts';
import { createLog } from '../../../shared/telemetry/log.ts';
import { policy, READY, user } from '../support/examples.ts';

const TARGET = { kind: 'LldapUser', namespace: 'team', name: 'alice' } as const;

/** An engine of users that all are gone: an event that is looked into is answered "gone" after one read, and nothing else may be called. */
function bench() {
  const read: string[] = [];
  const lines: string[] = [];
  const forbidden = (what: string) =>
    new Proxy(
      {},
      {
        get: (_, name) => () => assert.fail(`${what}.${String(name)} was called`),
      },
    );
  const io = {
    kube: { get: async (kind: string, namespace: string, name: string) => void read.push(`${kind} ${namespace}/${name}`) },
    policy: async () => policy(),
    clock: { now: () => 0, monotonic: () => 0, sleep: async () => assert.fail('slept') },
    random: () => 0.5,
    log: createLog('debug', (line) => lines.push(line)),
    lldap: forbidden('lldap'),
    passwords: forbidden('passwords'),
    broker: forbidden('broker'),
    lookup: forbidden('lookup'),
  } as unknown as Io;
  const kind = { name: 'LldapUser' } as Kind<'LldapUser', never, never, never>;
  const engine = createEngine(kind, io, { maxConcurrentReconciles: 1, retryMaxMs: 300_000 });
  const reconcile = (occasion: EventHint, representation = false) => engine.reconcile(TARGET, occasion, { representation });
  return { read, lines, reconcile };
}

const steady = (over: Partial<LldapUser> = {}): unknown => ({
  ...user({ status: { observedGeneration: 1, conditions: [READY] } }),
  ...over,
});

describe('shared/engine/engine', () => {
  it('an event of a steady resource is answered without any call', async () => {
    const { read, lines, reconcile } = bench();
    assert.deepEqual(await reconcile({ object: steady() }), { status: 204 });
    assert.deepEqual([read, lines], [[], []]);
  });

  it('says so to who asks what was done', async () => {
    const { reconcile } = bench();
    assert.deepEqual(await reconcile({ object: steady() }, true), {
      status: 200,
      body: { result: 'unchanged', kind: 'LldapUser', namespace: 'team', name: 'alice', did: [] },
    });
  });

  const { metadata } = user();
  const looked: Record<string, unknown> = {
    'not steady': user(),
    'steady, with a look asked for': steady({ metadata: { ...metadata, annotations: { [REQUESTED_AT]: 'now' } } }),
    nothing: null,
    'a text': 'LldapUser',
    'a number': 5,
    'a list': [],
    'an object without metadata': {},
    'metadata that is none': { ...user(), metadata: 'alice' },
    'metadata without uid': { ...user(), metadata: { ...metadata, uid: undefined } },
    'metadata without version': { ...user(), metadata: { ...metadata, resourceVersion: 7 } },
    'a uid longer than the API server makes': steady({ metadata: { ...metadata, uid: 'u'.repeat(65) } }),
    'a version longer than the API server makes': steady({ metadata: { ...metadata, resourceVersion: '1'.repeat(65) } }),
    'a status that is none': { ...user(), status: 'fine' },
    'a status that is null': { ...user(), status: null },
    'conditions that are no list': steady({ status: { observedGeneration: 1, conditions: 'Ready' as never } }),
    'conditions that are an object': steady({ status: { observedGeneration: 1, conditions: {} as never } }),
    'a condition that is none': steady({ status: { observedGeneration: 1, conditions: [null as never] } }),
    'finalizers that are no list': steady({ metadata: { ...metadata, finalizers: { [FINALIZER]: true } as never } }),
    'finalizers that are a text': steady({ metadata: { ...metadata, finalizers: FINALIZER as never } }),
    'annotations that are null': { ...user(), metadata: { ...metadata, annotations: null } },
    'a token that is no text': steady({ metadata: { ...metadata, annotations: { [REQUESTED_AT]: 5 as never } } }),
  };
  for (const [name, object] of Object.entries(looked)) {
    it(`an event whose data is ${name} is not believed, and the resource is read`, async () => {
      const { read, reconcile } = bench();
      assert.deepEqual(await reconcile({ object }, true), {
        status: 200,
        body: { result: 'gone', kind: 'LldapUser', namespace: 'team', name: 'alice', did: [] },
      });
      assert.deepEqual(read, ['LldapUser team/alice']);
    });
  }

  for (const occasion of [{}, { full: true }, { notBefore: '2026-03-01T12:00:00.000Z' }]) {
    it(`an event without data is looked into: ${JSON.stringify(occasion)}`, async () => {
      const { read, reconcile } = bench();
      assert.deepEqual(await reconcile(occasion), { status: 204 });
      assert.equal(read.length, 1);
    });
  }

  it('logs what it finds out about nothing only at level debug', async () => {
    const { lines, reconcile } = bench();
    await reconcile({});
    const { time: _time, ...line } = JSON.parse(lines[0] ?? '') as Record<string, unknown>;
    assert.deepEqual(line, { level: 'debug', message: 'reconciled', result: 'gone', ...TARGET, did: [] });
  });

  describe('what a resource asks for stays in its status, whatever keeps it from being Ready', () => {
    const VALUE = 'alice.private@example.com';
    for (const reason of Object.keys(REASONS) as Reason[]) {
      for (const category of ['Invalid', 'Unavailable'] as const) {
        it(`no answer and no log line tells it: ${reason}, ${category}`, async () => {
          const written: unknown[] = [];
          const lines: string[] = [];
          const resource = user({ spec: { email: VALUE, displayName: VALUE } });
          const io = {
            kube: {
              get: async () => resource,
              applyStatus: async (_resource: unknown, status: unknown) => {
                written.push(status);
                return resource;
              },
              createEvent: async () => {},
            },
            policy: async () => policy(),
            clock: { now: () => 0, monotonic: () => 0 },
            random: () => 0.5,
            log: createLog('debug', (line) => lines.push(line)),
            broker: { requeue: async () => {} },
          } as unknown as Io;
          const refused = new Failure(category, reason, `spec.email: ${VALUE} cannot be.`);
          const kind = { name: 'LldapUser', refuse: () => refused } as unknown as Kind<'LldapUser', never, never, never>;
          const engine = createEngine(kind, io, { maxConcurrentReconciles: 1, retryMaxMs: 300_000 });
          const answer = await engine.reconcile(TARGET, { full: true }, { representation: true });
          assert.ok(JSON.stringify(written).includes(VALUE));
          assert.ok(JSON.stringify(answer).includes(reason));
          assert.equal([JSON.stringify(answer), ...lines].join('').includes(VALUE), false);
        });
      }
    }

    it('no answer and no log line repeats what the API server refuses', async () => {
      const lines: string[] = [];
      const io = {
        kube: {
          get: async () => {
            throw new KubeError(422, `LldapUser "alice" is invalid: Invalid value: "${VALUE}"`, 'Invalid');
          },
        },
        policy: async () => policy(),
        clock: { now: () => 0, monotonic: () => 0 },
        random: () => 0.5,
        log: createLog('debug', (line) => lines.push(line)),
      } as unknown as Io;
      const kind = { name: 'LldapUser' } as unknown as Kind<'LldapUser', never, never, never>;
      const answer = await createEngine(kind, io, { maxConcurrentReconciles: 1, retryMaxMs: 1 }).reconcile(
        TARGET,
        {},
        { representation: true },
      );
      assert.equal(answer.status, 503);
      assert.match(JSON.stringify(answer), /The API server answered 422 Invalid/);
      assert.equal([JSON.stringify(answer), ...lines].join('').includes(VALUE), false);
    });
  });
});
