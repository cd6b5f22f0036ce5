import type { OperatorEvent } from '../../../shared/events/parse.ts';
import type { Connection, KubeRequest } from '../../../shared/kube/connection.ts';
import type { KubernetesEvent } from '../../../shared/kube/objects.ts';
import { type KindName, PLURALS } from '../../../shared/kube/resources.ts';
import { BrokerDouble } from '../../chaos/broker-double.ts';
import { KubeDouble, type KubeListener } from '../../chaos/kube-double.ts';
import type { Process } from '../../chaos/process.ts';
import { Scheduler } from '../../chaos/scheduler.ts';

/** The doubles of the schedules, which tell a test what was asked of them. */

/** Gives calls to the API server names that say what they do. */
export class NamingScheduler extends Scheduler {
  naming: string | undefined;

  override call<T>(by: Process, request: Parameters<typeof Scheduler.prototype.call<T>>[1]): Promise<T> {
    return super.call(by, { ...request, what: this.naming ?? request.what });
  }
}

export class NamingKube extends KubeDouble {
  readonly events: KubernetesEvent[] = [];
  readonly #scheduler: NamingScheduler;

  constructor(scheduler: NamingScheduler, listener: KubeListener, operatorNamespace: string) {
    super(scheduler, listener, operatorNamespace);
    this.#scheduler = scheduler;
  }

  override connection(process: Process): Connection {
    const connection = super.connection(process);
    return {
      ...connection,
      request: async (request) => {
        this.#scheduler.naming = whatOf(request);
        const answer = connection.request(request);
        this.#scheduler.naming = undefined;
        await answer;
        if (request.path.endsWith('/events')) this.events.push(request.body as KubernetesEvent);
        return answer;
      },
    };
  }
}

export class ToldBroker extends BrokerDouble {
  told: (event: OperatorEvent) => void = () => undefined;

  override post(event: OperatorEvent): void {
    this.told(event);
    super.post(event);
  }
}

/** `GET LldapUser team/alice`, `LIST LldapGroup status.nameKey=crew`, `STATUS …`, `FINALIZER …`, `EVENT team`. */
function whatOf({ method, path, body }: KubeRequest): string {
  const url = new URL(path, 'http://kube');
  const [, namespace, plural, name, sub] =
    /^\/(?:api|apis\/[^/]+)\/[^/]+(?:\/namespaces\/([^/]+))?\/([^/]+)(?:\/([^/]+))?(?:\/(status))?$/.exec(url.pathname) ?? [];
  if (plural === 'events') return `EVENT ${namespace}`;
  if (plural === 'namespaces') return name === undefined ? 'LIST Namespace' : `GET Namespace ${name}`;
  const kind = (Object.keys(PLURALS) as KindName[]).find((k) => PLURALS[k] === plural) ?? 'Secret';
  const place = name === undefined ? (url.searchParams.get('fieldSelector') ?? '') : `${namespace}/${name}`;
  return `${verbOf(method, { isNamed: name !== undefined, sub, body })} ${kind} ${place}`.trimEnd();
}

function verbOf(method: string, { isNamed, sub, body }: { isNamed: boolean; sub: string | undefined; body: unknown }): string {
  if (sub) return 'STATUS';
  if (method === 'POST') return 'CREATE';
  if (method === 'PATCH') return Array.isArray(body) ? 'FINALIZER' : 'APPLY';
  return isNamed ? 'GET' : 'LIST';
}
