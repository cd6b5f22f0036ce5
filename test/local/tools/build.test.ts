import { strict as assert } from 'node:assert';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isNewEnough } from './build.ts';

const SCRIPT = join(import.meta.dirname, './build.ts');

/** Stands in for Go: counts its builds, takes its time, and fails while a file named `broken` is beside it. */
const GO = `#!/bin/sh
here=$(dirname "$0")
if [ "$1" = env ]; then printf '%s\\nlinux\\namd64\\n' "$(cat "$here/version")"; exit; fi
echo build >> "$here/builds"
echo k8s.io/some/package >&2
sleep 0.5
if [ -e "$here/broken" ]; then echo 'no space left' >&2; exit 1; fi
while [ "$1" != -o ]; do shift; done
touch "$2/kube-apiserver" "$2/kubectl" "$2/server"
`;

interface Ending {
  code: number | null;
  stdout: string;
  stderr: string;
}

describe('building the local API server', () => {
  let home: string;
  let go: string;
  let cache: string;

  beforeEach(async () => {
    home = await mkdtemp(join(tmpdir(), 'local-kube-tools-'));
    go = join(home, 'go');
    cache = join(home, 'lldap-knative-operator');
    await mkdir(go);
    await writeFile(join(go, 'go'), GO, { mode: 0o755 });
    await writeFile(join(go, 'version'), 'go1.26.8');
  });
  afterEach(() => rm(home, { recursive: true, force: true }));

  async function run(path = `${go}:/usr/bin:/bin`): Promise<Ending> {
    const child = spawn(process.execPath, [SCRIPT], { env: { PATH: path, HOME: home, XDG_CACHE_HOME: home } });
    const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
    const [stdout, stderr] = await Promise.all([child.stdout, child.stderr].map((stream) => stream.setEncoding('utf8').toArray()));
    return { code: await ended, stdout: stdout?.join('') ?? '', stderr: stderr?.join('') ?? '' };
  }

  const builds = async () => (existsSync(join(go, 'builds')) ? (await readFile(join(go, 'builds'), 'utf8')).trim().split('\n').length : 0);

  it('is done once, says so, and puts all three programs where it says', async () => {
    const first = await run();
    assert.equal(first.code, 0, first.stderr);
    assert.match(first.stderr, /building kube-apiserver v1\.\d+\.\d+, kubectl v1\.\d+\.\d+, etcd v3\.\d+\.\d+ from source, which takes/);
    const paths = Object.values(JSON.parse(first.stdout) as Record<string, string>);
    assert.deepEqual(paths.map(existsSync), [true, true, true]);
    const second = await run();
    assert.deepEqual(second, { code: 0, stdout: first.stdout, stderr: '' });
    assert.equal(await builds(), 1);
  });

  it('is done once when two processes ask at the same time', async () => {
    const endings = await Promise.all([run(), run()]);
    assert.deepEqual(
      endings.map(({ code }) => code),
      [0, 0],
    );
    assert.equal(await builds(), 1);
  });

  it('is done anew for another version of Go', async () => {
    await run();
    await writeFile(join(go, 'version'), 'go1.27.0');
    await run();
    assert.equal(await builds(), 2);
  });

  it('goes on after a builder that died, whose leftovers vanish', async () => {
    const { stdout } = await run();
    const built = join(JSON.parse(stdout).kubectl, '..');
    await rm(built, { recursive: true });
    await mkdir(`${built}.unfinished-abc`);
    await writeFile(`${built}.lock`, '1');
    const longAgo = new Date(Date.now() - 60_000);
    await utimes(`${built}.lock`, longAgo, longAgo);
    const { code, stderr } = await run();
    assert.equal(code, 0, stderr);
    assert.deepEqual(
      (await readdir(cache)).map((name) => join(cache, name)),
      [built],
    );
  });

  it('tells why it failed, leaves nothing, and works the next time', async () => {
    await writeFile(join(go, 'broken'), '');
    const { code, stderr } = await run();
    assert.equal(code, 1);
    assert.match(stderr, /go build of the local API server failed with exit code 1:\nk8s.io\/some\/package\nno space left/);
    assert.deepEqual(await readdir(cache), []);
    await rm(join(go, 'broken'));
    assert.equal((await run()).code, 0);
  });

  it('says in one line what to install when Go is missing', async () => {
    const { code, stderr } = await run('/nowhere');
    assert.equal(code, 1);
    assert.equal(
      stderr,
      'The local API server is built from source and needs Go 1.26 or newer: no "go" command was found on the PATH. Install it and put it first on the PATH.\n',
    );
  });

  it('says in one line what to install when Go is too old', async () => {
    await writeFile(join(go, 'version'), 'go1.25.9');
    const { code, stderr } = await run();
    assert.equal(code, 1);
    assert.equal(
      stderr,
      'The local API server is built from source and needs Go 1.26 or newer: the "go" command on the PATH is go1.25.9. Install it and put it first on the PATH.\n',
    );
  });

  for (const [version, expected] of [
    ['go1.26.0', true],
    ['go1.26rc1', true],
    ['go1.30', true],
    ['go2.0', true],
    ['devel go1.27-2f3b4c', true],
    ['go1.25.9', false],
    ['go1.9', false],
    ['', false],
  ] as const) {
    it(`takes "${version}" for ${expected ? 'new enough' : 'too old'}`, () => {
      assert.equal(isNewEnough(version), expected);
    });
  }
});
