import assert from 'node:assert/strict';
import type { IncomingHttpHeaders } from 'node:http';
import { MalformedEvent, type OperatorEvent, parseEvent } from '../../shared/events/parse.ts';

const RECONCILE = 'com.lukidoescode.lldap-operator.reconcile';
const REQUEUE = 'com.lukidoescode.lldap-operator.requeue';
const STARTUP = 'com.lukidoescode.lldap-operator.startup';
const UPDATE = 'dev.knative.apiserver.resource.update';
const SECRET = 'dev.knative.apiserver.ref.update';
const DUE = '2026-03-01T12:00:00.000Z';

type Attributes = Record<string, unknown>;

const ALICE = { kind: 'LldapUser', apiversion: 'lldap-operator.lukidoescode.com/v1alpha1', namespace: 'team', name: 'alice' };
const TARGET = { kind: 'LldapUser', namespace: 'team', name: 'alice' } as const;
const required = { specversion: '1.0', id: '1', source: '/test', type: RECONCILE };

/** An undefined attribute is left out. */
function binary(attributes: Attributes, data?: unknown, headers: IncomingHttpHeaders = {}): OperatorEvent {
  const all = Object.entries({ ...required, ...ALICE, ...attributes }).filter(([, value]) => value !== undefined);
  const body = data === undefined ? Buffer.alloc(0) : Buffer.from(typeof data === 'string' ? data : JSON.stringify(data));
  const contentType = data === undefined ? {} : { 'content-type': 'application/json' };
  return parseEvent({ ...contentType, ...Object.fromEntries(all.map(([name, value]) => [`ce-${name}`, String(value)])), ...headers }, body);
}

function structured(attributes: Attributes, contentType = 'application/cloudevents+json'): OperatorEvent {
  return parseEvent({ 'content-type': contentType }, Buffer.from(JSON.stringify({ ...required, ...ALICE, ...attributes })));
}

function refusal(parse: () => OperatorEvent): string {
  try {
    parse();
  } catch (error) {
    assert.ok(error instanceof MalformedEvent, String(error));
    return error.message;
  }
  return 'accepted';
}

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
      { type: REQUEUE, notbefore: DUE },
      { what: 'requeue', target: TARGET, notBefore: DUE, redelivered: 0 },
    ],
    'a requeue event for a Secret': [
      { type: REQUEUE, kind: 'Secret', apiversion: 'v1', notbefore: DUE, redelivered: '1' },
      { what: 'requeue', target: { ...TARGET, kind: 'Secret' }, notBefore: DUE, redelivered: 1 },
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

  it('header values may be percent-encoded', () => {
    assert.deepEqual(binary({ name: 'al%69ce', notbefore: '2026-03-01T12%3A00%3A00.000Z' }), {
      what: 'reconcile',
      target: TARGET,
      redelivered: 0,
      notBefore: DUE,
    });
  });

  describe('a malformed event is refused with what is wrong:', () => {
    const kinds = 'not one of LldapUser, LldapGroup, LldapMembership, LldapAttributeSchema';
    const time = 'not a time like 2026-01-31T12:00:00.000Z';
    const cases: Record<string, [Attributes, string]> = {
      'no id': [{ id: undefined }, 'the attribute "id" is missing'],
      'an empty id': [{ id: '' }, 'the attribute "id" is missing'],
      'no source': [{ source: undefined }, 'the attribute "source" is missing'],
      'no type': [{ type: undefined }, 'the attribute "type" is missing'],
      'no specversion': [{ specversion: undefined }, 'the attribute "specversion" is missing, not 1.0'],
      'an old specversion': [{ specversion: '0.3' }, 'the attribute "specversion" is "0.3", not 1.0'],
      'a specversion to come': [{ specversion: '2.0' }, 'the attribute "specversion" is "2.0", not 1.0'],
      'another’s type': [{ type: 'com.example.sold' }, 'the type "com.example.sold" is not one of this operator\'s'],
      'a type that only begins like one': [{ type: `${RECONCILE}d` }, `the type "${RECONCILE}d" is not one of this operator's`],
      'a change that is none': [
        { type: 'dev.knative.apiserver.resource.patch' },
        'the type "dev.knative.apiserver.resource.patch" is not one of this operator\'s',
      ],
      'no kind': [{ kind: undefined }, `the extension "kind" is missing, ${kinds}`],
      'another kind': [{ kind: 'Pod' }, `the extension "kind" is "Pod", ${kinds}`],
      'a kind in another case': [{ kind: 'lldapuser' }, `the extension "kind" is "lldapuser", ${kinds}`],
      'a kind that every object has': [{ kind: 'constructor' }, `the extension "kind" is "constructor", ${kinds}`],
      'a Secret as a resource': [{ type: UPDATE, kind: 'Secret' }, `the extension "kind" is "Secret", ${kinds}`],
      'a resource as a reference': [{ type: SECRET }, 'the kind "LldapUser" of a reference is not Secret'],
      'another version of the API': [
        { apiversion: 'lldap-operator.lukidoescode.com/v2' },
        'the extension "apiversion" is "lldap-operator.lukidoescode.com/v2", not lldap-operator.lukidoescode.com/v1alpha1',
      ],
      'no namespace': [{ namespace: undefined }, 'the extension "namespace" is missing, not a namespace\'s name'],
      'no name': [{ name: undefined }, 'the extension "name" is missing, not an object\'s name'],
      'a time without zone': [{ notbefore: '2026-03-01T12:00:00' }, `the extension "notbefore" is "2026-03-01T12:00:00", ${time}`],
      'a time without day': [{ notbefore: '12:00' }, `the extension "notbefore" is "12:00", ${time}`],
      'an empty time': [{ notbefore: '' }, `the extension "notbefore" is "", ${time}`],
      'a time that is no time': [{ notbefore: '2026-13-01T12:00:00Z' }, `the extension "notbefore" is "2026-13-01T12:00:00Z", ${time}`],
      'a requeue event without time': [{ type: REQUEUE }, `the extension "notbefore" is missing, ${time}`],
      'a negative count': [{ redelivered: '-1' }, 'the extension "redelivered" is "-1", not a count'],
      'a count that is none': [{ redelivered: 'often' }, 'the extension "redelivered" is "often", not a count'],
      'a count too long': [{ redelivered: '99999' }, 'the extension "redelivered" is "99999", not a count'],
      'a name that is not an attribute’s': [{ 'not-allowed': 'x' }, 'not a valid CloudEvent: invalid extension name: not-allowed'],
      'an event’s time that is none': [{ time: 'yesterday' }, 'not a valid CloudEvent: time must match format "date-time"'],
      'a source that is no address': [{ source: 'a b' }, 'not a valid CloudEvent: source must match format "uri-reference"'],
    };
    for (const [name, [attributes, message]] of Object.entries(cases)) {
      it(name, () => {
        assert.equal(
          refusal(() => binary(attributes)),
          message,
        );
        assert.equal(
          refusal(() => structured(attributes)),
          message,
        );
      });
    }

    const structuredOnly: Record<string, [Attributes, string]> = {
      'a kind that is no text': [{ kind: 5 }, `the extension "kind" is number, ${kinds}`],
      'a name that is an object': [{ name: { a: 1 } }, 'the extension "name" is object, not an object\'s name'],
      'a name that is a truth': [{ name: true }, 'the extension "name" is boolean, not an object\'s name'],
      'a time in numbers': [{ notbefore: 5 }, `the extension "notbefore" is number, ${time}`],
      'a count that is not whole': [{ redelivered: 1.5 }, 'not a valid CloudEvent: invalid extension value: 1.5'],
      'a count below zero': [{ redelivered: -1 }, 'the extension "redelivered" is number, not a count'],
      'an id that is no text': [{ id: 5 }, 'the attribute "id" is missing'],
      'a type that is a list': [{ type: [RECONCILE] }, 'the attribute "type" is missing'],
      'an attribute in capitals': [{ redElivered: '1' }, 'not a valid CloudEvent: invalid extension name: redElivered'],
      'base64 that is no text': [{ data_base64: 5 }, '"data_base64" is not a string'],
      'base64 that is no JSON': [{ data_base64: 'AAAA' }, 'the body is not JSON'],
    };
    for (const [name, [attributes, message]] of Object.entries(structuredOnly)) {
      it(`${name}, in structured mode`, () =>
        assert.equal(
          refusal(() => structured(attributes)),
          message,
        ));
    }

    it('an attribute that would change what objects are', () => {
      const body = `{"__proto__": {"kind": "LldapUser"}, ${JSON.stringify({ ...required, ...ALICE }).slice(1)}`;
      const parse = () => parseEvent({ 'content-type': 'application/cloudevents+json' }, Buffer.from(body));
      assert.equal(refusal(parse), 'not a valid CloudEvent: invalid extension name: __proto__');
    });

    const names = [
      '..',
      '../secrets/admin',
      '%2e%2e%2fsecrets',
      '%252e%252e',
      'alice/status',
      'alice%2Fstatus',
      'alice?force=true',
      'alice%3Fforce',
      'alice#x',
      'alice\\x',
      'Alice',
      'alice_b',
      'alice ',
      ' alice',
      '-alice',
      'alice-',
      '.alice',
      'alice.',
      'a..b',
      'älice',
      'alice%00',
      'alice\n',
      '*',
      '',
      'x'.repeat(254),
    ];
    for (const name of names) {
      it(`an object’s name ${JSON.stringify(name.slice(0, 30))}`, () => {
        assert.match(
          refusal(() => structured({ name })),
          /^the extension "name" is ".*", not an object's name$/s,
        );
        assert.match(
          refusal(() => binary({ name })),
          /^the extension "name" is ".*", not an object's name$/s,
        );
      });
    }
    for (const namespace of ['..', 'a.b', '%2e%2e', 'team/x', 'Team', '', 'n'.repeat(64), 'team%2F..']) {
      it(`a namespace ${JSON.stringify(namespace.slice(0, 30))}`, () => {
        assert.match(
          refusal(() => structured({ namespace })),
          /^the extension "namespace" is ".*", not a namespace's name$/,
        );
        assert.match(
          refusal(() => binary({ namespace })),
          /^the extension "namespace" is ".*", not a namespace's name$/,
        );
      });
    }

    it('a header that cannot be decoded is taken as it is', () => {
      assert.equal(
        refusal(() => binary({ name: '%zz' })),
        'the extension "name" is "%zz", not an object\'s name',
      );
    });

    const requests: Record<string, [IncomingHttpHeaders, string, string]> = {
      'nothing at all': [{}, '', 'no CloudEvent: send ce-* headers, or content-type application/cloudevents+json'],
      'JSON that is no event': [
        { 'content-type': 'application/json' },
        '{}',
        'no CloudEvent: send ce-* headers, or content-type application/cloudevents+json',
      ],
      'a batch': [
        { 'content-type': 'application/cloudevents-batch+json; charset=utf-8' },
        '[]',
        'batches are not accepted: send one event a request',
      ],
      'a list of events': [{ 'content-type': 'application/cloudevents+json' }, '[{}]', 'the body is not one JSON object'],
      'a structured event that is null': [{ 'content-type': 'application/cloudevents+json' }, 'null', 'the body is not one JSON object'],
      'a structured event that is empty': [{ 'content-type': 'application/cloudevents+json' }, '', 'the body is not JSON'],
      'a structured event that is cut off': [{ 'content-type': 'application/cloudevents+json' }, '{"id": "1"', 'the body is not JSON'],
      'a structured event in another format': [
        { 'content-type': 'application/cloudevents+avro' },
        '{}',
        'the content-type "application/cloudevents+avro" is not application/cloudevents+json',
      ],
    };
    for (const [name, [headers, body, message]] of Object.entries(requests)) {
      it(name, () =>
        assert.equal(
          refusal(() => parseEvent(headers, Buffer.from(body))),
          message,
        ),
      );
    }

    const data: Record<string, [unknown, string | undefined, string]> = {
      'data that is no JSON': ['{', 'application/json', 'the body is not JSON'],
      'data in another format': ['<a/>', 'application/xml', 'the content-type "application/xml" is not application/json'],
      'data of a format that is not named': ['{}', undefined, 'the content-type "" is not application/json'],
      'a mode that is none': [{ mode: 'everything' }, 'application/json', 'the data is not {"mode": "sweep"}, "full" or "drift"'],
      'a mode that is no text': [{ mode: ['full'] }, 'application/json', 'the data is not {"mode": "sweep"}, "full" or "drift"'],
      'a mode in a list': [['full'], 'application/json', 'the data is not {"mode": "sweep"}, "full" or "drift"'],
      'a mode by itself': ['"full"', 'application/json', 'the data is not {"mode": "sweep"}, "full" or "drift"'],
    };
    for (const [name, [body, contentType, message]] of Object.entries(data)) {
      it(name, () =>
        assert.equal(
          refusal(() => binary({ type: STARTUP }, body, { 'content-type': contentType })),
          message,
        ),
      );
    }

    it('of which it repeats no more than a little', () => {
      assert.ok(refusal(() => structured({ name: 'x'.repeat(1_000_000) })).length < 200);
      assert.ok(refusal(() => structured({ type: 'x'.repeat(1_000_000) })).length < 200);
      assert.ok(refusal(() => structured({ [`X${'x'.repeat(1_000_000)}`]: '1' })).length < 300);
    });
  });
});
