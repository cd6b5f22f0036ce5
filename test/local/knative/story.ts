import type { CloudEvent } from './cloudevent.ts';

/** What happens inside the local Knative, told as it happens: for tests to wait on and for a demo to print. */
export type Happening =
  | { what: 'sent'; source: string; event: EventName; status: number; tries: number }
  /** A source's adapter is being replaced, and who watches now: neither, both, or only the new one, with which it is done. */
  | { what: 'handover'; source: string; watching: 'neither' | 'both' | 'new' }
  | { what: 'accepted'; broker: string; event: EventName }
  | { what: 'delivered'; trigger: string; to: string; event: EventName; attempt: number; status: number; ms: number }
  | { what: 'undelivered'; trigger: string; to: string; event: EventName; attempt: number; why: string; ms: number }
  | { what: 'lost'; trigger: string; event: EventName; why: string }
  | { what: 'starting'; service: string; why: 'request' | 'rollout' | 'crash' | 'min-scale' }
  | { what: 'ready'; service: string; pid: number; ms: number }
  | { what: 'stopping'; service: string; pid: number; why: 'idle' | 'rollout' | 'eviction' | 'end' }
  | { what: 'stopped'; service: string; pid: number; code: number | null; signal: string | null; ms: number }
  | { what: 'crashed'; service: string; pid: number; code: number | null; signal: string | null }
  | { what: 'log'; from: string; pid: number; line: string }
  | { what: 'job'; job: string; code: number | null; output: string }
  | { what: 'warning'; from: string; message: string }
  | { what: 'violation'; message: string };

/** How an event is named in the story. */
export interface EventName {
  id: string;
  type: string;
  kind?: string;
  namespace?: string;
  name?: string;
}

/** Tells the story to whoever listens, and keeps what no run may contain. */
export class Story {
  readonly violations: string[] = [];
  readonly #listeners = new Set<(happening: Happening) => void>();

  tell(happening: Happening): void {
    if (happening.what === 'violation') this.violations.push(happening.message);
    for (const listener of this.#listeners) listener(happening);
  }

  /** @returns what ends the listening */
  listen(listener: (happening: Happening) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

export function nameOf({ attributes: { id = '', type = '', kind, namespace, name } }: CloudEvent): EventName {
  return {
    id,
    type,
    ...(kind !== undefined && { kind }),
    ...(namespace !== undefined && { namespace }),
    ...(name !== undefined && { name }),
  };
}
