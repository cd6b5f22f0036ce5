import { readFile } from 'node:fs/promises';
import * as http from 'node:http';
import * as https from 'node:https';
import type { AxiosInstance } from 'axios';

/**
 * The HTTP client for all outgoing requests: axios with keep-alive agents, a timeout for every request and a size limit for
 * every answer, without redirects and without proxies from the environment. No status is an error.
 */
export function createHttp(options: HttpOptions): Http {
  const pool = { keepAlive: true, timeout: options.keepAliveMs, maxSockets: options.maxSockets };
  const httpAgent = new http.Agent(pool);
  const httpsAgent = new https.Agent({ ...pool, ca: options.ca });

  // Loaded at the first request, because loading axios takes a tenth of a second of CPU.
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
  /** The base of a relative `url`. */
  baseURL?: string;
  /** PEM certificates to trust instead of the system's. */
  ca?: string | undefined;
  /** From the start of a request to the last byte of its answer, including the wait for a free socket. */
  timeoutMs: number;
  /** Connections per host; further requests wait. Default: unlimited. */
  maxSockets?: number;
  /** Of an idle connection. Must be shorter than the server's, or a request may use a connection that is being closed. */
  keepAliveMs: number;
  /** A file with the bearer token. Read for each request, since the kubelet renews it. */
  tokenFile?: string | undefined;
}

export interface HttpRequest {
  method: 'DELETE' | 'GET' | 'PATCH' | 'POST';
  /** Absolute, or relative to `baseURL`. */
  url: string;
  /** Must contain `Content-Type` if there is a body. */
  headers?: Record<string, string>;
  body?: string | undefined;
  /** Overrides the client's. */
  timeoutMs?: number;
  /** Of the answer; a longer one is an error. Default: 64 MiB. */
  maxBytes?: number | undefined;
}

export interface HttpAnswer {
  status: number;
  /** By name in lower case. */
  headers: Record<string, string>;
  text: string;
}

export interface Http {
  /** Throws {@link HttpError} and nothing else. */
  request(request: HttpRequest): Promise<HttpAnswer>;
  /** Closes all connections, even those in use. */
  close(): void;
}

/** `refused`: there was no connection. `tls`: the handshake failed. `large`: the answer is too large. */
export type HttpErrorCode = 'refused' | 'timeout' | 'reset' | 'tls' | 'large' | 'other';

/** The request got no answer. Contains nothing of the request, unlike axios's errors, which print its body and Authorization header. */
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

/** lldap answers these before it has read the body, and then closes the connection without announcing it. */
const CONNECTION_ENDING_STATUSES = new Set<number | undefined>([401, 413]);
const MAX_RESPONSE_BYTES = 64 * 1024 * 1024;

async function send(
  axios: AxiosInstance,
  request: HttpRequest & Required<Pick<HttpRequest, 'headers'>>,
  timeoutMs: number,
): Promise<HttpAnswer> {
  // axios's own timeout measures inactivity, so a slow but steady answer would never reach it.
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
      ...(request.maxBytes !== undefined && { maxContentLength: request.maxBytes }),
    });
    return { status: response.status, headers: flattenHeaders(response.headers), text: response.data };
  } catch (error) {
    if (controller.signal.aborted) throw new HttpError('timeout', `no answer within ${timeoutMs} ms`);
    throw httpError(error, request.maxBytes ?? MAX_RESPONSE_BYTES);
  } finally {
    clearTimeout(timer);
  }
}

/** Node's transport, except that it does not keep a connection that lldap will close. */
const TRANSPORT = {
  request(options: http.RequestOptions, onResponse: (response: http.IncomingMessage) => void): http.ClientRequest {
    const request = (options.protocol === 'https:' ? https : http).request(options, (response) => {
      if (CONNECTION_ENDING_STATUSES.has(response.statusCode)) request.shouldKeepAlive = false;
      onResponse(response);
    });
    return request;
  },
};

/** Returns undefined, which no validator accepts, if the text is not JSON. */
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

function httpError(error: unknown, maxBytes: number): HttpError {
  const { code, message } = codeOf(error);
  if (NO_CONNECTION_CODES.has(code)) return new HttpError('refused', `no connection (${code})`);
  if (code === 'ETIMEDOUT') return new HttpError('timeout', 'the connection timed out');
  if (TLS_FAILURE_CODE.test(code)) return new HttpError('tls', `the TLS handshake failed (${code})`);
  if (LOST_CONNECTION_CODES.has(code) || message === 'stream has been aborted') {
    return new HttpError('reset', 'the connection was lost before the answer was complete');
  }
  if (message.startsWith('maxContentLength')) return new HttpError('large', `the answer is larger than ${maxBytes} bytes`);
  return new HttpError('other', code === '' ? 'the request failed' : `the request failed (${code})`);
}

function codeOf(error: unknown): { code: string; message: string } {
  if (!(error instanceof Error)) return { code: '', message: '' };
  return { code: 'code' in error && typeof error.code === 'string' ? error.code : '', message: error.message };
}

function flattenHeaders(headers: object): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]));
}
