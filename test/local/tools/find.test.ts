import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Tools } from './build.ts';
import { findTools } from './find.ts';

const BUILT: Tools = { apiserver: '/built/kube-apiserver', etcd: '/built/etcd', kubectl: '/built/kubectl' };

describe('the tools of the demo', () => {
  let home: string;

  beforeEach(async () => {
    home = await mkdtemp(join(tmpdir(), 'local-find-tools-'));
  });
  afterEach(() => rm(home, { recursive: true }));

  /** A folder with programs that say these versions. */
  async function folder(name: string, versions: { apiserver?: string; etcd?: string; kubectl?: string }): Promise<string> {
    const path = join(home, name);
    await mkdir(path);
    const program = (file: string, output: string) => writeFile(join(path, file), `#!/bin/sh\necho '${output}'\n`, { mode: 0o755 });
    if (versions.apiserver) await program('kube-apiserver', `Kubernetes v${versions.apiserver}`);
    if (versions.etcd) await program('etcd', `etcd Version: ${versions.etcd}`);
    if (versions.kubectl) await program('kubectl', `Client Version: v${versions.kubectl}`);
    return path;
  }

  async function choose(env: NodeJS.ProcessEnv) {
    const lines: string[] = [];
    let built: readonly string[] = [];
    const tools = await findTools(
      (line) => lines.push(line),
      env,
      async (_say, missing) => {
        built = missing ?? [];
        return BUILT;
      },
    );
    return { tools, built, lines };
  }
  const inside = (path: string): Tools => ({
    apiserver: join(path, 'kube-apiserver'),
    etcd: join(path, 'etcd'),
    kubectl: join(path, 'kubectl'),
  });

  it('are those of KUBEBUILDER_ASSETS, before those on the PATH, and it says so', async () => {
    const assets = await folder('assets', { apiserver: '1.34.1', etcd: '3.6.4', kubectl: '1.34.1' });
    const path = await folder('path', { apiserver: '1.35.0', etcd: '3.6.5', kubectl: '1.35.0' });
    assert.deepEqual(await choose({ KUBEBUILDER_ASSETS: assets, PATH: path }), {
      tools: inside(assets),
      built: [],
      lines: ['Using kube-apiserver v1.34.1 and etcd 3.6.4 from KUBEBUILDER_ASSETS.', 'Using kubectl v1.34.1 from KUBEBUILDER_ASSETS.'],
    });
  });

  it('are those on the PATH, wherever each is there', async () => {
    const servers = await folder('servers', { apiserver: '1.32.0', etcd: '3.5.16' });
    const client = await folder('client', { kubectl: '1.33.2' });
    const { tools, built } = await choose({ PATH: `/nowhere:${servers}:${client}` });
    assert.deepEqual([tools, built], [{ ...inside(servers), kubectl: join(client, 'kubectl') }, []]);
  });

  const builds: [sentence: string, versions: Parameters<typeof folder>[1], reason: string, built: string[]][] = [
    ['are built where there are none', {}, 'The PATH has no kube-apiserver and no etcd.', ['apiserver', 'etcd', 'kubectl']],
    [
      'are built, but kubectl is not where it is there',
      { kubectl: '1.36.0' },
      'The PATH has no kube-apiserver and no etcd.',
      ['apiserver', 'etcd'],
    ],
    ['are built where etcd is missing', { apiserver: '1.34.1' }, 'The PATH has no etcd.', ['apiserver', 'etcd', 'kubectl']],
    [
      'are built where Kubernetes is too old',
      { apiserver: '1.31.9', etcd: '3.6.4', kubectl: '1.31.9' },
      'The PATH has kube-apiserver v1.31.9, which is older than 1.32.',
      ['apiserver', 'etcd', 'kubectl'],
    ],
    [
      'are built where etcd is too old',
      { apiserver: '1.34.1', etcd: '3.4.20' },
      'The PATH has etcd 3.4.20, which is older than 3.5.',
      ['apiserver', 'etcd', 'kubectl'],
    ],
    [
      'have a kubectl that is built where the one on the PATH is of another time',
      { apiserver: '1.34.1', etcd: '3.6.4', kubectl: '1.36.0' },
      'Using kube-apiserver v1.34.1 and etcd 3.6.4 from the PATH.',
      ['kubectl'],
    ],
  ];
  for (const [sentence, versions, reason, expected] of builds) {
    it(sentence, async () => {
      const { built, lines } = await choose({ PATH: await folder('path', versions) });
      assert.deepEqual([built, lines[0]], [expected, reason]);
    });
  }
});
