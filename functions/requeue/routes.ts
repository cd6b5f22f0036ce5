import type { Base, Routes } from '../../shared/bootstrap.ts';
import { MalformedEvent } from '../../shared/events/parse.ts';
import { handleDeadLetter } from './dead-letter.ts';
import { createDelayQueue } from './delayed-retries.ts';

export function routes(base: Base): Routes {
  const queue = createDelayQueue(base, base.config.maxDelayedRetries);
  return {
    '/': async (event, context) => {
      if (event.what !== 'requeue') throw new MalformedEvent(`a ${event.what} event is not for the function requeue`);
      return queue.delay(event, context);
    },
    '/dead-letter': (event, context) => handleDeadLetter(base, event, context),
  };
}
