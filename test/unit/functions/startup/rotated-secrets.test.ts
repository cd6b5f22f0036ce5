import assert from 'node:assert/strict';
import { findRotated, keepPasswordKey } from '../../../../functions/startup/rotated-secrets.ts';
import type { Kube } from '../../../../shared/kube/client.ts';
import type { Secret } from '../../../../shared/kube/objects.ts';
import type { LldapUser, LldapUserSpec, LldapUserStatus } from '../../../../shared/kube/resources.ts';
import type { Io } from '../../../../shared/lookup/io.ts';
import { type PasswordKey, passwordHash } from '../../../../shared/rules/password.ts';
import { refOf } from '../../../../shared/rules/resource-names.ts';
import { condition, OPERATOR_NAMESPACE, policy, READY, user } from '../../support/examples.ts';

const KEY: PasswordKey = { id: 'key', key: Buffer.alloc(32, 1) };
const base64 = (text: string | Buffer) => Buffer.from(text).toString('base64');
const secret = (name: string, password: string, namespace = 'team'): Secret => ({
  metadata: { name, namespace },
  data: { password: base64(password) },
});

function aUser(name: string, { spec = {}, status = {} }: { spec?: Partial<LldapUserSpec>; status?: LldapUserStatus } = {}): LldapUser {
  return user({
    metadata: { name },
    spec: { username: name, passwordSecretRef: { name, key: 'password' }, ...spec },
    status: {
      observedGeneration: 1,
      conditions: [READY],
      uuid: `uuid-${name}`,
      passwordHash: passwordHash(KEY, `uuid-${name}`, 'correct horse'),
      ...status,
    },
  });
}

/** @param labelled read in one list; @param others read one by one */
async function rotated(users: LldapUser[], labelled: Secret[] = [], others: Secret[] = []) {
  const read: string[] = [];
  let slept = 0;
  const io = {
    kube: {
      secret: async (namespace: string, name: string) => {
        read.push(`${namespace}/${name}`);
        return others.find(({ metadata }) => metadata.namespace === namespace && metadata.name === name);
      },
    },
    lookup: {
      scanSecrets: async (keep: (secret: Secret) => unknown) => {
        read.push('all');
        return labelled.map(keep);
      },
    },
    random: () => 0,
    clock: {
      sleep: async (ms: number) => {
        slept += ms;
      },
    },
  } as unknown as Io;
  return { found: (await findRotated(io, policy(), KEY, users)).map(refOf), read, slept };
}

describe('functions/startup/rotated-secrets', () => {
  describe('a user is looked at', () => {
    const same = [secret('alice', 'correct horse')];
    const other = [secret('alice', 'staple battery')];
    const cases: Record<string, [LldapUser, Secret[], boolean]> = {
      'not while the Secret’s password is the one that was set': [aUser('alice'), same, false],
      'when the Secret’s password is another': [aUser('alice'), other, true],
      'when it is managed in so many words': [aUser('alice', { spec: { passwordPolicy: 'Manage' } }), other, true],
      'when the Secret has gone': [aUser('alice'), [], true],
      'when the Secret lost the key': [aUser('alice', { spec: { passwordSecretRef: { name: 'alice', key: 'other' } } }), same, true],
      'when the Secret’s password is too short by now': [aUser('alice'), [secret('alice', 'short')], true],
      'when the hash was lost': [aUser('alice', { status: { passwordHash: '' } }), same, true],
      'when the user was made anew': [aUser('alice', { status: { uuid: 'uuid-new' } }), same, true],
      'not by the Secret of another namespace': [aUser('alice'), [...same, secret('alice', 'staple battery', 'other')], false],
      'not where the policy is InitialOnly': [aUser('alice', { spec: { passwordPolicy: 'InitialOnly' } }), other, false],
      'not where the policy is Ignore': [aUser('alice', { spec: { passwordPolicy: 'Ignore' } }), other, false],
      'not while it is not Ready, which leads to a look anyway': [
        aUser('alice', { status: { conditions: [condition('Ready', 'False', 'SecretNotFound')] } }),
        other,
        false,
      ],
      'not while it is suspended': [aUser('alice', { spec: { suspend: true } }), other, false],
    };
    for (const [name, [resource, secrets, looks]] of Object.entries(cases)) {
      it(name, async () => assert.deepEqual((await rotated([resource], secrets)).found, looks ? ['team/alice'] : []));
    }

    it('not before it records whom in lldap it is about, or names a Secret', async () => {
      const { uuid: _uuid, ...status } = aUser('alice').status ?? {};
      const { passwordSecretRef: _ref, ...spec } = aUser('alice').spec;
      assert.deepEqual(
        (
          await rotated(
            [
              { ...aUser('alice'), status },
              { ...aUser('alice'), spec },
            ],
            other,
          )
        ).found,
        [],
      );
    });

    it('not while it is being deleted', async () => {
      const resource = aUser('alice');
      resource.metadata.deletionTimestamp = '2026-03-01T11:00:00Z';
      assert.deepEqual((await rotated([resource], other)).found, []);
    });
  });

  it('labelled Secrets are read in one list, and no other', async () => {
    const users = ['alice', 'bob'].map((name) => aUser(name));
    assert.deepEqual(await rotated(users, [secret('alice', 'correct horse'), secret('bob', 'staple battery')]), {
      found: ['team/bob'],
      read: ['all'],
      slept: 0,
    });
  });

  it('one tenant’s thousands of Secrets without the label make no sweep late', async () => {
    const many = Array.from({ length: 1_500 }, (_, i) => aUser(`user-${i}`));
    const { read, slept } = await rotated(many);
    assert.deepEqual([read.length, slept], [1 + 1_000, 20_000]);
  });

  it('other Secrets are read once each, at a bounded rate', async () => {
    const shared = { passwordSecretRef: { name: 'shared', key: 'password' } };
    const users = ['alice', 'bob', 'carol'].map((name) => aUser(name, { spec: shared }));
    assert.deepEqual(await rotated(users, [], [secret('shared', 'correct horse')]), { found: [], read: ['all', 'team/shared'], slept: 20 });
  });

  it('no Secret is read where no password is managed', async () => {
    assert.deepEqual(await rotated([aUser('alice', { spec: { passwordPolicy: 'Ignore' } })]), { found: [], read: [], slept: 0 });
  });

  describe('the installation’s key', () => {
    /** @param lose whether another run creates it between the look and the creation */
    function cluster(existing: Secret | undefined, lose = false) {
      let stored = existing;
      const created: unknown[][] = [];
      const kube = {
        namespace: async () => OPERATOR_NAMESPACE,
        secret: async () => stored,
        createSecret: async (...args: [string, string, Record<string, string>, Record<string, string>]) => {
          created.push(args);
          if (lose) {
            stored = { metadata: { name: 'x', namespace: 'x' }, data: { key: base64(Buffer.alloc(32, 9)) } };
            return undefined;
          }
          return { metadata: { name: args[1], namespace: args[0] }, data: args[3] };
        },
      } as unknown as Kube;
      return { kube, created };
    }

    it('is made of 32 random bytes where there is none', async () => {
      const { kube, created } = cluster(undefined);
      const { key } = await keepPasswordKey(kube, 'main');
      assert.equal(key.length, 32);
      const [[namespace, name, labels, data]] = created as [unknown[]];
      assert.deepEqual(
        [namespace, name, labels],
        [
          'lldap-operator',
          'lldap-operator-password-key',
          { 'app.kubernetes.io/part-of': 'lldap-operator', 'app.kubernetes.io/instance': 'main' },
        ],
      );
      assert.deepEqual(data, { key: base64(key) });
      assert.notDeepEqual((await keepPasswordKey(cluster(undefined).kube, 'main')).key, key);
    });

    it('is never made twice: the one that is there is taken', async () => {
      const { kube, created } = cluster({ metadata: { name: 'x', namespace: 'x' }, data: { key: base64(Buffer.alloc(32, 3)) } });
      assert.deepEqual((await keepPasswordKey(kube, 'main')).key, Buffer.alloc(32, 3));
      assert.deepEqual(created, []);
    });

    it('is another run’s, where that was quicker', async () => {
      assert.deepEqual((await keepPasswordKey(cluster(undefined, true).kube, 'main')).key, Buffer.alloc(32, 9));
    });

    it('is never replaced, though it be none', async () => {
      const { kube, created } = cluster({ metadata: { name: 'x', namespace: 'x' }, data: { key: base64('short') } });
      await assert.rejects(keepPasswordKey(kube, 'main'), { name: 'Failure', reason: 'PasswordKeyMissing' });
      assert.deepEqual(created, []);
    });
  });
});
