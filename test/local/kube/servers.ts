import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { portToKeep } from '../ports.ts';
import { readCa, type ServerFiles } from './files.ts';
import { ApiConnection } from './http.ts';
import type { Daemon, ProcessGroup } from './processes.ts';

const READY_WITHIN_MS = 120_000;
const LOOK_AGAIN_AFTER_MS = 50;
const PORT_ATTEMPTS = 5;

/**
 * Starts etcd on a Unix socket, so that no other user of the machine can reach it.
 * @returns the socket
 */
export async function startEtcd(processes: ProcessGroup, binary: string, directory: string): Promise<string> {
  const socket = join(directory, 'etcd.sock');
  const client = `unix://${socket}`;
  // A single member never opens its peer socket's connection, but etcd insists on an address.
  const peer = `unix://${join(directory, 'etcd-peer.sock')}`;
  const etcd = await processes.start(
    binary,
    [
      '--name=local',
      `--data-dir=${join(directory, 'etcd')}`,
      '--unsafe-no-fsync',
      '--log-level=warn',
      `--listen-client-urls=${client}`,
      `--advertise-client-urls=${client}`,
      `--listen-peer-urls=${peer}`,
      `--initial-advertise-peer-urls=${peer}`,
      `--initial-cluster=local=${peer}`,
    ],
    join(directory, 'etcd.log'),
  );
  await until(etcd, async () => existsSync(socket));
  return socket;
}

export interface ApiServerOptions {
  processes: ProcessGroup;
  binary: string;
  directory: string;
  etcd: string;
  files: ServerFiles;
  auditLog: string;
  adminToken: string;
}

/** One kube-apiserver on a port of its own, which it keeps when it is started again. */
export class ApiServer {
  readonly url: string;
  readonly ca: string;
  readonly #options: ApiServerOptions;
  readonly #port: number;
  #daemon: Daemon;

  private constructor(options: ApiServerOptions, port: number, daemon: Daemon, ca: string) {
    this.#options = options;
    this.#port = port;
    this.#daemon = daemon;
    this.url = `https://127.0.0.1:${port}`;
    this.ca = ca;
  }

  static async start(options: ApiServerOptions): Promise<ApiServer> {
    for (let attempt = 1; ; attempt += 1) {
      const port = await portToKeep();
      const daemon = await run(options, port);
      try {
        const ca = await ready(daemon, options, port);
        return new ApiServer(options, port, daemon, ca);
      } catch (error) {
        // Between our look at the port and the server's, somebody else may take it.
        if (attempt === PORT_ATTEMPTS || !(await daemon.lastWords()).includes('address already in use')) throw error;
      }
    }
  }

  /** Graceful, as in a node's reboot. */
  async stop(): Promise<void> {
    await this.#daemon.stop();
  }

  /** Starts it again and waits until it is ready. The certificate is the one made at the first start. */
  async startAgain(): Promise<void> {
    if (this.#daemon.ended() === undefined) throw new Error('the API server is running');
    this.#daemon = await run(this.#options, this.#port);
    await ready(this.#daemon, this.#options, this.#port);
  }
}

function run({ processes, binary, directory, etcd, files, auditLog }: ApiServerOptions, port: number): Promise<Daemon> {
  const args = [
    `--etcd-servers=${etcd}`,
    `--secure-port=${port}`,
    '--bind-address=127.0.0.1',
    '--advertise-address=127.0.0.1',
    // A loopback address can't be an endpoint of the `kubernetes` Service.
    '--endpoint-reconciler-type=none',
    `--cert-dir=${join(directory, 'certificates')}`,
    '--authorization-mode=RBAC',
    `--token-auth-file=${files.tokens}`,
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-key-file=${files.verifyingKey}`,
    `--service-account-signing-key-file=${files.signingKey}`,
    '--service-cluster-ip-range=10.0.0.0/24',
    `--audit-policy-file=${files.auditPolicy}`,
    `--audit-log-path=${auditLog}`,
    // In MB. It is one file, whatever is written.
    '--audit-log-maxsize=100000',
  ];
  return processes.start(binary, args, join(directory, 'kube-apiserver.log'));
}

/** Waits for `/readyz`, which includes the roles of RBAC, and for the namespace that everybody expects. */
async function ready(daemon: Daemon, { directory, adminToken }: ApiServerOptions, port: number): Promise<string> {
  const certificate = join(directory, 'certificates', 'apiserver.crt');
  await until(daemon, async () => existsSync(certificate));
  const ca = await until(daemon, () => readCa(certificate));
  const connection = new ApiConnection(`https://127.0.0.1:${port}`, ca, adminToken);
  try {
    for (const path of ['/readyz', '/api/v1/namespaces/default']) {
      await until(daemon, async () => (await connection.send('GET', path)).code === 200);
    }
  } finally {
    connection.close();
  }
  return ca;
}

/** Repeats the look until its answer is something, the server ends, or patience does. A look that fails is repeated as well. */
async function until<T>(daemon: Daemon, look: () => Promise<T | false | undefined>): Promise<T> {
  const deadline = Date.now() + READY_WITHIN_MS;
  let reason = 'it did not get ready';
  while (Date.now() < deadline) {
    const found = await look().catch((error: unknown) => {
      reason = String(error);
      return undefined;
    });
    if (found !== undefined && found !== false) return found;
    const ended = daemon.ended();
    if (ended !== undefined) throw new Error(`${ended}. Its last words:\n${await daemon.lastWords()}`);
    await sleep(LOOK_AGAIN_AFTER_MS);
  }
  throw new Error(`${reason}, after ${READY_WITHIN_MS / 1000} s. The server's last words:\n${await daemon.lastWords()}`);
}
