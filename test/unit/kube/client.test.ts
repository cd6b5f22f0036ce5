import assert from 'node:assert/strict';
import { FINALIZER } from '../../../shared/constants.ts';
import { createKube } from '../../../shared/kube/client.ts';
import type { Connection, KubeRequest } from '../../../shared/kube/connection.ts';
import { KubeError, TOO_LARGE } from '../../../shared/kube/errors.ts';
import type { KubernetesEvent } from '../../../shared/kube/objects.ts';
import type { LldapUser } from '../../../shared/kube/resources.ts';
import { user } from '../support/examples.ts';

/** The requests that are made; each is answered with the next of `answers`. */
function bench(...answers: unknown[]) {
  const made: KubeRequest[] = [];
  const connection: Connection = {
    namespace: async () => 'lldap-operator',
    request: async (request) => {
      made.push(request);
      const answer = answers.shift() ?? {};
      if (answer instanceof Error) throw answer;
      return answer;
    },
    close: () => {},
  };
  return { kube: createKube(connection), made };
}

const BASE = '/apis/lldap-operator.lukidoescode.com/v1alpha1';
const users = (...all: string[]) => all.map((name) => user({ metadata: { name } }));
const names = async (listed: Promise<LldapUser[]>) => (await listed).map(({ metadata }) => metadata.name);
const query = ({ path }: KubeRequest) => Object.fromEntries(new URL(`http://x${path}`).searchParams);

describe('shared/kube/client', () => {
  describe('a list', () => {
    it('is read in pages, to the end', async () => {
      const { kube, made } = bench(
        { items: users('a', 'b'), metadata: { continue: 'next' } },
        { items: users('c'), metadata: { continue: 'last' } },
        { items: users('d'), metadata: {} },
      );
      assert.deepEqual(await names(kube.list('LldapUser')), ['a', 'b', 'c', 'd']);
      assert.deepEqual(
        made.map((request) => [request.path.split('?')[0], query(request)]),
        [
          [`${BASE}/lldapusers`, { limit: '500' }],
          [`${BASE}/lldapusers`, { limit: '500', continue: 'next' }],
          [`${BASE}/lldapusers`, { limit: '500', continue: 'last' }],
        ],
      );
    });

    it('is read in smaller pages where its objects are large, down to one at a time', async () => {
      const large = new KubeError(0, 'the answer is too large', TOO_LARGE);
      const { kube, made } = bench(
        { items: users('a'), metadata: { continue: 'next' } },
        large,
        large,
        { items: users('b'), metadata: { continue: 'last' } },
        { items: users('c') },
      );
      assert.deepEqual(await names(kube.list('LldapUser')), ['a', 'b', 'c']);
      assert.deepEqual(made.map(query), [
        { limit: '500' },
        { limit: '500', continue: 'next' },
        { limit: '63', continue: 'next' },
        { limit: '8', continue: 'next' },
        { limit: '8', continue: 'last' },
      ]);
      await assert.rejects(bench(...Array(9).fill(large)).kube.list('LldapUser'), { reason: TOO_LARGE });
    });

    it('that is scanned keeps what its reader keeps, of whole resources', async () => {
      const { kube } = bench({ items: users('a', 'b') });
      assert.deepEqual(await kube.scan('LldapUser', {}, ({ metadata }) => metadata.resourceVersion), ['1', '1']);
    });

    it('selects by namespace, labels and fields, whatever the values of the fields', async () => {
      const { kube, made } = bench({ items: [] });
      await kube.list('LldapMembership', {
        namespace: 'team',
        labels: { 'a/b': 'c' },
        fields: { 'status.userKey': 'al', 'status.groupKey': 'a=b,c\\d & é' },
      });
      assert.equal(made[0]?.path.split('?')[0], `${BASE}/namespaces/team/lldapmemberships`);
      assert.deepEqual(query(made[0] as KubeRequest), {
        limit: '500',
        labelSelector: 'a/b=c',
        fieldSelector: 'status.userKey=al,status.groupKey=a\\=b\\,c\\\\d & é',
      });
    });

    it('never asks for what the API server remembers instead of what is', async () => {
      const { kube, made } = bench({ items: [] });
      await kube.list('LldapGroup');
      assert.equal('resourceVersion' in query(made[0] as KubeRequest), false);
    });
  });

  it('what is not there is undefined, and another failure is one', async () => {
    const { kube } = bench(new KubeError(404, 'not found'), new KubeError(403, 'forbidden'), new KubeError(404, 'not found'));
    assert.equal(await kube.get('LldapUser', 'team', 'alice'), undefined);
    await assert.rejects(kube.get('LldapUser', 'team', 'alice'), { message: 'forbidden' });
    assert.equal(await kube.secret('team', 'alice'), undefined);
  });

  it('one object is read by its path', async () => {
    const { kube, made } = bench({ read: 1 }, { read: 2 });
    assert.deepEqual([await kube.get('LldapUser', 'team', 'alice'), await kube.secret('team', 'key')], [{ read: 1 }, { read: 2 }]);
    assert.deepEqual(made, [
      { method: 'GET', path: `${BASE}/namespaces/team/lldapusers/alice` },
      { method: 'GET', path: '/api/v1/namespaces/team/secrets/key' },
    ]);
  });

  it('Secrets are scanned in one namespace or in all, by their labels', async () => {
    const page = { items: [{ metadata: { name: 'a' } }] };
    const { kube, made } = bench(page, page);
    const scan = (selection: Parameters<typeof kube.scanSecrets>[0]) => kube.scanSecrets(selection, ({ metadata }) => metadata.name);
    assert.deepEqual(await scan({}), ['a']);
    assert.deepEqual(await scan({ namespace: 'team', labels: { a: 'b' } }), ['a']);
    assert.deepEqual(
      made.map((request) => [request.path.split('?')[0], query(request)]),
      [
        ['/api/v1/secrets', { limit: '500' }],
        ['/api/v1/namespaces/team/secrets', { limit: '500', labelSelector: 'a=b' }],
      ],
    );
  });

  it('is in the namespace of its connection, which it closes', async () => {
    const closed: string[] = [];
    const kube = createKube({
      namespace: async () => 'lldap-operator',
      request: async () => ({}),
      close: () => void closed.push('closed'),
    });
    assert.equal(await kube.namespace(), 'lldap-operator');
    kube.close();
    assert.deepEqual(closed, ['closed']);
  });

  describe('a list whose next page has expired', () => {
    const expired = () => new KubeError(410, 'the provided continue parameter is too old', 'Expired');
    const first = (name: string) => ({ items: users(name), metadata: { continue: 'next' } });

    it('is read anew from its first page, and holds nothing twice', async () => {
      const { kube, made } = bench(first('a'), expired(), first('b'), { items: users('c') });
      assert.deepEqual(await names(kube.list('LldapUser')), ['b', 'c']);
      assert.deepEqual(
        made.map(({ path }) => path.includes('continue=next')),
        [false, true, false, true],
      );
    });

    it('fails when its next page fails for another reason', async () => {
      const { kube, made } = bench(first('a'), new KubeError(500, 'unforeseen'));
      await assert.rejects(kube.list('LldapUser'), { status: 500 });
      assert.equal(made.length, 2);
    });

    it('fails when its first page is said to have expired', async () => {
      await assert.rejects(bench(expired()).kube.list('LldapUser'), { status: 410 });
    });

    it('is given up when it never comes to its end', async () => {
      const { kube } = bench(...Array.from({ length: 8 }, (_, i) => (i % 2 === 0 ? first('a') : expired())));
      await assert.rejects(kube.list('LldapUser'), { status: 410 });
    });
  });

  describe('our finalizer', () => {
    const version = { op: 'test', path: '/metadata/resourceVersion', value: '1' };
    const withFinalizers = (...finalizers: string[]) => user({ metadata: { finalizers } });
    const path = '/metadata/finalizers';
    const others = 'example.com/other';

    it('is added to none', async () => {
      const { finalizers: _none, ...metadata } = user().metadata;
      const { kube, made } = bench();
      await kube.addFinalizer({ ...user(), metadata });
      assert.deepEqual(made, [
        {
          method: 'PATCH',
          path: `${BASE}/namespaces/team/lldapusers/alice?fieldManager=lldap-operator`,
          contentType: 'application/json-patch+json',
          body: [version, { op: 'add', path, value: [FINALIZER] }],
        },
      ]);
    });

    it('is added to others', async () => {
      const { kube, made } = bench();
      await kube.addFinalizer(withFinalizers(others));
      assert.deepEqual(made[0]?.body, [version, { op: 'add', path: `${path}/-`, value: FINALIZER }]);
    });

    it('is removed from among others, which stay', async () => {
      const { kube, made } = bench();
      await kube.removeFinalizer(withFinalizers(others, FINALIZER, 'example.com/third'));
      assert.deepEqual(made[0]?.body, [version, { op: 'test', path: `${path}/1`, value: FINALIZER }, { op: 'remove', path: `${path}/1` }]);
    });

    it('is not removed where it is not', async () => {
      const { kube, made } = bench();
      await kube.removeFinalizer(withFinalizers(others));
      const { finalizers: _none, ...metadata } = user().metadata;
      await kube.removeFinalizer({ ...user(), metadata });
      assert.deepEqual(made, []);
    });

    const BRIEF: Record<number, string> = { 409: 'The API server answered 409', 422: 'The API server answered 409 Conflict' };
    for (const status of [409, 422]) {
      it(`tells by ${status} that the resource is not the one that was read`, async () => {
        const { kube } = bench(new KubeError(status, 'the test failed'));
        const error = await kube.removeFinalizer(user()).catch((e: unknown) => e);
        assert.ok(error instanceof KubeError);
        assert.deepEqual([error.stale, error.gone, error.refused, error.brief], [true, false, false, BRIEF[status]]);
      });
    }

    it('that could not be written tells why', async () => {
      await assert.rejects(bench(new KubeError(403, 'forbidden')).kube.removeFinalizer(user()), { status: 403, message: 'forbidden' });
    });
  });

  it('a status is written whole, by one manager, over the version that was read', async () => {
    const { kube, made } = bench({ written: true });
    const status = { observedGeneration: 1 };
    assert.deepEqual(await kube.applyStatus(user({ metadata: { uid: 'u-1', resourceVersion: '42' } }), status), { written: true });
    assert.deepEqual(made, [
      {
        method: 'PATCH',
        path: `${BASE}/namespaces/team/lldapusers/alice/status?fieldManager=lldap-operator&force=true`,
        contentType: 'application/apply-patch+yaml',
        body: {
          apiVersion: 'lldap-operator.lukidoescode.com/v1alpha1',
          kind: 'LldapUser',
          metadata: { name: 'alice', namespace: 'team', uid: 'u-1', resourceVersion: '42' },
          status,
        },
      },
    ]);
  });

  it('an object is created or changed whole, by one manager', async () => {
    const { kube, made } = bench({ written: true });
    const spec = { displayName: 'Crew' };
    assert.deepEqual(await kube.apply('LldapGroup', 'team', 'crew', { a: 'b' }, spec), { written: true });
    assert.deepEqual(made, [
      {
        method: 'PATCH',
        path: `${BASE}/namespaces/team/lldapgroups/crew?fieldManager=lldap-operator&force=true`,
        contentType: 'application/apply-patch+yaml',
        body: {
          apiVersion: 'lldap-operator.lukidoescode.com/v1alpha1',
          kind: 'LldapGroup',
          metadata: { name: 'crew', namespace: 'team', labels: { a: 'b' } },
          spec,
        },
      },
    ]);
  });

  it('a Secret is created with its labels and data', async () => {
    const { kube, made } = bench({ made: true });
    assert.deepEqual(await kube.createSecret('team', 'key', { a: 'b' }, { password: 'eA==' }), { made: true });
    const metadata = { name: 'key', labels: { a: 'b' } };
    assert.deepEqual(made, [
      {
        method: 'POST',
        path: '/api/v1/namespaces/team/secrets',
        body: { apiVersion: 'v1', kind: 'Secret', metadata, data: { password: 'eA==' }, type: 'Opaque' },
      },
    ]);
  });

  it('an Event is created in its namespace', async () => {
    const { kube, made } = bench();
    const event = { metadata: { name: 'alice.1', namespace: 'team' }, reason: 'Reconciled' } as KubernetesEvent;
    await kube.createEvent(event);
    assert.deepEqual(made, [
      {
        method: 'POST',
        path: '/apis/events.k8s.io/v1/namespaces/team/events',
        body: { apiVersion: 'events.k8s.io/v1', kind: 'Event', ...event },
      },
    ]);
  });

  it('a Secret that is there already is not made again', async () => {
    const { kube } = bench(new KubeError(409, 'exists', 'AlreadyExists'), new KubeError(403, 'forbidden', 'Forbidden'));
    assert.equal(await kube.createSecret('ns', 'key', {}, {}), undefined);
    await assert.rejects(kube.createSecret('ns', 'key', {}, {}), { message: 'forbidden' });
  });

  describe('an answer', () => {
    it('that did not come is told as it is, any other by status and reason alone, since its message may hold values', () => {
      assert.equal(new KubeError(0, 'no connection').brief, 'no connection');
      assert.equal(new KubeError(403, 'hush').brief, 'The API server answered 403');
      assert.equal(new KubeError(403, 'hush', 'Forbidden').brief, 'The API server answered 403 Forbidden');
    });

    it('410 means that a list has expired', () => {
      assert.deepEqual([new KubeError(410, '').expired, new KubeError(404, '').expired], [true, false]);
    });

    const answers: Record<number, [stale: boolean, gone: boolean, refused: boolean]> = {
      0: [false, false, false],
      400: [false, false, true],
      401: [false, false, false],
      403: [false, false, false],
      404: [false, true, false],
      409: [true, false, false],
      422: [false, false, true],
      503: [false, false, false],
    };
    for (const [status, [stale, gone, refused]] of Object.entries(answers)) {
      it(`${status} ${stale ? 'means another look' : gone ? 'means that it is gone' : refused ? 'is final' : 'says nothing of the resource'}`, () => {
        const error = new KubeError(Number(status), 'x'.repeat(1000));
        assert.deepEqual([error.stale, error.gone, error.refused, error.message.length], [stale, gone, refused, 500]);
      });
    }
  });
});
