import assert from 'node:assert/strict';
import type { Answer } from '../../../shared/service/server.ts';
import { EVENT, useServers } from '../support/servers.ts';
import { useTelemetry } from '../support/telemetry.ts';

describe('shared/service/server, with telemetry:', () => {
  const { answering, send, start } = useServers();
  const recorded = useTelemetry();

  describe('a span', () => {
    it('tells of the request, and goes on with its trace', async () => {
      const { port } = await start(async () => assert.fail('asked'), { '/dead-letter': async () => ({ status: 204 }) });
      const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
      await send(port, { path: '/dead-letter', headers: { ...EVENT, traceparent, 'ce-subject': 'alice' } });
      assert.deepEqual(recorded.spans, [
        {
          name: 'CloudEvents Process com.lukidoescode.lldap-operator.reconcile',
          kind: 'consumer',
          parent: { traceparent },
          attributes: {
            'http.request.method': 'POST',
            'url.path': '/dead-letter',
            'cloudevents.event_id': '1',
            'cloudevents.event_source': '/test',
            'cloudevents.event_type': 'com.lukidoescode.lldap-operator.reconcile',
            'cloudevents.event_subject': 'alice',
            'http.response.status_code': 204,
          },
        },
      ]);
    });

    it('tells of a request that is no event what there is to tell', async () => {
      const { port } = await answering({ status: 204 });
      await send(port, { headers: {} });
      assert.deepEqual(
        recorded.spans.map(({ name, attributes }) => [name, attributes]),
        [['CloudEvents Process', { 'http.request.method': 'POST', 'url.path': '/' }]],
      );
    });

    const answers: [answer: Answer, failed: string | undefined][] = [
      [{ status: 204 }, undefined],
      [{ status: 400, message: 'no' }, undefined],
      [{ status: 500, message: 'no' }, '500'],
      [{ status: 503, message: 'no' }, '503'],
    ];
    for (const [answer, failed] of answers) {
      it(`of an answer ${answer.status} is ${failed ? 'failed' : 'not failed'}`, async () => {
        const { port } = await answering(answer);
        await send(port);
        const [{ attributes, failed: type } = assert.fail('no span')] = recorded.spans;
        assert.deepEqual([attributes['http.response.status_code'], type], [answer.status, failed]);
      });
    }
  });

  describe('what was recorded', () => {
    it('is sent before the answer, after which the pod may be stopped', async () => {
      const { port } = await answering({ status: 204 });
      const flushing = Promise.withResolvers<void>();
      const flushed = Promise.withResolvers<void>();
      recorded.flush = () => {
        flushing.resolve();
        return flushed.promise;
      };
      let isAnswered = false;
      const reply = send(port).then(() => {
        isAnswered = true;
      });
      await flushing.promise;
      await send(port, { method: 'GET', path: '/health/readiness' });
      assert.equal(isAnswered, false);
      flushed.resolve();
      await reply;
    });

    it('is sent with the last answer while several events are under way', async () => {
      let flushes = 0;
      recorded.flush = async () => void flushes++;
      const ends = [Promise.withResolvers<Answer>(), Promise.withResolvers<Answer>()];
      const asked = Promise.withResolvers<void>();
      let handled = 0;
      const { port } = await start(() => {
        const end = ends[handled++] ?? assert.fail('a third');
        if (handled === 2) asked.resolve();
        return end.promise;
      });
      const replies = [send(port), send(port)];
      await asked.promise;
      ends[0]?.resolve({ status: 204 });
      await Promise.race(replies);
      assert.equal(flushes, 0);
      ends[1]?.resolve({ status: 204 });
      await Promise.all(replies);
      assert.equal(flushes, 1);
    });

    it('is sent with the next answer after a failure', async () => {
      let flushes = 0;
      recorded.flush = async () => void flushes++;
      const { port } = await answering({ status: 204 });
      await send(port, { headers: {} });
      await send(port);
      await send(port);
      assert.equal(flushes, 2);
    });
  });
});
