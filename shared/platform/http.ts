import { readFile } from 'node:fs/promises';
import * as http from 'node:http';
import * as https from 'node:https';
import type { AxiosInstance } from 'axios';

/**
 * The one way out over HTTP: axios over keep-alive agents, with a timeout for every request, a bound for every
 * answer, no redirects and no proxies from the environment. A status is an answer, never an error.
 */
export function createHttp(options: HttpOptions): Http {
  const pool = { keepAlive: true, timeout: options.keepAliveMs, maxSockets: options.maxSockets };
  const httpAgent = new http.Agent(pool);
  const httpsAgent = new https.Agent({ ...pool, ca: options.ca });

  // axios costs a tenth of a second of CPU to load: not before the first request.
  let loading: Promise<AxiosInstance> | undefined;
  const load = async () => {
    const { default: axios } = await import('axios');
    return axios.create({
      ...(options.baseURL && { baseURL: options.baseURL }),
      headers: { 'User-Agent': 'lldap-knative-operator' },
      httpAgent,
      httpsAgent,
      proxy: false,
      maxRedirects: 0,
      maxContentLength: MAX_RESPONSE_BYTES,
      responseType: 'text',
      transformRequest: [(body: unknown) => body],
      transformResponse: [(body: unknown) => body],
      validateStatus: () => true,
    });
  };

  return {
    async request(request) {
      loading ??= load();
      const headers = { ...request.headers, ...(await authorization(options.tokenFile)) };
      return await send(await loading, { ...request, headers }, request.timeoutMs ?? options.timeoutMs);
    },
    close() {
      httpAgent.destroy();
      httpsAgent.destroy();
    },
  };
}

export interface HttpOptions {
  /** What a request's `url` is relative to. */
  baseURL?: string;
  /** PEM certificates to trust instead of the system's. */
  ca?: string | undefined;
  /** How long a request may take from its start to the last byte of its answer, a wait for a free socket included. */
  timeoutMs: number;
  /** Connections per host; more requests wait. Unlimited when left out. */
  maxSockets?: number;
  /** How long an idle connection is kept. Shorter than the server keeps it, or requests meet a closing connection. */
  keepAliveMs: number;
  /** Holds a bearer token for every request; read anew each time, since the kubelet renews it. */
  tokenFile?: string | undefined;
}

export interface HttpRequest {
  method: 'DELETE' | 'GET' | 'PATCH' | 'POST';
  /** Absolute, or relative to `baseURL`. */
  url: string;
  /** A body needs its own `Content-Type`. */
  headers?: Record<string, string>;
  body?: string | undefined;
  /** Instead of the client's. */
  timeoutMs?: number;
}

export interface HttpAnswer {
  status: number;
  /** Names in lower case. */
  headers: Record<string, string>;
  text: string;
}

export interface Http {
  /** Throws {@link HttpError} and nothing else. */
  request(request: HttpRequest): Promise<HttpAnswer>;
  /** Closes all connections, those in use too. */
  close(): void;
}

/** `refused`: no connection came about. `tls`: the handshake failed. `large`: the answer is. */
export type HttpErrorCode = 'refused' | 'timeout' | 'reset' | 'tls' | 'large' | 'other';

/** Why there is no answer. Holds nothing of the request: axios's own errors print its body and Authorization header. */
export class HttpError extends Error {
  override name = 'HttpError';
  readonly code: HttpErrorCode;

  constructor(code: HttpErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

async function authorization(tokenFile: string | undefined): Promise<Record<string, string>> {
  if (!tokenFile) return {};
  const token = await readFile(tokenFile, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new HttpError('other', `the token in ${tokenFile} cannot be read (${error.code})`);
  });
  return { authorization: `Bearer ${token.trim()}` };
}

/** lldap answers these before it has read the body, and then closes the connection without having said so. */
const CONNECTION_ENDING_STATUSES = new Set<number | undefined>([401, 413]);
const MAX_RESPONSE_BYTES = 64 * 1024 * 1024;

async function send(
  axios: AxiosInstance,
  request: HttpRequest & Required<Pick<HttpRequest, 'headers'>>,
  timeoutMs: number,
): Promise<HttpAnswer> {
  // axios's own timeout is one of inactivity, which a trickling answer never meets.
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(), timeoutMs);
  try {
    const response = await axios.request<string>({
      method: request.method,
      url: request.url,
      signal: controller.signal,
      transport: TRANSPORT,
      headers: request.headers,
      data: request.body,
    });
    return { status: response.status, headers: flattenHeaders(response.headers), text: response.data };
  } catch (error) {
    if (controller.signal.aborted) throw new HttpError('timeout', `no answer within ${timeoutMs} ms`);
    throw httpError(error);
  } finally {
    clearTimeout(timer);
  }
}

/** Node's own, which does not keep a connection that lldap closes. */
const TRANSPORT = {
  request(options: http.RequestOptions, onResponse: (response: http.IncomingMessage) => void): http.ClientRequest {
    const request = (options.protocol === 'https:' ? https : http).request(options, (response) => {
      if (CONNECTION_ENDING_STATUSES.has(response.statusCode)) request.shouldKeepAlive = false;
      onResponse(response);
    });
    return request;
  },
};

/** Undefined for what is not JSON: no validator accepts it. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const NO_CONNECTION_CODES = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'EADDRNOTAVAIL']);
const LOST_CONNECTION_CODES = new Set(['ECONNRESET', 'EPIPE', 'ECONNABORTED', 'ERR_STREAM_PREMATURE_CLOSE']);
const TLS_FAILURE_CODE = /^(EPROTO$|ERR_SSL_|ERR_TLS_|CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_MISMATCH)/;

function httpError(error: unknown): HttpError {
  const { code, message } = codeOf(error);
  if (NO_CONNECTION_CODES.has(code)) return new HttpError('refused', `no connection (${code})`);
  if (code === 'ETIMEDOUT') return new HttpError('timeout', 'the connection timed out');
  if (TLS_FAILURE_CODE.test(code)) return new HttpError('tls', `the TLS handshake failed (${code})`);
  if (LOST_CONNECTION_CODES.has(code) || message === 'stream has been aborted') {
    return new HttpError('reset', 'the connection was lost before the answer was complete');
  }
  if (message.startsWith('maxContentLength')) return new HttpError('large', `the answer is larger than ${MAX_RESPONSE_BYTES} bytes`);
  return new HttpError('other', code === '' ? 'the request failed' : `the request failed (${code})`);
}

function codeOf(error: unknown): { code: string; message: string } {
  if (!(error instanceof Error)) return { code: '', message: '' };
  return { code: 'code' in error && typeof error.code === 'string' ? error.code : '', message: error.message };
}

function flattenHeaders(headers: object): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]));
}
