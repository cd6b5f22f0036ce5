import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { chmod, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import packageJson from '../../../package.json' with { type: 'json' };
import { expand, parseDockerfile, type Step } from './dockerfile.ts';

const ROOT = join(import.meta.dirname, '../../..');
const run = promisify(execFile);

describe('The Dockerfile', () => {
  const file = parseDockerfile(readFileSync(join(ROOT, 'Dockerfile'), 'utf8'));
  const final = file.stages.at(-1) ?? assert.fail('no stage');
  const steps = <W extends Step['what']>(what: W, of = final.steps) => of.filter((step): step is Step & { what: W } => step.what === what);

  it('builds in one stage and runs nothing in the image', () => {
    assert.deepEqual(
      file.stages.map(({ name, steps: all }) => [name, steps('run', all).length > 0]),
      [
        ['build', true],
        ['node-alone', false],
        [undefined, false],
      ],
    );
  });

  it('takes Node and the base of the image as build arguments, Node 24 in both cases', () => {
    assert.deepEqual(Object.keys(file.args), ['NODE', 'BASE']);
    assert.match(file.args.NODE ?? '', /^node:24-/);
    assert.deepEqual(
      file.stages.map(({ base }) => expand(base, file.args)),
      [file.args.NODE, 'scratch', 'node-alone'],
    );
  });

  it('puts the bundles into the image, with the licence, and nothing else', () => {
    assert.deepEqual(
      steps('copy').map(({ from, sources, to }) => [from, ...sources, to]),
      [
        [undefined, 'LICENSE', '/app/'],
        ['build', '/build/dist/main.cjs', '/app/'],
        ['build', '/build/dist/parts', '/app/parts/'],
        ['build', '/build/dist/.cache', '/app/.cache/'],
      ],
    );
  });

  it('starts Node itself, not a shell, so that it gets the signals, and as a user with a number', () => {
    assert.deepEqual(
      steps('entrypoint').map(({ command }) => command),
      [['node', '/app/main.cjs']],
    );
    assert.match(steps('user').at(-1)?.user ?? '', /^[1-9]\d+:[1-9]\d+$/);
  });

  it('installs what the lock file names and runs no script of a package', () => {
    const [install = ''] = steps('run', file.stages[0]?.steps).map(({ command }) => command);
    assert.match(install, /^npm ci --ignore-scripts /);
  });

  it('copies from the checkout only what is there', () => {
    const sources = file.stages.flatMap(({ steps: all }) => steps('copy', all).filter(({ from }) => !from));
    for (const source of sources.flatMap((step) => step.sources)) assert.ok(existsSync(join(ROOT, source)), source);
  });

  for (const [sentence, text] of Object.entries({
    'an instruction that nobody here knows': 'FROM scratch\nONBUILD RUN x',
    'a command in shell form, which a shell would run': 'FROM scratch\nENTRYPOINT node main.cjs',
    'a step before the first stage': 'RUN x',
  })) {
    it(`would not be read here with ${sentence}`, () => assert.throws(() => parseDockerfile(text)));
  }
});

describe('make image', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'engine-'));
  });
  afterEach(() => rm(folder, { recursive: true }));

  /** Stands in for an engine: notes what it is told. */
  async function engine(name: string): Promise<void> {
    await writeFile(join(folder, name), `#!/bin/sh\nprintf '%s\\n' "$0" "$@" > "${folder}/told"\n`);
    await chmod(join(folder, name), 0o755);
  }

  async function makeImage(...settings: string[]): Promise<string[]> {
    // make and what it calls, and no engine of this machine.
    for (const tool of ['make', 'bash', 'sed', 'git', 'find', 'awk']) {
      const { stdout } = await run('sh', ['-c', `command -v ${tool}`]);
      await symlink(stdout.trim(), join(folder, tool));
    }
    await run('make', ['image', ...settings], { cwd: ROOT, env: { PATH: folder } });
    const [program = '', ...args] = (await readFile(join(folder, 'told'), 'utf8')).trim().split('\n');
    return [program.replace(`${folder}/`, ''), ...args.map((arg) => arg.replace(/(SOURCE_DATE_EPOCH=)\d+$/, '$1<time>'))];
  }

  const common = (tag: string) => ['build', '--tag', tag, '--build-arg', 'SOURCE_DATE_EPOCH=<time>'];

  for (const name of ['docker', 'podman']) {
    it(`builds with ${name}, under the name that the manifests have`, async () => {
      await engine(name);
      assert.deepEqual(await makeImage(), [name, ...common(`lldap-knative-operator:${packageJson.version}`), '.']);
    });
  }

  it('takes name, base and Node from its arguments', async () => {
    await engine('podman');
    const args = await makeImage('IMAGE=registry.example.com/operator:1', 'BASE=distroless@sha256:1', 'NODE=node:24@sha256:2');
    assert.deepEqual(args, [
      'podman',
      ...common('registry.example.com/operator:1'),
      '--build-arg',
      'NODE=node:24@sha256:2',
      '--build-arg',
      'BASE=distroless@sha256:1',
      '.',
    ]);
  });

  it('says what to install when there is neither', async () => {
    await assert.rejects(makeImage(), (error: Error & { stderr?: string }) => {
      assert.match(error.stderr ?? '', /docker or podman is needed: install one of them and try again\./);
      return true;
    });
  });
});
