import assert from 'node:assert/strict';
import type { TestWorld } from '../support/world.ts';

export const KIND = 'LldapGroup';
export const PLACE = 'team/crew';
export const TARGET = { kind: KIND, namespace: 'team', name: 'crew' } as const;
export const LATE = { notBefore: '2026-03-01T11:00:00.000Z' };
export const DOWN = [/^lldap/, 'refused', 1000] as const;

/** What the scenarios of the engine begin with: a group, for the simplest kind that makes an object. */
export function engineScenes(w: TestWorld) {
  const apply = (displayName = 'Crew') => w.apply(KIND, PLACE, { displayName });
  async function made(): Promise<void> {
    apply();
    await w.deliverEvents();
    assert.equal(w.ready(KIND, PLACE), 'True');
    w.forget();
  }
  /** A resource that waits for its first retry. */
  async function failed(): Promise<string> {
    w.fail(...DOWN);
    apply();
    await w.deliverEvents();
    w.heal();
    assert.equal(w.ready(KIND, PLACE), 'False LldapUnavailable');
    w.forget();
    return w.status(KIND, PLACE).retry?.nextTime ?? assert.fail();
  }
  const count = (call: RegExp) => w.calls.filter((name) => call.test(name)).length;
  const tell = (object: unknown = w.get(KIND, PLACE)) => w.broker.post({ what: 'resource', change: 'update', target: TARGET, object });
  /** Another controller writes to the resource. */
  const touch = () => {
    const resource = w.get(KIND, PLACE);
    w.unwatched(() => w.kube.changeMetadata(resource, { annotations: { at: resource.metadata.resourceVersion } }));
  };
  const vanish = () => w.unwatched(() => w.kube.drop(w.get(KIND, PLACE)));

  return { apply, made, failed, count, tell, touch, vanish };
}
