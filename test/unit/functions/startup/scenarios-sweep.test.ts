import assert from 'node:assert/strict';
import { MARK_ATTRIBUTE, PASSWORD_KEY_SECRET } from '../../../../shared/constants.ts';
import type { ObjectMeta } from '../../../../shared/kube/resources.ts';
import { createWorld, TestWorld, useWorld } from '../../support/world.ts';
import { KEY_SECRET, NOTHING, startupScenes, VIRTUAL } from './scenes.ts';

describe('what startup asks for and reports', () => {
  const { w, startWith } = useWorld();
  const { lost, defined, undefine, inhabited } = startupScenes(w);

  describe('problems, each with the setting to check', () => {
    const CREDENTIALS = '(check LLDAP_URL and the Secret lldap-operator-credentials)';
    const failing: [what: string, cause: () => void, problems: RegExp[], doesSweep: boolean][] = [
      [
        'lldap is down',
        () => {
          w.fail(/^lldap/, 'refused', 100);
          w.fail(/^ldap/, 'refused', 100);
        },
        [
          /^lldap .*\(check LLDAP_URL and the Secret lldap-operator-credentials\)$/,
          /\(check LLDAP_LDAP_URL, LLDAP_BASE_DN and the Secret lldap-operator-credentials\)$/,
        ],
        true,
      ],
      [
        'LDAP alone is down',
        () => w.fail(/^ldap/, 'refused', 100),
        [/^LDAP failed \(check LLDAP_LDAP_URL, LLDAP_BASE_DN and the Secret lldap-operator-credentials\)$/],
        true,
      ],
      [
        'HTTP alone is down',
        () => w.fail(/^lldap/, 'refused', 100),
        [/\(check LLDAP_URL and the Secret lldap-operator-credentials\)$/],
        true,
      ],
      [
        'the definitions cannot be read',
        () => w.fail(/lldap schema/, 'refused', 100),
        [/\(check the rights of the operator's account in lldap\)$/],
        true,
      ],
      [
        'a list of resources cannot be read',
        () => w.fail(/LIST LldapMembership/, 'odd', 100),
        [/^odd \(check the rights of the ServiceAccount lldap-operator-startup\)$/],
        false,
      ],
      ['the key cannot be read', () => w.fail(/GET Secret/, 'odd', 100), [/^odd \(check the Secret lldap-operator-password-key\)$/], true],
      [
        'the broker takes no event',
        () => w.fail(/broker/, 'refused', 100),
        [/^The broker did not accept the event\. \(check BROKER_URL\)$/],
        false,
      ],
    ];
    for (const [what, cause, problems, doesSweep] of failing)
      it(`${what}, but the run does everything else`, async () => {
        await inhabited();
        lost();
        cause();
        const summary = await w.startup();
        assert.equal(summary.ok, false);
        assert.equal(summary.problems.length, problems.length, summary.problems.join('\n'));
        for (const [index, problem] of problems.entries()) assert.match(summary.problems[index] ?? '', problem);
        assert.deepEqual([summary.asked, summary.posted.lost], doesSweep ? [true, 1] : [false, 0]);
        const told = w.kube.events.filter(({ regarding }) => regarding.kind === 'ConfigMap');
        assert.deepEqual(
          told.map(({ reason, note }) => [reason, note]),
          [['StartupFailed', summary.problems.join('; ')]],
        );
      });

    it('lldap refused the credentials, which appear nowhere', async () => {
      w.lldap.credentials = { username: 'admin', password: 'wrong-password' };
      const { problems } = await w.startup();
      assert.ok(problems[0]?.endsWith(CREDENTIALS), problems.join('\n'));
      assert.ok(!JSON.stringify([problems, w.kube.events, w.logs]).includes('wrong-password'));
    });

    it('the account is not an administrator', async () => {
      w.byHand((directory) => directory.removeMember('admin', 1));
      const { problems } = await w.startup();
      assert.match(problems.join('\n'), /check LLDAP_URL and the Secret lldap-operator-credentials/);
    });

    it('a malformed lldap address is the only problem, and lldap is not called', async () => {
      startWith(new TestWorld({ LLDAP_URL: 'nonsense' }));
      lost();
      const summary = await w.startup();
      assert.equal(summary.ok, false);
      assert.equal(summary.problems.length, 1);
      assert.match(summary.problems[0] ?? '', /^LLDAP_URL/);
      assert.deepEqual([summary.virtualGroupsWritten, summary.posted.lost], [0, 1]);
      assert.ok(!w.asked.some((call) => call.endsWith('check') || call.includes('apiVersion')));
    });

    it('a key Secret without a key is not overwritten, and the sweep does what needs no key', async () => {
      w.unwatched(() => w.kube.putSecret({ metadata: { name: PASSWORD_KEY_SECRET, namespace: 'op' }, data: { key: '' } }));
      lost();
      const summary = await w.startup();
      assert.equal(summary.posted.lost, 1);
      assert.match(summary.problems.join(), /check the Secret lldap-operator-password-key/);
      assert.deepEqual(w.kube.secrets.get(KEY_SECRET)?.data, { key: '' });
    });

    it('unreadable Secrets stop only the search for rotated passwords', async () => {
      await inhabited();
      w.fail(/LIST Secret/, 'odd');
      const { problems } = await w.startup('full');
      assert.deepEqual(problems, ['odd (check the rights to read Secrets)']);
      assert.ok(w.posted.includes('reconcile LldapUser team/alice'));
    });

    it('a drift run names LLDAP_URL if lldap fails', async () => {
      await inhabited();
      w.fail(/lldap users/, 'refused', 10);
      const { problems, ok } = await w.startup('drift');
      assert.equal(ok, false);
      assert.match(problems.join(), /\(check LLDAP_URL\)$/);
    });

    it('a mark that people may write is reported with the remedy', async () => {
      const mark = defined('user') ?? assert.fail();
      w.byHand(({ state }) => state.definitions.user.set(MARK_ATTRIBUTE, { ...mark, isEditable: true }));
      const summary = await w.startup();
      assert.equal(summary.ok, false);
      assert.deepEqual(summary.problems, [
        "The attribute k8s-owner of users is not defined in lldap as the operator defines it: one text, not visible, not editable. Otherwise people may claim what is another's: delete the definition there, and startup makes it and all marks anew.",
      ]);
    });
  });

  describe('the Events of startup', () => {
    it('regard the ConfigMap, at most one an hour for the same problems', async () => {
      w.fail(/^ldap/, 'refused', 1000);
      const names = async () => {
        w.forget();
        await w.startup();
        return w.kube.events.map(({ metadata }) => metadata.name);
      };
      const [first = ''] = await names();
      assert.match(first, /^lldap-operator-startup\.[0-9a-f]{8}\.2026-03-01-12$/);
      const { regarding, type } = w.kube.events[0] ?? assert.fail();
      assert.deepEqual(
        [regarding.apiVersion, regarding.kind, regarding.namespace, regarding.name, type],
        ['v1', 'ConfigMap', 'op', 'lldap-operator', 'Warning'],
      );
      assert.deepEqual(await names(), [first]);
      w.scheduler.now += 3_600_000;
      assert.deepEqual(await names(), [first.replace(/12$/, '13')]);
    });

    it('and the log list all problems of a run in one line', async () => {
      w.fail(/^lldap/, 'refused', 100);
      w.fail(/^ldap/, 'refused', 100);
      const { problems } = await w.startup();
      assert.equal(w.kube.events[0]?.note, problems.join('; '));
      const line = w.logs.find((entry) => 'problems' in entry);
      assert.deepEqual([line?.level, line?.reason, line?.problems], ['error', 'StartupFailed', problems]);
    });

    it('warn of another operator that writes the same statuses', async () => {
      await inhabited();
      const entry = { manager: 'blue', subresource: 'status', fieldsV1: { 'f:status': { 'f:conditions': { 'k:{"type":"Ready"}': {} } } } };
      w.unwatched(() => w.kube.changeMetadata(w.get('LldapUser', 'team/alice'), { managedFields: [entry] } as Partial<ObjectMeta>));
      const summary = await w.startup();
      assert.equal(summary.ok, true);
      assert.match(summary.warnings.join(), /^Another operator \(blue\) writes the status of LldapUser team\/alice/);
      assert.equal(summary.warnings.length, 1);
      assert.deepEqual(w.events, ['Warning RivalOperator op/lldap-operator']);
      assert.equal(w.kube.events[0]?.note, summary.warnings[0]);
    });
  });

  describe('the sweep', () => {
    it('enqueues lost resources, then rotated passwords, then stalled resources', async () => {
      await inhabited();
      w.user('team/stalled', { email: 'stalled@example.com', passwordPolicy: 'Manage' });
      await w.deliverEvents();
      w.forget();
      w.unwatched(() => w.secret('team/s', 'password-2'));
      lost();
      const summary = await w.startup();
      assert.deepEqual(summary.posted, { ...NOTHING, lost: 1, rotated: 1, stalled: 1 });
      assert.deepEqual(w.posted, ['reconcile LldapUser team/lost', 'reconcile LldapUser team/alice', 'reconcile LldapUser team/stalled']);
    });

    it('enqueues everything once in mode full, definitions first, but nothing suspended or virtual', async () => {
      await inhabited();
      w.unwatched(() => {
        w.secret('team/s', 'password-2');
        w.apply('LldapAttributeSchema', 'team/lost', { attributeName: 'lost', attributeType: 'String', target: 'Group' });
      });
      const summary = await w.startup('full');
      assert.deepEqual(summary.posted, { ...NOTHING, lost: 1, full: 4 });
      assert.deepEqual(w.posted, [
        'reconcile LldapAttributeSchema team/lost',
        'reconcile LldapAttributeSchema team/desk',
        'reconcile LldapUser team/alice',
        'reconcile LldapGroup team/crew',
        'reconcile LldapMembership team/m',
      ]);
      assert.equal(summary.asked, true);
    });

    it('finds changes made in lldap only in mode drift', async () => {
      await inhabited();
      w.byHand((directory) => directory.updateGroup({ id: 4, displayName: 'Theirs' }));
      assert.deepEqual((await w.startup()).posted, NOTHING);
      const summary = await w.startup('drift');
      assert.deepEqual([summary.modes, summary.posted], [['drift'], { ...NOTHING, drifted: 1 }]);
      await w.deliverEvents();
      assert.ok(w.hasGroup('Crew'));
    });

    it('skips the drift check if mode full shares the run', async () => {
      await inhabited();
      for (const mode of ['sweep', 'full', 'drift'] as const) w.broker.post({ what: 'startup', mode });
      await w.pass(60);
      const runs = w.logs.flatMap(({ modes }) => (modes ? [modes] : []));
      assert.deepEqual(runs, [['sweep'], ['full', 'drift'], ['full', 'drift']], 'the two share a run');
      assert.ok(!w.calls.includes('lldap users'));
    });

    it('enqueues everything after the mark was lost, since no object has one', async () => {
      await inhabited();
      undefine();
      const summary = await w.startup();
      assert.deepEqual([summary.marksDefined, summary.posted.full], [1, 4]);
      assert.ok(defined('user'));
    });

    it('says how to enqueue everything later if the broker fails', async () => {
      await inhabited();
      undefine();
      w.fail(/broker/, 'refused', 1);
      const summary = await w.startup();
      assert.equal(summary.asked, false);
      assert.match(summary.problems[1] ?? '', /run startup again with mode full\.$/);
      assert.equal(summary.problems.length, 2);
    });

    it('leaves the mark undefined while it cannot list the resources, since the loss would go unnoticed', async () => {
      await inhabited();
      undefine();
      w.unwatched(() => w.kube.drop(w.get('LldapGroup', VIRTUAL)));
      w.fail(/LIST LldapMembership/, 'odd');
      const summary = await w.startup();
      assert.deepEqual([summary.marksDefined, summary.resources, defined('user')], [0, 0, undefined]);
      assert.ok(w.has('LldapGroup', VIRTUAL), 'the virtual groups are kept all the same');
      assert.deepEqual([summary.posted, summary.problems.length], [NOTHING, 1]);
    });

    it('posts at the rate that the installation allows', async () => {
      startWith(createWorld({ SWEEP_EVENTS_PER_SECOND: '2' }));
      w.unwatched(() => {
        for (const name of ['a', 'b', 'c', 'd']) w.user(`team/${name}`);
      });
      const start = w.scheduler.now;
      assert.equal((await w.startup()).posted.lost, 4);
      assert.equal(w.scheduler.now - start, 2000);
    });
  });
});
