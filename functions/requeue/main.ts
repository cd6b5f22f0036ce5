import { runFunction } from '../../shared/bootstrap.ts';
import { MalformedEvent } from '../../shared/events/parse.ts';
import { systemClock } from '../../shared/platform/clock.ts';
import { handleDeadLetter } from './dead-letter.ts';
import { createHolds } from './delayed-retries.ts';

await runFunction('requeue', ({ config, log, broker }) => {
  const io = { broker, log, clock: systemClock };
  const holds = createHolds(io, config.maxHeld);
  return {
    '/': async (event, context) => {
      if (event.what !== 'requeue') throw new MalformedEvent(`events of ${event.what} are not for requeue`);
      return holds.hold(event, context);
    },
    '/dead-letter': (event, context) => handleDeadLetter(io, event, context),
  };
});
