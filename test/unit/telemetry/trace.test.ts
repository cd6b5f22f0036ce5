import assert from 'node:assert/strict';
import type { IncomingHttpHeaders } from 'node:http';
import { traceHeaders, withTrace } from '../../../shared/telemetry/trace.ts';

const FORM = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-00$/;
const PARENT = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;

const within = (headers: IncomingHttpHeaders) => withTrace(headers, async () => traceHeaders());

describe('shared/telemetry/trace', () => {
  const passed: Record<string, IncomingHttpHeaders> = {
    'the trace of a request goes on': { traceparent: PARENT },
    'what came with the trace goes on, too': { traceparent: PARENT, tracestate: 'vendor=1', baggage: 'k=v' },
    'a trace of a version to come goes on': { traceparent: `cc-${'a'.repeat(32)}-${'b'.repeat(16)}-01-more` },
  };
  for (const [name, headers] of Object.entries(passed)) {
    it(name, async () => assert.deepEqual(await within({ ...headers, authorization: 'hush', 'ce-id': '1' }), headers));
  }

  const fresh: Record<string, IncomingHttpHeaders> = {
    'a request without a trace starts one': {},
    'a request with a trace that is none starts one': { traceparent: '1234', tracestate: 'vendor=1' },
    'a request with only the state of a trace starts one': { tracestate: 'vendor=1' },
  };
  for (const [name, headers] of Object.entries(fresh)) {
    it(name, async () => {
      const sent = await within(headers);
      assert.deepEqual(Object.keys(sent), ['traceparent']);
      assert.match(sent.traceparent ?? '', FORM);
    });
  }

  it('all that a request leads to has its one trace, and other requests have their own', async () => {
    const one = withTrace({}, async () => {
      const before = traceHeaders();
      await new Promise((resolve) => setImmediate(resolve));
      return [before, traceHeaders()];
    });
    const other = withTrace({}, async () => traceHeaders());
    const [before, after] = await one;
    assert.deepEqual(before, after);
    assert.notDeepEqual(before, await other);
  });

  it('what happens outside of a request has a trace each', () => {
    assert.match(traceHeaders().traceparent ?? '', FORM);
    assert.notEqual(traceHeaders().traceparent, traceHeaders().traceparent);
  });
});
