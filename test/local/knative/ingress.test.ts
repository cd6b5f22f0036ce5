import assert from 'node:assert/strict';
import { DELIVERY, EVENT, useBroker } from './use-knative.ts';

describe('The local Broker', () => {
  const { post, received, start } = useBroker();

  describe('takes in', () => {
    it('a valid event with 202 and an empty body, with or without a Trigger that wants it', async () => {
      await start({ triggers: [{ filters: [{ exact: { kind: 'LldapGroup' } }] }] });
      const { status, body } = await post();
      assert.deepEqual([status, body.length], [202, 0]);
      assert.equal(received().length, 0);
    });

    const malformed: [string, object, string?][] = [
      ['no id', { 'ce-id': '' }],
      ['no type', { 'ce-type': '' }],
      ['no specversion', { 'ce-specversion': [] }],
      ['a specversion 2.0', { 'ce-specversion': '2.0' }],
      ['a source that is no URI', { 'ce-source': 'a b' }],
      ['a time that is none', { 'ce-time': 'yesterday' }],
      ['an extension with a dash', { 'ce-not-before': 'x' }],
      ['an extension with an underscore', { 'ce-not_before': 'x' }],
      ['a batch', { 'content-type': 'application/cloudevents-batch+json' }, '[]'],
      ['structured mode without an object', { 'content-type': 'application/cloudevents+json' }, '[]'],
      ['structured mode without JSON', { 'content-type': 'application/cloudevents+json' }, '{'],
      [
        'structured mode with an object as extension',
        { 'content-type': 'application/cloudevents+json' },
        '{"specversion":"1.0","id":"1","type":"t","source":"s","ext":{}}',
      ],
      ['a time to live of 1', { 'ce-knativebrokerttl': '1' }],
      ['a time to live of 0', { 'ce-knativebrokerttl': '0' }],
    ];
    for (const [sentence, headers, body] of malformed) {
      it(`${sentence}: 400`, async () => {
        await start({});
        assert.equal((await post(headers, body)).status, 400);
        assert.equal(received().length, 0);
      });
    }

    it('only POST, and only for a broker that exists', async () => {
      await start({});
      assert.equal((await post({}, '', '', 'GET')).status, 405);
      const options = await post({}, '', '', 'OPTIONS');
      assert.deepEqual([options.status, options.headers['webhook-allowed-origin']], [200, '*']);
      assert.equal((await post({}, '{}', 'x')).status, 404);
      assert.equal((await post({}, '{}', '/../..')).status, 404);
      assert.equal((await post({}, '{}', '/..')).status, 400);
      assert.equal((await post({}, '{}', '/')).status, 202);
    });
  });

  describe('hands to a function', () => {
    it('the attributes, the arrival time, the hint to reply and what may be carried, and drops the rest', async () => {
      await start({});
      await post(
        {
          'ce-knativearrivaltime': 'forged',
          'ce-knativebrokerttl': '7',
          'ce-UPPER': 'Case',
          traceparent: '00-a-b-01',
          'x-request-id': 'r',
          'knative-x': 'k',
          authorization: 'Bearer t',
          cookie: 'c',
        },
        '{"a": 1}',
      );
      const [{ headers, body, path } = assert.fail()] = received();
      assert.deepEqual([path, body], ['/', '{"a": 1}']);
      const { host, connection, 'content-length': length, 'ce-knativearrivaltime': arrival, ...rest } = headers;
      assert.ok(Date.parse(String(arrival)) > 0 && host && connection && length);
      assert.deepEqual(rest, {
        ...EVENT,
        'ce-upper': 'Case',
        'kn-namespace': 'ns',
        prefer: 'reply',
        traceparent: '00-a-b-01',
        'x-request-id': 'r',
        'knative-x': 'k',
      });
    });

    it('a structured event in binary mode, its numbers and booleans as strings', async () => {
      await start({});
      const event = {
        specversion: '1.0',
        id: '2',
        type: 't',
        source: 's',
        datacontenttype: 'application/json',
        num: 5,
        flag: true,
        data: { a: [1] },
      };
      assert.equal((await post({ 'content-type': 'application/cloudevents+json; charset=UTF-8' }, JSON.stringify(event))).status, 202);
      const [{ headers, body } = assert.fail()] = received();
      assert.deepEqual(
        [headers['ce-num'], headers['ce-flag'], headers['content-type'], body],
        ['5', 'true', 'application/json', '{"a":[1]}'],
      );
    });

    it('each event once per Trigger that matches', async () => {
      await start({ triggers: [{}, { filters: [{ cesql: "kind = 'LldapUser'" }] }, { filters: [{ cesql: "kind = 'Secret'" }] }] });
      await post();
      assert.equal(received().length, 2);
    });
  });

  describe('where Eventing has identities', () => {
    const identities = {
      tokenOf: async ({ name }: { name: string }, audience: string) => `${name}-for-${audience}`,
      refusal: async (_broker: object, authorization = '') =>
        authorization === '' ? 401 : authorization === 'Bearer me' ? undefined : 403,
    } as const;

    it('takes in what those post whom it lets, and nothing else', async () => {
      await start({ identities });
      const statuses = [await post(), await post({ authorization: 'Bearer you' }), await post({ authorization: 'Bearer me' })];
      assert.deepEqual(
        statuses.map(({ status }) => status),
        [401, 403, 202],
      );
      assert.equal(received().length, 1);
    });

    it("hands to a function, and to a dead-letter sink, the Trigger's own token for whom that is", async () => {
      await start({ identities, deadLetter: true, answer: () => ({ status: 400 }), triggers: [{ delivery: DELIVERY }] });
      await post({ authorization: 'Bearer me' });
      assert.deepEqual(
        received().map(({ path, headers }) => [path, headers.authorization]),
        [
          ['/', 'Bearer t0-for-function'],
          ['/dead-letter', 'Bearer t0-for-sink'],
        ],
      );
    });
  });
});
