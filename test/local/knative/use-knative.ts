import { setTimeout as sleep } from 'node:timers/promises';
import { Addresses } from './addresses.ts';
import { Ingress, type IngressOptions } from './broker.ts';
import { readBroker, readTrigger } from './eventing.ts';
import { type FakeAnswer, type FakeFunction, fakeFunction, type Received } from './fake-function.ts';
import { Faults } from './faults.ts';
import { Fields } from './fields.ts';
import { send } from './http.ts';
import { type Happening, Story } from './story.ts';

export const URL_OF_BROKER = 'http://broker-ingress.knative-eventing.svc.cluster.local/ns/broker';
export const EVENT = {
  'ce-specversion': '1.0',
  'ce-id': '1',
  'ce-type': 'test.type',
  'ce-source': '/test',
  'ce-kind': 'LldapUser',
  'content-type': 'application/json',
};
export const ASYNC = { 'messaging.knative.dev/async-handler': 'true' };
export const DELIVERY = { retry: 2, backoffPolicy: 'exponential', backoffDelay: 'PT0.02S', timeout: 'PT10M' };

export interface Setting {
  /** Of the Broker. */
  annotations?: Record<string, string>;
  /** Specs of the Triggers; their subscriber is the fake function unless they say otherwise. */
  triggers?: object[];
  answer?: (request: Received) => FakeAnswer | undefined | Promise<FakeAnswer | undefined>;
  /** Gives each delivery the fake function's path `/dead-letter` as sink. */
  deadLetter?: boolean;
  identities?: IngressOptions['identities'];
}

/** One local Broker with one fake function behind it, made by each test's `start` and taken down after it. */
export function useBroker() {
  const story = new Story();
  const faults = new Faults();
  const addresses = new Addresses();
  const told: Happening[] = [];
  let fake: FakeFunction;
  let ingress: Ingress;
  story.listen((happening) => told.push(happening));

  async function start({
    annotations = {},
    triggers = [{ delivery: DELIVERY }],
    answer = () => ({ status: 204 }),
    deadLetter = false,
    identities,
  }: Setting) {
    fake = await fakeFunction((request) => (request.path === '/dead-letter' ? { status: 204 } : answer(request)));
    const metadata = { namespace: 'ns', name: 'broker', annotations };
    ingress = new Ingress({
      brokers: [readBroker(new Fields({ metadata }, 'broker'))],
      triggers: triggers.map((spec, index) => triggerOf(spec, index, fake.url, deadLetter)),
      addresses,
      faults,
      story,
      ...(identities && { identities }),
    });
    await ingress.start();
  }

  afterEach(async () => {
    await ingress.stop();
    await fake.stop();
    story.violations.length = 0;
    told.length = 0;
  });

  return {
    story,
    faults,
    told,
    start,
    received: () => fake.received,
    functionUrl: () => fake.url,
    ingress: () => ingress,
    post: (headers: object = {}, body = '{}', path = '', method = 'POST') =>
      send(method, addresses.local(URL_OF_BROKER) + path, { ...EVENT, ...headers }, Buffer.from(body)),
    until: async (done: () => boolean) => {
      while (!done()) await sleep(5);
    },
  };
}

function triggerOf(spec: { delivery?: object }, index: number, url: string, deadLetter: boolean) {
  const sink = deadLetter ? { deadLetterSink: { uri: `${url}/dead-letter`, audience: 'sink' } } : {};
  const delivery = spec.delivery && { delivery: { ...spec.delivery, ...sink } };
  const whole = { broker: 'broker', subscriber: { uri: url, audience: 'function' }, ...spec, ...delivery };
  return readTrigger(new Fields({ metadata: { namespace: 'ns', name: `t${index}` }, spec: whole }, 'trigger'));
}
