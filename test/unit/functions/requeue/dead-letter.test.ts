import assert from 'node:assert/strict';
import { handleDeadLetter } from '../../../../functions/requeue/dead-letter.ts';
import { type Broker, BrokerError } from '../../../../shared/events/broker.ts';
import type { OperatorEvent, Target } from '../../../../shared/events/parse.ts';
import { createLog } from '../../../../shared/telemetry/log.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

const ALICE: Target = { kind: 'LldapUser', namespace: 'team', name: 'alice' };
const DUE = '2026-03-01T11:59:00.000Z';
const reconcile = (redelivered: number): OperatorEvent => ({ what: 'reconcile', target: ALICE, notBefore: DUE, redelivered });

function bench(fails?: Error) {
  const posted: unknown[][] = [];
  const lines: string[] = [];
  const broker = {
    requeue: async (...args: unknown[]) => {
      if (fails) throw fails;
      posted.push(args);
    },
  } as unknown as Broker;
  const clock = new FakeClock();
  const io = { broker, clock, log: createLog('debug', (line) => lines.push(line)) };
  const handle = (event: OperatorEvent, errorCode?: number) => handleDeadLetter(io, event, errorCode === undefined ? {} : { errorCode });
  return { posted, lines, clock, handle };
}

describe('functions/requeue/dead-letter', () => {
  describe('makes one requeue event of', () => {
    const later: [string, number] = ['2026-03-01T12:00:05.000Z', 1];
    const events: Record<string, [OperatorEvent, unknown[]]> = {
      'a change of a resource': [{ what: 'resource', change: 'update', target: ALICE, object: { hush: true } }, [ALICE, ...later]],
      'a full reconcile': [{ what: 'reconcile', target: ALICE, redelivered: 0 }, [ALICE, ...later]],
      'a retry': [reconcile(0), [ALICE, ...later]],
      'a Secret’s change': [
        { what: 'secret', namespace: 'team', name: 'alice', redelivered: 0 },
        [{ kind: 'Secret', namespace: 'team', name: 'alice' }, ...later],
      ],
      'a Secret’s change that was redelivered': [
        { what: 'secret', namespace: 'team', name: 'alice', redelivered: 1 },
        [{ kind: 'Secret', namespace: 'team', name: 'alice' }, '2026-03-01T12:00:10.000Z', 2],
      ],
      'a requeue event': [{ what: 'requeue', target: ALICE, notBefore: DUE, time: DUE, redelivered: 0 }, [ALICE, ...later]],
    };
    for (const [name, [event, args]] of Object.entries(events)) {
      it(name, async () => {
        const { posted, handle } = bench();
        assert.deepEqual(await handle(event, 503), { status: 204 });
        assert.deepEqual(posted, [args]);
      });
    }
  });

  it('delivers later and later, ten times, and then leaves it to the sweep', async () => {
    const { posted, lines, handle } = bench();
    for (let count = 0; count <= 10; count++) assert.deepEqual(await handle(reconcile(count), 500), { status: 204 });
    assert.deepEqual(
      posted.map(([, due, count]) => `${String(due).slice(14, 19)} ${count}`),
      ['00:05 1', '00:10 2', '00:30 3', '01:00 4', '05:00 5', '05:00 6', '05:00 7', '05:00 8', '05:00 9', '05:00 10'],
    );
    assert.match(
      lines.join(''),
      /^[^\n]*"level":"warn","message":"dropped an undeliverable event","what":"reconcile","errorCode":500,"kind":"LldapUser"[^\n]*\n$/,
    );
  });

  it('never holds: it answers without any time having passed', async () => {
    const { clock, handle } = bench();
    await handle(reconcile(3), 503);
    assert.equal(clock.sleeping, 0);
  });

  describe('by the status of the last answer', () => {
    const codes: Record<string, [number | undefined, boolean]> = {
      'keeps what failed without one, as after a timeout': [undefined, true],
      'keeps what failed by the function: 500': [500, true],
      'keeps what failed by the function: 503': [503, true],
      'keeps what found no function: 404': [404, true],
      'keeps what took too long to arrive: 408': [408, true],
      'keeps what came in between: 409': [409, true],
      'keeps what came too often: 429': [429, true],
      'drops what the function refused: 400': [400, false],
      'drops what was too large: 413': [413, false],
      'keeps what came without a right token: 401': [401, true],
      'keeps what was stopped on its way: 403': [403, true],
    };
    for (const [name, [code, kept]] of Object.entries(codes)) {
      it(name, async () => {
        const { posted, lines, handle } = bench();
        assert.deepEqual(await handle(reconcile(0), code), { status: 204 });
        assert.deepEqual([posted.length, lines.length], kept ? [1, 0] : [0, 1]);
      });
    }
  });

  it('drops startup events, which the CronJob repeats', async () => {
    const { posted, handle } = bench();
    assert.deepEqual(await handle({ what: 'startup', mode: 'full' }, 503), { status: 204 });
    assert.deepEqual(posted, []);
  });

  it('logs nothing of what an event carries', async () => {
    const { lines, handle } = bench();
    await handle({ what: 'resource', change: 'update', target: ALICE, object: { password: 'hush' } }, 400);
    assert.doesNotMatch(lines.join(''), /hush/);
  });

  it('asks for the event again if the broker does not take the new one', async () => {
    const { handle } = bench(new BrokerError('The broker answered 503.'));
    assert.deepEqual(await handle(reconcile(0), 503), { status: 503, message: 'the broker did not accept the requeue event' });
  });

  it('fails for a reason that nobody foresaw', async () => {
    const { handle } = bench(new TypeError('unforeseen'));
    await assert.rejects(handle(reconcile(0), 503), { message: 'unforeseen' });
  });
});
