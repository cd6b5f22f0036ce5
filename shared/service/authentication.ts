import { createHash } from 'node:crypto';
import type { Connection } from '../kube/connection.ts';
import { KubeError } from '../kube/errors.ts';
import type { Clock } from '../platform/clock.ts';

/** Checks an `Authorization` header. Throws a {@link Refusal} for a caller who is not served. */
export type Authenticate = (authorization: string | undefined) => Promise<void>;

/** The server answers with `status` and the message. */
export class Refusal extends Error {
  override name = 'Refusal';
  readonly status: 401 | 503;
  readonly expose = true;

  constructor(status: 401 | 503, message: string) {
    super(message);
    this.status = status;
  }
}

/** Accepted tokens in memory; the API server reviews all others again. */
const MAX_ACCEPTED_TOKENS = 1_000;

/**
 * Accepts callers with a token for `audience` from a ServiceAccount in the operator's namespace, such as Knative's Triggers
 * and the operator's Jobs.
 *
 * 1. The API server reviews each token (TokenReview). An accepted token stays in memory, as its hash, until it expires,
 *    and no other token displaces it. Concurrent calls with one token share a review.
 * 2. A refused token is answered with 401, which the broker does not retry.
 * 3. If the API server does not answer, the caller gets 503, and the broker delivers the event again.
 */
export function createAuthentication(connection: Connection, audience: string, clock: Clock): Authenticate {
  /** By hash: when the token expires, in milliseconds since the epoch. */
  const accepted = new Map<string, number>();
  /** By hash: the reviews under way. */
  const reviews = new Map<string, Promise<void>>();

  async function expiryOf(token: string | undefined): Promise<number> {
    const namespace = await connection.namespace();
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token, audiences: [audience] } };
    const path = '/apis/authentication.k8s.io/v1/tokenreviews';
    const { status } = token ? ((await connection.request({ method: 'POST', path, body })) as TokenReview) : {};
    const isAccepted = status?.authenticated && status.audiences?.includes(audience);
    if (!isAccepted || !status.user?.username?.startsWith(`system:serviceaccount:${namespace}:`))
      throw new Refusal(401, `Send "Authorization: Bearer" with a token of a ServiceAccount in ${namespace} for the audience ${audience}.`);
    const claims = Buffer.from(token?.split('.')[1] ?? '', 'base64url').toString();
    return 1000 * Number(/"exp":(\d+)/.exec(claims)?.[1] ?? 0);
  }

  async function review(token: string | undefined, hash: string): Promise<void> {
    try {
      const expiry = await expiryOf(token);
      accepted.delete(hash);
      accepted.set(hash, expiry);
      const [oldest] = accepted.keys();
      if (oldest && accepted.size > MAX_ACCEPTED_TOKENS) accepted.delete(oldest);
    } finally {
      reviews.delete(hash);
    }
  }

  return async (authorization) => {
    const token = /^Bearer (\S+)$/i.exec(authorization ?? '')?.[1];
    const hash = createHash('sha256')
      .update(token ?? '')
      .digest('base64');
    if ((accepted.get(hash) ?? 0) > clock.now()) return;
    const shared = reviews.get(hash) ?? review(token, hash);
    reviews.set(hash, shared);
    try {
      await shared;
    } catch (error) {
      if (!(error instanceof KubeError)) throw error;
      throw new Refusal(503, `The API server did not check the token (${error.status || 'no answer'}); deliver the event again.`);
    }
  };
}

interface TokenReview {
  status?: { authenticated?: boolean; audiences?: string[]; user?: { username?: string } };
}
