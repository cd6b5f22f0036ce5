import assert from 'node:assert/strict';
import type { IncomingHttpHeaders } from 'node:http';
import { gzipSync } from 'node:zlib';
import { timestamp } from '../../../shared/platform/clock.ts';
import { about, event, post, useBundle } from './use-bundle.ts';

const FUNCTIONS = ['user', 'group', 'membership', 'attribute-schema', 'startup', 'requeue'];

describe('the bundle', () => {
  const { start, stop, serve } = useBundle();

  describe('while lldap, the API server and the broker are all down', () => {
    for (const name of FUNCTIONS) {
      it(`${name} starts, is ready, and ends with 0 when told to`, async () => {
        const started = await start(name);
        for (const probe of ['liveness', 'readiness'])
          assert.equal((await fetch(`http://127.0.0.1:${started.port}/health/${probe}`)).status, 200);
        assert.equal(await stop(started), 0);
      });
    }

    const kinds = { user: 'LldapUser', group: 'LldapGroup', membership: 'LldapMembership', 'attribute-schema': 'LldapAttributeSchema' };
    for (const [name, kind] of Object.entries(kinds)) {
      it(`${name} asks for an event again, in one short line, and goes on`, async () => {
        const started = await start(name);
        for (let i = 0; i < 2; i++) {
          assert.deepEqual(await post(started.port, event('reconcile', about(kind))), [
            503,
            'The API server did not answer: no connection (ECONNREFUSED)\n',
          ]);
        }
        assert.equal(await stop(started), 0);
      });
    }

    it('startup says what it could not reach and which setting to look at, and no secret', async () => {
      const started = await start('startup');
      const init = event('startup');
      const [status, body] = await post(started.port, { ...init, headers: { ...init.headers, prefer: 'return=representation' } });
      assert.equal(status, 503);
      const { ok, problems } = JSON.parse(body) as { ok: boolean; problems: string[] };
      assert.equal(ok, false);
      for (const setting of ['LLDAP_URL', 'LLDAP_LDAP_URL', 'ServiceAccount lldap-operator-startup'])
        assert.ok(
          problems.some((problem) => problem.includes(`check `) && problem.includes(setting)),
          setting,
        );
      assert.doesNotMatch(body, /hush/);
      assert.equal(await stop(started), 0);
    });
  });

  describe('requeue', () => {
    const due = (ms: number) => event('requeue', { ...about('LldapUser'), notbefore: timestamp(Date.now() + ms) });

    it('told to stop while it holds events, gives them back and ends with 0', async () => {
      const started = await start('requeue');
      const twice = [due(300_000), due(400_000)].map((init) => [post(started.port, init), post(started.port, init)]);
      // That one of two alike is answered shows that the other is held.
      for (const alike of twice) assert.deepEqual(await Promise.race(alike), [204, '']);
      assert.equal(await stop(started), 0);
      for (const alike of twice) {
        const answers = await Promise.all(alike);
        assert.deepEqual(answers.sort(), [
          [204, ''],
          [503, 'stopping; deliver the event again\n'],
        ]);
      }
    });

    it('posts what is due to the broker', async () => {
      const received: IncomingHttpHeaders[] = [];
      const broker = await serve((request, response) => {
        received.push(request.headers);
        response.writeHead(202).end();
      });
      const started = await start('requeue', { BROKER_URL: broker });
      assert.deepEqual(await post(started.port, due(-1000)), [204, '']);
      assert.deepEqual([received[0]?.['ce-type'], received[0]?.['ce-name']], ['com.lukidoescode.lldap-operator.reconcile', 'alice']);
      assert.equal(await stop(started), 0);
    });

    it('asks for what the broker does not take again', async () => {
      const started = await start('requeue');
      assert.deepEqual(await post(started.port, due(-1000)), [503, 'the broker did not accept the reconcile event\n']);
      assert.equal(await stop(started), 0);
    });
  });

  it('takes a body of any charset and compression, a path with a query, and refuses what it cannot take in one line', async () => {
    const { port, ...started } = await start('user');
    const headers = event('', about('LldapUser')).headers as Record<string, string>;
    const deleted = { ...headers, 'ce-type': 'dev.knative.apiserver.resource.delete' };
    const answers = async (more: Record<string, string>, body: string | Uint8Array<ArrayBuffer>) => {
      const answer = await fetch(`http://127.0.0.1:${port}/?a[b]=c`, { method: 'POST', headers: { ...deleted, ...more }, body });
      return [answer.status, answer.headers.get('content-type'), await answer.text()];
    };
    const object = JSON.stringify({ metadata: { name: 'alice' } });
    const text = 'text/plain; charset=utf-8';
    assert.deepEqual(await answers({ 'content-type': 'application/json; charset=iso-8859-1' }, object), [204, null, '']);
    const gzip = { 'content-type': 'application/json', 'content-encoding': 'gzip' };
    assert.deepEqual(await answers(gzip, new Uint8Array(gzipSync(object))), [204, null, '']);
    assert.deepEqual(await answers({ 'content-encoding': 'none' }, object), [415, text, 'unsupported content encoding "none"\n']);
    assert.deepEqual(await answers({}, ' '.repeat(3_000_000)), [413, text, 'request entity too large\n']);
    const representation = { ...headers, 'ce-type': 'com.lukidoescode.lldap-operator.reconcile', prefer: 'return=representation' };
    const [status, type, body] = await answers(representation, '');
    assert.deepEqual([status, type, JSON.parse(String(body)).result], [503, 'application/json; charset=utf-8', 'unwritten']);
    assert.equal(await stop({ port, ...started }), 0);
  });

  it('requeue needs no credentials', async () => {
    assert.equal(await stop(await start('requeue', { CREDENTIALS_DIR: '' })), 0);
  });
});
