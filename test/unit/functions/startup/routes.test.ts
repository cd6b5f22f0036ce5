import assert from 'node:assert/strict';
import { startupHandler } from '../../../../functions/startup/routes.ts';
import type { Summary } from '../../../../functions/startup/run.ts';
import type { EventContext } from '../../../../shared/service/server.ts';
import { createLog } from '../../../../shared/telemetry/log.ts';

const PROBLEM = 'The broker answered 503. (check BROKER_URL)';

describe('functions/startup/routes', () => {
  const answer = (mode: 'sweep' | 'full' | 'drift', summary: Partial<Summary>, context: Partial<EventContext> = {}) =>
    startupHandler(async () => ({ problems: summary.ok ? [] : [PROBLEM], ...summary }) as Summary, createLog('error'))(
      { what: 'startup', mode },
      { representation: false, ...context } as EventContext,
    );

  it('a run of mode full that did not ask for everything is left to the broker to repeat', async () => {
    assert.deepEqual(await answer('full', { ok: false, asked: false }), { status: 503, message: PROBLEM });
  });

  for (const [mode, summary] of [
    ['full', { ok: true, asked: true }],
    ['full', { ok: false, asked: true }],
    ['sweep', { ok: false, asked: false }],
    ['drift', { ok: false, asked: false }],
  ] as const)
    it(`a run of mode ${mode} is answered with 204 where it came out as ${JSON.stringify(summary)}`, async () => {
      assert.deepEqual(await answer(mode, summary), { status: 204 });
    });

  it('who asks for it is told what the run found', async () => {
    const told = await answer('sweep', { ok: true, asked: true }, { representation: true });
    assert.deepEqual(told, { status: 200, body: { ok: true, asked: true, problems: [] } });
    const failed = await answer('sweep', { ok: false, asked: true }, { representation: true });
    assert.deepEqual(failed, { status: 503, message: PROBLEM, body: { ok: false, asked: true, problems: [PROBLEM] } });
  });

  it('refuses what is no event of startup', async () => {
    const handle = startupHandler(async () => assert.fail('nothing runs'), createLog('error'));
    const event = { what: 'secret', namespace: 'ns', name: 'secret', redelivered: 0 } as Parameters<typeof handle>[0];
    await assert.rejects(handle(event, { representation: false } as EventContext), /a secret event is not for the function startup/);
  });
});
