/**
 * What Eventing does where its feature `authentication-oidc` is enabled: it makes a ServiceAccount for each Trigger and each source,
 * delivers with tokens of theirs for the audience that the destination names, and lets post to a Broker only whom EventPolicies name.
 * Not modelled: policies to anything but one Broker, their filters, what holds where there are none, and tokens between Eventing's own
 * parts. The real one judges tokens itself, with the cluster's published keys; this one asks the API server.
 */
import type { Cluster } from '../kube/cluster.ts';
import { Addresses, INGRESS_HOST } from './addresses.ts';
import { type Broker, type EventPolicy, identityOf, type Source, type Trigger } from './eventing.ts';
import { Reset } from './http.ts';

/** Tokens of ServiceAccounts for one audience each; one is good for an hour, and asked for once. */
export class Tokens {
  readonly #cluster: Cluster;
  readonly #known = new Map<string, Promise<string>>();

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  of(namespace: string, serviceAccount: string, audience: string): Promise<string> {
    const key = `${namespace}/${serviceAccount} ${audience}`;
    const known = this.#known.get(key) ?? this.#ask(namespace, serviceAccount, audience);
    this.#known.set(key, known);
    known.catch(() => this.#known.delete(key));
    return known;
  }

  async #ask(namespace: string, serviceAccount: string, audience: string): Promise<string> {
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${serviceAccount}/token`;
    const { code, body } = await this.#cluster.request('POST', path, { body: { spec: { audiences: [audience] } } });
    if (code !== 201) throw new Error(`no token for ServiceAccount ${namespace}/${serviceAccount}: the API server answered ${code}`);
    return (body as { status: { token: string } }).status.token;
  }
}

export class Identities {
  readonly #cluster: Cluster;
  readonly #tokens: Tokens;
  readonly #policies: EventPolicy[];
  /** By audience and token: who that is. */
  readonly #callers = new Map<string, Promise<string | 401>>();

  constructor(cluster: Cluster, tokens: Tokens, policies: EventPolicy[]) {
    this.#cluster = cluster;
    this.#tokens = tokens;
    this.#policies = policies;
  }

  async make(objects: { triggers: Trigger[]; sources: Source[] }): Promise<void> {
    const accounts = [...objects.triggers.map((each) => accountOf(each)), ...objects.sources.map((each) => accountOf(each))];
    for (const { namespace, name } of accounts) {
      const { code } = await this.#cluster.request('POST', `/api/v1/namespaces/${namespace}/serviceaccounts`, {
        body: { metadata: { name } },
      });
      if (code !== 201 && code !== 409) throw new Error(`the ServiceAccount ${name} cannot be made: the API server answered ${code}`);
    }
  }

  readonly tokenOf = (trigger: Trigger, audience: string): Promise<string> => {
    const { namespace, name } = accountOf(trigger);
    return this.#tokens.of(namespace, name, audience);
  };

  /** @returns the status with which a Broker refuses who posts to it, if it does */
  async refusal(broker: Broker, authorization = ''): Promise<401 | 403 | 500 | undefined> {
    const token = authorization.replace(/^Bearer /, '');
    if (token === '') return 401;
    const known = this.#callers.get(`${audienceOf(broker)} ${token}`) ?? this.#callerOf(token, audienceOf(broker));
    this.#callers.set(`${audienceOf(broker)} ${token}`, known);
    // The real one needs no API server for tokens that it has not seen, either.
    const caller = await known.catch(() => 500 as const);
    if (typeof caller === 'number') {
      this.#callers.delete(`${audienceOf(broker)} ${token}`);
      return caller;
    }
    const policies = this.#policies.filter((each) => each.namespace === broker.namespace && each.broker === broker.name);
    return policies.some(({ subjects }) => subjects.includes(caller)) ? undefined : 403;
  }

  async #callerOf(token: string, audience: string): Promise<string | 401> {
    const body = { spec: { token, audiences: [audience] } };
    const review = await this.#cluster.request('POST', '/apis/authentication.k8s.io/v1/tokenreviews', { body });
    const { authenticated, user } = (review.body as { status: { authenticated?: boolean; user?: { username: string } } }).status;
    return authenticated ? (user?.username ?? '') : 401;
  }

  /** The way of a source's adapter to its Broker: what it sends goes on with its own token. */
  wayOf(source: Source, addresses: Addresses): Addresses {
    const [, namespace = '', name = ''] = new URL(source.sink).pathname.split('/');
    const account = accountOf(source);
    const way = new Addresses();
    way.handle(INGRESS_HOST, async ({ method, headers, body, signal }) => {
      // Without a token, it is as if the Broker's own connection had broken.
      const token = await this.#tokens.of(account.namespace, account.name, audienceOf({ namespace, name })).catch(() => {
        throw new Reset('no token');
      });
      return addresses.send(method, source.sink, { ...headers, authorization: `Bearer ${token}` }, body, { signal });
    });
    return way;
  }
}

function accountOf(object: Trigger | Source): { namespace: string; name: string } {
  const { namespace, name } = object;
  const [apiVersion, kind] = 'broker' in object ? ['eventing.knative.dev/v1', 'Trigger'] : ['sources.knative.dev/v1', 'ApiServerSource'];
  return { namespace, name: identityOf(apiVersion, kind, name) };
}

/** As Eventing writes it into a Broker's status. */
function audienceOf({ namespace, name }: Pick<Broker, 'namespace' | 'name'>): string {
  return `eventing.knative.dev/broker/${namespace}/${name}`;
}
