import { readFileSync } from 'node:fs';
import * as http from 'node:http';
import * as https from 'node:https';

/**
 * The HTTP client for all outgoing requests: Node's own, with keep-alive agents, a timeout for every request and a size limit
 * for every answer. It follows no redirect, and no proxy from the environment. No status is an error.
 */
export function createHttp(options: HttpOptions): Http {
  const { ca, keepAliveMs, maxSockets, tokenFile } = options;
  const base = options.baseURL?.replace(/\/$/, '') ?? '';
  const pool = { keepAlive: true, timeout: keepAliveMs, ...(maxSockets && { maxSockets }) };
  const plain = new http.Agent(pool);
  const secure = new https.Agent({ ...pool, ...(ca !== undefined && { ca }) });
  return {
    async request({ method, url, headers, body, timeoutMs = options.timeoutMs, maxBytes = MAX_RESPONSE_BYTES }) {
      const all = { 'User-Agent': 'lldap-knative-operator', ...headers, ...authorization(tokenFile) };
      const open = (): http.ClientRequest => {
        const absolute = new URL(`${base}${url}`);
        return absolute.protocol === 'https:'
          ? https.request(absolute, { method, headers: all, agent: secure })
          : http.request(absolute, { method, headers: all, agent: plain });
      };
      return await send(open, { body, timeoutMs, maxBytes });
    },
    close() {
      plain.destroy();
      secure.destroy();
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

/** The request got no answer. Contains nothing of the request, whose body and headers hold secrets. */
export class HttpError extends Error {
  override name = 'HttpError';
  readonly code: HttpErrorCode;

  constructor(code: HttpErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

function authorization(tokenFile: string | undefined): Record<string, string> {
  if (!tokenFile) return {};
  try {
    // Mounted in memory: reading it with a thread would take longer.
    return { authorization: `Bearer ${readFileSync(tokenFile, 'utf8').trim()}` };
  } catch (error) {
    throw new HttpError('other', `the token in ${tokenFile} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}

/** lldap answers these before it has read the body, and then closes the connection without announcing it. */
const CONNECTION_ENDING_STATUSES = new Set<number | undefined>([401, 413]);
const MAX_RESPONSE_BYTES = 64 * 1024 * 1024;

async function send(
  open: () => http.ClientRequest,
  { body, timeoutMs, maxBytes }: { body: string | undefined; timeoutMs: number; maxBytes: number },
): Promise<HttpAnswer> {
  let request: http.ClientRequest | undefined;
  let timer: NodeJS.Timeout | undefined;
  try {
    return await new Promise((resolve, reject) => {
      // For the whole request: Node's own timeout measures inactivity, which a slow but steady answer never reaches.
      timer = setTimeout(() => reject(new HttpError('timeout', `no answer within ${timeoutMs} ms`)), timeoutMs);
      const sent = open();
      request = sent;
      sent.on('error', reject).on('response', (response) => {
        if (CONNECTION_ENDING_STATUSES.has(response.statusCode)) sent.shouldKeepAlive = false;
        const chunks: Buffer[] = [];
        let size = 0;
        response.on('error', reject).on('data', (chunk: Buffer) => {
          size += chunk.length;
          if (size > maxBytes) reject(new HttpError('large', `the answer is larger than ${maxBytes} bytes`));
          else chunks.push(chunk);
        });
        response.on('end', () => resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() }));
      });
      sent.end(body);
    });
  } catch (error) {
    // One that waits for a connection ends when it gets one.
    request?.destroy();
    throw error instanceof HttpError ? error : httpError(error);
  } finally {
    clearTimeout(timer);
  }
}

/** Returns undefined, which no validator accepts, if the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const NO_CONNECTION_CODES = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'EADDRNOTAVAIL']);
const LOST_CONNECTION_CODES = new Set(['ECONNRESET', 'EPIPE']);
const TLS_FAILURE_CODE = /^(EPROTO$|ERR_SSL_|ERR_TLS_|CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_MISMATCH)/;

function httpError(error: unknown): HttpError {
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
  if (NO_CONNECTION_CODES.has(code)) return new HttpError('refused', `no connection (${code})`);
  if (code === 'ETIMEDOUT') return new HttpError('timeout', 'the connection timed out');
  if (TLS_FAILURE_CODE.test(code)) return new HttpError('tls', `the TLS handshake failed (${code})`);
  if (LOST_CONNECTION_CODES.has(code)) return new HttpError('reset', 'the connection was lost before the answer was complete');
  return new HttpError('other', code === '' ? 'the request failed' : `the request failed (${code})`);
}
