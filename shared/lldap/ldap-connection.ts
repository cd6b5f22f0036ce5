import type { Client } from 'ldapts';

/** An idle LDAP connection delays lldap's shutdown by half a minute. */
const IDLE_MS = 2000;

/** One connection that concurrent callers share. */
export interface SharedConnection {
  /** Runs `work` on the connection, which is opened first if there is none, or it was lost. Throws what `open` throws. */
  use<T>(work: (client: Client) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** @param open connects and binds; the connection is closed after 2 s without a caller */
export function shareConnection(open: () => Promise<Client>): SharedConnection {
  let shared: Promise<Client> | undefined;
  let users = 0;
  let idle: NodeJS.Timeout | undefined;

  async function close(): Promise<void> {
    clearTimeout(idle);
    const closing = shared;
    shared = undefined;
    // If it could not be opened, its callers got the error.
    await closing?.then((client) => client.unbind()).catch(() => undefined);
  }

  async function connect(): Promise<Client> {
    const current = shared;
    const client = await current;
    if (client?.isConnected) return client;
    // The first caller opens it for the others.
    if (shared === current) {
      const opening = open();
      shared = opening;
      opening.catch(() => {
        if (shared === opening) shared = undefined;
      });
    }
    return await (shared ?? connect());
  }

  return {
    async use(work) {
      clearTimeout(idle);
      users += 1;
      try {
        return await work(await connect());
      } finally {
        users -= 1;
        if (users === 0) idle = setTimeout(() => void close(), IDLE_MS).unref();
      }
    },
    close,
  };
}
