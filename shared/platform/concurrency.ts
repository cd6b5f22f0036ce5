/** At most `limit` callers at once, the others in the order of their coming. */
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
 * A costly read that waiting callers share. Whoever asks while a read is under way gets the next one:
 * what a caller is given was read wholly after it asked.
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
    // One that is to come has not begun, even in the moment between it and the one before.
    if (next) return next;
    if (!running) return start();
    next = Promise.allSettled([running]).then(() => {
      next = undefined;
      return start();
    });
    return next;
  };
}

/** One call serves everybody, also those who ask later; a failure is forgotten, so that the next caller tries again. */
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
