import { once } from '../platform/concurrency.ts';
import { createHttp, type Http, type HttpAnswer, HttpError, parseJson } from '../platform/http.ts';
import type { Attributes } from '../telemetry/backend.ts';
import { inSpan } from '../telemetry/telemetry.ts';
import { traceHeaders } from '../telemetry/trace.ts';
import { KubeError, TOO_LARGE } from './errors.ts';

/** One request to the API server. */
export interface KubeRequest {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  path: string;
  contentType?: string;
  body?: unknown;
}

export interface Connection {
  /** The namespace that this process runs in. */
  namespace(): Promise<string>;
  /** Throws {@link KubeError} unless the answer is 2xx. */
  request(request: KubeRequest): Promise<unknown>;
  close(): void;
}

const TIMEOUT_MS = 15_000;
/** The API server keeps idle connections for minutes, but a load balancer in front of it may not. */
const KEEP_ALIVE_MS = 30_000;

/**
 * Connects to the API server by the standard configuration (KUBECONFIG, or the pod's ServiceAccount), and keeps connections
 * open.
 *
 * Uses the configuration of client-node, but not its requests: they open a connection each, have no timeout, and would
 * load the models of all Kubernetes kinds into a function that needs four.
 *
 * @param kubeconfig path of a file to use instead of the standard places
 */
export function connect(kubeconfig?: string): Connection {
  const setup = once(async () => {
    const { KubeConfig } = await import('@kubernetes/client-node/dist/config.js');
    const config = new KubeConfig();
    if (kubeconfig === undefined) config.loadFromDefault();
    else config.loadFromFile(kubeconfig);
    const cluster = config.getCurrentCluster();
    if (!cluster) throw new KubeError(0, 'the kubeconfig names no cluster');
    const options: { headers?: Record<string, string>; ca?: Buffer | string } = {};
    await config.applyToHTTPSOptions(options as never);
    const http = createHttp({
      baseURL: cluster.server,
      timeoutMs: TIMEOUT_MS,
      keepAliveMs: KEEP_ALIVE_MS,
      maxSockets: 16,
      ca: options.ca?.toString(),
    });
    // For each request, because the kubelet renews the file with the ServiceAccount's token.
    const headers = async (): Promise<Record<string, string>> => {
      const fresh: { headers?: Record<string, string> } = {};
      await config.applyToHTTPSOptions(fresh as never);
      return fresh.headers ?? {};
    };
    return { http, headers, namespace: config.getContextObject(config.getCurrentContext())?.namespace ?? 'default' };
  });
  let opened: Http | undefined;
  return {
    namespace: async () => (await setup()).namespace,
    async request({ method, path, contentType, body }) {
      const { http, headers } = await setup();
      opened = http;
      return inSpan(method, { kind: 'client', attributes: attributesOf(method, path) }, async (span) => {
        const answer = await http
          .request({
            method,
            url: path,
            headers: {
              accept: 'application/json',
              ...(await headers()),
              ...traceHeaders(),
              ...(body !== undefined && { 'content-type': contentType ?? 'application/json' }),
            },
            body: body === undefined ? undefined : toJson(body),
          })
          .catch((error: unknown) => {
            if (!(error instanceof HttpError)) throw error;
            throw new KubeError(0, `The API server did not answer: ${error.message}`, error.code === 'large' ? TOO_LARGE : '');
          });
        span.set({ 'http.response.status_code': answer.status });
        return read(answer);
      });
    },
    close: () => opened?.close(),
  };
}

/** Omits the query, since selectors contain names from specs. */
function attributesOf(method: string, path: string): Attributes {
  return { 'http.request.method': method, 'url.path': path.split('?', 1)[0] ?? path, 'peer.service': 'kube-apiserver' };
}

function read(answer: HttpAnswer): unknown {
  const body = parseJson(answer.text);
  if (answer.status >= 200 && answer.status < 300) return body;
  const { message, reason } = (body ?? {}) as { message?: unknown; reason?: unknown };
  throw new KubeError(
    answer.status,
    typeof message === 'string' ? message : `HTTP ${answer.status}`,
    typeof reason === 'string' ? reason : '',
  );
}

/**
 * Escapes what YAML reads differently from JSON: the API server parses an applied object as YAML, which refuses some
 * characters, takes others for line ends, and allows no unpaired surrogates.
 */
function toJson(body: unknown): string {
  const json = JSON.stringify(body, (_key, value: unknown) => (typeof value === 'string' ? value.toWellFormed() : value));
  return json.replace(/[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
