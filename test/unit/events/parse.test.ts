import assert from 'node:assert/strict';
import { type OperatorEvent, parseEvent } from '../../../shared/events/parse.ts';
import {
  ALICE,
  type Attributes,
  binary,
  DUE,
  REQUEUE,
  required,
  SECRET,
  STARTUP,
  structured,
  TARGET,
  UPDATE,
} from '../support/requests.ts';

const MADE = '2026-03-01T11:59:55.123Z';

describe('shared/events/parse', () => {
  const modes = { binary, structured };
  const events: Record<string, [Attributes, OperatorEvent]> = {
    'a reconcile event without a time': [{}, { what: 'reconcile', target: TARGET, redelivered: 0 }],
    'a reconcile event without apiversion': [{ apiversion: undefined }, { what: 'reconcile', target: TARGET, redelivered: 0 }],
    'a reconcile event with a time': [{ notbefore: DUE }, { what: 'reconcile', target: TARGET, redelivered: 0, notBefore: DUE }],
    'a time as it is written, in any zone': [
      { notbefore: '2026-03-01T13:00:00+01:00' },
      { what: 'reconcile', target: TARGET, redelivered: 0, notBefore: '2026-03-01T13:00:00+01:00' },
    ],
    'a time in nanoseconds': [
      { notbefore: '2026-03-01T12:00:00.000000001Z' },
      { what: 'reconcile', target: TARGET, redelivered: 0, notBefore: '2026-03-01T12:00:00.000000001Z' },
    ],
    'a count as text': [{ redelivered: '3' }, { what: 'reconcile', target: TARGET, redelivered: 3 }],
    'a reconcile event for a Secret': [
      { kind: 'Secret', apiversion: 'v1' },
      { what: 'secret', namespace: 'team', name: 'alice', redelivered: 0 },
    ],
    'a redelivered event for a Secret': [
      { kind: 'Secret', apiversion: 'v1', redelivered: '2' },
      { what: 'secret', namespace: 'team', name: 'alice', redelivered: 2 },
    ],
    'a requeue event': [
      { type: REQUEUE, notbefore: DUE, time: MADE },
      { what: 'requeue', target: TARGET, notBefore: DUE, time: MADE, redelivered: 0 },
    ],
    'a requeue event for a Secret': [
      { type: REQUEUE, kind: 'Secret', apiversion: 'v1', notbefore: DUE, time: MADE, redelivered: '1' },
      { what: 'requeue', target: { ...TARGET, kind: 'Secret' }, notBefore: DUE, time: MADE, redelivered: 1 },
    ],
    'a Secret’s own event': [
      { type: SECRET, kind: 'Secret', apiversion: 'v1' },
      { what: 'secret', namespace: 'team', name: 'alice', redelivered: 0 },
    ],
    'a startup event without data': [{ type: STARTUP }, { what: 'startup', mode: 'sweep' }],
    'an attribute that nobody asked for': [
      { knativearrivaltime: DUE, subject: '/x' },
      { what: 'reconcile', target: TARGET, redelivered: 0 },
    ],
    'an object name with dots': [{ name: 'a.b-c.d' }, { what: 'reconcile', target: { ...TARGET, name: 'a.b-c.d' }, redelivered: 0 }],
    'the longest names': [
      { namespace: 'n'.repeat(63), name: 'x'.repeat(253) },
      { what: 'reconcile', target: { ...TARGET, namespace: 'n'.repeat(63), name: 'x'.repeat(253) }, redelivered: 0 },
    ],
  };
  for (const kind of ['LldapUser', 'LldapGroup', 'LldapMembership', 'LldapAttributeSchema'] as const)
    events[`an event of ${kind}`] = [{ kind }, { what: 'reconcile', target: { ...TARGET, kind }, redelivered: 0 }];

  for (const [mode, parse] of Object.entries(modes)) {
    describe(`in ${mode} mode reads`, () => {
      for (const [name, [attributes, event]] of Object.entries(events)) it(name, () => assert.deepEqual(parse(attributes), event));
    });
  }

  describe('the data', () => {
    const object = { metadata: { name: 'alice' } };
    for (const change of ['add', 'update', 'delete']) {
      it(`of a resource’s ${change} is the resource`, () => {
        const type = `dev.knative.apiserver.resource.${change}`;
        const event = { what: 'resource', change, target: TARGET, object };
        assert.deepEqual(binary({ type }, object), event);
        assert.deepEqual(structured({ type, data: object }), event);
      });
    }

    it('may be given in base64', () => {
      const data_base64 = Buffer.from(JSON.stringify(object)).toString('base64');
      assert.deepEqual(structured({ type: UPDATE, data_base64 }), { what: 'resource', change: 'update', target: TARGET, object });
    });

    it('may be missing', () => {
      assert.deepEqual(binary({ type: UPDATE }), { what: 'resource', change: 'update', target: TARGET, object: undefined });
      assert.deepEqual(structured({ type: UPDATE, data: null }), { what: 'resource', change: 'update', target: TARGET, object: undefined });
    });

    it('may begin with white space', () => {
      assert.deepEqual(binary({ type: STARTUP }, ' \r\n\t{"mode": "full"}\n'), { what: 'startup', mode: 'full' });
    });

    const types = [
      'application/json',
      'application/json; charset=utf-8',
      'application/json;charset=UTF-8',
      'Application/JSON ; Charset="utf-8"',
      'application/merge-patch+json',
    ];
    for (const type of types) {
      it(`is JSON by the content type ${type}`, () => {
        assert.deepEqual(binary({ type: STARTUP }, { mode: 'drift' }, { 'content-type': type }), { what: 'startup', mode: 'drift' });
      });
    }

    for (const mode of ['sweep', 'full', 'drift']) {
      it(`of a startup event says ${mode}`, () => {
        assert.deepEqual(binary({ type: STARTUP }, { mode }), { what: 'startup', mode });
        assert.deepEqual(structured({ type: STARTUP, data: { mode } }), { what: 'startup', mode });
      });
    }

    it('of a startup event without a mode means sweep', () => {
      assert.deepEqual(binary({ type: STARTUP }, {}), { what: 'startup', mode: 'sweep' });
    });
  });

  describe('a structured event is known by the content type', () => {
    for (const type of [
      'application/cloudevents+json; charset=utf-8',
      'application/cloudevents+json;charset=UTF-8',
      'Application/CloudEvents+JSON',
      ' application/cloudevents+json ;charset=utf-8',
    ]) {
      it(type, () => assert.equal(structured({}, type).what, 'reconcile'));
    }

    it('and may begin with white space', () => {
      const text = `\n  ${JSON.stringify({ ...required, ...ALICE })}`;
      assert.equal(parseEvent({ 'content-type': 'application/cloudevents+json' }, Buffer.from(text)).what, 'reconcile');
    });

    it('and may carry numbers as such', () => {
      assert.deepEqual(structured({ redelivered: 4 }), { what: 'reconcile', target: TARGET, redelivered: 4 });
    });

    it('and may leave attributes out by null', () => {
      assert.deepEqual(structured({ notbefore: null, apiversion: null }), { what: 'reconcile', target: TARGET, redelivered: 0 });
    });
  });

  it('a requeue event without a time of its own was made now', () => {
    const before = Date.now();
    for (const parse of Object.values(modes)) {
      const event = parse({ type: REQUEUE, notbefore: DUE });
      const time = event.what === 'requeue' ? Date.parse(event.time) : assert.fail();
      assert.ok(before <= time && time <= Date.now());
    }
  });

  it('a byte-order mark before the JSON is read over, in both modes', () => {
    const body = Buffer.from(`\uFEFF${JSON.stringify({ ...required, ...ALICE })}`);
    assert.equal(parseEvent({ 'content-type': 'application/cloudevents+json' }, body).what, 'reconcile');
    assert.deepEqual(binary({ type: STARTUP }, '\uFEFF{"mode": "full"}'), { what: 'startup', mode: 'full' });
  });

  it('an event that needs no data may carry an object, as kn sends it', () => {
    assert.equal(binary({}, {}).what, 'reconcile');
  });

  it('header values may be percent-encoded', () => {
    assert.deepEqual(binary({ name: 'al%69ce', notbefore: '2026-03-01T12%3A00%3A00.000Z' }), {
      what: 'reconcile',
      target: TARGET,
      redelivered: 0,
      notBefore: DUE,
    });
  });
});
