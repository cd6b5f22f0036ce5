import assert from 'node:assert/strict';
import type { TestWorld } from '../support/world.ts';

export const KIND = 'LldapGroup';
export const PLACE = 'team/crew';
export const TARGET = { kind: KIND, namespace: 'team', name: 'crew' } as const;
export const LATE = { notBefore: '2026-03-01T11:00:00.000Z' };
export const DOWN = [/^lldap/, 'refused', 1000] as const;

/** What the scenarios of the engine begin with: a group, for the simplest kind that makes an object. */
export function engineScenes(world: () => TestWorld) {
  const apply = (displayName = 'Crew') => world().apply(KIND, PLACE, { displayName });
  async function made(): Promise<void> {
    apply();
    await world().deliverEvents();
    assert.equal(world().ready(KIND, PLACE), 'True');
    world().forget();
  }
  /** A resource that waits for its first retry. */
  async function failed(): Promise<string> {
    world().fail(...DOWN);
    apply();
    await world().deliverEvents();
    world().heal();
    assert.equal(world().ready(KIND, PLACE), 'False LldapUnavailable');
    world().forget();
    return world().status(KIND, PLACE).retry?.nextTime ?? assert.fail();
  }
  const count = (call: RegExp) => world().calls.filter((name) => call.test(name)).length;
  const tell = (object: unknown = world().get(KIND, PLACE)) =>
    world().broker.post({ what: 'resource', change: 'update', target: TARGET, object });
  /** Another controller writes to the resource. */
  const touch = () => {
    const resource = world().get(KIND, PLACE);
    world().unwatched(() => world().kube.changeMetadata(resource, { annotations: { at: resource.metadata.resourceVersion } }));
  };
  const vanish = () => world().unwatched(() => world().kube.drop(world().get(KIND, PLACE)));

  return { apply, made, failed, count, tell, touch, vanish };
}
