import { readdir, readFile, readlink } from 'node:fs/promises';

/** Clock ticks of /proc are 10 ms on Linux. */
const TICK_MS = 10;
const NS_PER_MS = 1e6;
const LISTENS = '0A';

/** User and system time in steps of 10 ms, of threads that have ended as well; 0 if the process has ended. */
export async function cpuMsOf(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) * TICK_MS;
}

/** To the microsecond, but only of the threads that live. */
export async function exactCpuMsOf(pid: number): Promise<number> {
  const threads = await readdir(`/proc/${pid}/task`);
  const times = await Promise.all(
    threads.map(async (thread) => parseInt(await readFile(`/proc/${pid}/task/${thread}/schedstat`, 'utf8'), 10)),
  );
  return times.reduce((sum, ns) => sum + ns, 0) / NS_PER_MS;
}

/** Peak resident memory since the start. */
export async function peakMibOf(pid: number): Promise<number> {
  return Number(/VmHWM:\s+(\d+) kB/.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}

/** The program and its arguments; none if the process has ended. */
export async function commandOf(pid: number): Promise<string[]> {
  return (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split('\0');
}

/** Processes that this one started. */
export async function children(): Promise<number[]> {
  const threads = await readdir('/proc/self/task');
  const lists = await Promise.all(threads.map((thread) => readFile(`/proc/self/task/${thread}/children`, 'utf8')));
  return lists.flatMap((list) => list.trim().split(' ').filter(Boolean).map(Number));
}

/** The process that serves a URL; undefined if that is another machine's or another user's. */
export async function serverOf(url: string): Promise<number | undefined> {
  const { hostname, port, protocol } = new URL(url);
  if (!/^(localhost|127\..*|\[::1\])$/.test(hostname)) return undefined;
  const inode = await listenerOn(Number(port || (protocol === 'https:' ? 443 : 80)));
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  for (const pid of pids) {
    const files = await readdir(`/proc/${pid}/fd`).catch(() => []);
    const links = await Promise.all(files.map((file) => readlink(`/proc/${pid}/fd/${file}`).catch(() => '')));
    if (links.includes(`socket:[${inode}]`)) return pid;
  }
  return undefined;
}

/** The inode of the socket that listens on a port. */
async function listenerOn(port: number): Promise<string | undefined> {
  const tables = await Promise.all(['tcp', 'tcp6'].map((name) => readFile(`/proc/net/${name}`, 'utf8').catch(() => '')));
  const rows = tables.flatMap((table) => table.split('\n')).map((line) => line.trim().split(/\s+/));
  const row = rows.find(([, local, , state]) => state === LISTENS && parseInt(local?.split(':').at(-1) ?? '', 16) === port);
  return row?.[9];
}
