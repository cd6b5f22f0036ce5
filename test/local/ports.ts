import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/** Below the range from which the kernel takes ports for outgoing connections and for who asks for any. */
const PORTS = { from: 20_000, below: 32_000 };

/**
 * A port for a server that keeps it while it is stopped and started again: nobody who does not ask for this very port
 * gets it meanwhile. It was free a moment ago.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(PORTS.from, PORTS.below);
    const free = await new Promise<boolean>((resolve) => {
      const probe = createServer();
      probe.once('error', () => resolve(false));
      probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
    });
    if (free) return port;
  }
}
