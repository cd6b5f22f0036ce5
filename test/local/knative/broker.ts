/**
 * A stand-in for the MTChannelBasedBroker on the in-memory channel: ingress, filters, delivery, replies, all as measured
 * on the real one. Not modelled: the limit of 15 minutes on a synchronous fan-out, the 10 s within which a request must
 * arrive, JSON as delivery format, and what other brokers of the cluster suffer when the dispatcher dies.
 */
import { createServer } from 'node:http';
import { listen, listenForGood } from '../ports.ts';
import { type Addresses, INGRESS_HOST } from './addresses.ts';
import { type CloudEvent, MalformedEvent, readEvent, timestamp, withAttributes, withoutAttribute } from './cloudevent.ts';
import { deliver } from './delivery.ts';
import type { Broker, Trigger } from './eventing.ts';
import type { Faults } from './faults.ts';
import { type Answer, answer, type Call, close, listener, patiently, Reset } from './http.ts';
import type { Identities } from './identities.ts';
import { nameOf, type Story } from './story.ts';

const FIRST_TTL = 255;
const KEEP_ALIVE_MS = 10_000;

export interface IngressOptions {
  brokers: Broker[];
  triggers: Trigger[];
  addresses: Addresses;
  faults: Faults;
  story: Story;
  /** Where Eventing asks everybody for a token. */
  identities?: Pick<Identities, 'tokenOf' | 'refusal'>;
}

/** The one ingress of all brokers. It keeps its port over `stop` and `start`. */
export class Ingress {
  readonly #options: IngressOptions;
  #server = createServer();
  #port = 0;
  #life = new AbortController();

  constructor(options: IngressOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    this.#life = new AbortController();
    const handle = (call: Call) => patiently({ signal: this.#life.signal }, () => this.#handle(call));
    this.#server = createServer(
      { keepAliveTimeout: KEEP_ALIVE_MS },
      listener(handle, (error) => this.#failed('ingress', error)),
    );
    this.#port = await (this.#port === 0 ? listenForGood(this.#server) : listen(this.#server, this.#port));
    this.#options.addresses.set(INGRESS_HOST, this.#port);
    this.#options.addresses.handle(INGRESS_HOST, handle);
  }

  /** Ingress and dispatcher die together: connections are cut, and what is in flight is lost. */
  async stop(): Promise<void> {
    this.#options.addresses.handle(INGRESS_HOST, undefined);
    this.#life.abort();
    await close(this.#server);
  }

  async #handle(call: Call): Promise<Answer> {
    if (call.method === 'OPTIONS') return answer(200, { 'webhook-allowed-origin': '*' });
    if (call.method !== 'POST') return answer(405);
    const path = call.path.replace(/\?.*$/, '').split('/').filter(Boolean);
    if (path.length === 1) return answer(400);
    const broker = this.#options.brokers.find(({ namespace, name }) => path.length === 2 && namespace === path[0] && name === path[1]);
    if (!broker) return answer(404);
    const refusal = await this.#options.identities?.refusal(broker, call.headers.authorization);
    if (refusal !== undefined) return answer(refusal);
    return this.#receive(broker, call);
  }

  async #receive(broker: Broker, call: Call): Promise<Answer> {
    const arrived = read(call);
    if (arrived === undefined || arrived.ttl <= 0) return answer(400);
    const refusal = this.#options.faults.refusal(arrived.event);
    if (refusal === 'reset') throw new Reset('a fault');
    if (refusal !== undefined) return answer(refusal);
    return answer((await this.#accept(broker, arrived.event, arrived.ttl)) ? 202 : 500);
  }

  /** @returns whether every Trigger that wants the event took it; always, at once, where the broker is asynchronous */
  #accept(broker: Broker, arrived: CloudEvent, ttl: number): Promise<boolean> {
    const event = withAttributes(arrived, { knativearrivaltime: timestamp() });
    this.#options.story.tell({ what: 'accepted', broker: broker.name, event: nameOf(event) });
    const { signal } = this.#life;
    const done = this.#options.faults
      .meet(event, (each) => this.#fanOut(broker, each, ttl, signal))
      .catch((error: unknown) => {
        if (signal.aborted) this.#options.story.tell({ what: 'lost', trigger: '*', event: nameOf(event), why: 'the dispatcher stopped' });
        else this.#failed(broker.name, error);
        return false;
      });
    return broker.asynchronous ? Promise.resolve(true) : done;
  }

  async #fanOut(broker: Broker, event: CloudEvent, ttl: number, signal: AbortSignal): Promise<boolean> {
    signal.throwIfAborted();
    const { triggers, addresses, story, identities } = this.#options;
    const address = `http://${INGRESS_HOST}/${broker.namespace}/${broker.name}`;
    const wanted = triggers.filter(
      (trigger) => trigger.namespace === broker.namespace && trigger.broker === broker.name && trigger.filter(event.attributes),
    );
    const results = await Promise.all(
      wanted.map(async (trigger) => {
        const deliverer = { addresses, story, signal, ...(identities && { tokenOf: identities.tokenOf }) };
        const outcome = await deliver(event, ttl, trigger, address, deliverer);
        return outcome.ok && (outcome.reply === undefined || this.#reply(broker, outcome.reply, ttl, trigger));
      }),
    );
    return results.every(Boolean);
  }

  /** A reply comes back to the same broker with one less to live, whatever it says of that itself. */
  async #reply(broker: Broker, reply: CloudEvent, ttl: number, trigger: Trigger): Promise<boolean> {
    if (ttl <= 1) {
      this.#options.story.tell({
        what: 'violation',
        message: `trigger ${trigger.name}: replies went in a circle until their time to live was used up`,
      });
      return false;
    }
    return this.#accept(broker, withoutAttribute(reply, 'knativebrokerttl'), ttl - 1);
  }

  #failed(where: string, error: unknown): void {
    if (this.#life.signal.aborted) return;
    this.#options.story.tell({ what: 'violation', message: `${where}: ${error instanceof Error ? error.stack : error}` });
  }
}

/** The time to live is the ingress's own affair: nobody behind it sees it, and junk counts as none. */
function read({ headers, body }: Call): { event: CloudEvent; ttl: number } | undefined {
  try {
    const event = readEvent(headers, body);
    const { knativebrokerttl: ttl = '' } = event.attributes;
    return { event: withoutAttribute(event, 'knativebrokerttl'), ttl: /^-?\d+$/.test(ttl) ? Number(ttl) - 1 : FIRST_TTL };
  } catch (error) {
    if (error instanceof MalformedEvent) return undefined;
    throw error;
  }
}
