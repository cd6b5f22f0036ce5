import { createServer, type Server } from 'node:http';
import { close, listen } from './http.ts';

/** Below the range from which the kernel takes ports for whoever does not mind, and beside that of the API servers. */
const FROM = 10_000;
const BELOW = 20_000;
/** So many that one that was given out is not given out again for a long time. */
const AT_ONCE = 100;

let ours: Promise<number> | undefined;
let given = 0;

/**
 * A port for a process that this one starts. Nobody else is given it meanwhile: each test process has a range of its own,
 * which is its own for as long as it listens on the first of it.
 */
export async function portForChild(): Promise<number> {
  ours ??= takeRange();
  const first = await ours;
  for (let tries = 1; tries < AT_ONCE; tries += 1) {
    const port = first + 1 + (given++ % (AT_ONCE - 1));
    const probe = await listening(port);
    if (!probe) continue;
    await close(probe);
    return port;
  }
  throw new Error(`no port is free from ${first} to ${first + AT_ONCE - 1}`);
}

async function takeRange(): Promise<number> {
  const ranges = (BELOW - FROM) / AT_ONCE;
  for (let tries = 0; tries < ranges; tries += 1) {
    const first = FROM + ((process.pid + tries) % ranges) * AT_ONCE;
    const guard = await listening(first);
    guard?.unref();
    if (guard) return first;
  }
  throw new Error(`all ranges of ports from ${FROM} to ${BELOW} are taken`);
}

async function listening(port: number): Promise<Server | undefined> {
  const server = createServer();
  try {
    await listen(server, port);
    return server;
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'EADDRINUSE' || error.code === 'EACCES')) return undefined;
    throw error;
  }
}
