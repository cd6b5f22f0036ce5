import assert from 'node:assert/strict';
import * as attributeSchema from '../../../functions/attribute-schema/routes.ts';
import * as group from '../../../functions/group/routes.ts';
import * as membership from '../../../functions/membership/routes.ts';
import * as requeue from '../../../functions/requeue/routes.ts';
import * as startup from '../../../functions/startup/routes.ts';
import * as user from '../../../functions/user/routes.ts';
import type { Reconciling, Routes } from '../../../shared/bootstrap.ts';
import { MalformedEvent, type OperatorEvent } from '../../../shared/events/parse.ts';
import type { EventContext } from '../../../shared/service/server.ts';
import { FakeClock } from '../../support/fake-clock.ts';

/** Whatever else a function has: an event that is not for it must not get that far. */
const BASE = { config: { maxConcurrentReconciles: 1, maxDelayedRetries: 1 }, io: { clock: new FakeClock() } } as unknown as Reconciling;

const STARTUP: OperatorEvent = { what: 'startup', mode: 'sweep' };
const SECRET: OperatorEvent = { what: 'secret', namespace: 'team', name: 'alice', redelivered: 0 };

const functions: Record<string, [routes: (base: Reconciling) => Routes, paths: string[], event: OperatorEvent, refusal: string]> = {
  user: [user.routes, ['/'], STARTUP, 'a startup event is not for the function of LldapUser'],
  group: [group.routes, ['/'], SECRET, 'a secret event is not for the function of LldapGroup'],
  membership: [membership.routes, ['/'], SECRET, 'a secret event is not for the function of LldapMembership'],
  'attribute-schema': [attributeSchema.routes, ['/'], SECRET, 'a secret event is not for the function of LldapAttributeSchema'],
  startup: [startup.routes, ['/'], SECRET, 'a secret event is not for the function startup'],
  requeue: [requeue.routes, ['/', '/dead-letter'], STARTUP, 'a startup event is not for the function requeue'],
};
describe('the function', () => {
  for (const [name, [routes, paths, event, message]] of Object.entries(functions)) {
    it(`${name} serves ${paths.join(' and ')}, and refuses events of other functions`, async () => {
      const made = routes(BASE);
      assert.deepEqual(Object.keys(made), paths);
      await assert.rejects(async () => made['/']?.(event, {} as EventContext), new MalformedEvent(message));
    });
  }
});
