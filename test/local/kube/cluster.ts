/**
 * A real kube-apiserver with a real etcd, on loopback, for tests and demos. Admission plugins, RBAC, TokenRequest,
 * ValidatingAdmissionPolicy: all as in an unmodified cluster. What it lacks is what controllers do, since none runs:
 *
 * - a new namespace has no `default` ServiceAccount, and a deleted namespace stays `Terminating`;
 * - nothing is garbage-collected by owner, no Job or Deployment is ever carried out, no pod runs.
 *
 * It lives as long as the process that started it: `stop()` ends it, and so does the end of that process in any way.
 */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureTools, type Tools } from '../tools/build.ts';
import { writeKubeconfig, writeServerFiles } from './files.ts';
import { type ApiAnswer, ApiConnection, type ApiRequest } from './http.ts';
import { ProcessGroup } from './processes.ts';
import { ApiServer, startEtcd } from './servers.ts';

const TOKEN_LIFETIME_S = 24 * 3600;

export interface KubectlResult {
  stdout: string;
  stderr: string;
  code: number;
}

export interface Cluster {
  /** `https://127.0.0.1:<port>`; the same for the cluster's whole life. */
  readonly url: string;
  /** The certificate authority of the server's certificate, PEM. */
  readonly ca: string;
  /** A bearer token of the group `system:masters`. */
  readonly adminToken: string;
  /** The administrator's kubeconfig file. */
  readonly kubeconfig: string;
  /** JSON lines, one per finished request at level Metadata: who did what to which resource, never a body. */
  readonly auditLog: string;
  /** Where etcd listens, for what would take the API server too long. */
  readonly etcdSocket: string;
  readonly kubectlPath: string;
  /** Runs kubectl as the administrator. A failure is told by `code`, not thrown. */
  kubectl(args: string[], options?: { input?: string }): Promise<KubectlResult>;
  /** `kubectl apply` of a YAML text, or of a file or folder. @throws Error with what kubectl said */
  apply(yamlOrPath: string): Promise<string>;
  /** One plain request, as the administrator unless a token is given. */
  request(method: string, path: string, options?: ApiRequest): Promise<ApiAnswer>;
  /** Creates a namespace whose name starts with `prefix` and that is nobody else's. @returns its name */
  createNamespace(prefix: string): Promise<string>;
  /** A token of an existing ServiceAccount, by TokenRequest, valid for a day. */
  tokenFor(namespace: string, serviceAccount: string): Promise<string>;
  /** Writes a kubeconfig with such a token, whose default namespace is the ServiceAccount's. @returns its path */
  kubeconfigFor(namespace: string, serviceAccount: string): Promise<string>;
  /** Stops kube-apiserver gracefully; etcd stays. */
  stopApiServer(): Promise<void>;
  /** Starts it again at the same URL with the same data and keys; ready when this returns. */
  startApiServer(): Promise<void>;
  /** Both, one after the other. */
  restart(): Promise<void>;
  /** Ends everything and removes every file. */
  stop(): Promise<void>;
}

/**
 * Starts a cluster of its own; any number may run side by side. Ready in 3–7 s, once the tools are built.
 *
 * @param given those of the pinned versions by default
 * @throws Error when the tools can't be built, or with a server's last words when it doesn't get ready
 */
export async function startCluster(given?: Tools): Promise<Cluster> {
  const tools = given ?? (await ensureTools());
  const directory = await mkdtemp(join(tmpdir(), 'lldap-kube-'));
  const processes = new ProcessGroup(directory);
  const adminToken = randomBytes(24).toString('hex');
  const auditLog = join(directory, 'audit.log');
  try {
    const files = await writeServerFiles(directory, adminToken);
    const etcdSocket = await startEtcd(processes, tools.etcd, directory);
    const etcd = `unix://${etcdSocket}`;
    const server = await ApiServer.start({ processes, binary: tools.apiserver, directory, etcd, files, auditLog, adminToken });
    const kubeconfig = join(directory, 'kubeconfig');
    await writeKubeconfig(kubeconfig, { url: server.url, ca: server.ca, token: adminToken, namespace: 'default' });
    return new LocalCluster({ server, processes, directory, adminToken, auditLog, etcdSocket, kubeconfig, kubectl: tools.kubectl });
  } catch (error) {
    await processes.end();
    throw error;
  }
}

interface Parts {
  server: ApiServer;
  processes: ProcessGroup;
  directory: string;
  adminToken: string;
  auditLog: string;
  etcdSocket: string;
  kubeconfig: string;
  kubectl: string;
}

class LocalCluster implements Cluster {
  readonly url: string;
  readonly ca: string;
  readonly adminToken: string;
  readonly auditLog: string;
  readonly etcdSocket: string;
  readonly kubeconfig: string;
  readonly kubectlPath: string;
  readonly #server: ApiServer;
  readonly #processes: ProcessGroup;
  readonly #directory: string;
  readonly #connection: ApiConnection;

  constructor({ server, processes, directory, adminToken, auditLog, etcdSocket, kubeconfig, kubectl }: Parts) {
    this.url = server.url;
    this.ca = server.ca;
    this.adminToken = adminToken;
    this.auditLog = auditLog;
    this.etcdSocket = etcdSocket;
    this.kubeconfig = kubeconfig;
    this.kubectlPath = kubectl;
    this.#server = server;
    this.#processes = processes;
    this.#directory = directory;
    this.#connection = new ApiConnection(server.url, server.ca, adminToken);
  }

  kubectl(args: string[], { input }: { input?: string } = {}): Promise<KubectlResult> {
    const env = { ...process.env, KUBECONFIG: this.kubeconfig, KUBECACHEDIR: join(this.#directory, 'kubectl-cache') };
    return new Promise((resolve, reject) => {
      const child = execFile(this.kubectlPath, args, { env, maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) => {
        if (error && typeof error.code !== 'number') reject(error);
        else resolve({ stdout, stderr, code: typeof error?.code === 'number' ? error.code : 0 });
      });
      // kubectl may end before it has read everything; its exit code says why.
      child.stdin?.on('error', () => undefined).end(input);
    });
  }

  async apply(yamlOrPath: string): Promise<string> {
    const isText = yamlOrPath.includes('\n');
    const result = await this.kubectl(['apply', '-f', isText ? '-' : yamlOrPath], isText ? { input: yamlOrPath } : {});
    if (result.code !== 0) throw new Error(`kubectl apply: ${result.stderr.trim()}`);
    return result.stdout;
  }

  request(method: string, path: string, options?: ApiRequest): Promise<ApiAnswer> {
    return this.#connection.send(method, path, options);
  }

  async createNamespace(prefix: string): Promise<string> {
    const name = `${prefix}-${randomBytes(4).toString('hex')}`;
    const { code, body } = await this.request('POST', '/api/v1/namespaces', { body: { metadata: { name } } });
    if (code !== 201) throw new Error(`creating namespace ${name}: ${code} ${JSON.stringify(body)}`);
    return name;
  }

  async tokenFor(namespace: string, serviceAccount: string): Promise<string> {
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${serviceAccount}/token`;
    const { code, body } = await this.request('POST', path, { body: { spec: { expirationSeconds: TOKEN_LIFETIME_S } } });
    if (code !== 201) throw new Error(`no token for ServiceAccount ${namespace}/${serviceAccount}: the API server answered ${code}`);
    return (body as { status: { token: string } }).status.token;
  }

  async kubeconfigFor(namespace: string, serviceAccount: string): Promise<string> {
    const token = await this.tokenFor(namespace, serviceAccount);
    const path = join(this.#directory, `kubeconfig-${namespace}-${serviceAccount}`);
    return writeKubeconfig(path, { url: this.url, ca: this.ca, token, namespace });
  }

  stopApiServer(): Promise<void> {
    return this.#server.stop();
  }

  startApiServer(): Promise<void> {
    return this.#server.startAgain();
  }

  async restart(): Promise<void> {
    await this.stopApiServer();
    await this.startApiServer();
  }

  async stop(): Promise<void> {
    this.#connection.close();
    await this.#processes.end();
  }
}
