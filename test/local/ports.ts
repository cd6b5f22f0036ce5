import { randomInt } from 'node:crypto';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { promisify } from 'node:util';

/**
 * Ports below the range from which the kernel takes them for outgoing connections and for whoever does not mind. Those
 * that a server keeps and those of processes that come and go are apart, so that neither is given the other's.
 */
const TO_KEEP = { from: 20_000, below: 32_000 };
const FOR_CHILDREN = { from: 10_000, below: 20_000 };
/** So many that one that was given out is not given out again for a long time. */
const RANGE = 100;

let range: Promise<number> | undefined;
let given = 0;

/** Listens on loopback; `port` 0 takes a free one. @returns the port */
export function listen(server: Server, port = 0): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => {
      server.off('error', reject);
      resolve(portOf(server));
    });
  });
}

/** Listens on a port that the server may keep while it is stopped and started again. @returns the port */
export async function listenForGood(server: Server): Promise<number> {
  for (;;) {
    const port = anyToKeep();
    if (await listens(server, port)) return port;
  }
}

/** A port for a process that keeps it while it is stopped and started again. It was free a moment ago. */
export async function portToKeep(): Promise<number> {
  for (;;) {
    const port = anyToKeep();
    if (await isFree(port)) return port;
  }
}

function anyToKeep(): number {
  return randomInt(TO_KEEP.from, TO_KEEP.below);
}

/**
 * A port for a process that this one starts. Nobody else is given it meanwhile: each test process has a range of its own,
 * which is its own for as long as it listens on the first of it.
 */
export async function portForChild(): Promise<number> {
  range ??= takeRange();
  const first = await range;
  for (let tries = 1; tries < RANGE; tries += 1) {
    const port = first + 1 + (given++ % (RANGE - 1));
    if (await isFree(port)) return port;
  }
  throw new Error(`no port is free from ${first} to ${first + RANGE - 1}`);
}

async function takeRange(): Promise<number> {
  const { from, below } = FOR_CHILDREN;
  const ranges = (below - from) / RANGE;
  for (let tries = 0; tries < ranges; tries += 1) {
    const first = from + ((process.pid + tries) % ranges) * RANGE;
    const guard = await listening(first);
    guard?.unref();
    if (guard) return first;
  }
  throw new Error(`all ranges of ports from ${from} to ${below} are taken`);
}

async function isFree(port: number): Promise<boolean> {
  const probe = await listening(port);
  if (probe) await promisify(probe.close.bind(probe))();
  return probe !== undefined;
}

async function listening(port: number): Promise<Server | undefined> {
  const server = createServer();
  return (await listens(server, port)) ? server : undefined;
}

/** Whether the port was to be had. */
function listens(server: Server, port: number): Promise<boolean> {
  return listen(server, port).then(
    () => true,
    () => false,
  );
}

function portOf(server: Server): number {
  const address: string | AddressInfo | null = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server is not listening on a port');
  return address.port;
}
