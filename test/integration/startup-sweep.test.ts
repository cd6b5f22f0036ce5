import assert from 'node:assert/strict';
import { REQUESTED_AT } from '../../shared/constants.ts';
import type { LldapUserSpec } from '../../shared/kube/resources.ts';
import { type Clock, timestamp } from '../../shared/platform/clock.ts';
import { useHarness } from './support/harness.ts';

const MINUTE = 60_000;

describe('The sweep', () => {
  const h = useHarness();
  const user = async (name: string, more: Partial<LldapUserSpec> = {}) => {
    await h.create('LldapUser', name, { username: name, email: `${name}@example.com`, passwordPolicy: 'Ignore', ...more });
    await h.reconcile('LldapUser', name);
    assert.equal((await h.ready('LldapUser', name)).status, 'True');
  };
  const failing = (name: string, retry: object | null, generation?: number) =>
    h.editStatus('LldapUser', name, {
      conditions: [
        { type: 'Ready', status: 'False', reason: 'LldapUnavailable', message: 'x', lastTransitionTime: '2026-01-01T00:00:00Z' },
      ],
      retry,
      ...(generation && { observedGeneration: generation }),
    });
  /** The names that a sweep posts. */
  const sweep = async (mode: 'sweep' | 'full' | 'drift' = 'sweep'): Promise<string[]> => {
    h.posted.reconcile = [];
    const summary = await h.startup(mode);
    assert.equal(summary.ok, true, summary.problems.join());
    const names = h.posted.reconcile.map(({ target, notBefore }) => `${target.name}${notBefore ? ' late' : ''}`);
    h.posted.reconcile = [];
    return names.sort();
  };
  const at = (clock: Clock, ms: number) => ({ attempts: 1, category: 'Unavailable', nextTime: timestamp(clock.now() + ms) });

  describe('finds a resource', () => {
    const CASES: [what: string, found: boolean, arrange: (name: string) => Promise<unknown>][] = [
      ['that is in steady state', false, async () => {}],
      ['that changed without being looked at', true, (name) => h.edit('LldapUser', name, { spec: { firstName: 'New' } })],
      ['that has no status', true, (name) => h.editStatus('LldapUser', name, { observedGeneration: null, conditions: null })],
      ['that is not Ready and has no retry', true, (name) => failing(name, null)],
      ['whose retry the broker did not accept', true, (name) => failing(name, { attempts: 1, category: 'Unavailable' })],
      ['whose retry is ahead', false, (name) => failing(name, at(h.clock, MINUTE))],
      ['whose retry was due a moment ago', false, (name) => failing(name, at(h.clock, -1.9 * MINUTE))],
      ['whose retry was due more than two minutes ago', true, (name) => failing(name, at(h.clock, -2.1 * MINUTE))],
      [
        'whose retry is ahead, but of an older generation',
        true,
        async (name) => {
          await failing(name, at(h.clock, MINUTE));
          await h.edit('LldapUser', name, { spec: { firstName: 'New' } });
        },
      ],
      ['that is being deleted', true, (name) => h.remove('LldapUser', name)],
      [
        'that is being deleted and has a retry ahead',
        false,
        async (name) => {
          await h.remove('LldapUser', name);
          await failing(name, at(h.clock, MINUTE), (await h.get('LldapUser', name)).metadata.generation);
        },
      ],
      [
        'that waits for the finalizer of another alone',
        false,
        async (name) => {
          await h.edit('LldapUser', name, { metadata: { finalizers: ['example.com/other'] } });
          await h.remove('LldapUser', name);
        },
      ],
      ['with an unhandled token', true, (name) => h.edit('LldapUser', name, { metadata: { annotations: { [REQUESTED_AT]: 'please' } } })],
      [
        'with an unhandled token and a retry ahead',
        true,
        async (name) => {
          await failing(name, at(h.clock, MINUTE));
          await h.edit('LldapUser', name, { metadata: { annotations: { [REQUESTED_AT]: 'please' } } });
        },
      ],
      [
        'with a token that was handled',
        false,
        async (name) => {
          await h.edit('LldapUser', name, { metadata: { annotations: { [REQUESTED_AT]: 'done' } } });
          await h.editStatus('LldapUser', name, { lastHandledReconcileAt: 'done' });
        },
      ],
      ['that lost its finalizer', true, (name) => h.edit('LldapUser', name, { metadata: { finalizers: null } })],
      ['that was suspended, and does not say so yet', true, (name) => h.edit('LldapUser', name, { spec: { suspend: true } })],
      [
        'that is suspended, whatever else',
        false,
        async (name) => {
          await h.edit('LldapUser', name, { spec: { suspend: true }, metadata: { annotations: { [REQUESTED_AT]: 'please' } } });
          await h.remove('LldapUser', name);
          await h.reconcile('LldapUser', name, {});
          await h.edit('LldapUser', name, { metadata: { annotations: { [REQUESTED_AT]: 'again' } } });
        },
      ],
    ];
    for (const [i, [what, found, arrange]] of CASES.entries()) {
      it(`${what}: ${found ? 'yes' : 'no'}`, async () => {
        const name = `case-${i}`;
        await user(name);
        await arrange(name);
        assert.deepEqual(await sweep(), found ? [name] : []);
        if (await h.exists('LldapUser', name)) {
          await h.edit('LldapUser', name, { spec: { deletionPolicy: 'Retain' }, metadata: { finalizers: null } });
          if (await h.exists('LldapUser', name)) await h.remove('LldapUser', name);
        }
      });
    }
  });

  it('reads nothing of lldap for it but what startup checks anyway, and posts full reconciles', async () => {
    await user('lost-one');
    await h.edit('LldapUser', 'lost-one', { spec: { firstName: 'New' } });
    h.posted.reconcile = [];
    const cost = await h.cost(() => h.startup());
    assert.deepEqual(
      cost.lldapReads.filter((read) => !read.startsWith('group ')),
      ['apiVersion', 'schema'],
    );
    assert.deepEqual(h.posted.reconcile, [{ target: { kind: 'LldapUser', namespace: h.namespace, name: 'lost-one' } }]);
    await h.deliverEvents();
    assert.equal((await h.get('LldapUser', 'lost-one')).status?.observedGeneration, 2);
  });

  it('finds each kind, and no virtual group', async () => {
    await h.create('LldapAttributeSchema', 'new-schema', { attributeName: 'new', attributeType: 'String', target: 'User' });
    await h.create('LldapGroup', 'new-group', { displayName: 'new' });
    await h.create('LldapMembership', 'new-membership', { userName: 'new', groupName: 'new' });
    await h.create('LldapUser', 'new-user', { username: 'new', email: 'new@example.com', passwordPolicy: 'Ignore' });
    assert.deepEqual(await sweep(), ['new-group', 'new-membership', 'new-schema', 'new-user']);
    for (let i = 0; i < 2; i++) {
      await h.startup();
      await h.deliverEvents();
    }
    assert.deepEqual(await sweep(), []);
  });

  it('finds a membership whose user or group is another one by now, or has another name, and no other', async () => {
    await h.create('LldapMembership', 'by-hand', { userName: 'admin', groupName: 'old' });
    await h.create('LldapGroup', 'stale', { displayName: 'old' });
    await user('stale');
    await h.create('LldapMembership', 'stale', { userName: 'stale', groupName: 'old' });
    for (const [kind, name] of [
      ['LldapGroup', 'stale'],
      ['LldapMembership', 'stale'],
      ['LldapMembership', 'by-hand'],
    ] as const)
      await h.reconcile(kind, name);
    assert.deepEqual(await sweep(), []);

    const { status } = await h.get('LldapMembership', 'stale');
    const stale = async (joined: object | null) => {
      await h.editStatus('LldapMembership', 'stale', { joined });
      const names = await sweep();
      await h.editStatus('LldapMembership', 'stale', { joined: status?.joined });
      return names;
    };
    assert.deepEqual(await stale({ ...status?.joined, userUuid: 'another' }), ['stale']);
    assert.deepEqual(await stale({ ...status?.joined, groupUuid: 'another' }), ['stale']);
    assert.deepEqual(await stale({ ...status?.joined, groupId: 77 }), ['stale']);
    assert.deepEqual(await stale(null), ['stale']);
    assert.deepEqual(await sweep(), []);

    await h.edit('LldapGroup', 'stale', { spec: { displayName: 'new name' } });
    await h.reconcile('LldapGroup', 'stale', {});
    assert.deepEqual(await sweep(), ['by-hand', 'stale']);
    await h.edit('LldapGroup', 'stale', { spec: { displayName: 'old' } });
    await h.reconcile('LldapGroup', 'stale', {});
    await h.deliverEvents();
    assert.deepEqual(await sweep(), []);
  });

  it('a Conflict of the same name makes no membership stale', async () => {
    const other = await h.cluster.createNamespace('tenant');
    await h.create('LldapUser', 'conflict', { username: 'stale', email: 'c@example.com', passwordPolicy: 'Ignore' }, { namespace: other });
    await h.reconcile('LldapUser', 'conflict', { namespace: other, full: true });
    await h.editStatus('LldapUser', 'conflict', { uuid: 'another' }, other);
    assert.deepEqual(await sweep(), []);
    await h.remove('LldapUser', 'conflict', other);
  });

  it('finds the users whose Secret holds another password, labelled or not, and no other', async () => {
    for (const [name, labels] of [
      ['labelled', undefined],
      ['unlabelled', {}],
      ['unchanged', undefined],
      ['unchanged-2', {}],
      ['initial', undefined],
      ['ignored', undefined],
      ['vanished', {}],
      ['keyless', undefined],
    ] as const) {
      await h.secret(name, { password: `first of ${name}` }, { ...(labels && { labels }) });
      const passwordPolicy = name === 'initial' ? 'InitialOnly' : name === 'ignored' ? 'Ignore' : 'Manage';
      await user(name, { passwordPolicy, passwordSecretRef: { name, key: 'password' } });
    }
    assert.deepEqual(await sweep(), []);
    for (const name of ['labelled', 'initial', 'ignored']) await h.secret(name, { password: `second of ${name}` });
    await h.secret('unlabelled', { password: 'second of unlabelled' }, { labels: {} });
    await h.cluster.request('DELETE', `/api/v1/namespaces/${h.namespace}/secrets/vanished`);
    await h.secret('keyless', { other: 'another key than named' });
    assert.deepEqual(await sweep(), ['keyless', 'labelled', 'unlabelled', 'vanished']);
    const cost = await h.cost(() => h.startup());
    const secrets = cost.kubeReads.map(({ path }) => /secrets.*/.exec(path)?.[0].replace(/\?.*/, '')).filter(Boolean);
    assert.deepEqual(secrets.sort(), [
      'secrets',
      'secrets/lldap-operator-password-key',
      'secrets/unchanged-2',
      'secrets/unlabelled',
      'secrets/vanished',
    ]);
    assert.deepEqual([cost.passwords, cost.kubeWrites], [[], []]);
    await h.deliverEvents();
    assert.equal(await h.lldap.check('labelled', 'second of labelled'), true);
    assert.equal(await h.lldap.check('unlabelled', 'second of unlabelled'), true);
  });

  it('posts at the rate that the installation allows', async () => {
    for (let i = 0; i < 10; i++) await h.create('LldapGroup', `rate-${i}`, { displayName: `rate ${i}` });
    const before = h.clock.sleeps.length;
    await h.startup();
    const posted = h.posted.reconcile.length;
    assert.ok(posted >= 10);
    assert.ok(h.clock.sleeps.slice(before).filter((ms) => ms === 1000 / 50).length >= posted);
    await h.deliverEvents();
  });

  it('mode full posts everything that is not suspended or virtual, each once', async () => {
    await user('paused');
    await h.edit('LldapUser', 'paused', { spec: { suspend: true } });
    await h.reconcile('LldapUser', 'paused');
    h.posted.reconcile = [];
    await h.startup('full');
    const posted = h.posted.reconcile.map(({ target }) => `${target.kind} ${target.name}`);
    assert.equal(new Set(posted).size, posted.length);
    for (const one of ['LldapUser stale', 'LldapGroup stale', 'LldapMembership stale', 'LldapAttributeSchema new-schema'])
      assert.ok(posted.includes(one), one);
    assert.equal(
      posted.some((one) => one === 'LldapUser paused' || one.startsWith('LldapGroup lldap-')),
      false,
    );
  });

  it('changes while nobody listened, including deletions, are reconciled after one run', async () => {
    await user('edited');
    await user('deleted');
    await h.create('LldapGroup', 'edited', { displayName: 'before' });
    await h.reconcile('LldapGroup', 'edited');
    await h.edit('LldapUser', 'edited', { spec: { lastName: 'New' } });
    await h.edit('LldapGroup', 'edited', { spec: { displayName: 'after' } });
    await h.remove('LldapUser', 'deleted');
    await h.create('LldapUser', 'created', { username: 'created', email: 'created@example.com', passwordPolicy: 'Ignore' });
    await h.restart();
    await h.startup();
    await h.deliverEvents();
    const users = await h.lldap.users();
    assert.equal(users.find(({ id }) => id === 'edited')?.attributes.last_name?.[0], 'New');
    assert.deepEqual([users.some(({ id }) => id === 'deleted'), users.some(({ id }) => id === 'created')], [false, true]);
    assert.ok((await h.lldap.groups()).some(({ displayName }) => displayName === 'after'));
    assert.equal(await h.exists('LldapUser', 'deleted'), false);
  });
});
