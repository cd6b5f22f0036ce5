import { setTimeout as sleep } from 'node:timers/promises';

const WITHIN_MS = 120_000;
const LOOKS_AGAIN_AFTER_MS = 50;

/**
 * Waits for what the API server comes to do a little later than it says.
 * @param look answers why not yet, or nothing once it is so
 * @throws Error with the last reason
 */
export async function inEffect(look: () => Promise<string | undefined>): Promise<void> {
  const deadline = Date.now() + WITHIN_MS;
  for (;;) {
    const reason = await look();
    if (reason === undefined) return;
    if (Date.now() > deadline) throw new Error(reason);
    await sleep(LOOKS_AGAIN_AFTER_MS);
  }
}
