import { randomInt } from 'node:crypto';
import { createServer, type Server } from 'node:net';
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

/** A port for a server that keeps it while it is stopped and started again. It was free a moment ago. */
export async function portToKeep(): Promise<number> {
  for (;;) {
    const port = randomInt(TO_KEEP.from, TO_KEEP.below);
    if (await isFree(port)) return port;
  }
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

function listening(port: number): Promise<Server | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(undefined));
    server.listen(port, '127.0.0.1', () => resolve(server));
  });
}
