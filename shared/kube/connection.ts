import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { once } from '../platform/concurrency.ts';
import { createHttp, type Http, type HttpAnswer, HttpError, type HttpOptions, parseJson } from '../platform/http.ts';
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

/** Where a pod finds its ServiceAccount. */
export const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';

/**
 * Connects to the API server by the standard configuration (KUBECONFIG, or the pod's ServiceAccount), and keeps connections
 * open.
 *
 * @param kubeconfig path of a file to use instead of the standard places
 * @param serviceAccount folder of the ServiceAccount, if not the standard one
 */
export function connect(kubeconfig?: string, serviceAccount = SERVICE_ACCOUNT): Connection {
  const setup = once(async () => {
    const isPod = kubeconfig === undefined && !process.env.KUBECONFIG && existsSync(join(serviceAccount, 'token'));
    const { options, ...rest } = isPod ? inPod(serviceAccount) : await byKubeconfig(kubeconfig);
    return { ...rest, http: createHttp({ ...options, timeoutMs: TIMEOUT_MS, keepAliveMs: KEEP_ALIVE_MS, maxSockets: 16 }) };
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

interface Access {
  options: Pick<HttpOptions, 'baseURL' | 'ca' | 'tokenFile'>;
  /** For each request. */
  headers(): Promise<Record<string, string>>;
  namespace: string;
}

/** By the files and variables that Kubernetes gives to every pod, without client-node, which would take 30 ms of each cold start. */
function inPod(serviceAccount: string): Access {
  const { KUBERNETES_SERVICE_HOST: host = '', KUBERNETES_SERVICE_PORT: port } = process.env;
  const [ca, namespace] = ['ca.crt', 'namespace'].map((name) => readFileSync(join(serviceAccount, name), 'utf8')) as [string, string];
  return {
    options: { baseURL: `https://${host.includes(':') ? `[${host}]` : host}:${port}`, ca, tokenFile: join(serviceAccount, 'token') },
    headers: async () => ({}),
    namespace: namespace.trim(),
  };
}

/**
 * Uses the configuration of client-node, but not its requests: they open a connection each, have no timeout, and would
 * load the models of all Kubernetes kinds into a function that needs four.
 */
async function byKubeconfig(file: string | undefined): Promise<Access> {
  const { KubeConfig } = await import('@kubernetes/client-node/dist/config.js');
  const config = new KubeConfig();
  if (file === undefined) config.loadFromDefault();
  else config.loadFromFile(file);
  const cluster = config.getCurrentCluster();
  if (!cluster) throw new KubeError(0, 'the kubeconfig names no cluster');
  const auth = async (): Promise<{ headers?: Record<string, string>; ca?: Buffer | string }> => {
    const options = {};
    await config.applyToHTTPSOptions(options as never);
    return options;
  };
  return {
    options: { baseURL: cluster.server, ca: (await auth()).ca?.toString() },
    // For each request, because a token may be renewed.
    headers: async () => (await auth()).headers ?? {},
    namespace: config.getContextObject(config.getCurrentContext())?.namespace ?? 'default',
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
