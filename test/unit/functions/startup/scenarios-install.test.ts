import assert from 'node:assert/strict';
import { BUILT_IN_GROUPS, INSTANCE_LABEL, VIRTUAL_LABEL } from '../../../../shared/constants.ts';
import { LABELS } from '../../../chaos/installation.ts';
import { TestWorld, useWorld } from '../../support/world.ts';
import { KEY_SECRET, NOTHING, startupScenes, VIRTUAL } from './scenes.ts';

describe('what startup keeps', () => {
  const { w, startWith } = useWorld();
  const { lost, defined, inhabited } = startupScenes(w);

  describe('a fresh installation', () => {
    it("gets the mark's definitions, the password key and the virtual groups; nothing else changes in lldap", async () => {
      startWith(new TestWorld());
      const summary = await w.startup();
      assert.deepEqual(summary, {
        ok: true,
        modes: ['sweep'],
        problems: [],
        warnings: [],
        marksDefined: 2,
        virtualGroupsWritten: 3,
        resources: 0,
        forbidden: 0,
        wouldChange: 0,
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

    it('has a Ready virtual group for each built-in group, with its id and uuid', async () => {
      startWith(new TestWorld());
      await w.startup();
      for (const name of BUILT_IN_GROUPS) {
        const at = `op/${name.replaceAll('_', '-')}` as const;
        const { metadata, spec, status } = w.get('LldapGroup', at);
        assert.deepEqual([spec, metadata.labels], [{ displayName: name }, { [INSTANCE_LABEL]: 'main', [VIRTUAL_LABEL]: 'true' }]);
        const { id, uuid } = w.groupOf(name);
        assert.deepEqual([status?.nameKey, status?.groupId, status?.uuid, w.ready('LldapGroup', at)], [name, id, uuid, 'True']);
      }
    });

    it('has the password key before any user is enqueued', async () => {
      startWith(new TestWorld());
      lost();
      await w.startup();
      assert.ok(w.calls.indexOf('kube CREATE Secret') < w.calls.indexOf('broker post reconcile'), w.calls.join('\n'));
      assert.deepEqual(w.posted.slice(0, 1), ['reconcile LldapUser team/lost']);
    });
  });

  it('a run with nothing to do reads the built-in groups by id, counts the resources, and writes nothing', async () => {
    await inhabited();
    const summary = await w.startup();
    assert.deepEqual([summary.ok, summary.resources, summary.asked, summary.posted], [true, 8, true, NOTHING]);
    assert.deepEqual([summary.marksDefined, summary.virtualGroupsWritten], [0, 0]);
    assert.deepEqual([w.writes, w.posted, w.events], [[], [], []]);
    assert.deepEqual(w.asked, ['lldap apiVersion', 'ldap check', 'lldap schema', 'lldap group 1', 'lldap group 2', 'lldap group 3']);
    assert.ok(!w.logs.some(({ level }) => level === 'error'));
  });

  describe('virtual groups', () => {
    it('are created again after somebody deleted one, which enqueues its memberships', async () => {
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

    it('are restored after somebody edited the name or a label', async () => {
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

    it('are not confused with resources of the same name or in the same namespace', async () => {
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

    it('record a built-in group that lldap created again, and its memberships join it', async () => {
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

    it('find a built-in group by name if the recorded id has another name', async () => {
      w.byHand((directory) => {
        directory.updateGroup({ id: 2, displayName: 'renamed' });
        directory.createGroup({ displayName: 'lldap_password_manager' });
      });
      await w.startup();
      assert.equal(w.status('LldapGroup', 'op/lldap-password-manager').groupId, 4);
    });

    it('report a built-in group that lldap lacks until it is back', async () => {
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

    it('enqueue the memberships that wait when they become Ready with the same uuid', async () => {
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
});
