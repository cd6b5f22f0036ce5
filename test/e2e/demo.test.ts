import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { CURL } from '../integration/support/pages.ts';
import { CLUSTER_TIMEOUT_MS } from '../local/kube/shared.ts';

const ROOT = join(import.meta.dirname, '../..');

describe('The demo with KEEP=1', function () {
  this.timeout(CLUSTER_TIMEOUT_MS);
  let demo: ChildProcess;
  let bin: string;
  let output = '';
  /** Of each line, without the time. */
  const told = () => output.split('\n').map((line) => line.replace(/^ *[\d.]+ s {2}/, ''));

  before(async () => {
    bin = await mkdtemp(join(tmpdir(), 'demo-'));
    await writeFile(join(bin, 'curl'), CURL);
    await chmod(join(bin, 'curl'), 0o755);
    const { LLDAP_URL: _, ...env } = process.env;
    demo = spawn(process.execPath, ['test/local/demo/main.ts'], {
      cwd: ROOT,
      env: { ...env, KEEP: '1' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [demo.stdout, demo.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
    const ended = once(demo, 'exit').then(() => assert.fail(`it ended: ${output}`));
    const kept = (async () => {
      while (!output.includes(' with the password ')) await Promise.race([once(demo.stdout ?? assert.fail(), 'data'), ended]);
    })();
    await kept;
    ended.catch(() => undefined);
  });
  after(async () => {
    demo.kill('SIGKILL');
    await rm(bin, { recursive: true });
  });

  it('tells what was done before what came of it', () => {
    const lines = told();
    const done = lines.indexOf('done      LldapMembership team/alice-developers: added the user to the group → Ready');
    assert.ok(done > 0 && done < lines.indexOf('✔ everything is Ready'), output);
  });

  it('tells of each attempt that it waits once', () => {
    const waiting = told().filter((line) => line.startsWith('waiting '));
    assert.ok(waiting.length > 0, output);
    assert.deepEqual(waiting, [...new Set(waiting)]);
  });

  it('tells nothing that it does not know', () => assert.doesNotMatch(output, /undefined|NaN|\[object/));

  it('says what to try, which works', async () => {
    const [, script = assert.fail()] = /In another terminal:.*\n([\s\S]*?)\n {2}lldap: /.exec(output) ?? [];
    const PATH = [bin, process.env.PATH].join(delimiter);
    const { stdout } = await promisify(execFile)('bash', ['--norc', '-euo', 'pipefail', '-c', script], {
      cwd: ROOT,
      env: { PATH, HOME: bin },
    });
    assert.match(stdout, /HTTP\/1\.1 202 /);
    assert.match(stdout, /"kind":"LldapUser","namespace":"team","name":"alice"/);
    assert.match(stdout, /"ok":true,"modes":\["sweep"\]/);
    assert.match(stdout, /alice" deleted/);
  });

  it('ends everything on Ctrl-C, and says no more than that', async () => {
    const ended = once(demo, 'close');
    demo.kill('SIGINT');
    assert.deepEqual(await ended, [0, null], output);
    assert.match(output, /Stopping everything\.\n$/);
  });
});
