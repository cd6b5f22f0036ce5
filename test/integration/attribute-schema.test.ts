import assert from 'node:assert/strict';
import type { LldapAttributeSchemaSpec } from '../../shared/kube/resources.ts';
import { useHarness } from './support/harness.ts';
import type { CreateOptions } from './support/person.ts';

interface Definition {
  name: string;
  attributeType: string;
  isList: boolean;
  isVisible: boolean;
  isEditable: boolean;
}

describe('LldapAttributeSchema', () => {
  const h = useHarness();
  const spec = (attributeName: string, more: Partial<LldapAttributeSchemaSpec> = {}): LldapAttributeSchemaSpec => ({
    attributeName,
    attributeType: 'String',
    target: 'User',
    ...more,
  });
  const define = async (name: string, more: Partial<LldapAttributeSchemaSpec> = {}, { namespace = h.namespace }: CreateOptions = {}) => {
    await h.create('LldapAttributeSchema', name, spec(name, more), { namespace });
    return h.reconcile('LldapAttributeSchema', name, { namespace });
  };
  const remove = async (name: string, namespace = h.namespace) => {
    await h.remove('LldapAttributeSchema', name, namespace);
    return h.reconcile('LldapAttributeSchema', name, { namespace });
  };
  const defined = async (name: string, target: 'user' | 'group' = 'user'): Promise<Definition | undefined> => {
    const fields = '{ attributes { name attributeType isList isVisible isEditable } }';
    const { schema } = (await h.lldap.edit(`{ schema { userSchema ${fields} groupSchema ${fields} } }`)) as {
      schema: Record<'userSchema' | 'groupSchema', { attributes: Definition[] }>;
    };
    return schema[`${target}Schema`].attributes.find((a) => a.name === name);
  };
  const byHand = (name: string) =>
    h.lldap.edit(
      `mutation { addUserAttribute(name: "${name}", attributeType: STRING, isList: false, isVisible: false, isEditable: false) { ok } }`,
    );

  it('defines an attribute of each type and target with all that the spec says', async () => {
    for (const [target, attributeType, type] of [
      ['User', 'String', 'STRING'],
      ['User', 'Integer', 'INTEGER'],
      ['Group', 'DateTime', 'DATE_TIME'],
      ['Group', 'JpegPhoto', 'JPEG_PHOTO'],
    ] as const) {
      const flags = { isList: type !== 'STRING', isVisible: type !== 'INTEGER', isEditable: target === 'User' };
      const name = `Some-${attributeType}`;
      await h.create('LldapAttributeSchema', name.toLowerCase(), spec(name, { target, attributeType, ...flags }));
      const cost = await h.cost(() => h.reconcile('LldapAttributeSchema', name.toLowerCase()));
      assert.equal(cost.mutations.length, 1);
      assert.deepEqual(await defined(name.toLowerCase(), target === 'User' ? 'user' : 'group'), {
        name: name.toLowerCase(),
        attributeType: type,
        ...flags,
      });
      const { status } = await h.get('LldapAttributeSchema', name.toLowerCase());
      assert.equal(status?.created, true);
    }
  });

  it('what the spec leaves out is false', async () => {
    await define('silent');
    assert.deepEqual(await defined('silent'), {
      name: 'silent',
      attributeType: 'STRING',
      isList: false,
      isVisible: false,
      isEditable: false,
    });
  });

  it('an equal definition that is there is taken as it is, and is not recorded as ours', async () => {
    await byHand('manual');
    const cost = await h.cost(() => define('manual'));
    assert.deepEqual(cost.mutations, []);
    const { status } = await h.get('LldapAttributeSchema', 'manual');
    assert.deepEqual([(await h.ready('LldapAttributeSchema', 'manual')).status, status?.created], ['True', undefined]);
  });

  it('another definition is Stalled, names each difference and the remedy, and is never repaired', async () => {
    await byHand('differs');
    const report = await define('differs', { attributeType: 'Integer', isList: true });
    assert.deepEqual([report.reason, report.retry], ['SchemaMismatch', undefined]);
    assert.match(
      report.message ?? '',
      /differs .*attributeType String, not Integer and isList false, not true.*cannot edit definitions\. Use another name/,
    );
    assert.equal((await h.condition('LldapAttributeSchema', 'differs', 'Stalled'))?.status, 'True');
    assert.equal((await defined('differs'))?.attributeType, 'STRING');
    await remove('differs');
    assert.ok(await defined('differs'));
  });

  it('a definition whose other side in lldap has another type is refused with a sentence', async () => {
    await h.lldap.fault({
      kind: 'text',
      text: "Internal error: `attribute 'twofold' already exists with type STRING`",
      only: { operation: 'addGroupAttribute' },
      times: 1,
    });
    const report = await define('twofold', { target: 'Group', attributeType: 'Integer' });
    assert.deepEqual([report.reason, report.retry], ['RefusedByLldap', undefined]);
    assert.match(report.message ?? '', /twofold/);
  });

  it('what a person deleted in lldap is defined again by a full reconcile', async () => {
    await define('undone');
    await h.lldap.edit('mutation { deleteUserAttribute(name: "undone") { ok } }');
    await h.reconcile('LldapAttributeSchema', 'undone');
    assert.ok(await defined('undone'));
  });

  it('is deleted from lldap with its resource when the operator made it', async () => {
    await define('mine');
    assert.equal((await remove('mine')).result, 'deleted');
    assert.equal(await defined('mine'), undefined);
  });

  it('that was made by hand stays, with everybody’s values, when its resource is deleted', async () => {
    await byHand('theirs');
    await h.lldap.edit(
      'mutation { createUser(user: {id: "valued", email: "valued@example.com", attributes: [{name: "theirs", value: ["precious"]}]}) { id } }',
    );
    await define('theirs');
    await remove('theirs');
    assert.deepEqual((await h.lldap.users()).find(({ id }) => id === 'valued')?.attributes.theirs, ['precious']);
  });

  it('the answer to its definition is lost: it is there, but not recorded as ours, and so it is kept', async () => {
    await h.lldap.fault({ kind: 'drop', only: { operation: 'addUserAttribute' }, times: 1 });
    await define('dropped');
    await h.nextRetry();
    const { status } = await h.get('LldapAttributeSchema', 'dropped');
    assert.deepEqual([(await h.ready('LldapAttributeSchema', 'dropped')).status, status?.created], ['True', undefined]);
    await remove('dropped');
    assert.ok(await defined('dropped'));
  });

  it('with deletionPolicy Delete one that is not ours is deleted from a privileged namespace, and from no other', async () => {
    for (const [namespace, gone] of [
      [h.namespace, false],
      [h.operatorNamespace, true],
    ] as const) {
      const name = gone ? 'told' : 'not-told';
      await byHand(name);
      await define(name, { deletionPolicy: 'Delete' }, { namespace });
      await remove(name, namespace);
      assert.equal((await defined(name)) === undefined, gone, name);
    }
  });

  it('with deletionPolicy Retain it is kept, without a call to lldap', async () => {
    await define('retained', { deletionPolicy: 'Retain' });
    const cost = await h.cost(() => remove('retained'));
    assert.deepEqual([cost.lldapReads, cost.mutations], [[], []]);
    assert.ok(await defined('retained'));
    assert.equal(await h.exists('LldapAttributeSchema', 'retained'), false);
  });

  it('is kept while another resource declares it', async () => {
    await define('double');
    await h.create('LldapAttributeSchema', 'double2', spec('DOUBLE'));
    await h.reconcile('LldapAttributeSchema', 'double2');
    await remove('double');
    assert.ok(await defined('double'));
    // The second one did not make it.
    await remove('double2');
    assert.ok(await defined('double'));
  });

  for (const kind of ['LldapUser', 'LldapGroup'] as const) {
    it(`waits with its deletion while a ${kind} uses it, names that, and goes when it no longer does`, async () => {
      const name = `used-${kind.toLowerCase()}`;
      await define(name, { target: kind === 'LldapUser' ? 'User' : 'Group' });
      const attributes = [{ name: name.toUpperCase(), value: ['x'] }];
      if (kind === 'LldapUser')
        await h.create(kind, name, { username: name, email: 'used@example.com', passwordPolicy: 'Ignore', attributes });
      else await h.create(kind, name, { displayName: name, attributes });
      await h.reconcile(kind, name);
      const report = await remove(name);
      assert.deepEqual([report.reason, report.retry?.category], ['AttributeInUse', 'NotReady']);
      assert.ok(report.message?.includes(`The ${kind} ${h.namespace}/${name}`), report.message);
      assert.match(report.message ?? '', /^Not deleted yet. .*Remove it from that resource's spec\.attributes.*Retain/);
      assert.ok(await defined(name, kind === 'LldapUser' ? 'user' : 'group'));
      await h.edit(kind, name, { spec: { attributes: null } });
      await h.nextRetry();
      assert.equal(await h.exists('LldapAttributeSchema', name), false);
      assert.equal(await defined(name, kind === 'LldapUser' ? 'user' : 'group'), undefined);
    });
  }

  it('a use by a resource that the operator has let go, and that another’s finalizer keeps, does not hold it back', async () => {
    await define('let-go');
    const attributes = [{ name: 'let-go', value: ['x'] }];
    await h.create('LldapUser', 'let-go', { username: 'let-go', email: 'let-go@example.com', passwordPolicy: 'Ignore', attributes });
    await h.reconcile('LldapUser', 'let-go');
    const { finalizers = [] } = (await h.get('LldapUser', 'let-go')).metadata;
    await h.edit('LldapUser', 'let-go', { metadata: { finalizers: ['example.com/theirs', ...finalizers] } });
    await h.remove('LldapUser', 'let-go');
    assert.equal((await h.reconcile('LldapUser', 'let-go')).result, 'deleted');
    assert.equal((await remove('let-go')).result, 'deleted');
    await h.edit('LldapUser', 'let-go', { metadata: { finalizers: null } });
  });

  it('a use of the attribute of the other target does not hold it back', async () => {
    await define('one-side', { target: 'Group' });
    await define('one-side-user', { attributeName: 'one-side' });
    await h.create('LldapUser', 'one-side', {
      username: 'one-side',
      email: 'one-side@example.com',
      passwordPolicy: 'Ignore',
      attributes: [{ name: 'one-side', value: ['x'] }],
    });
    await h.reconcile('LldapUser', 'one-side');
    assert.equal((await remove('one-side')).result, 'deleted');
    assert.equal(await defined('one-side', 'group'), undefined);
    assert.ok(await defined('one-side'));
  });

  it('waits with its deletion while lldap is down, and says how to let it go', async () => {
    await define('down');
    await h.lldap.fault({ kind: 'status', status: 503 });
    const report = await remove('down');
    assert.deepEqual([report.reason, report.retry?.category], ['LldapUnavailable', 'Unavailable']);
    assert.match(report.message ?? '', /spec\.deletionPolicy to Retain/);
    await h.edit('LldapAttributeSchema', 'down', { spec: { deletionPolicy: 'Retain' } });
    await h.reconcile('LldapAttributeSchema', 'down', {});
    assert.equal(await h.exists('LldapAttributeSchema', 'down'), false);
  });

  it('already gone from lldap, its deletion completes', async () => {
    await define('gone');
    await h.lldap.edit('mutation { deleteUserAttribute(name: "gone") { ok } }');
    assert.equal((await remove('gone')).result, 'deleted');
  });

  it('deleted in lldap and defined there otherwise by a person, it is that person’s', async () => {
    await define('replaced');
    await h.lldap.edit('mutation { deleteUserAttribute(name: "replaced") { ok } }');
    await h.lldap.edit(
      'mutation { addUserAttribute(name: "replaced", attributeType: INTEGER, isList: false, isVisible: false, isEditable: false) { ok } }',
    );
    assert.equal((await h.reconcile('LldapAttributeSchema', 'replaced')).reason, 'SchemaMismatch');
    await remove('replaced');
    assert.equal((await defined('replaced'))?.attributeType, 'INTEGER');
  });
});
