import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { theGuard } from '../guard.ts';
import type { Addresses } from './addresses.ts';
import type { Story } from './story.ts';
import type { Mounted, Workload } from './workload.ts';

/** What a kubelet reads. Both answer `undefined` for an object that does not exist. */
export interface Objects {
  configMap(namespace: string, name: string): Promise<Record<string, string> | undefined>;
  secret(namespace: string, name: string): Promise<Record<string, Buffer> | undefined>;
  /** A kubeconfig file with the ServiceAccount's token, whose namespace is its own: in place of the mounted token. */
  kubeconfigFor(namespace: string, serviceAccount: string): Promise<string>;
  /** The ServiceAccount's token for one audience. */
  tokenFor(namespace: string, serviceAccount: string, audience: string): Promise<string>;
}

export interface Host {
  objects: Objects;
  addresses: Addresses;
  story: Story;
  /** The command on this machine that stands for the image with these arguments. */
  command(args: string[]): string[];
}

const LOOKS_AGAIN_AFTER_MS = 200;
/** A kubelet takes a minute or more; tests have better things to do. */
const SECRET_REFRESH_MS = 1_000;

/**
 * Everything that a pod gives to its process, on this machine: environment, Secret files, the way to the API server.
 * - As with a kubelet, nothing starts before its ConfigMaps and Secrets exist; and a changed Secret appears in the
 *   mounted files, all of its keys at once, while a changed ConfigMap is only seen by the next process.
 * - An environment value that names a mounted path, or a cluster-local address, is turned into what stands for it here.
 */
export class Sandbox {
  readonly env: Record<string, string>;
  readonly #directory: string;
  readonly #end = new AbortController();
  readonly #refreshing: Promise<void>[] = [];

  private constructor(directory: string, env: Record<string, string>) {
    this.#directory = directory;
    this.env = env;
  }

  /** @param signal gives up waiting for what does not exist */
  static async prepare(workload: Workload, host: Host, signal: AbortSignal): Promise<Sandbox> {
    const directory = await mkdtemp(join(theGuard().directory, `${workload.name}-`));
    try {
      const variables = await environment(workload, host, signal);
      const mounts = workload.volumes.map((volume, index) => ({ ...volume, directory: join(directory, `volume-${index}`) }));
      const local = (value: string) => host.addresses.local(mounts.reduce(relocate, value));
      const env = Object.fromEntries(Object.entries(variables).map(([name, value]) => [name, local(value)]));
      // A container's HOME is empty, and so is this one: nothing of the developer's own configuration is seen.
      const sandbox = new Sandbox(directory, { ...env, HOME: directory, PATH: process.env.PATH ?? '' });
      for (const mount of mounts) await sandbox.#mount(mount, workload, host, signal);
      return sandbox;
    } catch (error) {
      await rm(directory, { recursive: true, force: true });
      throw error;
    }
  }

  async remove(): Promise<void> {
    this.#end.abort();
    await Promise.all(this.#refreshing);
    await rm(this.#directory, { recursive: true, force: true });
  }

  async #mount(mount: Mount, workload: Workload, host: Host, signal: AbortSignal): Promise<void> {
    const { namespace, name } = workload;
    const read = () => contentOf(mount, workload, host);
    const what = 'secret' in mount ? `Secret ${namespace}/${mount.secret}` : `a token for ${mount.audience}`;
    let current = await existing(read, what, name, host, signal);
    let version = 0;
    await mkdir(mount.directory, { recursive: true });
    await publish(mount.directory, current, version);
    const refresh = async () => {
      const next = await read();
      // A mounted Secret that is deleted stays as it was.
      if (!next || same(current, next) || this.#end.signal.aborted) return;
      current = next;
      version += 1;
      await publish(mount.directory, next, version);
    };
    const warn = (message: string) => host.story.tell({ what: 'warning', from: name, message });
    this.#refreshing.push(repeat(refresh, SECRET_REFRESH_MS, this.#end.signal, warn));
  }
}

type Mount = Mounted & { directory: string };

async function contentOf(mount: Mount, workload: Workload, { objects }: Host): Promise<Record<string, Buffer> | undefined> {
  const { namespace, serviceAccount } = workload;
  if ('secret' in mount) return objects.secret(namespace, mount.secret);
  return { [mount.path]: Buffer.from(await objects.tokenFor(namespace, serviceAccount, mount.audience)) };
}

async function environment(workload: Workload, host: Host, signal: AbortSignal): Promise<Record<string, string>> {
  const { namespace, name, serviceAccount } = workload;
  const result: Record<string, string> = {};
  for (const configMap of workload.configMaps) {
    const read = () => host.objects.configMap(namespace, configMap);
    Object.assign(result, await existing(read, `ConfigMap ${namespace}/${configMap}`, name, host, signal));
  }
  for (const [variable, value] of Object.entries(workload.env)) {
    if (typeof value === 'string') result[variable] = value;
    else {
      const { configMap, key } = value;
      const read = async () => (await host.objects.configMap(namespace, configMap))?.[key];
      result[variable] = await existing(read, `the key ${key} of ConfigMap ${namespace}/${configMap}`, name, host, signal);
    }
  }
  if (!workload.mountsToken) return result;
  const kubeconfig = () => host.objects.kubeconfigFor(namespace, serviceAccount);
  return {
    ...result,
    KUBECONFIG: await existing(kubeconfig, `a token of ServiceAccount ${namespace}/${serviceAccount}`, name, host, signal),
  };
}

/** Reads until there is something: a pod waits for what it needs, and for the API server. */
async function existing<T>(
  read: () => Promise<T | undefined>,
  what: string,
  name: string,
  { story }: Host,
  signal: AbortSignal,
): Promise<T> {
  let told = false;
  const tell = (why: string) => {
    if (!told) story.tell({ what: 'warning', from: name, message: `waits for ${what}${why}` });
    told = true;
  };
  for (;;) {
    try {
      const found = await read();
      if (found !== undefined) return found;
      tell('');
    } catch (error) {
      tell(`: ${error instanceof Error ? error.message : error}`);
    }
    await sleep(LOOKS_AGAIN_AFTER_MS, undefined, { signal });
  }
}

/** As the kubelet does it: all files change in one step, behind a link. */
async function publish(directory: string, data: Record<string, Buffer>, version: number): Promise<void> {
  const aside = join(directory, `..${version}`);
  await mkdir(aside);
  for (const [key, value] of Object.entries(data)) await writeFile(join(aside, key), value, { mode: 0o600 });
  const link = join(directory, '..data.next');
  await symlink(`..${version}`, link);
  await rename(link, join(directory, '..data'));
  if (version > 0) await rm(join(directory, `..${version - 1}`), { recursive: true });
  for (const key of Object.keys(data)) await symlink(`..data/${key}`, join(directory, key)).catch(unlessThere);
}

function unlessThere(error: unknown): void {
  if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
}

async function repeat(work: () => Promise<void>, everyMs: number, signal: AbortSignal, warn: (message: string) => void): Promise<void> {
  while (!signal.aborted) {
    await sleep(everyMs, undefined, { signal, ref: false }).catch(() => undefined);
    // The API server may be away for a while, in tests on purpose.
    if (!signal.aborted) await work().catch((error: unknown) => warn(error instanceof Error ? error.message : String(error)));
  }
}

function relocate(value: string, { mountPath, directory }: Mount): string {
  return value === mountPath || value.startsWith(`${mountPath}/`) ? `${directory}${value.slice(mountPath.length)}` : value;
}

function same(a: Record<string, Buffer>, b: Record<string, Buffer>): boolean {
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => a[key]?.equals(b[key] ?? Buffer.alloc(0)) && b[key] !== undefined);
}
