/** Runs at most `limit` calls at once, in the order of arrival. */
export function createLimiter(limit: number): <T>(work: () => Promise<T>) => Promise<T> {
  let running = 0;
  const waiting: (() => void)[] = [];
  return async (work) => {
    if (running < limit) running++;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else running--;
    }
  };
}

/**
 * Shares a costly read among concurrent callers. A call during a read gets the next one, so that each caller gets a result
 * whose read began after the call.
 */
export function shareRead<T>(read: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined;
  let next: Promise<T> | undefined;
  const start = (): Promise<T> => {
    const mine = read().finally(() => {
      if (running === mine) running = undefined;
    });
    running = mine;
    return mine;
  };
  return () => {
    // The next read has not begun, even between the end of the current one and its start.
    if (next) return next;
    if (!running) return start();
    next = Promise.allSettled([running]).then(() => {
      next = undefined;
      return start();
    });
    return next;
  };
}

/** Calls `make` once for all callers, present and later. After a failure, the next caller tries again. */
export function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make().catch((error: unknown) => {
      made = undefined;
      throw error;
    });
    return made;
  };
}
