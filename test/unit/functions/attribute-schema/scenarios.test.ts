import assert from 'node:assert/strict';
import type { LldapAttributeSchemaSpec } from '../../../../shared/kube/resources.ts';
import { useWorld } from '../../support/world.ts';

const KIND = 'LldapAttributeSchema';
const PLACE = 'team/desk';
const DESK: LldapAttributeSchemaSpec = { attributeName: 'desk', attributeType: 'Integer', target: 'User' };
const SEVEN = { attributes: [{ name: 'Desk', value: ['7'] }] };

describe('definitions of attributes, from the resource to lldap', () => {
  const { w } = useWorld();

  const isDefined = (target: 'user' | 'group' = 'user', name = 'desk') => w.lldap.state.definitions[target].has(name);
  /** A definition that the operator made, in steady state. */
  async function made(at: typeof PLACE | 'team/floor' = PLACE, over: Partial<LldapAttributeSchemaSpec> = {}): Promise<void> {
    w.apply(KIND, at, { ...DESK, ...over });
    await w.deliverEvents();
    assert.equal(w.ready(KIND, at), 'True', w.message(KIND, at));
    w.forget();
  }
  function define(target: 'user' | 'group', type: 'INTEGER' | 'STRING' = 'INTEGER'): void {
    const definition = { name: 'desk', attributeType: type, isList: false, isVisible: false, isEditable: false };
    w.byHand(({ state }) => state.definitions[target].set('desk', { ...definition, isHardcoded: false, isReadonly: false }));
  }
  function undefine(target: 'user' | 'group' = 'user'): void {
    w.byHand((directory) => {
      directory.state.definitions[target].delete('desk');
      directory.dropValues(target, 'desk');
    });
  }

  it('creates a missing definition, hidden and not editable unless the spec says otherwise', async () => {
    w.apply(KIND, PLACE, { ...DESK, attributeName: 'Desk' });
    await w.deliverEvents();
    const { attributeType, isList, isVisible, isEditable } = w.lldap.state.definitions.user.get('desk') ?? assert.fail();
    assert.deepEqual([attributeType, isList, isVisible, isEditable], ['INTEGER', false, false, false]);
    assert.deepEqual([w.status(KIND, PLACE).created, w.ready(KIND, PLACE, 'DependenciesReady')], [true, 'unset']);
    assert.deepEqual(w.did, ['defined the attribute']);
    assert.deepEqual(w.events, []);
  });

  it('in steady state, a full reconcile reads lldap once and enqueues nothing, and a late retry reads nothing', async () => {
    await made();
    w.user('team/alice', SEVEN);
    await w.deliverEvents();
    w.forget();
    assert.equal((await w.reconcile(KIND, PLACE)).result, 'reconciled');
    assert.deepEqual(w.calls, [`kube GET ${KIND} ${PLACE}`, 'lldap schema']);
    w.forget();
    assert.equal((await w.reconcile(KIND, PLACE, { notBefore: '2026-03-01T11:00:00.000Z' })).result, 'unchanged');
    assert.deepEqual(w.calls, [`kube GET ${KIND} ${PLACE}`]);
  });

  it('adopts an equal definition, and leaves it when the resource is deleted', async () => {
    define('user');
    await made();
    assert.equal(w.status(KIND, PLACE).created, undefined);
    w.delete(KIND, PLACE);
    await w.deliverEvents();
    assert.deepEqual([w.has(KIND, PLACE), isDefined()], [false, true]);
  });

  it('leaves a different definition alone, and reports each difference', async () => {
    define('user', 'STRING');
    w.apply(KIND, PLACE, DESK);
    await w.deliverEvents();
    assert.equal(w.ready(KIND, PLACE, 'Stalled'), 'True SchemaMismatch');
    assert.match(
      w.message(KIND, PLACE),
      /^lldap has the attribute desk with attributeType String, not Integer, and cannot edit definitions\./,
    );
    assert.deepEqual(w.writes, [`kube STATUS ${KIND} ${PLACE}`]);
  });

  it('a User definition that becomes Ready enqueues the users that wait for it, but no Ready user and no group', async () => {
    w.user('team/waits', SEVEN);
    w.apply('LldapGroup', 'team/crew', { displayName: 'Crew', ...SEVEN });
    await w.deliverEvents();
    w.forget();
    w.apply(KIND, PLACE, DESK);
    await w.deliverEvents();
    assert.deepEqual(w.posted, ['reconcile LldapUser team/waits']);
    assert.equal(w.ready('LldapUser', 'team/waits'), 'True');
    w.forget();
    undefine();
    w.unwatched(() => w.forge(KIND, PLACE, { conditions: [] }));
    await w.reconcile(KIND, PLACE);
    assert.deepEqual(w.posted, []);
  });

  it('a Group definition enqueues groups', async () => {
    w.user('team/alice', SEVEN);
    w.apply('LldapGroup', 'team/crew', { displayName: 'Crew', ...SEVEN });
    await w.deliverEvents();
    w.forget();
    w.apply(KIND, PLACE, { ...DESK, target: 'Group' });
    await w.deliverEvents();
    assert.deepEqual(w.posted, ['reconcile LldapGroup team/crew']);
    assert.deepEqual([isDefined('group'), isDefined('user')], [true, false]);
  });

  it('users can name the attribute of a suspended resource', async () => {
    await made();
    w.edit(KIND, PLACE, { suspend: true });
    await w.deliverEvents();
    assert.equal(w.ready(KIND, PLACE), 'False Suspended');
    w.user('team/alice', SEVEN);
    await w.deliverEvents();
    assert.equal(w.ready('LldapUser', 'team/alice'), 'True');
  });

  describe('deletion', () => {
    it('deletes the definition that the operator made', async () => {
      await made();
      await made('team/floor', { attributeName: 'floor' });
      w.delete(KIND, PLACE);
      await w.deliverEvents();
      assert.deepEqual([w.has(KIND, PLACE), isDefined(), isDefined('user', 'floor')], [false, false, true]);
      assert.deepEqual(w.did, ['deleted the attribute']);
    });

    it('waits while a user names the attribute, reports the user, and completes with the retry', async () => {
      await made();
      w.user('team/alice', SEVEN);
      w.user('team/bob');
      await w.deliverEvents();
      w.delete(KIND, PLACE);
      await w.deliverEvents();
      assert.equal(w.ready(KIND, PLACE), 'False AttributeInUse');
      assert.equal(
        w.message(KIND, PLACE),
        "Not deleted yet. The LldapUser team/alice uses the attribute desk. Remove it from that resource's spec.attributes first." +
          ' To delete the resource without touching lldap, set spec.deletionPolicy to Retain.',
      );
      w.edit('LldapUser', 'team/alice', { attributes: [] });
      await w.pass(6);
      assert.deepEqual([w.has(KIND, PLACE), isDefined()], [false, false]);
    });

    it('does not wait for groups that name an attribute of users', async () => {
      await made();
      w.apply('LldapGroup', 'team/crew', { displayName: 'Crew', ...SEVEN });
      await w.deliverEvents();
      w.delete(KIND, PLACE);
      await w.deliverEvents();
      assert.ok(!w.has(KIND, PLACE));
    });

    it('a user that names an attribute being deleted waits, and says so', async () => {
      await made();
      w.user('team/alice', SEVEN);
      await w.deliverEvents();
      w.delete(KIND, PLACE);
      await w.deliverEvents();
      w.edit('LldapUser', 'team/alice', { attributes: [{ name: 'desk', value: ['8'] }] });
      await w.deliverEvents();
      assert.equal(
        w.message('LldapUser', 'team/alice'),
        'The LldapAttributeSchema team/desk is being deleted, and the attribute desk with it. Remove desk from spec.attributes, or create another LldapAttributeSchema for it.',
      );
    });

    it('keeps the definition while another resource declares it, and enqueues that resource', async () => {
      await made();
      w.apply(KIND, 'other/desk', { ...DESK, attributeName: 'DESK' });
      await w.deliverEvents();
      w.forget();
      w.delete(KIND, PLACE);
      await w.deliverEvents();
      assert.deepEqual([w.has(KIND, PLACE), isDefined(), w.did], [false, true, []]);
      assert.deepEqual([...new Set(w.posted)], [`reconcile ${KIND} other/desk`]);
    });

    it('ignores declarations for the other target, of another name, that can never be Ready, or that are being deleted', async () => {
      await made();
      await made('team/floor', { attributeName: 'floor' });
      w.apply(KIND, 'other/group', { ...DESK, target: 'Group' });
      w.apply(KIND, 'other/list', { ...DESK, isList: true });
      w.unwatched(() => {
        w.apply(KIND, 'other/going', DESK, { finalizers: ['example.com/other'] });
        w.delete(KIND, 'other/going');
      });
      await w.deliverEvents();
      assert.equal(w.ready(KIND, 'other/list'), 'False SchemaMismatch');
      w.forget();
      w.delete(KIND, PLACE);
      await w.deliverEvents();
      assert.ok(!w.has(KIND, PLACE));
      assert.ok(!w.posted.includes(`reconcile ${KIND} other/group`));
      assert.ok(!w.posted.includes(`reconcile ${KIND} team/floor`));
      assert.ok(!w.posted.includes(`reconcile ${KIND} other/going`));
      assert.equal(w.lldap.state.definitions.user.get('desk')?.isList, true, 'that of the one which waited');
    });

    it('Retain keeps the definition; Delete removes an adopted one only from a privileged namespace', async () => {
      await made(PLACE, { deletionPolicy: 'Retain' });
      w.delete(KIND, PLACE);
      await w.deliverEvents();
      assert.ok(isDefined());
      for (const at of ['team/desk', 'adm/desk'] as const) {
        w.apply(KIND, at, { ...DESK, deletionPolicy: 'Delete' });
        await w.deliverEvents();
        w.delete(KIND, at);
        await w.deliverEvents();
        assert.deepEqual([w.has(KIND, at), isDefined()], [false, at === 'team/desk']);
      }
    });
  });

  describe('a definition that somebody deleted in lldap', () => {
    it('is created again when a user needs it, and the user reports that meanwhile', async () => {
      await made('team/floor', { attributeName: 'floor' });
      await made();
      w.user('team/alice', SEVEN);
      await w.deliverEvents();
      undefine();
      w.forget();
      const report = await w.reconcile('LldapUser', 'team/alice');
      assert.equal(report.reason, 'DependencyNotReady');
      assert.deepEqual(w.posted.slice(0, 1), [`reconcile ${KIND} ${PLACE}`]);
      assert.equal(
        w.message('LldapUser', 'team/alice'),
        'lldap no longer has the attribute desk of the LldapAttributeSchema team/desk. The operator has asked that resource to define it again.',
      );
      await w.pass(6);
      assert.deepEqual([isDefined(), w.ready('LldapUser', 'team/alice')], [true, 'True']);
      assert.deepEqual(w.accountOf('alice').attributes.get('desk'), ['7']);
    });

    it('is requested from the resource with the right target', async () => {
      await made('team/floor', { attributeName: 'floor' });
      await made();
      w.apply(KIND, 'team/group', { ...DESK, target: 'Group' });
      w.apply('LldapGroup', 'team/crew', { displayName: 'Crew', ...SEVEN });
      await w.deliverEvents();
      undefine('group');
      w.forget();
      await w.reconcile('LldapGroup', 'team/crew');
      assert.deepEqual(w.posted.slice(0, 1), [`reconcile ${KIND} team/group`]);
      assert.match(w.message('LldapGroup', 'team/crew'), /of the LldapAttributeSchema team\/group\./);
    });

    it('tells the user what to create if no Ready resource declares the attribute', async () => {
      define('user');
      w.unwatched(() => w.apply(KIND, PLACE, DESK));
      w.user('team/alice');
      await w.deliverEvents();
      w.before(/updateUser/, () => undefine());
      w.edit('LldapUser', 'team/alice', SEVEN);
      await w.deliverEvents();
      assert.equal(w.ready('LldapUser', 'team/alice'), 'False DependencyNotReady');
      assert.match(w.message('LldapUser', 'team/alice'), /^lldap has no attribute desk\. Create an LldapAttributeSchema for it/);
      assert.ok(!w.posted.includes(`reconcile ${KIND} ${PLACE}`));
    });
  });
});
