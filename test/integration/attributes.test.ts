import assert from 'node:assert/strict';
import { FINALIZER } from '../../shared/constants.ts';
import type { AttributeType, AttributeValue } from '../../shared/kube/resources.ts';
import { JPEG } from '../local/lldap/jpeg.ts';
import { useHarness } from './support/harness.ts';

const TYPES: AttributeType[] = ['String', 'Integer', 'DateTime', 'JpegPhoto'];

describe('Attributes', () => {
  const h = useHarness();
  const make = async (kind: 'LldapUser' | 'LldapGroup', name: string, attributes: AttributeValue[]) => {
    if (kind === 'LldapUser')
      await h.create(kind, name, { username: name, email: `${name}@example.com`, passwordPolicy: 'Ignore', attributes });
    else await h.create(kind, name, { displayName: name, attributes });
    return h.reconcile(kind, name);
  };
  const stored = async (kind: 'LldapUser' | 'LldapGroup', name: string): Promise<Record<string, string[]>> => {
    const found =
      kind === 'LldapUser'
        ? (await h.lldap.users()).find(({ id }) => id === name)
        : (await h.lldap.groups()).find(({ displayName }) => displayName === name);
    const { 'k8s-owner': _mark, ...rest } = found?.attributes ?? {};
    return rest;
  };

  before(async () => {
    for (const target of ['User', 'Group'] as const)
      for (const attributeType of TYPES)
        for (const isList of [false, true]) {
          const attributeName = `${attributeType}${isList ? '-list' : ''}`;
          const name = `${target}-${attributeName}`.toLowerCase();
          await h.create('LldapAttributeSchema', name, { attributeName, attributeType, target, isList });
          assert.equal((await h.reconcile('LldapAttributeSchema', name)).ready, true);
        }
  });

  for (const kind of ['LldapUser', 'LldapGroup'] as const) {
    it(`of every type are written by the ${kind} as they are, and cause no second write however lldap spells them`, async () => {
      const name = `all-${kind.toLowerCase()}`;
      const report = await make(kind, name, [
        { name: 'STRING', value: ['  Grüße \n'] },
        { name: 'string-list', value: ['b', 'a', 'a', ''] },
        { name: 'integer', value: ['+007'] },
        { name: 'integer-list', value: ['9223372036854775807', '-9223372036854775808', '-0'] },
        { name: 'datetime', value: ['2024-01-02T23:04:05.12-05:00'] },
        { name: 'datetime-list', value: ['2016-12-31 23:59:60Z', '0001-01-01t00:00:00z'] },
        { name: 'jpegphoto', value: [JPEG] },
        { name: 'jpegphoto-list', value: [JPEG, JPEG] },
      ]);
      assert.equal(report.ready, true, report.message);
      assert.equal((await h.condition(kind, name, 'DependenciesReady'))?.status, 'True');
      assert.deepEqual(await stored(kind, name), {
        string: ['  Grüße \n'],
        'string-list': ['b', 'a', 'a', ''],
        integer: ['7'],
        'integer-list': ['9223372036854775807', '-9223372036854775808', '0'],
        datetime: ['2024-01-03T04:04:05.120+00:00'],
        'datetime-list': ['2016-12-31T23:59:60+00:00', '0001-01-01T00:00:00+00:00'],
        jpegphoto: [JPEG],
        'jpegphoto-list': [JPEG, JPEG],
      });
      const again = await h.cost(() => h.reconcile(kind, name));
      assert.deepEqual([again.mutations, again.kubeWrites], [[], []]);
    });

    it(`of a ${kind} are changed, cleared by an empty list or text, and left alone where the spec is silent`, async () => {
      const name = `life-${kind.toLowerCase()}`;
      await make(kind, name, [
        { name: 'string', value: ['one'] },
        { name: 'integer', value: ['1'] },
        { name: 'string-list', value: ['a', 'b'] },
      ]);
      // In lldap's own UI.
      const id = kind === 'LldapUser' ? `"${name}"` : (await h.get(kind, name)).status?.groupId;
      const theirs = '{name: "integer-list", value: ["7", "8"]}';
      const target = kind === 'LldapUser' ? 'User(user' : 'Group(group';
      await h.lldap.edit(`mutation { update${target}: {id: ${id}, insertAttributes: [${theirs}]}) { ok } }`);
      const set = async (attributes: AttributeValue[]) => {
        await h.edit(kind, name, { spec: { attributes } });
        return h.cost(() => h.reconcile(kind, name, {}));
      };
      const change = await set([
        { name: 'string', value: ['two'] },
        { name: 'string-list', value: ['b', 'a'] },
      ]);
      assert.equal(change.mutations.length, 1);
      assert.deepEqual(await stored(kind, name), {
        string: ['two'],
        integer: ['1'],
        'string-list': ['b', 'a'],
        'integer-list': ['7', '8'],
      });
      await set([
        { name: 'string', value: [''] },
        { name: 'integer', value: [] },
      ]);
      assert.deepEqual(await stored(kind, name), { 'string-list': ['b', 'a'], 'integer-list': ['7', '8'] });
      const again = await h.cost(() => h.reconcile(kind, name));
      assert.deepEqual([again.mutations, again.kubeWrites], [[], []]);
    });

    it(`of a ${kind} that are named as empty from the start are not stored`, async () => {
      const name = `none-${kind.toLowerCase()}`;
      const values = [
        { name: 'string', value: [] },
        { name: 'integer', value: [''] },
        { name: 'string-list', value: [] },
      ];
      assert.equal((await make(kind, name, values)).ready, true);
      assert.deepEqual(await stored(kind, name), {});
      assert.deepEqual((await h.cost(() => h.reconcile(kind, name))).mutations, []);
    });
  }

  const WRONG: [attribute: string, value: string[], message: RegExp][] = [
    ['string', ['a', 'b'], /string has 2 values, but its definition is not a list\. .*isList: true/],
    ['integer', ['1', '2'], /integer has 2 values/],
    ['integer', ['1.0'], /integer is "1\.0", which is not a whole number from -9223372036854775808 to 9223372036854775807/],
    ['integer', [' 5'], /integer is " 5"/],
    ['integer', ['1e3'], /integer is "1e3"/],
    ['integer', ['0x10'], /integer is "0x10"/],
    ['integer', ['9223372036854775808'], /integer is "9223372036854775808"/],
    ['integer', ['-9223372036854775809'], /integer is "-9223372036854775809"/],
    ['integer-list', ['1', ''], /integer-list is "", which is not a whole number/],
    [
      'datetime',
      ['2024-01-02'],
      /datetime is "2024-01-02", which is not a time in the years 0000 to 9999 \(UTC\) with its zone, like 2026-01-31T12:00:00Z/,
    ],
    ['datetime', ['2024-01-02T03:04:05'], /datetime is "2024-01-02T03:04:05"/],
    ['datetime', ['2024-02-30T00:00:00Z'], /datetime is "2024-02-30T00:00:00Z"/],
    ['datetime', ['2024-01-02T24:00:00Z'], /datetime is "2024-01-02T24:00:00Z"/],
    ['datetime', ['2024-01-02T03:04:05+0200'], /datetime is/],
    [
      'datetime',
      ['9999-12-31T23:59:59-05:00'],
      /datetime is "9999-12-31T23:59:59-05:00", which is not a time in the years 0000 to 9999 \(UTC\)/,
    ],
    ['datetime', ['1700000000'], /datetime is "1700000000"/],
    ['datetime-list', ['2024-01-02T03:04:05Z', 'soon'], /datetime-list is "soon"/],
    ['jpegphoto', ['iVBORw0KGgo='], /jpegphoto is "iVBORw0KGgo=", which is not a JPEG picture in base64/],
    ['jpegphoto', [`data:image/jpeg;base64,${JPEG}`], /jpegphoto is "data:image/],
    ['jpegphoto', [`${JPEG.slice(0, 8)}\n${JPEG.slice(8)}`], /jpegphoto is/],
    ['jpegphoto-list', [JPEG, 'x'.repeat(100)], /jpegphoto-list is "x{60}…"/],
  ];

  it('whose values do not fit are Stalled with the attribute, the value and its form, and nothing is written', async () => {
    let count = 0;
    for (const [attribute, value, message] of WRONG) {
      const name = `wrong-${count++}`;
      const cost = await h.cost(() => make('LldapUser', name, [{ name: attribute, value }]));
      const ready = await h.ready('LldapUser', name);
      assert.deepEqual([ready.reason, cost.mutations], ['InvalidValue', []], `${attribute}: ${value}`);
      assert.match(ready.message, message);
      assert.match(ready.message, /^spec\.attributes: .* (correct|give) /is);
      assert.equal((await h.condition('LldapUser', name, 'Stalled'))?.reason, 'InvalidValue');
    }
    assert.deepEqual(h.posted.requeue, []);
    assert.equal((await make('LldapGroup', 'wrong-group', [{ name: 'integer', value: ['one'] }])).reason, 'InvalidValue');
    await h.edit('LldapUser', 'wrong-0', { spec: { attributes: [{ name: 'string', value: ['a'] }] } });
    await h.reconcile('LldapUser', 'wrong-0', {});
    assert.equal((await h.ready('LldapUser', 'wrong-0')).status, 'True');
    assert.equal(await h.condition('LldapUser', 'wrong-0', 'Stalled'), undefined);
  });

  it('a picture that lldap cannot read is Stalled, its message says which and what it should be, and nothing else changes', async () => {
    await make('LldapUser', 'judged', [{ name: 'string', value: ['one'] }]);
    const truncated = Buffer.from(JPEG, 'base64').subarray(0, 60).toString('base64');
    await h.edit('LldapUser', 'judged', { spec: { firstName: 'New', attributes: [{ name: 'jpegphoto', value: [truncated] }] } });
    const report = await h.reconcile('LldapUser', 'judged', {});
    assert.deepEqual([report.reason, report.retry], ['RefusedByLldap', undefined]);
    assert.equal(
      report.message,
      'lldap refused the attribute jpegphoto: it cannot read the value; a picture must be a whole JPEG file. Correct it.',
    );
    assert.deepEqual(await stored('LldapUser', 'judged'), { string: ['one'] });
  });

  it('that nobody defines are waited for: the message names the attribute and the remedy, and the definition wakes the user', async () => {
    const cost = await h.cost(() => make('LldapUser', 'waits', [{ name: 'Later', value: ['x'] }]));
    assert.deepEqual(cost.mutations, []);
    const { status } = await h.get('LldapUser', 'waits');
    const { reason, message } = await h.ready('LldapUser', 'waits');
    assert.deepEqual([reason, status?.retry?.category], ['DependencyNotReady', 'NotReady']);
    assert.match(message, /Later .*for users.*LldapAttributeSchema.*spec\.attributes/);
    assert.equal((await h.condition('LldapUser', 'waits', 'DependenciesReady'))?.status, 'False');
    // One for the other target does not serve.
    await h.create('LldapAttributeSchema', 'later-group', { attributeName: 'later', attributeType: 'String', target: 'Group' });
    await h.reconcile('LldapAttributeSchema', 'later-group');
    assert.equal(h.posted.reconcile.length, 0);
    await h.create('LldapAttributeSchema', 'later', { attributeName: 'LATER', attributeType: 'String', target: 'User' });
    await h.reconcile('LldapAttributeSchema', 'later');
    assert.deepEqual(
      h.posted.reconcile.map(({ target }) => target.name),
      ['waits'],
    );
    await h.deliverEvents();
    assert.equal((await h.ready('LldapUser', 'waits')).status, 'True');
    assert.deepEqual(await stored('LldapUser', 'waits'), { later: ['x'] });
  });

  it('a definition that turns Ready between our look and our status write is not missed', async () => {
    await h.create('LldapAttributeSchema', 'close', { attributeName: 'close', attributeType: 'String', target: 'User' });
    let once = true;
    h.interfere = async (_by, { path }) => {
      if (!path.includes('/close-user/status') || !once) return;
      once = false;
      await h.reconcile('LldapAttributeSchema', 'close');
    };
    await make('LldapUser', 'close-user', [{ name: 'close', value: ['x'] }]);
    h.interfere = async () => {};
    assert.equal((await h.ready('LldapUser', 'close-user')).status, 'True');
    h.posted.reconcile = [];
  });

  it("lldap's own and those defined by hand need no resource", async () => {
    await h.lldap.edit(
      'mutation { addUserAttribute(name: "manual", attributeType: INTEGER, isList: false, isVisible: true, isEditable: true) { ok } }',
    );
    // In the script that comes with lldap; LDAP means the username by it.
    await h.lldap.edit(
      'mutation { addUserAttribute(name: "uid", attributeType: INTEGER, isList: false, isVisible: true, isEditable: false) { ok } }',
    );
    const report = await make('LldapUser', 'by-hand', [
      { name: 'manual', value: ['5'] },
      { name: 'uid', value: ['1000'] },
      { name: 'avatar', value: [JPEG] },
      { name: 'first_name', value: ['Given'] },
      { name: 'Display_Name', value: ['Shown'] },
    ]);
    assert.equal(report.ready, true, report.message);
    assert.deepEqual(await stored('LldapUser', 'by-hand'), { manual: ['5'], uid: ['1000'], avatar: [JPEG], first_name: ['Given'] });
    assert.deepEqual((await h.cost(() => h.reconcile('LldapUser', 'by-hand'))).mutations, []);
    assert.equal((await make('LldapUser', 'by-hand-2', [{ name: 'manual', value: ['five'] }])).reason, 'InvalidValue');
  });

  it('whose definition a person deleted in lldap are waited for until it is there again', async () => {
    await make('LldapUser', 'undefined', [{ name: 'string', value: ['one'] }]);
    await h.lldap.edit('mutation { deleteUserAttribute(name: "string") { ok } }');
    const report = await h.reconcile('LldapUser', 'undefined');
    assert.deepEqual([report.reason, report.retry?.category], ['DependencyNotReady', 'NotReady']);
    assert.match(report.message ?? '', /string/);
    await h.reconcile('LldapAttributeSchema', 'user-string');
    await h.nextRetry();
    assert.equal((await h.ready('LldapUser', 'undefined')).status, 'True');
    assert.deepEqual(await stored('LldapUser', 'undefined'), { string: ['one'] });
    h.posted.reconcile = [];
  });

  it("a tenant's definition that contradicts lldap's, or waits, does not hold up others who use the attribute", async () => {
    const other = await h.cluster.createNamespace('tenant');
    await h.create(
      'LldapAttributeSchema',
      'grab',
      { attributeName: 'integer', attributeType: 'String', target: 'User' },
      { namespace: other },
    );
    assert.equal((await h.reconcile('LldapAttributeSchema', 'grab', { namespace: other })).reason, 'SchemaMismatch');
    assert.equal((await make('LldapUser', 'held-up', [{ name: 'integer', value: ['5'] }])).ready, true);
    await h.create(
      'LldapAttributeSchema',
      'grab2',
      { attributeName: 'manual', attributeType: 'String', target: 'User' },
      { namespace: other },
    );
    await h.reconcile('LldapAttributeSchema', 'grab2', { namespace: other });
    assert.equal((await make('LldapUser', 'held-up-2', [{ name: 'manual', value: ['5'] }])).ready, true);
  });

  it("a tenant's definition that equals lldap's and is suspended, or deleted meanwhile, does not hold up others either", async () => {
    const namespace = await h.cluster.createNamespace('tenant');
    const spec = { attributeName: 'manual', attributeType: 'Integer' as const, target: 'User' as const, isVisible: true, isEditable: true };
    await h.create('LldapAttributeSchema', 'late', spec, { namespace });
    assert.equal((await h.reconcile('LldapAttributeSchema', 'late', { namespace })).ready, true);
    await h.edit('LldapAttributeSchema', 'late', { spec: { suspend: true } }, namespace);
    await h.reconcile('LldapAttributeSchema', 'late', { namespace });
    assert.equal((await make('LldapUser', 'suspended', [{ name: 'manual', value: ['5'] }])).ready, true);
    await h.remove('LldapAttributeSchema', 'late', namespace);
    assert.equal((await h.reconcile('LldapAttributeSchema', 'late', { namespace })).reason, 'Suspended');
    assert.equal((await make('LldapUser', 'going', [{ name: 'manual', value: ['5'] }])).ready, true);
  });

  it('a tenant who forges the status of a definition of his own does not make others’ values invalid, nor hold them up', async () => {
    const namespace = await h.cluster.createNamespace('tenant');
    const spec = { attributeName: 'forged', attributeType: 'Integer' as const, target: 'User' as const };
    const asByHand = 'attributeType: STRING, isList: false, isVisible: true, isEditable: false';
    await h.lldap.edit(`mutation { addUserAttribute(name: "forged", ${asByHand}) { ok } }`);
    // Ready, so that no event of it leads to a reconcile.
    await h.create('LldapAttributeSchema', 'forged', spec, { namespace });
    const { metadata } = await h.edit('LldapAttributeSchema', 'forged', { metadata: { finalizers: [FINALIZER] } }, namespace);
    const ready = { type: 'Ready', status: 'True', reason: 'Reconciled', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' };
    await h.editStatus('LldapAttributeSchema', 'forged', { observedGeneration: metadata.generation, conditions: [ready] }, namespace);
    const report = await make('LldapUser', 'by-the-window', [{ name: 'forged', value: ['by the window'] }]);
    assert.equal(report.ready, true, report.message);
    // Deleted without an end, as if it had made what lldap has.
    await h.edit('LldapAttributeSchema', 'forged', { spec: { suspend: true } }, namespace);
    await h.editStatus('LldapAttributeSchema', 'forged', { created: true, conditions: [] }, namespace);
    await h.remove('LldapAttributeSchema', 'forged', namespace);
    await h.reconcile('LldapAttributeSchema', 'forged', { namespace });
    const held = await make('LldapUser', 'on-the-floor', [{ name: 'forged', value: ['third'] }]);
    assert.equal(held.ready, true, held.message);
  });

  it('twenty users with attributes that are reconciled at once share the reading of lldap’s definitions', async () => {
    const names = Array.from({ length: 20 }, (_, i) => `shared-${i}`);
    for (const name of names) await make('LldapUser', name, [{ name: 'string', value: ['one'] }]);
    const cost = await h.cost(async () => void (await Promise.all(names.map((name) => h.reconcile('LldapUser', name)))));
    assert.ok(cost.lldapReads.filter((read) => read === 'schema').length < names.length, String(cost.lldapReads));
  });

  it('whose definition is being deleted, and held by who uses it, are kept by another resource that declares it', async () => {
    const spec = { attributeName: 'leaving', attributeType: 'String' as const, target: 'User' as const };
    await h.create('LldapAttributeSchema', 'leaving', spec);
    await h.reconcile('LldapAttributeSchema', 'leaving');
    await make('LldapUser', 'leaving', [{ name: 'leaving', value: ['one'] }]);
    await h.remove('LldapAttributeSchema', 'leaving');
    assert.equal((await h.reconcile('LldapAttributeSchema', 'leaving', {})).reason, 'AttributeInUse');
    await h.edit('LldapUser', 'leaving', { spec: { attributes: [{ name: 'leaving', value: ['two'] }] } });
    const held = await h.reconcile('LldapUser', 'leaving', {});
    assert.match(held.message ?? '', /leaving is being deleted, .*another LldapAttributeSchema/);
    await h.create('LldapAttributeSchema', 'staying', spec);
    await h.reconcile('LldapAttributeSchema', 'staying');
    await h.deliverEvents();
    assert.equal((await h.ready('LldapUser', 'leaving')).status, 'True');
    assert.equal((await h.reconcile('LldapAttributeSchema', 'leaving')).result, 'deleted');
    assert.deepEqual(await stored('LldapUser', 'leaving'), { leaving: ['two'] });
    h.posted.reconcile = [];
  });
});
