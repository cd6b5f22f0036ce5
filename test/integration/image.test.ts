import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { chmod, cp, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { Script } from 'node:vm';
import { EVENT_TYPE } from '../../shared/constants.ts';
import { type Image, IS_ROOT, layOutImage } from '../local/image/layout.ts';
import { renderManifests } from '../local/knative/render.ts';
import { typedManifests } from '../local/knative/typed.ts';
import { CLUSTER_TIMEOUT_MS } from '../local/kube/shared.ts';

const MB = 1_000_000;
const MOUNT = '/etc/lldap-operator/credentials';
/** Nobody listens there. */
const NOWHERE = '127.0.0.1:1';

interface Running {
  child: ChildProcess;
  port: number;
  output: { stdout: string; stderr: string };
}

/** The tree that the Dockerfile makes: as its root, read-only and as its user where the tests run as root; else in place. */
describe('The image', function () {
  this.timeout(CLUSTER_TIMEOUT_MS);
  let image: Image;
  let tree: string[];
  const children: ChildProcess[] = [];

  before(async () => {
    image = await layOutImage();
    // What a pod mounts.
    await mkdir(join(image.root, MOUNT), { recursive: true });
    for (const [name, text] of Object.entries({ username: 'admin', password: 'hush', kubeconfig: kubeconfig() }))
      await writeFile(join(image.root, MOUNT, name), text);
    tree = await readdir(image.root, { recursive: true });
    for (const path of tree) {
      const { mode } = await stat(join(image.root, path));
      await chmod(join(image.root, path), mode & ~0o222);
    }
    await chmod(image.root, 0o555);
  });
  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL');
  });
  after(() => image.remove());

  const inside = (path: string) => (IS_ROOT ? path : join(image.root, path));

  /** Starts the entrypoint with these arguments, and nothing of this machine's environment. */
  function start(args: string[], settings: Record<string, string> = {}): ChildProcess {
    const env = {
      ...image.env,
      LLDAP_INSTANCE: 'main',
      LLDAP_URL: `http://${NOWHERE}`,
      LLDAP_LDAP_URL: `ldap://${NOWHERE}`,
      BROKER_URL: `http://${NOWHERE}/lldap-operator/lldap-operator`,
      CREDENTIALS_DIR: inside(MOUNT),
      KUBECONFIG: inside(join(MOUNT, 'kubeconfig')),
      PORT: '0',
      ...settings,
    };
    const [program = '', ...rest] = image.entrypoint;
    const changeRoot = ['/usr/sbin/chroot', `--userspec=${image.user}:${image.user}`, image.root, program, ...rest];
    const inPlace = [image.env.PATH?.split(delimiter).map((folder) => join(image.root, folder, program))[0] ?? '', ...rest.map(inside)];
    const [command = '', ...more] = IS_ROOT ? changeRoot : inPlace;
    const child = spawn(command, [...more, ...args], { env, stdio: 'pipe' });
    children.push(child);
    return child;
  }

  async function ended(child: ChildProcess): Promise<{ code: number | null; stdout: string; stderr: string }> {
    const output = collect(child);
    const [code] = await once(child, 'close');
    return { code, ...output };
  }

  /** Waits for the line that tells the port. */
  async function serve(name: string, settings: Record<string, string> = {}): Promise<Running> {
    const child = start([name], settings);
    const output = collect(child);
    const gone = once(child, 'close').then(() => assert.fail(`${name} ended: ${output.stdout}${output.stderr}`));
    const told = new Promise<number>((resolve) => {
      child.stdout?.on('data', () => {
        const port = /"port":(\d+)/.exec(output.stdout)?.[1];
        if (port) resolve(Number(port));
      });
    });
    const port = await Promise.race([told, gone]);
    gone.catch(() => undefined);
    return { child, port, output };
  }

  async function stop({ child }: Running): Promise<number | null> {
    const gone = once(child, 'close');
    // chroot has become Node by now.
    child.kill('SIGTERM');
    const [code] = await gone;
    return code;
  }

  const post = (port: number, type: string, more: Record<string, string> = {}) =>
    fetch(`http://127.0.0.1:${port}/`, {
      method: 'POST',
      headers: { 'ce-specversion': '1.0', 'ce-id': '1', 'ce-source': '/test', 'ce-type': type, ...more },
    });

  it('holds Node, its libraries and the bundles, and nothing else', async () => {
    const files: string[] = [];
    for (const path of tree) if ((await stat(join(image.root, path))).isFile()) files.push(path);
    const ours = /^app\/(LICENSE|main\.cjs|parts\/[\w-]+\.cjs(\.LEGAL\.txt)?|\.cache\/[\w-]+\/[\w-]+)$/;
    const others = files.filter((path) => !ours.test(path) && !path.startsWith(MOUNT.slice(1)));
    assert.deepEqual(
      others.filter((path) => !/^usr\/local\/bin\/node$|\.so\.?[\d.]*$/.test(path)),
      [],
    );
    let [application, node] = [0, 0];
    for (const path of files) {
      const { size } = await stat(join(image.root, path));
      if (ours.test(path)) application += size;
      else node += size;
    }
    console.log(
      `      the image: ${(application / MB).toFixed(1)} MB of the application, ${(node / MB).toFixed(0)} MB of Node and its libraries`,
    );
    assert.ok(application < 15 * MB, `${application} bytes of the application`);
  });

  it('starts every function that the manifests name, takes an event, and ends with 0', async () => {
    const { services } = typedManifests(await renderManifests());
    const args = services.map(({ spec }) => spec?.template?.spec?.containers?.[0]?.args ?? []);
    assert.equal(args.length, 6);
    for (const [name = '', more] of args) {
      assert.equal(more, undefined);
      const running = await serve(name);
      assert.equal((await fetch(`http://127.0.0.1:${running.port}/health/readiness`)).status, 200);
      const types: Record<string, string> = { startup: EVENT_TYPE.startup, requeue: EVENT_TYPE.requeue };
      const answer = await post(running.port, types[name] ?? EVENT_TYPE.reconcile, {
        'ce-kind': { group: 'LldapGroup', membership: 'LldapMembership', 'attribute-schema': 'LldapAttributeSchema' }[name] ?? 'LldapUser',
        'ce-namespace': 'team',
        'ce-name': 'alice',
        'ce-notbefore': '2026-01-01T00:00:00.000Z',
      });
      // Nothing that they need is there. startup tells its caller on request only.
      assert.equal(answer.status, name === 'startup' ? 204 : 503, `${name}: ${await answer.text()}`);
      assert.equal(await stop(running), 0, name);
      assert.equal(running.output.stderr, '', name);
    }
  });

  it('is the command of the Jobs as well', async () => {
    const running = await serve('startup');
    const { code, stdout, stderr } = await ended(start(['call-startup', 'drift'], { STARTUP_URL: `http://127.0.0.1:${running.port}` }));
    await stop(running);
    assert.equal(code, 1, stderr);
    assert.deepEqual(JSON.parse(stdout).modes, ['drift']);
  });

  it('says which functions there are when it is given another name', async () => {
    const { code, stderr } = await ended(start(['nothing']));
    assert.equal(code, 1);
    assert.match(
      stderr,
      /^"nothing" is not a function: give one of user, group, membership, attribute-schema, startup, requeue, call-startup\.\n$/,
    );
  });

  it('has a compile cache for each function, of its own Node and its own bundle', async () => {
    const { services } = typedManifests(await renderManifests());
    for (const { spec } of services) {
      const [name = ''] = spec?.template?.spec?.containers?.[0]?.args ?? [];
      const [source, cachedData] = await Promise.all(
        ['parts/functions.cjs', `.cache/${name}/functions`].map((path) => readFile(join(image.root, 'app', path))),
      );
      // This process is the same Node.
      assert.equal(new Script(source?.toString('latin1') ?? '', { cachedData }).cachedDataRejected, false, name);
    }
  });

  it('leaves its own file system as it is', async () => {
    assert.deepEqual((await readdir(image.root, { recursive: true })).sort(), [...tree].sort());
  });

  it('has the same bundles byte for byte each time that it is built', async () => {
    const elsewhere = join(image.built, '../again');
    await mkdir(elsewhere);
    for (const path of ['scripts', 'functions', 'shared', 'package.json', 'node_modules'])
      await cp(join(image.built, path), join(elsewhere, path), { recursive: true, verbatimSymlinks: true });
    const child = spawn(process.execPath, ['scripts/build.ts'], { cwd: elsewhere, stdio: 'pipe' });
    const { code, stderr } = await ended(child);
    assert.equal(code, 0, stderr);
    assert.deepEqual(await hashes(join(elsewhere, 'dist')), await hashes(join(image.built, 'dist')));
  });
});

function kubeconfig(): string {
  const named = (kind: string, what: object) => [{ name: 'nowhere', [kind]: what }];
  return JSON.stringify({
    'current-context': 'nowhere',
    contexts: named('context', { cluster: 'nowhere', user: 'nowhere', namespace: 'lldap-operator' }),
    clusters: named('cluster', { server: `https://${NOWHERE}` }),
    users: named('user', { token: 'none' }),
  });
}

function collect(child: ChildProcess): Running['output'] {
  const output = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr'] as const)
    child[stream]?.setEncoding('utf8').on('data', (text: string) => {
      output[stream] += text;
    });
  return output;
}

async function hashes(dist: string): Promise<Record<string, string>> {
  const result: Record<string, string> = {};
  for (const path of (await readdir(dist, { recursive: true })).filter((each) => /\.(cjs|txt)$/.test(each)).sort())
    result[path] = createHash('sha256')
      .update(await readFile(join(dist, path)))
      .digest('hex');
  return result;
}
