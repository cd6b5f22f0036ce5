import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Ended, NOWHERE, useBundle } from './use-bundle.ts';

describe('the command of the Jobs', () => {
  const { run, end, serve } = useBundle();

  async function call(
    args: string[],
    answer: (response: ServerResponse) => void,
  ): Promise<Ended & { asked: [IncomingHttpHeaders, string][] }> {
    const asked: [IncomingHttpHeaders, string][] = [];
    const startup = await serve(async (request, response) => {
      let body = '';
      for await (const chunk of request) body += chunk;
      asked.push([request.headers, body]);
      answer(response);
    });
    return { ...(await end(run(['call-startup', ...args], { STARTUP_URL: startup }))), asked };
  }

  it('asks startup for a run of its mode, shows the summary and ends with 0', async () => {
    const { asked, ...ended } = await call(['full'], (response) => response.writeHead(200).end('{"ok":true}'));
    assert.deepEqual(ended, { code: 0, stdout: '{"ok":true}\n', stderr: '' });
    const [[headers, body]] = asked as [[IncomingHttpHeaders, string]];
    assert.equal(body, '{"mode":"full"}');
    assert.deepEqual(
      [headers['ce-type'], headers['ce-specversion'], headers.prefer, headers['content-type']],
      ['com.lukidoescode.lldap-operator.startup', '1.0', 'return=representation', 'application/json'],
    );
  });

  it('asks for a sweep when no mode is given', async () => {
    const { asked } = await call([], (response) => response.writeHead(200).end('{}'));
    assert.equal(asked[0]?.[1], '{"mode":"sweep"}');
  });

  it('fails, visibly, when startup did', async () => {
    const { code, stdout } = await call([], (response) => response.writeHead(503).end('{"ok":false,"problems":["lldap does not answer"]}'));
    assert.deepEqual([code, stdout], [1, '{"ok":false,"problems":["lldap does not answer"]}\n']);
  });

  it('fails, visibly, when startup does not answer', async () => {
    assert.deepEqual(await end(run(['call-startup'], { STARTUP_URL: `http://${NOWHERE}/` })), {
      code: 1,
      stdout: '',
      stderr: 'startup did not answer: no connection (ECONNREFUSED)\n',
    });
  });

  it('sends its token, where it has one, and fails, visibly, where it cannot be read', async () => {
    const asked: IncomingHttpHeaders[] = [];
    const startup = await serve((request, response) => {
      asked.push(request.headers);
      response.writeHead(200).end('{}');
    });
    const folder = await mkdtemp(join(tmpdir(), 'call-token-'));
    const settings = { STARTUP_URL: startup, STARTUP_TOKEN_FILE: join(folder, 'token') };
    assert.deepEqual(await end(run(['call-startup'], settings)), {
      code: 1,
      stdout: '',
      stderr: `startup did not answer: the token in ${settings.STARTUP_TOKEN_FILE} cannot be read (ENOENT)\n`,
    });
    await writeFile(settings.STARTUP_TOKEN_FILE, 'of the job\n');
    assert.equal((await end(run(['call-startup'], settings))).code, 0);
    await rm(folder, { recursive: true });
    assert.deepEqual(
      asked.map(({ authorization }) => authorization),
      ['Bearer of the job'],
    );
  });

  it('needs an address', async () => {
    assert.deepEqual(await end(run(['call-startup'], {})), {
      code: 1,
      stdout: '',
      stderr: 'STARTUP_URL is not set: give the address of the startup function.\n',
    });
  });
});
