import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { type Broker, createBroker } from '../../../shared/events/broker.ts';
import { parseEvent } from '../../../shared/events/parse.ts';
import { withTrace } from '../../../shared/telemetry/trace.ts';
import { useTelemetry } from '../support/telemetry.ts';

const DUE = '2026-03-01T12:00:00.000Z';
const ALICE = { kind: 'LldapUser', namespace: 'team', name: 'alice' } as const;
const SECRET = { kind: 'Secret', namespace: 'team', name: 'alice' } as const;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

interface Received {
  method: string | undefined;
  path: string | undefined;
  headers: IncomingMessage['headers'];
  body: string;
}

describe('shared/events/broker', () => {
  const recorded = useTelemetry();
  let server: Server;
  let broker: Broker;
  let received: Received[];
  let sockets: Set<Socket>;
  let answer: (response: ServerResponse) => void;

  beforeEach(async () => {
    received = [];
    sockets = new Set();
    answer = (response) => response.writeHead(202).end();
    // Whatever the machine does meanwhile, the server ends no connection.
    server = createServer({ keepAliveTimeout: 0 }, async (request, response) => {
      let body = '';
      for await (const chunk of request) body += chunk;
      received.push({ method: request.method, path: request.url, headers: request.headers, body });
      answer(response);
    });
    server.on('connection', (socket) => sockets.add(socket));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    broker = createBroker(`http://127.0.0.1:${(server.address() as AddressInfo).port}/ns/default`, 'user');
  });
  afterEach(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  /** The event headers, without the two that differ each time. */
  function attributes(): Record<string, unknown> {
    const [{ headers }] = received as [Received];
    return Object.fromEntries(Object.entries(headers).filter(([name]) => /^ce-(?!id$|time$)/.test(name)));
  }
  const ours = {
    'ce-specversion': '1.0',
    'ce-source': '/lldap-operator/user',
    'ce-apiversion': 'lldap-operator.lukidoescode.com/v1alpha1',
    'ce-kind': 'LldapUser',
    'ce-namespace': 'team',
    'ce-name': 'alice',
  };

  const events: Record<string, [(to: Broker) => Promise<void>, Record<string, string>, body: string]> = {
    'a full reconcile': [(to) => to.reconcile(ALICE), { ...ours, 'ce-type': 'com.lukidoescode.lldap-operator.reconcile' }, ''],
    'a retry': [
      (to) => to.reconcile(ALICE, { notBefore: DUE }),
      { ...ours, 'ce-type': 'com.lukidoescode.lldap-operator.reconcile', 'ce-notbefore': DUE },
      '',
    ],
    'a redelivered retry': [
      (to) => to.reconcile(ALICE, { notBefore: DUE, redelivered: 2 }),
      { ...ours, 'ce-type': 'com.lukidoescode.lldap-operator.reconcile', 'ce-notbefore': DUE, 'ce-redelivered': '2' },
      '',
    ],
    'a retry that was never redelivered': [
      (to) => to.reconcile(ALICE, { notBefore: DUE, redelivered: 0 }),
      { ...ours, 'ce-type': 'com.lukidoescode.lldap-operator.reconcile', 'ce-notbefore': DUE },
      '',
    ],
    'a requeue': [
      (to) => to.requeue(ALICE, DUE),
      { ...ours, 'ce-type': 'com.lukidoescode.lldap-operator.requeue', 'ce-notbefore': DUE },
      '',
    ],
    'a requeue of a Secret': [
      (to) => to.requeue(SECRET, DUE, 1),
      {
        ...ours,
        'ce-kind': 'Secret',
        'ce-apiversion': 'v1',
        'ce-type': 'com.lukidoescode.lldap-operator.requeue',
        'ce-notbefore': DUE,
        'ce-redelivered': '1',
      },
      '',
    ],
    'a run of startup': [
      (to) => to.startup('full'),
      { 'ce-specversion': '1.0', 'ce-source': '/lldap-operator/user', 'ce-type': 'com.lukidoescode.lldap-operator.startup' },
      '{"mode":"full"}',
    ],
  };
  for (const [name, [post, expected, body]] of Object.entries(events)) {
    it(`${name} is posted with exactly these attributes`, async () => {
      const before = Date.now();
      await post(broker);
      const [{ method, path, headers, body: sent }] = received as [Received];
      assert.deepEqual([method, path, sent], ['POST', '/ns/default', body]);
      assert.deepEqual(attributes(), expected);
      assert.match(String(headers['ce-id']), UUID);
      // When it was made: requeue waits from then.
      const made = new Date(String(headers['ce-time']));
      assert.ok(made.toISOString() === headers['ce-time'] && before <= made.getTime() && made.getTime() <= Date.now());
      assert.match(String(headers['content-type']), /^application\/json\b/);
    });

    it(`${name} is understood by the functions`, async () => {
      await post(broker);
      const [{ headers, body: sent }] = received as [Received];
      assert.doesNotThrow(() => parseEvent(headers, Buffer.from(sent)));
    });
  }

  it('no two events are the same', async () => {
    await broker.reconcile(ALICE);
    await broker.reconcile(ALICE);
    assert.notEqual(received[0]?.headers['ce-id'], received[1]?.headers['ce-id']);
  });

  it('the trace of the request that led to an event goes on with it', async () => {
    const trace = { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`, tracestate: 'v=1', baggage: 'k=v' };
    await withTrace(trace, () => broker.reconcile(ALICE));
    const { traceparent, tracestate, baggage } = received[0]?.headers ?? {};
    assert.deepEqual({ traceparent, tracestate, baggage }, trace);
  });

  it('a span tells of the event and of the answer', async () => {
    await broker.requeue(ALICE, DUE);
    const attributes = {
      'cloudevents.event_id': String(received[0]?.headers['ce-id']),
      'cloudevents.event_source': '/lldap-operator/user',
      'cloudevents.event_type': 'com.lukidoescode.lldap-operator.requeue',
      'http.response.status_code': 202,
    };
    const name = 'CloudEvents Create com.lukidoescode.lldap-operator.requeue';
    assert.deepEqual(recorded.spans, [{ name, kind: 'producer', attributes }]);
  });

  it('an event that no request led to has a trace of its own', async () => {
    await broker.reconcile(ALICE);
    assert.match(String(received[0]?.headers.traceparent), /^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$/);
  });

  it('events one after another take one connection, and many at once at most sixteen', async () => {
    for (let i = 0; i < 5; i++) await broker.reconcile(ALICE);
    assert.equal(sockets.size, 1);
    await Promise.all(Array.from({ length: 100 }, () => broker.reconcile(ALICE)));
    assert.ok(sockets.size <= 16, `${sockets.size} connections`);
    assert.equal(received.length, 105);
  });

  for (const status of [200, 202, 204, 299]) {
    it(`an answer ${status} means that the broker has the event`, async () => {
      answer = (response) => response.writeHead(status).end();
      await broker.reconcile(ALICE);
    });
  }

  for (const status of [302, 400, 404, 413, 500, 502, 503]) {
    it(`an answer ${status} means that it does not have it, and whatever it says is not repeated`, async () => {
      answer = (response) => response.writeHead(status, { location: '/elsewhere' }).end('hush');
      await assert.rejects(broker.requeue(ALICE, DUE), {
        name: 'BrokerError',
        message: `The broker answered ${status} to an event of type com.lukidoescode.lldap-operator.requeue.`,
      });
      assert.equal(received.length, 1);
    });
  }

  it('a connection that is lost means that it does not have it', async () => {
    answer = (response) => response.socket?.destroy();
    await assert.rejects(broker.requeue(ALICE, DUE), {
      name: 'BrokerError',
      message: 'The broker did not accept the event: the connection was lost before the answer was complete',
    });
  });

  it('no broker there means that it does not have it', async () => {
    await assert.rejects(createBroker('http://127.0.0.1:1/ns/default', 'user').startup('sweep'), {
      name: 'BrokerError',
      message: 'The broker did not accept the event: no connection (ECONNREFUSED)',
    });
  });
});
