import assert from 'node:assert/strict';
import type { ConditionDraft } from '../../../shared/engine/conditions.ts';
import { createEvent, emitReadyEvent } from '../../../shared/engine/kube-events.ts';
import { KubeError } from '../../../shared/kube/errors.ts';
import type { KubernetesEvent } from '../../../shared/kube/objects.ts';
import type { LldapUserStatus, Retry } from '../../../shared/kube/resources.ts';
import { createLog } from '../../../shared/telemetry/log.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { condition, user } from '../support/examples.ts';

const GOOD: ConditionDraft = { status: 'True', reason: 'Reconciled', message: 'All is well.' };
const BAD: ConditionDraft = { status: 'False', reason: 'EmailTaken', message: 'Somebody has it.' };
const WAITS: ConditionDraft = { status: 'False', reason: 'DependencyNotReady', message: 'It is not there.' };
const SUSPENDED: ConditionDraft = { status: 'False', reason: 'Suspended', message: 'spec.suspend is true.' };

function world(fail?: Error) {
  const events: KubernetesEvent[] = [];
  const lines: string[] = [];
  const createEvent = async (event: KubernetesEvent) => {
    if (fail) throw fail;
    events.push(event);
  };
  const io = { kube: { createEvent }, clock: new FakeClock(), log: createLog('debug', (line) => lines.push(line)) };
  return { events, lines, io };
}

describe('shared/engine/kube-events', () => {
  it('tells of a change of Ready by an Event on the resource, whose reason is the condition’s', async () => {
    const { events, io } = world();
    await emitReadyEvent(io, user({ metadata: { uid: 'u-1', resourceVersion: '42' } }), BAD);
    const [{ metadata, ...event } = assert.fail('no Event')] = events;
    assert.match(metadata.name, /^alice\.[0-9a-f]{16}$/);
    assert.equal(metadata.namespace, 'team');
    assert.deepEqual(event, {
      eventTime: '2026-03-01T12:00:00.000000Z',
      type: 'Warning',
      reason: 'EmailTaken',
      action: 'Reconcile',
      note: 'Somebody has it.',
      regarding: {
        apiVersion: 'lldap-operator.lukidoescode.com/v1alpha1',
        kind: 'LldapUser',
        namespace: 'team',
        name: 'alice',
        uid: 'u-1',
        resourceVersion: '42',
      },
      reportingController: 'lldap-operator.lukidoescode.com/operator',
      reportingInstance: 'lldap-operator',
    });
  });

  const retry = (attempts: number): Retry => ({ attempts, category: 'NotReady', nextTime: '2026-03-01T12:00:05.000Z' });
  const was = (...conditions: ReturnType<typeof condition>[]): LldapUserStatus => ({ conditions });
  const waits = { conditions: [condition('Ready', 'False', WAITS.reason)] };
  const cases: Record<string, [LldapUserStatus | undefined, ConditionDraft, told: string[]]> = {
    'is silent of a success at once': [undefined, GOOD, []],
    'tells of the first failure': [undefined, BAD, ['Warning EmailTaken']],
    'tells when a failure is over': [was(condition('Ready', 'False', 'EmailTaken')), GOOD, ['Normal Reconciled']],
    'tells when the reason is another': [was(condition('Ready', 'False', 'LldapUnavailable')), BAD, ['Warning EmailTaken']],
    'does not warn of a suspension': [was(condition('Ready', 'True')), SUSPENDED, ['Normal Suspended']],
    'is silent when a wait is over, and the same failure goes on': [
      { conditions: [condition('Ready', 'False', 'EmailTaken')], retry: retry(1) },
      BAD,
      [],
    ],
    'is silent when a wait is over that nobody was told of': [{ ...waits, retry: retry(1) }, GOOD, []],
    'tells when a wait is over that was told of': [{ ...waits, retry: retry(2) }, GOOD, ['Normal Reconciled']],
    'tells when a failure of another kind is over, though it was the first': [
      { ...waits, retry: { ...retry(1), category: 'Taken' } },
      GOOD,
      ['Normal Reconciled'],
    ],
    'is silent while it stays well': [was(condition('Ready', 'True')), GOOD, []],
    'is silent while the same failure goes on, whatever its message': [was(condition('Ready', 'False', 'EmailTaken')), BAD, []],
  };
  for (const [name, [status, ready, told]] of Object.entries(cases)) {
    it(name, async () => {
      const { events, io } = world();
      await emitReadyEvent(io, user(status && { status }), ready);
      assert.deepEqual(
        events.map((e) => `${e.type} ${e.reason}`),
        told,
      );
    });
  }

  const waiting: Record<string, [LldapUserStatus | undefined, Retry, told: string[]]> = {
    'is silent while a resource waits for others for the first seconds, as all of a tree do that is applied at once': [
      undefined,
      retry(1),
      [],
    ],
    'tells when it still waits at the second attempt': [{ ...waits, retry: retry(1) }, retry(2), ['Warning DependencyNotReady']],
    'tells when it fails for the first time by then': [undefined, retry(2), ['Warning DependencyNotReady']],
    'is silent at a later attempt that no status tells of': [waits, retry(2), []],
    'tells it once': [{ ...waits, retry: retry(2) }, retry(3), []],
    'tells it once, however often it is looked at before the next attempt': [{ ...waits, retry: retry(2) }, retry(2), []],
    'tells when it waits for something else by then': [
      { conditions: [condition('Ready', 'False', 'SecretNotFound')], retry: retry(4) },
      retry(5),
      ['Warning DependencyNotReady'],
    ],
  };
  for (const [name, [status, next, told]] of Object.entries(waiting)) {
    it(name, async () => {
      const { events, io } = world();
      await emitReadyEvent(io, user(status && { status }), WAITS, next);
      assert.deepEqual(
        events.map((e) => `${e.type} ${e.reason}`),
        told,
      );
    });
  }

  it('is never a reason to fail: an Event that cannot be written is logged', async () => {
    const { lines, io } = world(new KubeError(403, 'events is forbidden', 'Forbidden'));
    await emitReadyEvent(io, user(), BAD);
    assert.equal(lines.length, 1);
    assert.match(lines[0] ?? '', /"level":"warn".*The API server answered 403 Forbidden.*"namespace":"team","name":"alice"/);
  });

  const about = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'lldap-operator', namespace: 'lldap-operator' } };

  it('an Event with a name of its own is written once: that it exists already is no news', async () => {
    const { lines, io } = world(new KubeError(409, 'exists', 'AlreadyExists'));
    await createEvent(io, about, { type: 'Warning', reason: 'StartupFailed', note: 'x', name: 'this-hour' });
    assert.deepEqual(lines, []);
  });

  const failures: Record<string, [error: Error, name: string | undefined, reason: string]> = {
    'that exists already, though its name is new': [
      new KubeError(409, 'exists', 'AlreadyExists'),
      undefined,
      'The API server answered 409 AlreadyExists',
    ],
    'that may not be created': [new KubeError(403, 'hush', 'Forbidden'), 'this-hour', 'The API server answered 403 Forbidden'],
    'that fails unforeseen': [new TypeError('unforeseen'), 'this-hour', 'TypeError: unforeseen'],
  };
  for (const [what, [error, name, reason]] of Object.entries(failures)) {
    it(`an Event ${what} is logged, with the reason`, async () => {
      const { lines, io } = world(error);
      await createEvent(io, about, { type: 'Warning', reason: 'StartupFailed', note: 'x', ...(name && { name }) });
      const { time: _time, message: _message, ...line } = JSON.parse(lines.join(''));
      assert.deepEqual(line, { level: 'warn', reason, namespace: 'lldap-operator', name: 'lldap-operator' });
    });
  }

  it('an Event may be about another kind', async () => {
    const { events, io } = world();
    await createEvent(io, about, { type: 'Warning', reason: 'StartupFailed', note: 'x', name: 'this-hour' });
    assert.deepEqual(events[0]?.regarding, { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'lldap-operator', name: 'lldap-operator' });
    assert.equal(events[0]?.metadata.name, 'this-hour');
  });

  describe('a note', () => {
    const notes: Record<string, [note: string, written: string]> = {
      'of 1,024 bytes stays': ['x'.repeat(1024), 'x'.repeat(1024)],
      'that is longer is cut to 1,024 bytes, or the API server would refuse the Event': ['x'.repeat(1025), `${'x'.repeat(1021)}…`],
      'of wide characters is cut by its bytes, between two of them': ['ä'.repeat(600), `${'ä'.repeat(510)}…`],
      'of the widest characters is cut between two of them': [`x${'😀'.repeat(300)}`, `x${'😀'.repeat(255)}…`],
    };
    for (const [name, [note, written]] of Object.entries(notes)) {
      it(name, async () => {
        const { events, io } = world();
        await emitReadyEvent(io, user(), { ...BAD, message: note });
        assert.equal(events[0]?.note, written);
        assert.ok(Buffer.byteLength(written) <= 1024);
      });
    }
  });

  const eventNames: Record<string, [resource: string, event: RegExp]> = {
    'begins with the resource’s': ['alice-in.team--x', /^alice-in\.team--x\.[0-9a-f]{16}$/],
    'is valid wherever a long name of a resource is cut': [`${'a'.repeat(228)}--${'b'.repeat(23)}`, /^a{228}\.[0-9a-f]{16}$/],
  };
  for (const [what, [name, expected]] of Object.entries(eventNames)) {
    it(`an Event’s name ${what}`, async () => {
      const { events, io } = world();
      await emitReadyEvent(io, user({ metadata: { name } }), BAD);
      assert.match(events[0]?.metadata.name ?? '', expected);
    });
  }

  it('an Event’s name fits whatever the resource’s', async () => {
    const { events, io } = world();
    const name = `${'a'.repeat(229)}-${'b'.repeat(23)}`;
    await emitReadyEvent(io, user({ metadata: { name } }), BAD);
    assert.match(events[0]?.metadata.name ?? '', /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/);
    assert.ok((events[0]?.metadata.name.length ?? 0) <= 253);
  });
});
