import assert from 'node:assert/strict';
import { BrokerError } from '../../../shared/events/broker.ts';
import { KubeError } from '../../../shared/kube/errors.ts';
import type { LldapMembership, LldapMembershipStatus, LldapUser } from '../../../shared/kube/resources.ts';
import {
  enqueueDependents,
  membershipsAwaiting,
  membershipsNaming,
  resourcesClaiming,
  resourcesNamingAttribute,
  targetOf,
} from '../../../shared/lookup/dependents.ts';
import type { Io } from '../../../shared/lookup/io.ts';
import { isReady } from '../../../shared/rules/predicates.ts';
import { createLog } from '../../../shared/telemetry/log.ts';
import { condition, membership, READY, user } from '../support/examples.ts';

function bench({ memberships = [], users = [], post }: { memberships?: LldapMembership[]; users?: LldapUser[]; post?: Error } = {}) {
  const asked: unknown[] = [];
  const posted: string[] = [];
  const lines: string[] = [];
  const io = {
    lookup: {
      select: async (kind: string, fields: object) => {
        asked.push([kind, fields]);
        return memberships;
      },
      claiming: async (kind: string, name: string) => {
        asked.push([kind, name]);
        return users;
      },
      unreadyMemberships: async () => {
        asked.push('not Ready');
        return memberships.filter((m) => !m.status?.ready);
      },
      scan: async (_kind: string, keep: (user: LldapUser) => unknown) => users.map(keep),
    },
    broker: {
      reconcile: async ({ name }: { name: string }) => {
        if (post && posted.length === 1) throw post;
        posted.push(name);
      },
    },
    log: createLog('debug', (line) => lines.push(line)),
  } as unknown as Io;
  return { io, asked, posted, lines };
}

const ready = { conditions: [READY] };
const waiting = { conditions: [condition('Ready', 'False', 'Conflict')] };

describe('shared/lookup/dependents', () => {
  it('an event is about a resource’s kind, namespace and name', () => {
    assert.deepEqual(targetOf(user()), { kind: 'LldapUser', namespace: 'team', name: 'alice' });
  });

  it('memberships are found by the names in their statuses, and those that do not wait are left alone', async () => {
    const { io, asked } = bench({
      memberships: [membership({ status: waiting }), membership({ metadata: { name: 'done' }, status: ready })],
    });
    assert.deepEqual(await membershipsNaming(io, { userKey: 'alice' }, (m) => !isReady(m)), [
      { kind: 'LldapMembership', namespace: 'team', name: 'alice-crew' },
    ]);
    await membershipsNaming(io, { groupKey: 'crew' }, () => true);
    assert.deepEqual(asked, [
      ['LldapMembership', { 'status.userKey': 'alice' }],
      ['LldapMembership', { 'status.groupKey': 'crew' }],
    ]);
  });

  describe('the memberships of a user that is Ready', () => {
    const joined = (userUuid: string) => ({ joined: { userUuid, groupId: 7, groupUuid: 'uuid-crew' }, ready: true, conditions: [READY] });
    const of = (name: string, status: LldapMembershipStatus, userName = 'alice') =>
      membership({ metadata: { name }, spec: { userName }, status });
    const memberships = [
      of('waits', waiting),
      of('waits-for-bob', waiting, 'bob'),
      of('joined', joined('uuid-alice')),
      of('joined-before', joined('uuid-before')),
    ];
    const woken = async (recorded?: string) => {
      const { io, asked } = bench({ memberships });
      const targets = await membershipsAwaiting(io, { userKey: 'alice' }, { uuid: 'uuid-alice', recorded });
      return { names: targets.map(({ name }) => name), asked };
    };

    for (const recorded of [undefined, 'uuid-alice'])
      it(`are those that wait for it, in a list that others share, where the status recorded ${recorded ?? 'no account'}`, async () => {
        assert.deepEqual(await woken(recorded), { names: ['waits'], asked: ['not Ready'] });
      });

    it('are also those of the account that it replaced', async () => {
      const { names, asked } = await woken('uuid-before');
      assert.deepEqual(names, ['waits', 'waits-for-bob', 'joined-before']);
      assert.deepEqual(asked, [['LldapMembership', { 'status.userKey': 'alice' }]]);
    });
  });

  it('everybody else who declares a name that is freed looks again, also who seems to have it already', async () => {
    const self = user();
    const others = [user({ metadata: { name: 'al' }, status: waiting }), user({ metadata: { name: 'ally' }, status: ready })];
    const { io, asked } = bench({ users: [self, ...others] });
    assert.deepEqual(
      (await resourcesClaiming(io, self, 'alice')).map(({ name }) => name),
      ['al', 'ally'],
    );
    assert.deepEqual(asked, [['LldapUser', 'alice']]);
  });

  it('users of an attribute are those that name it, in whatever case', async () => {
    const naming = (name: string, ...attributes: string[]) =>
      user({ metadata: { name }, spec: { attributes: attributes.map((a) => ({ name: a, value: [] })) } });
    const { io } = bench({ users: [user(), naming('one', 'Shoe-Size'), naming('two', 'nick', 'shoe-size'), naming('three', 'shoe')] });
    assert.deepEqual(
      (await resourcesNamingAttribute(io, 'LldapUser', 'shoe-size')).map(({ name }) => name),
      ['one', 'two'],
    );
  });

  describe('waking others', () => {
    const targets = [targetOf(user()), targetOf(user({ metadata: { name: 'bob' } }))];

    it('posts an event for each', async () => {
      const { io, posted } = bench();
      await enqueueDependents(io, async () => targets);
      assert.deepEqual(posted, ['alice', 'bob']);
    });

    it('that the broker does not take is no failure of the one that wakes: retries and the sweep cover it', async () => {
      const { io, posted, lines } = bench({ post: new BrokerError('The broker answered 503.') });
      await enqueueDependents(io, async () => targets);
      assert.deepEqual(posted, ['alice']);
      assert.match(lines.join(''), /"level":"warn","message":"failed to enqueue dependents","reason":"The broker answered 503\."/);
    });

    it('that cannot be found is none either', async () => {
      const { io, lines } = bench();
      await enqueueDependents(io, async () => {
        throw new KubeError(403, 'lldapmemberships is forbidden', 'Forbidden');
      });
      assert.match(lines.join(''), /"reason":"The API server answered 403 Forbidden"/);
    });

    it('that nobody foresaw to fail fails', async () => {
      const { io } = bench();
      const find = async () => {
        throw new TypeError('unforeseen');
      };
      await assert.rejects(enqueueDependents(io, find), { message: 'unforeseen' });
    });
  });
});
