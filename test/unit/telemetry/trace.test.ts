import assert from 'node:assert/strict';
import type { IncomingHttpHeaders } from 'node:http';
import { traceHeaders, traceIds, withTrace } from '../../../shared/telemetry/trace.ts';
import { useTelemetry } from '../support/telemetry.ts';

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

  describe('a log line', () => {
    const recorded = useTelemetry();
    const ids = (headers: IncomingHttpHeaders) => withTrace(headers, async () => traceIds());

    it('carries the ids of the trace of its request', async () => {
      assert.deepEqual(await ids({ traceparent: PARENT }), { trace_id: 'a'.repeat(32), span_id: 'b'.repeat(16) });
    });

    it('carries the ids of the trace that its request started', async () => {
      const { trace_id, span_id } = await ids({});
      assert.match(`00-${trace_id}-${span_id}-00`, FORM);
    });

    it('carries no ids outside of a request', () => assert.deepEqual(traceIds(), {}));

    it('carries the ids of the active span, which outgoing requests continue, too', async () => {
      const headers = { traceparent: `00-${'a'.repeat(32)}-${'c'.repeat(16)}-01`, tracestate: 'vendor=2' };
      recorded.headers = headers;
      assert.deepEqual(await ids({ traceparent: PARENT }), { trace_id: 'a'.repeat(32), span_id: 'c'.repeat(16) });
      assert.deepEqual(await within({ traceparent: PARENT }), headers);
    });
  });
});
