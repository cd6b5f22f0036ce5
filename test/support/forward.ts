/**
 * An object that stands for the one that `current` returns at each use, so that tests can hold it before it exists.
 * Methods run on that object itself, since private fields are its own.
 */
export function forwardTo<T extends object>(current: () => T): T {
  return new Proxy({} as T, {
    get: (_, key) => {
      const value: unknown = Reflect.get(current(), key, current());
      return typeof value === 'function' ? value.bind(current()) : value;
    },
    set: (_, key, value) => Reflect.set(current(), key, value, current()),
  });
}
