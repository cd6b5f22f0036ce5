/** Where cluster-local names lead on this machine. */
export class Addresses {
  readonly #ports = new Map<string, number>();

  set(host: string, port: number): void {
    this.#ports.set(host, port);
  }

  /** The text with every known `http://<cluster-local host>` turned into the port here that stands for it. */
  local(text: string): string {
    return text.replace(/http:\/\/([a-z0-9.-]+\.svc\.cluster\.local)(?=[/:\s]|$)(:80)?/g, (url, host: string) => {
      const port = this.#ports.get(host);
      return port === undefined ? url : `http://127.0.0.1:${port}`;
    });
  }
}

export const INGRESS_HOST = 'broker-ingress.knative-eventing.svc.cluster.local';

export function serviceHost(namespace: string, name: string): string {
  return `${name}.${namespace}.svc.cluster.local`;
}
