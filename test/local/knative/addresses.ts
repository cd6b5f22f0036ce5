/** Where cluster-local names lead on this machine. */
export class Addresses {
  readonly #ports = new Map<string, number>();
  readonly #others: [address: string, local: string][];

  /** @param others what stands here for addresses of the cluster that are not Knative's, such as lldap's */
  constructor(others: Record<string, string> = {}) {
    this.#others = Object.entries(others);
  }

  set(host: string, port: number): void {
    this.#ports.set(host, port);
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
