import assert from 'node:assert/strict';
import { FINALIZER, INSTANCE_LABEL } from '../../../shared/constants.ts';
import type { Kube, Selection } from '../../../shared/kube/client.ts';
import type { LldapAttributeSchema, LldapGroup, LldapUser, LldapUserStatus } from '../../../shared/kube/resources.ts';
import type { LldapClient } from '../../../shared/lldap/api.ts';
import { createLookup, type Lookup } from '../../../shared/lookup/lookup.ts';
import { findOwner } from '../../../shared/lookup/owner.ts';
import type { Mark } from '../../../shared/rules/owner-mark.ts';
import type { Owner } from '../../../shared/rules/ownership.ts';
import { claimsName } from '../../../shared/rules/predicates.ts';
import { condition, group, INSTANCE, READY, schema, user } from '../support/examples.ts';

const UUID = 'uuid-alice';

/** The questions that ownership asks, over these users. */
function among(...users: LldapUser[]): Lookup {
  return {
    get: async (_kind, namespace, name) => users.find((u) => u.metadata.namespace === namespace && u.metadata.name === name),
    recording: async (_kind, uuid) => users.filter((u) => u.status?.uuid === uuid),
  } as Lookup;
}

const mark = (namespace: string, name: string, over: Partial<Mark> = {}): Mark => ({
  instance: INSTANCE,
  namespace,
  name,
  origin: 'created',
  uid: `uid-${namespace}-${name}`,
  ...over,
});
/** Of the first format, or of a resource that was replaced by another of its name. */
const UNKNOWN = { uid: 'uid-before' };

function a(
  ref: string,
  {
    username = 'alice',
    status,
    ...metadata
  }: {
    username?: string;
    status?: LldapUserStatus;
    generation?: number;
    creationTimestamp?: string;
    uid?: string;
    finalizers?: string[];
    deletionTimestamp?: string;
  } = {},
): LldapUser {
  const [namespace = '', name = ''] = ref.split('/');
  return user({ metadata: { namespace, name, ...metadata }, spec: { username }, ...(status && { status }) });
}

describe('shared/lookup/lookup', () => {
  describe('an object in lldap belongs to', () => {
    const self = a('team/alice', { status: { observedGeneration: 1 } });
    const records = { observedGeneration: 1, uuid: UUID, conditions: [READY] };
    const cases: Record<string, [self: LldapUser, others: LldapUser[], Mark | undefined, Owner]> = {
      'the resource that its mark names': [self, [], mark('team', 'alice'), { who: 'self', origin: 'created', marked: true }],
      'it as its adopter, where the mark says so': [
        self,
        [],
        mark('team', 'alice', { origin: 'adopted' }),
        { who: 'self', origin: 'adopted', marked: true },
      ],
      'the resource that its mark names, though another records it': [
        self,
        [a('other/al', { status: records })],
        mark('team', 'alice'),
        { who: 'self', origin: 'created', marked: true },
      ],
      'the resource that its mark names, whatever name it declares by now': [
        a('team/alice', { username: 'ally' }),
        [],
        mark('team', 'alice'),
        { who: 'self', origin: 'created', marked: true },
      ],
      'a resource that was created again under its name, and declares the object’s name': [
        self,
        [],
        mark('team', 'alice', UNKNOWN),
        { who: 'self', origin: 'created', marked: false },
      ],
      'a resource whose mark is of the first format, without a uid': [
        self,
        [],
        { instance: INSTANCE, namespace: 'team', name: 'alice', origin: 'created' },
        { who: 'self', origin: 'created', marked: false },
      ],
      'a resource that was restored with its status, and renamed since': [
        a('team/alice', { username: 'ally', status: records }),
        [],
        mark('team', 'alice', UNKNOWN),
        { who: 'self', origin: 'created', marked: false },
      ],
      'nobody, if its mark names a predecessor that was told to keep it, and the resource of now declares another name': [
        a('team/alice', { username: 'ally' }),
        [],
        mark('team', 'alice', UNKNOWN),
        { who: 'nobody', markNamespace: 'team', origin: 'created' },
      ],
      'another resource that its mark names, whatever name it declares by now': [
        self,
        [a('other/al', { username: 'bob' })],
        mark('other', 'al'),
        { who: 'other', ref: 'other/al' },
      ],
      'another resource that was created again under the name in the mark and declares the object’s name': [
        self,
        [a('other/al', { username: 'ALICE', status: { observedGeneration: 1 } })],
        mark('other', 'al', UNKNOWN),
        { who: 'other', ref: 'other/al' },
      ],
      'another resource that was created again under the name in the mark and records the object': [
        self,
        [a('other/al', { username: 'bob', status: records })],
        mark('other', 'al', UNKNOWN),
        { who: 'other', ref: 'other/al' },
      ],
      'another installation, whatever its resources are called': [
        self,
        [],
        mark('team', 'alice', { instance: 'second' }),
        { who: 'foreign', instance: 'second' },
      ],
      'nobody, if its mark names what is no more': [
        self,
        [],
        mark('other', 'al'),
        { who: 'nobody', markNamespace: 'other', origin: 'created' },
      ],
      'nobody, if its mark names a resource that is about something else by now': [
        self,
        [a('other/al', { username: 'bob', status: { observedGeneration: 1 } })],
        mark('other', 'al', { ...UNKNOWN, origin: 'adopted' }),
        { who: 'nobody', markNamespace: 'other', origin: 'adopted' },
      ],
      'nobody, if its mark names a resource that the operator has let go': [
        self,
        [a('other/al', { deletionTimestamp: '2026-03-01T12:00:00Z', finalizers: ['another'] })],
        mark('other', 'al'),
        { who: 'nobody', markNamespace: 'other', origin: 'created' },
      ],
      'nobody, if nothing is known of it': [self, [], undefined, { who: 'nobody' }],
      'the resource that records it, if its mark is gone': [
        a('team/alice', { status: { ...records, origin: 'created' } }),
        [a('team/alice', { status: { ...records, origin: 'created' } })],
        undefined,
        { who: 'self', origin: 'created', marked: false },
      ],
      'it as its adopter, if nothing says that it created it': [
        a('team/alice', { status: records }),
        [a('team/alice', { status: records })],
        undefined,
        { who: 'self', origin: 'adopted', marked: false },
      ],
      'the resource that records it though its name was changed': [
        a('team/alice', { username: 'ally', status: { ...records, origin: 'created' } }),
        [a('team/alice', { username: 'ally', status: { ...records, origin: 'created' } })],
        undefined,
        { who: 'self', origin: 'created', marked: false },
      ],
      'another resource that records it and declares the name, if its mark is gone': [
        self,
        [a('other/al', { status: records })],
        undefined,
        { who: 'other', ref: 'other/al' },
      ],
      'nobody, if another only records it under another name': [
        self,
        [a('other/al', { username: 'bob', status: records })],
        undefined,
        { who: 'nobody' },
      ],
      'the older of two that record it': [
        a('team/alice', { creationTimestamp: '2026-03-01T10:00:02Z', status: records }),
        [
          a('team/alice', { creationTimestamp: '2026-03-01T10:00:02Z', status: records }),
          a('other/al', { creationTimestamp: '2026-03-01T10:00:01Z', status: records }),
        ],
        undefined,
        { who: 'other', ref: 'other/al' },
      ],
      'always the same one of two of the same age': [
        a('team/alice', { uid: 'a', status: records }),
        [a('other/al', { uid: 'b', status: records }), a('team/alice', { uid: 'a', status: records })],
        undefined,
        { who: 'self', origin: 'adopted', marked: false },
      ],
    };
    for (const [name, [asking, others, found, owner]] of Object.entries(cases)) {
      it(name, async () => {
        const object = { uuid: UUID, name: 'alice', mark: found };
        assert.deepEqual(await findOwner(among(...others), asking, object, INSTANCE), owner);
      });
    }
  });

  describe('a resource counts as declaring its name', () => {
    type Any = LldapUser | LldapGroup | LldapAttributeSchema;
    const withReason = (reason: string) => ({ conditions: [condition('Ready', 'False', reason)] });
    const stalled = { conditions: [condition('Ready', 'False', 'InvalidValue'), condition('Stalled', 'True', 'InvalidValue')] };
    const cases: Record<string, [Any, boolean]> = {
      'before anything is known of it': [user(), true],
      'when it is Ready': [group({ status: { conditions: [READY] } }), true],
      'while lldap is down': [user({ status: withReason('LldapUnavailable') }), true],
      'while its e-mail is taken': [user({ status: withReason('EmailTaken') }), true],
      'while a person has to mend a value': [user({ status: stalled }), true],
      'though a definition has to wait': [schema({ status: withReason('LldapUnavailable') }), true],
      'not if a definition can never be': [schema({ status: stalled }), false],
      'not if it was refused before, and is Ready now': [
        schema({ status: { conditions: [READY, condition('Stalled', 'False', 'SchemaMismatch')] } }),
        true,
      ],
    };
    for (const reason of ['Conflict', 'NotOurs', 'Forbidden', 'Protected'])
      cases[`not if it does not get it: ${reason}`] = [group({ status: withReason(reason) }), false];
    for (const [name, [resource, is]] of Object.entries(cases)) it(name, () => assert.equal(claimsName(resource), is));
  });

  describe('other resources', () => {
    function bench(resources: LldapUser[], scope?: string) {
      const asked: [string, Selection | undefined][] = [];
      const kube = {
        list: async (kind: string, selection?: Selection) => {
          asked.push([kind, selection]);
          return resources;
        },
        get: async (_kind: string, namespace: string, name: string) =>
          resources.find((r) => r.metadata.namespace === namespace && r.metadata.name === name),
      } as unknown as Kube;
      const lookup = createLookup(kube, {} as LldapClient, INSTANCE, async () => scope);
      return { asked, lookup };
    }
    const labels = { [INSTANCE_LABEL]: INSTANCE };

    it('that declare a name are asked for by what their statuses say, and must still declare it', async () => {
      const [still, no] = [a('team/alice', { username: 'Alice' }), a('team/bob', { username: 'bob' })];
      const { asked, lookup } = bench([still, no]);
      assert.deepEqual(await lookup.claiming('LldapUser', 'alice'), [still]);
      assert.deepEqual(asked, [['LldapUser', { labels, fields: { 'status.nameKey': 'alice' } }]]);
    });

    it('that record an object are asked for by its uuid', async () => {
      const { asked, lookup } = bench([]);
      await lookup.recording('LldapGroup', 'uuid-crew');
      assert.deepEqual(asked, [['LldapGroup', { labels, fields: { 'status.uuid': 'uuid-crew' } }]]);
    });

    it('are those of one namespace where the installation serves no other', async () => {
      const { asked, lookup } = bench([a('team/alice'), a('other/alice')], 'team');
      await lookup.all('LldapUser');
      assert.deepEqual(asked, [['LldapUser', { labels, namespace: 'team' }]]);
      assert.equal((await lookup.get('LldapUser', 'team', 'alice'))?.metadata.namespace, 'team');
      assert.equal(await lookup.get('LldapUser', 'other', 'alice'), undefined);
    });

    it('are none of another instance', async () => {
      const { lookup } = bench([user({ metadata: { labels: { [INSTANCE_LABEL]: 'second' }, finalizers: [FINALIZER] } })]);
      assert.equal(await lookup.get('LldapUser', 'team', 'alice'), undefined);
      assert.equal(await lookup.get('LldapUser', 'team', 'nobody'), undefined);
    });
  });

  describe("lldap's group of a name", () => {
    type Group = { id: number; uuid: string; displayName: string; attributes: [] };
    const crew: Group = { id: 7, uuid: 'uuid-crew', displayName: 'Crew', attributes: [] };

    function bench(...groups: Group[]) {
      const asked: string[] = [];
      const lldap = {
        group: async (id: number) => {
          asked.push(`group ${id}`);
          return groups.find((g) => g.id === id);
        },
        groupNames: async () => {
          asked.push('names');
          return groups;
        },
      } as unknown as LldapClient;
      return { asked, groups, lookup: createLookup({} as Kube, lldap, INSTANCE, async () => undefined) };
    }

    it('is read by an id that a status records', async () => {
      const { asked, lookup } = bench(crew);
      assert.equal(await lookup.groupNamed('crew', 7), crew);
      assert.deepEqual(asked, ['group 7']);
    });

    const misleading: [what: string, id: number | undefined][] = [
      ['no id is known', undefined],
      ['the id is of no group', 8],
      ['the id is of another group by now', 9],
    ];
    for (const [what, id] of misleading)
      it(`is found among all groups where ${what}`, async () => {
        const { asked, lookup } = bench({ ...crew, id: 9, displayName: 'Ops' }, crew);
        assert.equal(await lookup.groupNamed('CREW', id), crew);
        assert.deepEqual(asked.slice(-2), ['names', 'group 7']);
      });

    it('is none where no group has the name', async () => {
      assert.equal(await bench(crew).lookup.groupNamed('ops', 7), undefined);
    });

    it('is seen again without any list, until another has the name or the group is gone', async () => {
      const { asked, groups, lookup } = bench(crew);
      assert.equal(await lookup.groupSeen('crew'), undefined);
      assert.deepEqual(asked, []);
      await lookup.groupNamed('Crew', 7);
      assert.equal(await lookup.groupSeen('CREW'), crew);
      groups[0] = { ...crew, displayName: 'Ops' };
      assert.equal(await lookup.groupSeen('crew'), undefined);
      groups.pop();
      assert.equal(await lookup.groupSeen('crew'), undefined);
      assert.deepEqual(new Set(asked), new Set(['group 7']));
    });
  });
});
