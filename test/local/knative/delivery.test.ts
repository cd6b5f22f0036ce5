import assert from 'node:assert/strict';
import { backoffMs } from './delivery.ts';
import { durationMs } from './duration.ts';
import type { Delivery } from './eventing.ts';
import { readTrigger } from './eventing.ts';
import { Fields } from './fields.ts';

describe('Delivery in the local Knative', () => {
  const schedules: [string, Omit<Delivery, 'retry'>, number[]][] = [
    [
      'exponential: d, 2d, 4d, … without a cap',
      { backoffPolicy: 'exponential', backoffDelayMs: 500 },
      [500, 1000, 2000, 4000, 8000, 16_000],
    ],
    [
      'linear: the first retry comes at once, then d, 2d, 3d, …',
      { backoffPolicy: 'linear', backoffDelayMs: 500 },
      [0, 500, 1000, 1500, 2000, 2500],
    ],
    ['neither policy nor delay: at once', {}, [0, 0, 0, 0, 0, 0]],
    ['a policy without a delay: at once', { backoffPolicy: 'linear' }, [0, 0, 0, 0, 0, 0]],
  ];
  for (const [sentence, delivery, gaps] of schedules) {
    it(`waits between tries, ${sentence}`, () => {
      assert.deepEqual(
        gaps.map((_, index) => backoffMs({ retry: 6, ...delivery }, index + 1)),
        gaps,
      );
    });
  }

  const durations: [string, number | undefined][] = [
    ['PT0.2S', 200],
    ['PT10M', 600_000],
    ['PT1H1M1.5S', 3_661_500],
    ['P1D', 86_400_000],
    ['PT0S', 0],
    ['200ms', undefined],
    ['1s', undefined],
    ['PT', undefined],
    ['P', undefined],
    ['PT5', undefined],
    ['', undefined],
  ];
  for (const [text, ms] of durations) {
    it(`${ms === undefined ? 'refuses' : 'reads'} the duration ${JSON.stringify(text)}`, () => {
      if (ms === undefined) assert.throws(() => durationMs(text), /not an ISO 8601 duration/);
      else assert.equal(durationMs(text), ms);
    });
  }

  const trigger = (delivery?: object) =>
    readTrigger(
      new Fields(
        {
          metadata: { namespace: 'ns', name: 't' },
          spec: {
            broker: 'b',
            subscriber: { ref: { apiVersion: 'serving.knative.dev/v1', kind: 'Service', name: 'f' } },
            ...(delivery && { delivery }),
          },
        },
        'Trigger t',
      ),
    );

  it("falls back to the cluster's defaults only when a Trigger says nothing at all", () => {
    assert.deepEqual(trigger().delivery, { retry: 10, backoffPolicy: 'exponential', backoffDelayMs: 200 });
    assert.deepEqual(trigger({ timeout: 'PT1M' }).delivery, { retry: 0, timeoutMs: 60_000 });
  });

  it('addresses a Service of the same namespace, with the path that stands beside the reference', () => {
    const ref = { apiVersion: 'serving.knative.dev/v1', kind: 'Service', name: 'requeue' };
    assert.equal(trigger().subscriber, 'http://f.ns.svc.cluster.local');
    assert.equal(
      trigger({ deadLetterSink: { ref, uri: '/dead-letter' } }).delivery.deadLetterSink,
      'http://requeue.ns.svc.cluster.local/dead-letter',
    );
  });

  it('knows for whom a token is that a subscriber and a dead-letter sink are brought', () => {
    const ref = { apiVersion: 'serving.knative.dev/v1', kind: 'Service', name: 'f' };
    const { audience, delivery } = readTrigger(
      new Fields(
        {
          metadata: { namespace: 'ns', name: 't' },
          spec: { broker: 'b', subscriber: { ref, audience: 'me' }, delivery: { deadLetterSink: { ref, audience: 'you' } } },
        },
        'Trigger t',
      ),
    );
    assert.deepEqual([audience, delivery.deadLetterAudience], ['me', 'you']);
  });

  const refused: [string, object, RegExp][] = [
    ['a misspelt field', { retries: 3 }, /does not do what Trigger t.spec.delivery says in: retries/],
    ['a timeout of zero', { timeout: 'PT0S' }, /timeout is zero/],
    ['an unknown policy', { backoffPolicy: 'random' }, /no such backoffPolicy/],
    ['a number as text', { retry: '3' }, /retry is not a number/],
    [
      'a reference to what has no address',
      { deadLetterSink: { ref: { apiVersion: 'v1', kind: 'Service', name: 'x' } } },
      /does not know the address of a v1 Service/,
    ],
  ];
  for (const [sentence, delivery, message] of refused) {
    it(`refuses ${sentence}`, () => assert.throws(() => trigger(delivery), message));
  }
});
