import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { about, DIST, event, NOWHERE, post, useBundle } from './use-bundle.ts';

describe('the bundle loads only what it needs:', () => {
  const { directory, start, stop } = useBundle();

  /** A text that only this package's code has. */
  const marks = {
    ldapts: '1.3.6.1.4.1.1466.20037',
    'client-node': 'loaded-context',
    opentelemetry: 'OTEL_BSP_SCHEDULE_DELAY',
  };
  const compiler = 'schema with key or id';

  /** The packages among the files that the process had loaded when it ended, as V8 itself tells. */
  async function loadedBy(work: (port: number) => Promise<unknown>, settings: Record<string, string> = {}): Promise<string[]> {
    const coverage = await mkdtemp(join(directory(), 'coverage-'));
    const started = await start('user', { ...settings, NODE_V8_COVERAGE: coverage });
    await work(started.port);
    assert.equal(await stop(started), 0);
    const files = new Set<string>();
    for (const file of await readdir(coverage)) {
      const { result } = JSON.parse(await readFile(join(coverage, file), 'utf8')) as { result: { url: string }[] };
      for (const { url } of result) if (url.includes('/dist/parts/')) files.add(url);
    }
    assert.ok(files.size > 0, 'no files');
    const texts = [...files].map((url) => readFileSync(new URL(url), 'utf8'));
    return Object.entries(marks).flatMap(([name, mark]) => (texts.some((text) => text.includes(mark)) ? [name] : []));
  }

  it('a function that serves, and has had no event, has loaded no client at all', async () => {
    assert.deepEqual(await loadedBy((port) => fetch(`http://127.0.0.1:${port}/health/readiness`)), []);
  });

  it('its first event loads what leads to the API server, and nothing for passwords or telemetry', async () => {
    assert.deepEqual(await loadedBy((port) => post(port, event('reconcile', about('LldapUser')))), ['client-node']);
  });

  it('telemetry is loaded where it is configured', async () => {
    const settings = { OTEL_EXPORTER_OTLP_ENDPOINT: `http://${NOWHERE}` };
    assert.deepEqual(await loadedBy((port) => fetch(`http://127.0.0.1:${port}/health/readiness`), settings), ['opentelemetry']);
  });

  it('all of that is in the bundle, each in a file of its own, but not the compiler of schemas', () => {
    const files = readdirSync(DIST, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.cjs'));
    const holding = (mark: string) => files.filter((file) => readFileSync(join(DIST, file), 'utf8').includes(mark));
    const holders = Object.values(marks).map((mark) => holding(mark).join());
    assert.equal(new Set(holders).size, 3);
    assert.ok(!holders.includes(''));
    assert.ok(readFileSync(join(DIST, '../node_modules/ajv/dist/core.js'), 'utf8').includes(compiler));
    assert.deepEqual(holding(compiler), []);
  });

  it('of Node itself, it loads no HTTP/2, no fetch and no workers', async () => {
    const hook = join(directory(), 'hook.cjs');
    const output = join(directory(), 'loaded');
    await writeFile(hook, `process.on('exit', () => require('fs').writeFileSync('${output}', process.moduleLoadList.join()));`);
    const started = await start('user', { NODE_OPTIONS: `--require ${hook}` });
    await post(started.port, event('reconcile', about('LldapUser')));
    assert.equal(await stop(started), 0);
    const loaded = (await readFile(output, 'utf8')).split(',').map((module) => module.replace('NativeModule ', ''));
    assert.ok(loaded.includes('http'));
    assert.deepEqual(
      loaded.filter((module) => /^(http2|worker_threads|perf_hooks|internal\/deps\/undici.*)$/.test(module)),
      [],
    );
  });
});
