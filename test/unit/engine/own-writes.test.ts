import assert from 'node:assert/strict';
import { createOwnWrites, versionOf } from '../../../shared/engine/own-writes.ts';
import { user } from '../support/examples.ts';

const version = (uid: string, resourceVersion: string) => user({ metadata: { uid, resourceVersion } });

describe('shared/engine/own-writes', () => {
  it('knows the versions that this process wrote, and no others', () => {
    const echoes = createOwnWrites();
    echoes.add(version('a', '7'));
    assert.equal(echoes.has(versionOf(version('a', '7'))), true);
    assert.equal(echoes.has(versionOf(version('a', '8'))), false);
    assert.equal(echoes.has(versionOf(version('b', '7'))), false);
  });

  it('forgets the oldest and never grows beyond 5,000', () => {
    const echoes = createOwnWrites();
    for (let i = 0; i <= 5_000; i++) echoes.add(version('a', String(i)));
    assert.equal(echoes.has(versionOf(version('a', '0'))), false);
    assert.equal(echoes.has(versionOf(version('a', '1'))), true);
    assert.equal(echoes.has(versionOf(version('a', '5000'))), true);
  });
});
