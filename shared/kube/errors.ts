/** The reason for an answer above the client's size limit: request a smaller page. */
export const TOO_LARGE = 'AnswerTooLarge';

/** An error from the API server; `status` is 0 if there was no answer. */
export class KubeError extends Error {
  override name = 'KubeError';
  readonly status: number;
  readonly reason: string;

  constructor(status: number, message: string, reason = '') {
    super(message.slice(0, 500));
    this.status = status;
    this.reason = reason;
  }

  /** For logs and answers: the API server's message may repeat values of a spec. */
  get brief(): string {
    return this.status === 0 ? this.message : `The API server answered ${this.status} ${this.reason}`.trim();
  }

  /** The object has changed since the caller read it: read it again. */
  get stale(): boolean {
    return this.status === 409;
  }

  get gone(): boolean {
    return this.status === 404;
  }

  /** The continue token has expired: start the list again. */
  get expired(): boolean {
    return this.status === 410;
  }

  /** The API server rejects the request for good. */
  get refused(): boolean {
    return this.status === 422 || this.status === 400;
  }
}
