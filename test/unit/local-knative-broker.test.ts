import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { Addresses } from '../local/knative/addresses.ts';
import { Ingress } from '../local/knative/broker.ts';
import { readBroker, readTrigger } from '../local/knative/eventing.ts';
import { type FakeAnswer, type FakeFunction, fakeFunction, type Received } from '../local/knative/fake-function.ts';
import { Faults } from '../local/knative/faults.ts';
import { Fields } from '../local/knative/fields.ts';
import { send } from '../local/knative/http.ts';
import { type Happening, Story } from '../local/knative/story.ts';

const URL_OF_BROKER = 'http://broker-ingress.knative-eventing.svc.cluster.local/ns/broker';
const EVENT = {
  'ce-specversion': '1.0',
  'ce-id': '1',
  'ce-type': 'test.type',
  'ce-source': '/test',
  'ce-kind': 'LldapUser',
  'content-type': 'application/json',
};
const ASYNC = { 'messaging.knative.dev/async-handler': 'true' };
const DELIVERY = { retry: 2, backoffPolicy: 'exponential', backoffDelay: 'PT0.02S', timeout: 'PT5S' };

interface Setting {
  annotations?: Record<string, string>;
  /** Specs of the Triggers, without their subscriber. */
  triggers?: object[];
  answer?: (request: Received) => FakeAnswer | undefined | Promise<FakeAnswer | undefined>;
  deadLetter?: boolean;
}

describe('The local Broker', () => {
  const story = new Story();
  const faults = new Faults();
  let told: Happening[];
  let endOfStory: () => void;
  let fake: FakeFunction;
  let ingress: Ingress;
  let addresses: Addresses;

  async function start({
    annotations = {},
    triggers = [{ delivery: DELIVERY }],
    answer = () => ({ status: 204 }),
    deadLetter = false,
  }: Setting) {
    fake = await fakeFunction((request) => (request.path === '/dead-letter' ? { status: 204 } : answer(request)));
    const sink = deadLetter ? { deadLetterSink: { uri: `${fake.url}/dead-letter` } } : {};
    const metadata = { namespace: 'ns', name: 'broker', annotations };
    addresses = new Addresses();
    ingress = new Ingress({
      brokers: [readBroker(new Fields({ metadata }, 'broker'))],
      triggers: triggers.map((spec, index) => {
        const given: { delivery?: object } = spec;
        const whole = {
          broker: 'broker',
          subscriber: { uri: fake.url },
          ...spec,
          ...(given.delivery && { delivery: { ...given.delivery, ...sink } }),
        };
        return readTrigger(new Fields({ metadata: { namespace: 'ns', name: `t${index}` }, spec: whole }, 'trigger'));
      }),
      addresses,
      faults,
      story,
    });
    await ingress.start();
    told = [];
    endOfStory = story.listen((happening) => told.push(happening));
  }

  const post = (headers: object = {}, body = '{}', path = '', method = 'POST') =>
    send(method, addresses.local(URL_OF_BROKER) + path, { ...EVENT, ...headers }, Buffer.from(body));

  const until = async (done: () => boolean) => {
    while (!done()) await sleep(5);
  };

  afterEach(async () => {
    endOfStory();
    await ingress.stop();
    await fake.stop();
    story.violations.length = 0;
  });

  describe('takes in', () => {
    it('a valid event with 202 and an empty body, with or without a Trigger that wants it', async () => {
      await start({ triggers: [{ filters: [{ exact: { kind: 'LldapGroup' } }] }] });
      const { status, body } = await post();
      assert.deepEqual([status, body.length], [202, 0]);
      assert.equal(fake.received.length, 0);
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
        assert.equal(fake.received.length, 0);
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
      const [{ headers, body, path } = assert.fail()] = fake.received;
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
      const [{ headers, body } = assert.fail()] = fake.received;
      assert.deepEqual(
        [headers['ce-num'], headers['ce-flag'], headers['content-type'], body],
        ['5', 'true', 'application/json', '{"a":[1]}'],
      );
    });

    it('each event once per Trigger that matches', async () => {
      await start({ triggers: [{}, { filters: [{ cesql: "kind = 'LldapUser'" }] }, { filters: [{ cesql: "kind = 'Secret'" }] }] });
      await post();
      assert.equal(fake.received.length, 2);
    });
  });

  describe('retries', () => {
    for (const status of [404, 408, 409, 429, 500, 501, 502, 503]) {
      it(`after ${status}, by the schedule, then takes the dead letter for done`, async () => {
        await start({ answer: () => ({ status, body: 'short' }), deadLetter: true });
        assert.equal((await post()).status, 202);
        assert.deepEqual(
          fake.received.map(({ path }) => path),
          ['/', '/', '/', '/dead-letter'],
        );
        const letter = fake.received[3]?.headers ?? {};
        assert.equal(letter['ce-knativeerrorcode'], String(status));
        assert.equal(letter['ce-knativeerrordest'], `${fake.url}/`);
        assert.equal(letter['ce-knativeerrordata'], Buffer.from('short').toString('base64'));
        assert.deepEqual([letter['ce-id'], letter['ce-type'], letter['ce-knativebrokerttl']], ['1', 'test.type', '255']);
      });
    }

    for (const status of [400, 401, 403, 410, 412, 413, 422, 425]) {
      it(`never after ${status}: straight to the dead-letter sink`, async () => {
        await start({ answer: () => ({ status }), deadLetter: true });
        await post();
        assert.deepEqual(
          fake.received.map(({ path }) => path),
          ['/', '/dead-letter'],
        );
        assert.equal(fake.received[1]?.headers['ce-knativeerrordata'], undefined);
      });
    }

    it('a connection error, as code 500', async () => {
      await start({ triggers: [{ subscriber: { uri: 'http://127.0.0.1:1' }, delivery: { ...DELIVERY, retry: 1 } }], deadLetter: true });
      assert.equal((await post()).status, 202);
      assert.deepEqual(
        fake.received.map(({ headers }) => headers['ce-knativeerrorcode']),
        ['500'],
      );
    });

    it('a timeout, whose connection it cuts; the dead letter then tells of no error', async () => {
      await start({ answer: () => undefined, triggers: [{ delivery: { ...DELIVERY, retry: 1, timeout: 'PT0.1S' } }], deadLetter: true });
      await post();
      assert.deepEqual(
        fake.received.map(({ path, aborted }) => [path, aborted]),
        [
          ['/', true],
          ['/', true],
          ['/dead-letter', false],
        ],
      );
      assert.deepEqual(
        Object.keys(fake.received[2]?.headers ?? {}).filter((name) => name.includes('error')),
        [],
      );
    });

    it('nothing when the delivery says no number', async () => {
      await start({ answer: () => ({ status: 503 }), triggers: [{ delivery: { timeout: 'PT5S' } }] });
      assert.equal((await post()).status, 500);
      assert.equal(fake.received.length, 1);
    });
  });

  describe('answers the sender', () => {
    it('after the functions by default: 202 when all is well, 500 when one failed for good', async () => {
      let answered = false;
      await start({
        answer: async () => {
          await sleep(100);
          answered = true;
          return { status: 500 };
        },
        triggers: [{ delivery: { ...DELIVERY, retry: 0 } }],
      });
      assert.equal((await post()).status, 500);
      assert.ok(answered);
      assert.ok(told.some(({ what }) => what === 'lost'));
    });

    it('at once with 202 where it is annotated as asynchronous, whatever the functions do', async () => {
      let release = () => {};
      const gate = new Promise<void>((resolve) => {
        release = resolve;
      });
      await start({
        annotations: ASYNC,
        answer: async () => {
          await gate;
          return { status: 500 };
        },
        triggers: [{ delivery: { ...DELIVERY, retry: 0 } }],
      });
      assert.equal((await post()).status, 202);
      assert.ok(!told.some(({ what }) => what === 'lost'));
      release();
      await until(() => told.some(({ what }) => what === 'lost'));
    });

    it('sends sixty events to one function at once', async () => {
      let open = 0;
      let most = 0;
      await start({
        annotations: ASYNC,
        answer: async () => {
          most = Math.max(most, ++open);
          while (most < 60) await sleep(5);
          open -= 1;
          return { status: 204 };
        },
      });
      await Promise.all(Array.from({ length: 60 }, () => post()));
      await until(() => most === 60);
    });
  });

  it('lets a function hold an event for long and post another one meanwhile, which arrives at once', async () => {
    const held = Promise.withResolvers<FakeAnswer>();
    await start({ annotations: ASYNC, answer: ({ headers }) => (headers['ce-type'] === 'hold' ? held.promise : { status: 204 }) });
    await post({ 'ce-type': 'hold', 'ce-id': 'held' });
    await until(() => fake.received.length === 1);
    assert.equal((await post({ 'ce-id': 'due' })).status, 202);
    await until(() => fake.received.length === 2);
    held.resolve({ status: 204 });
    await until(() => told.filter(({ what }) => what === 'delivered').length === 2);
    assert.deepEqual(
      fake.received.map(({ headers, aborted }) => [headers['ce-id'], aborted]),
      [
        ['held', false],
        ['due', false],
      ],
    );
  });

  it('redelivers the same event, extensions and all, to a function whose pod goes away', async () => {
    const statuses = [503, 503, 204];
    await start({ answer: () => ({ status: statuses.shift() ?? 500 }) });
    assert.equal((await post({ 'ce-notbefore': '2026-11-29T18:00:00.000Z' })).status, 202);
    const [first, ...others] = fake.received.map(({ headers }) => headers);
    assert.equal(first?.['ce-notbefore'], '2026-11-29T18:00:00.000Z');
    assert.deepEqual(others, [first, first]);
  });

  describe("treats a function's success", () => {
    it('with an event as a reply, which comes back with its own attributes; and says that this must not be', async () => {
      const reply = { 'ce-specversion': '1.0', 'ce-id': 'r', 'ce-type': 'reply', 'ce-source': '/f', 'ce-knativebrokerttl': '9' };
      await start({ answer: ({ headers }) => ({ status: 200, headers: headers['ce-type'] === 'reply' ? {} : reply }) });
      assert.equal((await post()).status, 202);
      assert.deepEqual(
        fake.received.map(({ headers }) => headers['ce-type']),
        ['test.type', 'reply'],
      );
      assert.match(story.violations.join(), /ce- headers: a reply/);
    });

    it('with a body that is no event as a failure without a code; and says that this must not be', async () => {
      await start({ answer: () => ({ status: 200, body: 'OK' }), deadLetter: true });
      await post();
      assert.deepEqual(
        fake.received.map(({ path }) => path),
        ['/', '/', '/', '/dead-letter'],
      );
      assert.equal(fake.received[3]?.headers['ce-knativeerrorcode'], undefined);
      assert.match(story.violations.join(), /a body of 2 bytes: not a success/);
    });

    it("with an incomplete event as the ingress's 400: no retry, the original in the dead-letter sink", async () => {
      await start({ answer: () => ({ status: 200, headers: { 'ce-specversion': '1.0', 'ce-id': 'r' } }), deadLetter: true });
      await post();
      assert.deepEqual(
        fake.received.map(({ path }) => path),
        ['/', '/dead-letter'],
      );
      const { headers = {} } = fake.received[1] ?? {};
      assert.deepEqual(
        [headers['ce-type'], headers['ce-knativeerrorcode'], headers['ce-knativeerrordest']],
        ['test.type', '400', URL_OF_BROKER],
      );
    });

    it('and never the event in an error answer', async () => {
      const reply = { 'ce-specversion': '1.0', 'ce-id': 'r', 'ce-type': 'reply', 'ce-source': '/f' };
      await start({ answer: () => ({ status: 400, headers: reply }) });
      await post();
      assert.equal(fake.received.length, 1);
    });

    it('ends a circle of replies when the time to live is used up', async () => {
      const reply = { 'ce-specversion': '1.0', 'ce-id': 'r', 'ce-type': 'reply', 'ce-source': '/f' };
      await start({ answer: () => ({ status: 200, headers: reply }) });
      assert.equal((await post({ 'ce-knativebrokerttl': '5' })).status, 500);
      assert.equal(fake.received.length, 4);
    });
  });

  it('reports an error body that would crash the in-memory dispatcher: 768 bytes are fine, 769 are not', async () => {
    let size = 768;
    await start({ answer: () => ({ status: 400, body: 'x'.repeat(size) }), deadLetter: true });
    await post();
    assert.deepEqual(story.violations, []);
    size = 769;
    await post();
    assert.match(story.violations.join(), /769 bytes: the in-memory dispatcher would crash/);
  });

  it('loses what is in flight when it stops, and works again at the same address', async () => {
    await start({ annotations: ASYNC, answer: () => undefined });
    await post();
    await until(() => fake.received.length === 1);
    await ingress.stop();
    await until(() => told.some(({ what }) => what === 'lost'));
    await assert.rejects(post(), { code: 'ECONNREFUSED' });
    await ingress.start();
    await post();
    await until(() => fake.received.length === 2);
  });

  describe('with a fault', () => {
    const undo: (() => void)[] = [];
    afterEach(() =>
      undo.splice(0).forEach((each) => {
        each();
      }),
    );
    const id =
      (wanted: string) =>
      ({ attributes }: { attributes: Readonly<Record<string, string>> }) =>
        attributes.id === wanted;
    const ids = () => fake.received.map(({ headers }) => headers['ce-id']);

    it('drops what matches, and nothing once the fault is undone', async () => {
      await start({});
      const end = faults.drop(id('1'));
      await post();
      await post({ 'ce-id': '2' });
      end();
      await post();
      assert.deepEqual(ids(), ['2', '1']);
    });

    it('repeats', async () => {
      await start({});
      undo.push(faults.repeat(id('1'), 3));
      await post();
      assert.deepEqual(ids(), ['1', '1', '1']);
    });

    it('delays', async () => {
      await start({ annotations: ASYNC });
      undo.push(faults.delay(id('1'), 100));
      await post();
      await post({ 'ce-id': '2' });
      await until(() => fake.received.length === 2);
      assert.deepEqual(ids(), ['2', '1']);
    });

    it('turns the order round', async () => {
      await start({ annotations: ASYNC });
      undo.push(faults.reorder(() => true, 3));
      for (const each of ['1', '2', '3']) await post({ 'ce-id': each });
      await until(() => fake.received.length === 3);
      assert.deepEqual(ids(), ['3', '2', '1']);
    });

    it('lets go what it holds when a reordering is undone', async () => {
      await start({ annotations: ASYNC });
      const end = faults.reorder(() => true, 3);
      await post();
      end();
      await until(() => fake.received.length === 1);
    });

    it('refuses with a status, or cuts the connection', async () => {
      await start({});
      undo.push(faults.refuse(id('1'), 503), faults.refuse(id('2'), 'reset'));
      assert.equal((await post()).status, 503);
      await assert.rejects(post({ 'ce-id': '2' }), { code: 'ECONNRESET' });
      assert.equal((await post({ 'ce-id': '3' })).status, 202);
    });
  });
});
