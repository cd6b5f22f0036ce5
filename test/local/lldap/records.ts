import type { Asked } from './faults.ts';

/** One thing that was asked of the server and how it went; never a value, let alone a password. */
export interface Entry extends Asked {
  protocol: 'http' | 'graphql' | 'ldap';
  mutation: boolean;
  /** `ok`, an HTTP status, an LDAP result code or the text of an error. */
  outcome: string;
}

/** What was asked since it was last cleared. */
export class Records {
  entries: Entry[] = [];
  readonly #sockets = { http: new WeakSet<object>(), ldap: new WeakSet<object>() };
  #counts = { http: 0, ldap: 0 };

  /** How many connections something was asked on. */
  get sockets(): { http: number; ldap: number } {
    return { ...this.#counts };
  }

  add(entry: Entry): void {
    this.entries.push(entry);
  }

  connection(kind: 'http' | 'ldap', socket: object): void {
    if (this.#sockets[kind].has(socket)) return;
    this.#sockets[kind].add(socket);
    this.#counts[kind] += 1;
  }

  clear(): void {
    this.entries = [];
    this.#counts = { http: 0, ldap: 0 };
    this.#sockets.http = new WeakSet();
    this.#sockets.ldap = new WeakSet();
  }
}
