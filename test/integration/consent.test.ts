import assert from 'node:assert/strict';
import type { AllowedNamespaces } from '../../shared/kube/resources.ts';
import { useHarness } from './support/harness.ts';
import { createMembers } from './support/membership.ts';

describe('The consent of a group', () => {
  const h = useHarness();
  const m = createMembers(h);
  let blue: string;

  before(async () => {
    blue = await h.cluster.createNamespace('blue');
  });

  const allow = (name: string, namespaces: AllowedNamespaces | null) =>
    h.edit('LldapGroup', name, { spec: { allowedMemberships: namespaces && { namespaces: { selector: null, ...namespaces } } } });
  const label = (labels: Record<string, string | null>) =>
    h.cluster.request('PATCH', `/api/v1/namespaces/${blue}`, {
      body: { metadata: { labels } },
      contentType: 'application/merge-patch+json',
    });
  /** A user and a group of one namespace, and a membership of another. */
  async function asks(name: string): Promise<void> {
    await m.user(name);
    await m.group(name);
    await h.create('LldapMembership', name, { userName: name, groupName: name }, { namespace: blue });
    await h.reconcile('LldapMembership', name, { namespace: blue });
    assert.deepEqual(await m.groupsOf(name), []);
    assert.equal((await h.ready('LldapMembership', name, blue)).reason, 'Forbidden');
  }
  const follow = async (name: string) => {
    await h.reconcile('LldapGroup', name, {});
    await h.deliverEvents();
  };

  it('lets another namespace in by its name, and out again', async () => {
    await asks('named');
    await allow('named', { from: 'Selector', selector: { matchLabels: { 'kubernetes.io/metadata.name': blue } } });
    await follow('named');
    assert.deepEqual(await m.groupsOf('named'), ['named']);
    assert.equal((await h.ready('LldapMembership', 'named', blue)).status, 'True');
    await allow('named', { from: 'Same' });
    await follow('named');
    assert.deepEqual(await m.groupsOf('named'), []);
    assert.equal((await h.ready('LldapMembership', 'named', blue)).reason, 'Forbidden');
  });

  it('follows the labels of a namespace with the next sweep', async () => {
    await asks('labelled');
    await allow('labelled', { from: 'Selector', selector: { matchExpressions: [{ key: 'team', operator: 'In', values: ['blue'] }] } });
    await follow('labelled');
    assert.deepEqual(await m.groupsOf('labelled'), []);
    await label({ team: 'blue' });
    await h.startup();
    await h.deliverEvents();
    assert.deepEqual(await m.groupsOf('labelled'), ['labelled']);
    await label({ team: null });
    await h.startup();
    await h.deliverEvents();
    assert.deepEqual(await m.groupsOf('labelled'), []);
  });

  it('that was never written removes nobody: an upgrade leaves lldap as it is', async () => {
    await asks('former');
    await allow('former', { from: 'All' });
    await follow('former');
    assert.deepEqual(await m.groupsOf('former'), ['former']);
    await allow('former', null);
    const cost = await h.cost(async () => {
      await follow('former');
      await h.startup('full');
      await h.deliverEvents();
    });
    assert.deepEqual(cost.mutations, []);
    assert.deepEqual(await m.groupsOf('former'), ['former']);
    assert.equal((await h.ready('LldapMembership', 'former', blue)).reason, 'Forbidden');
  });

  it('keeps a tenant from emptying a group: its deletion removes nobody', async () => {
    await asks('emptied');
    await m.member('emptied', 'emptied', 'emptied');
    const finalizers = (await h.get('LldapMembership', 'emptied')).metadata.finalizers;
    await h.edit('LldapMembership', 'emptied', { metadata: { finalizers } }, blue);
    await h.remove('LldapMembership', 'emptied', blue);
    await h.reconcile('LldapMembership', 'emptied', { namespace: blue });
    assert.equal(await h.exists('LldapMembership', 'emptied', blue), false);
    assert.deepEqual(await m.groupsOf('emptied'), ['emptied']);
  });

  it('does not tell a tenant whether a user exists', async () => {
    await m.group('secretive');
    await m.user('real');
    const messages = [];
    for (const userName of ['real', 'unreal']) {
      await h.create('LldapMembership', userName, { userName, groupName: 'secretive' }, { namespace: blue });
      const cost = await h.cost(() => h.reconcile('LldapMembership', userName, { namespace: blue }));
      messages.push({ ...(await h.ready('LldapMembership', userName, blue)), lastTransitionTime: '', reads: cost.lldapReads });
    }
    assert.deepEqual(messages[0], messages[1]);
  });
});
