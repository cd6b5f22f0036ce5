import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { reconcileUsersOf } from '../../../../functions/user/secret-events.ts';
import { BrokerError } from '../../../../shared/events/broker.ts';
import type { EventTarget } from '../../../../shared/events/parse.ts';
import type { Selection } from '../../../../shared/kube/client.ts';
import { KubeError } from '../../../../shared/kube/errors.ts';
import type { LldapUser } from '../../../../shared/kube/resources.ts';
import type { Io } from '../../../../shared/lookup/io.ts';
import { policy, user } from '../../support/examples.ts';

/** Lists whose end the test decides, and the events that are posted. */
function bench({ onlyNamespace, broker }: { onlyNamespace?: string; broker?: Error } = {}) {
  const lists: { selection: Selection | undefined; end: PromiseWithResolvers<LldapUser[]> }[] = [];
  const posted: string[] = [];
  const io = {
    kube: {
      list: (_kind: 'LldapUser', selection?: Selection) => {
        const end = Promise.withResolvers<LldapUser[]>();
        lists.push({ selection, end });
        return end.promise;
      },
    },
    broker: {
      reconcile: async ({ name }: EventTarget) => {
        if (broker) throw broker;
        posted.push(name);
      },
    },
    policy: async () => policy(onlyNamespace === undefined ? {} : { onlyNamespace }),
  } as unknown as Io;
  const handle = reconcileUsersOf(io);
  const named = (namespace: string) => lists.filter(({ selection }) => selection?.namespace === namespace).length;
  return { lists, posted, named, onSecret: (namespace = 'team', name = 'shared') => handle({ namespace, name }) };
}

const users = ['alice', 'bob'].map((name) => user({ metadata: { name } }));

describe('functions/user/secret-events', () => {
  it('a changed Secret leads to an event for each user that names it', async () => {
    const { lists, posted, onSecret } = bench();
    const answer = onSecret();
    await turn();
    assert.deepEqual(lists[0]?.selection, {
      namespace: 'team',
      labels: { 'lldap-operator.lukidoescode.com/lldap-instance': 'main' },
      fields: { 'spec.passwordSecretRef.name': 'shared' },
    });
    lists[0]?.end.resolve(users);
    assert.deepEqual([await answer, posted], [{ status: 204 }, ['alice', 'bob']]);
  });

  it('a Secret outside of the one namespace that is served leads to nothing', async () => {
    const { lists, onSecret } = bench({ onlyNamespace: 'other' });
    assert.deepEqual([await onSecret(), lists.length], [{ status: 204 }, 0]);
  });

  it('a hundred events of one Secret at once cost two lists, and two events for each user', async () => {
    const { lists, posted, onSecret } = bench();
    const answers = Promise.all(Array.from({ length: 100 }, () => onSecret()));
    for (const round of [0, 1]) {
      await turn();
      assert.equal(lists.length, round + 1);
      for (const { end } of lists) end.resolve(users);
    }
    assert.deepEqual(new Set((await answers).map(({ status }) => status)), new Set([204]));
    assert.deepEqual([lists.length, posted], [2, ['alice', 'bob', 'alice', 'bob']]);
  });

  it('a change during the events of an earlier one is not missed: the users are listed anew', async () => {
    const { lists, posted, onSecret } = bench();
    const first = onSecret();
    await turn();
    const second = onSecret();
    lists[0]?.end.resolve([]);
    assert.deepEqual([await first, posted], [{ status: 204 }, []]);
    await turn();
    lists[1]?.end.resolve(users);
    assert.deepEqual([await second, posted], [{ status: 204 }, ['alice', 'bob']]);
  });

  it('one Secret does not wait for another, of the same name in another namespace or of another name', async () => {
    const { lists, named, onSecret } = bench();
    const all = [onSecret(), onSecret('other'), onSecret('team', 'own')];
    await turn();
    assert.deepEqual([named('team'), named('other')], [2, 1]);
    for (const { end } of lists) end.resolve([]);
    await Promise.all(all);
  });

  it('an answer of the API server is told without its message, which may repeat what a spec says', async () => {
    const { lists, onSecret } = bench();
    const answer = onSecret();
    await turn();
    lists[0]?.end.reject(new KubeError(422, 'spec.attributes: Invalid value: "secret"', 'Invalid'));
    assert.deepEqual(await answer, { status: 503, message: 'The API server answered 422 Invalid' });
  });

  it('has the broker deliver again where the broker does not take an event', async () => {
    const { lists, onSecret } = bench({ broker: new BrokerError('the broker answered 500') });
    const answer = onSecret();
    await turn();
    lists[0]?.end.resolve(users);
    assert.deepEqual(await answer, { status: 503, message: 'the broker answered 500' });
  });

  it('an unexpected error is not taken for a failure of the broker', async () => {
    const { lists, onSecret } = bench({ broker: new TypeError('a bug') });
    const answer = onSecret();
    await turn();
    lists[0]?.end.resolve(users);
    await assert.rejects(answer, /a bug/);
  });
});
