/** The reason of an answer that is larger than this client takes: ask for less at once. */
export const TOO_LARGE = 'AnswerTooLarge';

/** What the API server answered; `status` is 0 when it did not. */
export class KubeError extends Error {
  override name = 'KubeError';
  readonly status: number;
  readonly reason: string;

  constructor(status: number, message: string, reason = '') {
    super(message.slice(0, 500));
    this.status = status;
    this.reason = reason;
  }

  /** For logs and answers: the message of an answer may repeat what was asked, values of a spec among it. */
  get brief(): string {
    return this.status === 0 ? this.message : `The API server answered ${this.status} ${this.reason}`.trim();
  }

  /** Another write came first, or the object is not what the caller took it for: read again. */
  get stale(): boolean {
    return this.status === 409;
  }

  get gone(): boolean {
    return this.status === 404;
  }

  /** The list that the next page was to go on with is too old: begin anew. */
  get expired(): boolean {
    return this.status === 410;
  }

  /** The server understood and will not have it, however often. */
  get refused(): boolean {
    return this.status === 422 || this.status === 400;
  }
}
