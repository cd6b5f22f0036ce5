import assert from 'node:assert/strict';
import { BUILT_IN_GROUPS, INSTANCE_LABEL, MARK_ATTRIBUTE, PASSWORD_KEY_SECRET, VIRTUAL_LABEL } from '../../../../shared/constants.ts';
import type { ObjectMeta } from '../../../../shared/kube/resources.ts';
import { createWorld, LABELS, TestWorld } from '../../support/world.ts';

const KEY_SECRET = `op/${PASSWORD_KEY_SECRET}`;
const VIRTUAL = 'op/lldap-admin';
const NOTHING = { lost: 0, stalled: 0, rotated: 0, drifted: 0, full: 0 };

describe('startup, from the run to the cluster', () => {
  let w: TestWorld;

  beforeEach(() => {
    w = createWorld();
  });

  /** A resource that changed and whose event was lost. */
  const lost = () => w.unwatched(() => w.user('team/lost'));
  const defined = (target: 'user' | 'group') => w.lldap.state.definitions[target].get(MARK_ATTRIBUTE);
  const undefine = () => w.byHand(({ state }) => state.definitions.user.delete(MARK_ATTRIBUTE));
  /** Everything there is once, in steady state. */
  async function inhabited(): Promise<void> {
    w.secret('team/s', 'password-1');
    w.user('team/alice', { passwordPolicy: 'Manage', passwordSecretRef: { name: 's', key: 'password' } });
    w.apply('LldapGroup', 'team/crew', { displayName: 'Crew' });
    w.membership('team/m', 'alice', 'Crew');
    w.apply('LldapAttributeSchema', 'team/desk', { attributeName: 'desk', attributeType: 'Integer', target: 'User' });
    w.user('team/paused', { suspend: true });
    await w.deliverEvents();
    w.forget();
  }

  describe('a fresh installation', () => {
    it('gets the definitions of the mark, the key and the virtual groups, and nothing else in lldap', async () => {
      w = new TestWorld();
      const summary = await w.startup();
      assert.deepEqual(summary, {
        ok: true,
        modes: ['sweep'],
        problems: [],
        warnings: [],
        marksDefined: 2,
        virtualGroupsWritten: 3,
        resources: 0,
        asked: true,
        posted: NOTHING,
      });
      for (const target of ['user', 'group'] as const) {
        const { attributeType, isList, isVisible, isEditable } = defined(target) ?? assert.fail();
        assert.deepEqual([attributeType, isList, isVisible, isEditable], ['STRING', false, false, false]);
      }
      const { metadata, data } = w.kube.secrets.get(KEY_SECRET) ?? assert.fail();
      assert.equal(Buffer.from(data?.key ?? '', 'base64').length, 32);
      assert.deepEqual(metadata.labels, { 'app.kubernetes.io/part-of': 'lldap-operator', 'app.kubernetes.io/instance': 'main' });
      const changes = w.asked.filter((call) => /lldap (create|update|delete|add|remove)/.test(call));
      assert.deepEqual(changes, ['lldap addUserAttribute k8s-owner', 'lldap addGroupAttribute k8s-owner']);
      assert.deepEqual(w.events, []);
    });

    it('has a virtual group for each built-in one, Ready, with its id and uuid', async () => {
      w = new TestWorld();
      await w.startup();
      for (const name of BUILT_IN_GROUPS) {
        const at = `op/${name.replaceAll('_', '-')}` as const;
        const { metadata, spec, status } = w.get('LldapGroup', at);
        assert.deepEqual([spec, metadata.labels], [{ displayName: name }, { [INSTANCE_LABEL]: 'main', [VIRTUAL_LABEL]: 'true' }]);
        const { id, uuid } = w.groupOf(name);
        assert.deepEqual([status?.nameKey, status?.groupId, status?.uuid, w.ready('LldapGroup', at)], [name, id, uuid, 'True']);
      }
    });

    it('has its key before any user is asked for', async () => {
      w = new TestWorld();
      lost();
      await w.startup();
      assert.ok(w.calls.indexOf('kube CREATE Secret') < w.calls.indexOf('broker post reconcile'), w.calls.join('\n'));
      assert.deepEqual(w.posted.slice(0, 1), ['reconcile LldapUser team/lost']);
    });
  });

  it('with nothing to do it reads the built-in groups by their ids, counts the resources, and writes nothing', async () => {
    await inhabited();
    const summary = await w.startup();
    assert.deepEqual([summary.ok, summary.resources, summary.asked, summary.posted], [true, 8, true, NOTHING]);
    assert.deepEqual([summary.marksDefined, summary.virtualGroupsWritten], [0, 0]);
    assert.deepEqual([w.writes, w.posted, w.events], [[], [], []]);
    assert.deepEqual(w.asked, ['lldap apiVersion', 'ldap check', 'lldap schema', 'lldap group 1', 'lldap group 2', 'lldap group 3']);
    assert.ok(!w.logs.some(({ level }) => level === 'error'));
  });

  describe('virtual groups', () => {
    it('one that a person deleted comes back, and wakes the memberships that wait for it', async () => {
      w.membership('adm/waits', 'nobody', 'lldap_admin');
      w.membership('adm/other', 'nobody', 'none');
      await w.deliverEvents();
      w.kube.drop(w.get('LldapGroup', VIRTUAL));
      w.forget();
      const summary = await w.startup();
      assert.equal(summary.virtualGroupsWritten, 1);
      assert.equal(w.ready('LldapGroup', VIRTUAL), 'True');
      assert.deepEqual(w.posted.slice(0, 1), ['reconcile LldapMembership adm/waits']);
      assert.ok(!w.posted.includes('reconcile LldapMembership adm/other'));
    });

    it('one that a person edited is set back: its name, and each of its labels', async () => {
      const { metadata } = w.get('LldapGroup', VIRTUAL);
      const edits: (() => void)[] = [
        () => w.edit('LldapGroup', VIRTUAL, { displayName: 'mine' }),
        () => w.kube.changeMetadata(w.get('LldapGroup', VIRTUAL), { labels: LABELS }),
        () => w.kube.changeMetadata(w.get('LldapGroup', VIRTUAL), { labels: { [INSTANCE_LABEL]: 'main', [VIRTUAL_LABEL]: 'no' } }),
        () => w.kube.changeMetadata(w.get('LldapGroup', VIRTUAL), { labels: { [VIRTUAL_LABEL]: 'true' } }),
      ];
      for (const edit of edits) {
        w.unwatched(edit);
        assert.equal((await w.startup()).virtualGroupsWritten, 1, edit.toString());
        const mended = w.get('LldapGroup', VIRTUAL);
        assert.deepEqual([mended.spec.displayName, mended.metadata.labels], ['lldap_admin', metadata.labels]);
        assert.equal((await w.startup()).virtualGroupsWritten, 0);
      }
    });

    it('neither a resource of that name elsewhere nor another one here is taken for it', async () => {
      w.unwatched(() => {
        const virtual = w.get('LldapGroup', VIRTUAL);
        w.kube.drop(virtual);
        w.apply('LldapGroup', 'team/lldap-admin', { displayName: 'Mine' });
        w.apply('LldapGroup', 'op/another', { displayName: 'Another' });
      });
      await w.startup();
      assert.equal(w.get('LldapGroup', 'team/lldap-admin').spec.displayName, 'Mine');
      assert.equal(w.get('LldapGroup', 'op/another').spec.displayName, 'Another');
      assert.equal(w.status('LldapGroup', VIRTUAL).groupId, 1);
    });

    it('a built-in group that lldap made anew is followed, and its memberships join it', async () => {
      w.user('adm/root');
      w.membership('adm/m', 'root', 'lldap_password_manager');
      await w.deliverEvents();
      w.byHand((directory) => {
        directory.deleteGroup(2);
        directory.createGroup({ displayName: 'LLDAP_password_manager' });
      });
      w.forget();
      assert.equal((await w.startup()).virtualGroupsWritten, 1);
      const { id, uuid } = w.groupOf('LLDAP_password_manager');
      const { groupId, uuid: recorded } = w.status('LldapGroup', 'op/lldap-password-manager');
      assert.deepEqual([groupId, recorded], [id, uuid]);
      await w.deliverEvents();
      assert.deepEqual(w.posted.slice(0, 1), ['reconcile LldapMembership adm/m']);
      assert.deepEqual(w.members('LLDAP_password_manager'), ['root']);
    });

    it('a built-in group whose id is another by its name now is looked for', async () => {
      w.byHand((directory) => {
        directory.updateGroup({ id: 2, displayName: 'renamed' });
        directory.createGroup({ displayName: 'lldap_password_manager' });
      });
      await w.startup();
      assert.equal(w.status('LldapGroup', 'op/lldap-password-manager').groupId, 4);
    });

    it('a built-in group that is missing in lldap is said to be, and comes back', async () => {
      w.user('adm/root');
      w.membership('adm/m', 'root', 'lldap_password_manager');
      await w.deliverEvents();
      w.byHand((directory) => directory.deleteGroup(2));
      assert.deepEqual([(await w.startup()).ok, (await w.startup()).virtualGroupsWritten], [true, 0]);
      const at = 'op/lldap-password-manager';
      assert.equal(w.ready('LldapGroup', at), 'False DependencyNotReady');
      assert.equal(
        w.message('LldapGroup', at),
        'lldap has no group lldap_password_manager, which is built into it; restart lldap, which creates it again.',
      );
      const { groupId, uuid, retry } = w.status('LldapGroup', at);
      assert.deepEqual([groupId, uuid, retry], [undefined, undefined, undefined]);
      await w.reconcile('LldapMembership', 'adm/m');
      w.byHand((directory) => directory.createGroup({ displayName: 'lldap_password_manager' }));
      w.forget();
      await w.startup();
      assert.equal(w.ready('LldapGroup', at), 'True');
      assert.ok(w.posted.includes('reconcile LldapMembership adm/m'));
      await w.deliverEvents();
      assert.deepEqual(w.members('lldap_password_manager'), ['root']);
    });

    it('one that becomes Ready wakes its memberships, although its uuid is the same', async () => {
      w.user('adm/root');
      w.membership('adm/has', 'root', 'lldap_admin');
      await w.deliverEvents();
      w.unwatched(() => w.forge('LldapGroup', VIRTUAL, { conditions: [] }));
      w.membership('adm/waits', 'root', 'lldap_admin');
      await w.deliverEvents();
      w.forget();
      await w.startup();
      assert.deepEqual(w.posted, ['reconcile LldapMembership adm/waits']);
    });
  });

  describe('what it cannot do is a problem that names the setting to look at', () => {
    const CREDENTIALS = '(check LLDAP_URL and the Secret lldap-operator-credentials)';
    const failing: [what: string, cause: () => void, problems: RegExp[], doesSweep: boolean][] = [
      [
        'lldap is down',
        () => {
          w.fail(/^lldap/, 'refused', 100);
          w.fail(/^ldap/, 'refused', 100);
        },
        [/^lldap .*\(check LLDAP_URL and the Secret lldap-operator-credentials\)$/, /\(check LLDAP_LDAP_URL and LLDAP_BASE_DN\)$/],
        true,
      ],
      ['LDAP alone is down', () => w.fail(/^ldap/, 'refused', 100), [/^LDAP failed \(check LLDAP_LDAP_URL and LLDAP_BASE_DN\)$/], true],
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
      it(`${what}; the rest is done all the same`, async () => {
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

    it('lldap refuses the credentials', async () => {
      w.lldap.credentials = { username: 'admin', password: 'wrong-password' };
      const { problems } = await w.startup();
      assert.ok(problems[0]?.endsWith(CREDENTIALS), problems.join('\n'));
      assert.ok(!JSON.stringify([problems, w.kube.events, w.logs]).includes('wrong-password'));
    });

    it('the account is no administrator', async () => {
      w.byHand((directory) => directory.removeMember('admin', 1));
      const { problems } = await w.startup();
      assert.match(problems.join('\n'), /check LLDAP_URL and the Secret lldap-operator-credentials/);
    });

    it('the address of lldap is none: that is the one problem, and lldap is asked nothing', async () => {
      w = new TestWorld({ LLDAP_URL: 'nonsense' });
      lost();
      const summary = await w.startup();
      assert.equal(summary.ok, false);
      assert.equal(summary.problems.length, 1);
      assert.match(summary.problems[0] ?? '', /^LLDAP_URL/);
      assert.deepEqual([summary.virtualGroupsWritten, summary.posted.lost], [0, 1]);
      assert.ok(!w.asked.some((call) => call.endsWith('check') || call.includes('apiVersion')));
    });

    it('the key Secret holds no key: it is never overwritten, and what needs no key is swept', async () => {
      w.unwatched(() => w.kube.putSecret({ metadata: { name: PASSWORD_KEY_SECRET, namespace: 'op' }, data: { key: '' } }));
      lost();
      const summary = await w.startup();
      assert.equal(summary.posted.lost, 1);
      assert.match(summary.problems.join(), /check the Secret lldap-operator-password-key/);
      assert.deepEqual(w.kube.secrets.get(KEY_SECRET)?.data, { key: '' });
    });

    it('Secrets cannot be read: which users have another password is not known, all else is done', async () => {
      await inhabited();
      w.fail(/LIST Secret/, 'odd');
      const { problems } = await w.startup('full');
      assert.deepEqual(problems, ['odd (check the rights to read Secrets)']);
      assert.ok(w.posted.includes('reconcile LldapUser team/alice'));
    });

    it('lldap fails during a drift run', async () => {
      await inhabited();
      w.fail(/lldap users/, 'refused', 10);
      const { problems, ok } = await w.startup('drift');
      assert.equal(ok, false);
      assert.match(problems.join(), /\(check LLDAP_URL\)$/);
    });

    it('the mark is defined so that people may write it: whose, and what to do', async () => {
      const mark = defined('user') ?? assert.fail();
      w.byHand(({ state }) => state.definitions.user.set(MARK_ATTRIBUTE, { ...mark, isEditable: true }));
      const summary = await w.startup();
      assert.equal(summary.ok, false);
      assert.deepEqual(summary.problems, [
        "The attribute k8s-owner of users is not defined in lldap as the operator defines it: one text, not visible, not editable. Otherwise people may claim what is another's: delete the definition there, and startup makes it and all marks anew.",
      ]);
    });
  });

  describe('its Events', () => {
    it('are about the ConfigMap, and one an hour for the same problems', async () => {
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

    it('and the log tell all problems of a run in one line', async () => {
      w.fail(/^lldap/, 'refused', 100);
      w.fail(/^ldap/, 'refused', 100);
      const { problems } = await w.startup();
      assert.equal(w.kube.events[0]?.note, problems.join('; '));
      const line = w.logs.find(({ message }) => message === 'startup found problems');
      assert.deepEqual([line?.level, line?.reason, line?.problems], ['error', 'StartupFailed', problems]);
    });

    it('warn of another operator that writes the same statuses, though nothing failed', async () => {
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
    it('asks for what was lost, then for rotated passwords, last for what is stalled', async () => {
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

    it('asks in mode full for everything that is neither suspended nor virtual, each once, definitions first', async () => {
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

    it('asks for nothing that changed in lldap alone, unless in mode drift', async () => {
      await inhabited();
      w.byHand((directory) => directory.updateGroup({ id: 4, displayName: 'Theirs' }));
      assert.deepEqual((await w.startup()).posted, NOTHING);
      const summary = await w.startup('drift');
      assert.deepEqual([summary.modes, summary.posted], [['drift'], { ...NOTHING, drifted: 1 }]);
      await w.deliverEvents();
      assert.ok(w.hasGroup('Crew'));
    });

    it('reads nothing of lldap for drift where everything is asked for anyway', async () => {
      await inhabited();
      for (const mode of ['sweep', 'full', 'drift'] as const) w.broker.post({ what: 'startup', mode });
      await w.pass(60);
      const runs = w.logs.filter(({ message }) => message === 'startup finished').map(({ modes }) => modes);
      assert.deepEqual(runs, [['sweep'], ['full', 'drift'], ['full', 'drift']], 'the two share a run');
      assert.ok(!w.calls.includes('lldap users'));
    });

    it('asks for everything once the mark was lost, since no object has one any more', async () => {
      await inhabited();
      undefine();
      const summary = await w.startup();
      assert.deepEqual([summary.marksDefined, summary.posted.full], [1, 4]);
      assert.ok(defined('user'));
    });

    it('says how everything is asked for later if the broker does not take it', async () => {
      await inhabited();
      undefine();
      w.fail(/broker/, 'refused', 1);
      const summary = await w.startup();
      assert.equal(summary.asked, false);
      assert.match(summary.problems[1] ?? '', /^Reconcile events are missing for some resources: run startup again with mode full\.$/);
      assert.equal(summary.problems.length, 2);
    });

    it('leaves the mark undefined while it cannot list the resources, or the loss would be forgotten', async () => {
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
      w = createWorld({ SWEEP_EVENTS_PER_SECOND: '2' });
      w.unwatched(() => {
        for (const name of ['a', 'b', 'c', 'd']) w.user(`team/${name}`);
      });
      const start = w.scheduler.now;
      assert.equal((await w.startup()).posted.lost, 4);
      assert.equal(w.scheduler.now - start, 2000);
    });
  });
});
