import type { IncomingHttpHeaders } from 'node:http';
import { type Answer, type Handler, type Patience, patiently, send } from './http.ts';

/** Where cluster-local names lead on this machine. */
export class Addresses {
  readonly #ports = new Map<string, number>();
  readonly #handlers = new Map<string, Handler>();
  readonly #others: [address: string, local: string][];

  /** @param others what stands here for addresses of the cluster that are not Knative's, such as lldap's */
  constructor(others: Record<string, string> = {}) {
    this.#others = Object.entries(others);
  }

  set(host: string, port: number): void {
    this.#ports.set(host, port);
  }

  /** Lets `send` reach a host without a connection, until the handler is taken away again. */
  handle(host: string, handler: Handler | undefined): void {
    if (handler) this.#handlers.set(host, handler);
    else this.#handlers.delete(host);
  }

  /**
   * One request to an address of the cluster, never repeated. Where this process itself is the server, it is called directly: over HTTP,
   * both ends of each event's way would cost more than all the rest of the local Knative.
   * @throws what {@link send} throws
   */
  send(method: string, url: string, headers: IncomingHttpHeaders, body: Buffer, patience: Patience = {}): Promise<Answer> {
    const { host, pathname, search } = new URL(url);
    const handler = this.#handlers.get(host);
    if (!handler) return send(method, this.local(url), headers, body, patience);
    return patiently(patience, (signal) => handler({ method, path: `${pathname}${search}`, headers, body, signal }));
  }

  /** The text with every known address, such as `http://<cluster-local host>`, turned into what stands for it here. */
  local(text: string): string {
    const replaced = this.#others.reduce((result, [address, local]) => result.replaceAll(address, local), text);
    return replaced.replace(/http:\/\/([a-z0-9.-]+\.svc\.cluster\.local)(?=[/:\s]|$)(:80)?/g, (url, host: string) => {
      const port = this.#ports.get(host);
      return port === undefined ? url : `http://127.0.0.1:${port}`;
    });
  }
}

export const INGRESS_HOST = 'broker-ingress.knative-eventing.svc.cluster.local';

export function serviceHost(namespace: string, name: string): string {
  return `${name}.${namespace}.svc.cluster.local`;
}
