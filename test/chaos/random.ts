/** Choices that a seed makes; the seed 0 makes the plainest: always the first. */
export interface Random {
  /** From 0 to `bound` - 1. */
  below(bound: number): number;
}

export function createRandom(seed: number): Random {
  if (seed === 0) return { below: () => 0 };
  let state = seed >>> 0;
  return {
    below(bound) {
      state = (state + 0x6d2b79f5) >>> 0;
      let mixed = Math.imul(state ^ (state >>> 15), state | 1);
      mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
      return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296) * bound);
    },
  };
}
