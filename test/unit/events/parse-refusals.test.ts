import assert from 'node:assert/strict';
import type { IncomingHttpHeaders } from 'node:http';
import { parseEvent } from '../../../shared/events/parse.ts';
import {
  ALICE,
  type Attributes,
  binary,
  DUE,
  RECONCILE,
  REQUEUE,
  refusal,
  required,
  SECRET,
  STARTUP,
  structured,
  UPDATE,
} from '../support/requests.ts';

const LONG_TIME = `2026-03-01T12:00:00.${'0'.repeat(1_900_000)}Z`;

describe('shared/events/parse refuses a malformed event and says what is wrong:', () => {
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
    'a requeue event whose own time has no zone': [
      { type: REQUEUE, notbefore: DUE, time: '2026-03-01T12:00:00' },
      `the extension "time" is "2026-03-01T12:00:00", ${time}`,
    ],
    'a time finer than nanoseconds': [
      { notbefore: '2026-03-01T12:00:00.0000000001Z' },
      `the extension "notbefore" is "2026-03-01T12:00:00.0000000001Z", ${time}`,
    ],
    'a time of two megabytes, which a waiting request would keep in memory': [
      { notbefore: LONG_TIME },
      `the extension "notbefore" is "${LONG_TIME.slice(0, 79)}…", ${time}`,
    ],
    'a requeue event whose own time has two megabytes': [
      { type: REQUEUE, notbefore: DUE, time: LONG_TIME },
      `the extension "time" is "${LONG_TIME.slice(0, 79)}…", ${time}`,
    ],
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
    'a mode in a list': [['full'], 'application/json', 'the data is not a JSON object such as {"mode": "full"}'],
    'a mode by itself': ['"full"', 'application/json', 'the data is not a JSON object such as {"mode": "full"}'],
    'data that is not UTF-8': [Buffer.from([0x7b, 0xff, 0x7d]), 'application/json', 'the body is not JSON'],
  };
  for (const [name, [body, contentType, message]] of Object.entries(data)) {
    it(name, () =>
      assert.equal(
        refusal(() => binary({ type: STARTUP }, body, { 'content-type': contentType })),
        message,
      ),
    );
  }

  for (const type of [RECONCILE, REQUEUE, STARTUP, UPDATE]) {
    for (const value of [0, false, '', 'text', [], 5]) {
      it(`data that is ${JSON.stringify(value)} on an event of type ${type}`, () => {
        const message = 'the data is not a JSON object such as {"mode": "full"}';
        assert.equal(
          refusal(() => structured({ type, notbefore: DUE, data: value })),
          message,
        );
        assert.equal(
          refusal(() => binary({ type, notbefore: DUE }, JSON.stringify(value))),
          message,
        );
      });
    }
  }

  it('of which it repeats no more than a little', () => {
    assert.ok(refusal(() => structured({ name: 'x'.repeat(1_000_000) })).length < 200);
    assert.ok(refusal(() => structured({ type: 'x'.repeat(1_000_000) })).length < 200);
    assert.ok(refusal(() => structured({ [`X${'x'.repeat(1_000_000)}`]: '1' })).length < 300);
  });
});
