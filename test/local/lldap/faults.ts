import { setTimeout as sleep } from 'node:timers/promises';

/**
 * What goes wrong, on every request or on those that `only` describes, for the first `times` of them or until healed.
 * - `hang`: the connection is accepted and never answered.
 * - `slow`: an answer comes late.
 * - `drop`: the request is carried out, then the connection is reset.
 * - `status`: HTTP answers this status with a page, as a proxy before lldap would; LDAP is not affected.
 * - `brokenJson`: HTTP answers half of a JSON text; LDAP is not affected.
 * - `text`: nothing is carried out; GraphQL answers this error and LDAP an operations error. `{request}` in it becomes
 *   the request's own body.
 */
export type Fault = { only?: { operation?: string; id?: string | number }; times?: number } & (
  | { kind: 'hang' | 'drop' | 'brokenJson' }
  | { kind: 'slow'; ms: number }
  | { kind: 'status'; status: number }
  | { kind: 'text'; text: string }
);

/** What is asked of the server: GraphQL fields, `login`, `refresh`, `logout`, `health`, `bind`, `passwordModify`, `modify`, `search`. */
export interface Asked {
  operation: string;
  id?: string | number;
}

export class Faults {
  #faults: (Fault & { left: number })[] = [];

  add(fault: Fault): void {
    this.#faults.push({ ...fault, left: fault.times ?? Number.POSITIVE_INFINITY });
  }

  heal(): void {
    this.#faults = [];
  }

  /** The fault that this request meets, counted as met; slowness is waited for here. */
  async meet(asked: readonly Asked[]): Promise<Fault | undefined> {
    const fault = this.#faults.find(({ left, only }) => left > 0 && asked.some((one) => describes(only, one)));
    if (fault === undefined) return undefined;
    fault.left -= 1;
    if (fault.kind === 'slow') await sleep(fault.ms);
    return fault;
  }
}

function describes(only: Fault['only'], { operation, id }: Asked): boolean {
  return (only?.operation ?? operation) === operation && (only?.id ?? id) === id;
}
