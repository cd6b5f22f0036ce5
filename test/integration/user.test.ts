import assert from 'node:assert/strict';
import { CLUSTER_TIMEOUT_MS } from '../local/kube/shared.ts';
import { type Harness, startHarness } from './harness.ts';

describe('LldapUser', () => {
  let h: Harness;
  before(async function () {
    this.timeout(CLUSTER_TIMEOUT_MS);
    h = await startHarness();
  });
  after(() => h.close());

  it('a new user with a password is created in few calls', async () => {
    await h.secret('alice', { password: 'correct horse' });
    const created = await h.create('LldapUser', 'alice', {
      username: 'Alice',
      email: 'alice@example.com',
      passwordSecretRef: { name: 'alice', key: 'password' },
    });
    const report = await h.reconcile('LldapUser', 'alice', { object: created });
    assert.equal(report.result, 'settled', JSON.stringify(report));
    assert.equal(report.ready, true, JSON.stringify(report));
    assert.equal(await h.lldap.check('alice', 'correct horse'), true);
  });
});
