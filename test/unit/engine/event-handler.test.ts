import assert from 'node:assert/strict';
import type { EventHint } from '../../../shared/engine/engine.ts';
import { kindHandler } from '../../../shared/engine/event-handler.ts';
import type { OperatorEvent, Target } from '../../../shared/events/parse.ts';
import type { Answer, EventContext } from '../../../shared/service/server.ts';

const TARGET: Target = { kind: 'LldapUser', namespace: 'team', name: 'alice' };
const CONTEXT: EventContext = { signal: new AbortController().signal, stopping: new AbortController().signal, representation: false };
const DUE = '2026-03-01T12:00:00.000Z';

function bench(withSecrets = true) {
  const asked: [Target, EventHint][] = [];
  const secrets: OperatorEvent[] = [];
  const engine = {
    reconcile: async (target: Target, occasion: EventHint): Promise<Answer> => {
      asked.push([target, occasion]);
      return { status: 204 };
    },
  };
  const onSecret = async (event: OperatorEvent): Promise<Answer> => {
    secrets.push(event);
    return { status: 204 };
  };
  const handler = kindHandler('LldapUser', engine, withSecrets ? onSecret : undefined);
  return { handle: (event: OperatorEvent) => handler(event, CONTEXT), asked, secrets };
}

describe('shared/engine/event-handler', () => {
  const reconcile = { what: 'reconcile', target: TARGET, redelivered: 0 } as const;
  const object = { some: 'object' };
  const cases: Record<string, [OperatorEvent, EventHint]> = {
    'a new resource is looked at, with what the event says of it': [
      { what: 'resource', change: 'add', target: TARGET, object },
      { object },
    ],
    'a change is looked at, with what the event says of it': [{ what: 'resource', change: 'update', target: TARGET, object }, { object }],
    'a reconcile event asks for a full reconcile': [reconcile, { full: true }],
    'a reconcile event with a time is that retry': [
      { ...reconcile, notBefore: DUE },
      { full: false, notBefore: DUE },
    ],
    'a retry that could not be delivered is full, since its time may have been replaced': [
      { ...reconcile, notBefore: DUE, redelivered: 1 },
      { full: true, notBefore: DUE },
    ],
  };
  for (const [name, [event, occasion]] of Object.entries(cases)) {
    it(name, async () => {
      const { handle, asked } = bench();
      assert.deepEqual(await handle(event), { status: 204 });
      assert.deepEqual(asked, [[TARGET, occasion]]);
    });
  }

  it('the end of a resource costs nothing: its finalizer has gone before', async () => {
    const { handle, asked } = bench();
    assert.deepEqual(await handle({ what: 'resource', change: 'delete', target: TARGET, object }), { status: 204 });
    assert.deepEqual(asked, []);
  });

  const secret = { what: 'secret', namespace: 'team', name: 'alice', redelivered: 0 } as const;

  it('a Secret’s event is for the kind that has to do with Secrets', async () => {
    const { handle, asked, secrets } = bench();
    assert.deepEqual(await handle(secret), { status: 204 });
    assert.deepEqual([asked, secrets], [[], [secret]]);
  });

  const refused: Record<string, [OperatorEvent, string, boolean?]> = {
    'a Secret’s event by a kind that has nothing to do with them': [secret, 'a secret event is not for the function of LldapUser', false],
    'an event of another kind': [
      { ...reconcile, target: { ...TARGET, kind: 'LldapGroup' } },
      'the extension "kind" is LldapGroup; this function serves LldapUser',
    ],
    'a requeue event': [
      { what: 'requeue', target: TARGET, notBefore: DUE, time: DUE, redelivered: 0 },
      'a requeue event is not for the function of LldapUser',
    ],
    'a startup event': [{ what: 'startup', mode: 'sweep' }, 'a startup event is not for the function of LldapUser'],
  };
  for (const [name, [event, message, withSecrets]] of Object.entries(refused)) {
    it(`${name} is refused, once`, async () => {
      const { handle, asked } = bench(withSecrets);
      await assert.rejects(handle(event), { name: 'MalformedEvent', message });
      assert.deepEqual(asked, []);
    });
  }
});
