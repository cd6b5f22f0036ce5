import { Agent, request } from 'node:https';

export interface ApiRequest {
  /** Sent as JSON, or as it is when it is a string (YAML for Server-Side Apply). */
  body?: unknown;
  /** `application/json` unless said otherwise. */
  contentType?: string;
  /** The caller's bearer token; the administrator's unless said otherwise. */
  token?: string;
}

export interface ApiAnswer {
  code: number;
  /** Parsed JSON, or the text as it came. */
  body: unknown;
}

const ANSWERS_WITHIN_MS = 60_000;
/** The API server closes a connection that was idle for 90 s, and a request that goes out on it at that moment is lost. */
const IDLE_MS = 30_000;

/** Plain requests to one API server over kept-alive connections. It never retries and judges no status code. */
export class ApiConnection {
  readonly #url: string;
  readonly #token: string;
  readonly #agent: Agent;

  constructor(url: string, ca: string, token: string) {
    this.#url = url;
    this.#token = token;
    this.#agent = new Agent({ keepAlive: true, ca, timeout: IDLE_MS });
  }

  /** @throws what node:https throws when there is no answer */
  async send(
    method: string,
    path: string,
    { body, contentType = 'application/json', token = this.#token }: ApiRequest = {},
  ): Promise<ApiAnswer> {
    const payload = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
    const headers: Record<string, string> = { authorization: `Bearer ${token}`, accept: 'application/json' };
    if (payload !== undefined) headers['content-type'] = contentType;
    return new Promise((resolve, reject) => {
      const outgoing = request(
        `${this.#url}${path}`,
        { method, headers, agent: this.#agent, timeout: ANSWERS_WITHIN_MS },
        async (incoming) => {
          try {
            let text = '';
            for await (const chunk of incoming.setEncoding('utf8')) text += chunk;
            resolve({ code: incoming.statusCode ?? 0, body: incoming.headers['content-type']?.includes('json') ? JSON.parse(text) : text });
          } catch (error) {
            reject(error);
          }
        },
      );
      outgoing.once('timeout', () => outgoing.destroy(new Error(`no answer to ${method} ${path} within ${ANSWERS_WITHIN_MS / 1000} s`)));
      outgoing.once('error', reject);
      outgoing.end(payload);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}
