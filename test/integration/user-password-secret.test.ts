import assert from 'node:assert/strict';
import type { LldapUserSpec } from '../../shared/kube/resources.ts';
import { useHarness } from './support/harness.ts';
import type { CreateOptions } from './support/person.ts';

describe('Secrets with passwords', () => {
  const h = useHarness();
  const ref = (name: string, key = 'password') => ({ name, key });
  const user = (name: string, more: Partial<LldapUserSpec> = {}, options: CreateOptions = {}) =>
    h.create('LldapUser', name, { username: name, email: `${name}@example.com`, passwordSecretRef: ref(name), ...more }, options);
  const made = async (name: string, more: Partial<LldapUserSpec> = {}) => {
    await h.secret(name, { password: `first of ${name}` });
    await user(name, more);
    await h.reconcile('LldapUser', name);
    assert.equal((await h.ready('LldapUser', name)).status, 'True');
  };
  const synced = async (name: string) => (await h.condition('LldapUser', name, 'PasswordSynced'))?.reason;
  /** What the Secrets source tells, and all that follows from it. */
  const rotate = async (name: string, password: string) => {
    await h.secret(name, { password });
    await h.secretEvent(name);
    return h.cost(() => h.deliverEvents());
  };

  it('the Secret is missing: the user is made, the rest waits and says what to create, and the Secret wakes it', async () => {
    await user('early');
    const report = await h.reconcile('LldapUser', 'early');
    assert.deepEqual([report.reason, report.retry?.category, report.did], ['SecretNotFound', 'NotReady', ['created the user']]);
    assert.match(report.message ?? '', /Secret early .* key password/);
    assert.equal(await synced('early'), 'SecretNotFound');
    assert.equal((await h.get('LldapUser', 'early')).status?.origin, 'created');
    await rotate('early', 'now it is there');
    assert.equal((await h.ready('LldapUser', 'early')).status, 'True');
    assert.equal(await h.lldap.check('early', 'now it is there'), true);
  });

  it('the key is missing in the Secret: the message names both', async () => {
    await h.secret('keyed', { other: 'not the one' });
    await user('keyed');
    const report = await h.reconcile('LldapUser', 'keyed');
    assert.deepEqual([report.reason, report.retry?.category], ['SecretKeyMissing', 'NotReady']);
    assert.match(report.message ?? '', /Secret keyed in the namespace \S+ has no key password/);
  });

  it('a password that is too short is Stalled without a retry, names the least length and not the password, and a longer one wakes it', async () => {
    await h.secret('brief', { password: 'sh0rt.!' });
    await user('brief');
    const report = await h.reconcile('LldapUser', 'brief');
    assert.deepEqual([report.reason, report.retry], ['PasswordTooShort', undefined]);
    assert.match(report.message ?? '', /Secret brief, key password, has fewer than 8 characters/);
    assert.equal((await h.condition('LldapUser', 'brief', 'Stalled'))?.status, 'True');
    await rotate('brief', 'l0nger.!');
    assert.equal((await h.ready('LldapUser', 'brief')).status, 'True');
    assert.equal(await h.condition('LldapUser', 'brief', 'Stalled'), undefined);
  });

  it('an empty password is never set, though lldap would take it', async () => {
    await h.secret('blank', { password: '' });
    await user('blank');
    assert.equal((await h.reconcile('LldapUser', 'blank')).reason, 'PasswordTooShort');
    assert.equal((await h.lldap.users()).find(({ id }) => id === 'blank')?.hasPassword, false);
  });

  it('characters are counted, not bytes, and white space belongs to the password', async () => {
    await h.secret('umlauts', { password: ' äöüßéñ\n' });
    await user('umlauts');
    assert.equal((await h.reconcile('LldapUser', 'umlauts')).ready, true);
    assert.equal(await h.lldap.check('umlauts', ' äöüßéñ\n'), true);
    await h.secret('emoji', { password: '😀😀😀😀' });
    await user('emoji');
    assert.equal((await h.reconcile('LldapUser', 'emoji')).reason, 'PasswordTooShort');
  });

  it('bytes that are no UTF-8, and a password beyond what lldap takes, are refused before lldap sees them', async () => {
    for (const [name, bytes] of [
      ['binary', Buffer.from([0xff, 0xfe, 0xfd, 1, 2, 3, 4, 5, 6, 7])],
      ['endless', Buffer.alloc(10_001, 'x')],
    ] as const) {
      const body = { apiVersion: 'v1', kind: 'Secret', metadata: { name }, data: { password: bytes.toString('base64') } };
      await h.cluster.request('POST', `/api/v1/namespaces/${h.namespace}/secrets`, { body });
      await user(name);
      const cost = await h.cost(() => h.reconcile('LldapUser', name));
      assert.deepEqual(cost.passwords, []);
      assert.equal((await h.ready('LldapUser', name)).reason, 'InvalidValue');
      assert.equal((await h.condition('LldapUser', name, 'Stalled'))?.status, 'True');
    }
  });

  it('a Secret without the label is used, and PasswordSynced says when a change of it is noticed', async () => {
    await h.secret('unwatched', { password: 'first of unwatched' }, { labels: {} });
    await user('unwatched');
    await h.reconcile('LldapUser', 'unwatched');
    assert.match((await h.condition('LldapUser', 'unwatched', 'PasswordSynced'))?.message ?? '', /lldap-instance.*next sweep/);
    await made('watched');
    assert.doesNotMatch((await h.condition('LldapUser', 'watched', 'PasswordSynced'))?.message ?? '', /sweep/);
  });

  it('the Secret of a steady user goes away: it says so, and the password in lldap stays', async () => {
    await made('bereft');
    await h.cluster.request('DELETE', `/api/v1/namespaces/${h.namespace}/secrets/bereft`);
    await h.secretEvent('bereft');
    await h.deliverEvents();
    assert.equal((await h.ready('LldapUser', 'bereft')).reason, 'SecretNotFound');
    assert.equal(await h.lldap.check('bereft', 'first of bereft'), true);
    await h.remove('LldapUser', 'bereft');
    await h.reconcile('LldapUser', 'bereft', {});
    assert.equal(await h.exists('LldapUser', 'bereft'), false);
    assert.equal(
      (await h.lldap.users()).some(({ id }) => id === 'bereft'),
      false,
    );
  });

  it('the LDAP port is down while GraphQL works: the user is made, and the password follows', async () => {
    await h.lldap.fault({ kind: 'text', text: 'no', only: { operation: 'passwordModify' }, times: 1 });
    await h.secret('halfway', { password: 'first of halfway' });
    await user('halfway');
    const report = await h.reconcile('LldapUser', 'halfway');
    assert.deepEqual([report.ready, report.did], [false, ['created the user']]);
    await h.nextRetry();
    assert.equal(await h.lldap.check('halfway', 'first of halfway'), true);
  });

  it('another key or Secret in the spec is another password', async () => {
    await made('moved');
    await h.secret('moved-to', { other: 'from another secret' });
    await h.edit('LldapUser', 'moved', { spec: { passwordSecretRef: { name: 'moved-to', key: 'other' } } });
    const cost = await h.cost(() => h.reconcile('LldapUser', 'moved', {}));
    assert.deepEqual(cost.passwords, ['passwordModify moved', 'bind moved']);
    assert.equal(await h.lldap.check('moved', 'from another secret'), true);
  });
});
