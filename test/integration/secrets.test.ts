import assert from 'node:assert/strict';
import { KubeError } from '../../shared/kube/errors.ts';
import { REASONS } from '../../shared/rules/reasons.ts';
import { findLeaks } from '../support/leaks.ts';
import { useHarness } from './support/harness.ts';

describe('What is never said', () => {
  const h = useHarness();
  const user = async (name: string) => {
    await h.secret(name, { password: `The-Password-0f-${name}` });
    await h.create('LldapUser', name, { username: name, email: `${name}@example.com`, passwordSecretRef: { name, key: 'password' } });
    return h.reconcile('LldapUser', name);
  };
  /** Everything that a person may read of a resource. */
  const said = async (name: string) => JSON.stringify([h.logs, (await h.get('LldapUser', name)).status, await h.events(name)]);

  it('a leak is found in every spelling that a program would use, and a token without knowing it', () => {
    const secrets = ['pass "word" ä'];
    assert.deepEqual(findLeaks(['nothing of note'], secrets), []);
    for (const text of [
      'a pass "word" ä b',
      JSON.stringify({ p: 'pass "word" ä' }),
      `x ${Buffer.from('pass "word" ä').toString('base64')}`,
      'Bearer eyJhbGciOiJIUzUxMiJ9.eyJ1c2VyIjoiYWRtaW4ifQ.abc',
    ])
      assert.equal(findLeaks([text], secrets).length, 1, text);
  });

  it('the password, by any answer of lldap that repeats the request, to GraphQL or to LDAP', async () => {
    for (const operation of ['createUser', 'user', 'passwordModify', 'bind', 'login'] as const) {
      await h.restart();
      await h.lldap.fault({ kind: 'text', text: 'You said {request}', only: { operation } });
      assert.equal((await user(`echo-${operation.toLowerCase()}`)).ready, false, operation);
      assert.doesNotMatch(await said(`echo-${operation.toLowerCase()}`), /The-Password-0f/);
      await h.lldap.heal();
    }
  });

  it("the operator's own password, wrong or right, at level debug", async () => {
    h.credentials = { username: 'admin', password: 'A-Wr0ng-Admin-Password' };
    await h.restart();
    await user('wrong-admin');
    await h.startup();
    assert.doesNotMatch(await said('wrong-admin'), /A-Wr0ng-Admin-Password/);
    assert.ok(h.logs.some((line) => line.includes('"level":"debug"')));
  });

  it('values of the spec, in logs: only names and reasons', async () => {
    await h.create('LldapUser', 'private', {
      username: 'private',
      email: 'very.private@example.com',
      firstName: 'Hidden',
      passwordPolicy: 'Ignore',
    });
    await h.reconcile('LldapUser', 'private');
    assert.doesNotMatch(h.logs.join(''), /very\.private|Hidden/);
  });

  it('values of specs, in what startup finds, whatever lldap or the API server answers', async () => {
    const summaries: string[] = [];
    const run = async () => {
      for (const mode of ['sweep', 'full', 'drift'] as const) summaries.push(JSON.stringify(await h.startup(mode)));
    };
    await run();
    await h.lldap.fault({ kind: 'text', text: 'You said {request}' });
    await run();
    await h.lldap.heal();
    h.interfere = async (by, { method, path }) => {
      if (by === 'startup' && method === 'GET') throw new KubeError(500, `it went wrong at ${path}`);
    };
    await run();
    h.interfere = async () => {};
    h.posted.reconcile = [];
    assert.equal(summaries.filter((summary) => summary.includes('"ok":false')).length, 6);
    assert.doesNotMatch([...summaries, ...h.logs].join(''), /very\.private|Hidden/);
  });

  it('anything else than a reason of the table: whatever was said in this file has one', async () => {
    for (const { spec, status } of await Promise.all(['echo-login', 'wrong-admin', 'private'].map((name) => h.get('LldapUser', name))))
      for (const { reason, message } of status?.conditions ?? []) {
        assert.ok(Object.hasOwn(REASONS, reason), `${spec.username}: ${reason}`);
        assert.ok(message.length > 0 && message.length <= 1024);
      }
  });

  it('a message of more than 1,024 characters: it is cut, with a sign', async () => {
    const attributes = [{ name: 'x'.repeat(64), value: ['x'] }];
    await h.create('LldapUser', 'long', {
      username: 'long',
      email: `${'l'.repeat(300)}@example.com`,
      passwordPolicy: 'Ignore',
      attributes,
    });
    await h.reconcile('LldapUser', 'long');
    await h.lldap.edit(`mutation { createUser(user: {id: "holder", email: "${'l'.repeat(300)}@example.com"}) { id } }`);
    await h.edit('LldapUser', 'long', { spec: { attributes: null } });
    const report = await h.reconcile('LldapUser', 'long', {});
    assert.equal(report.reason, 'EmailTaken');
    assert.ok((report.message?.length ?? 0) <= 1024);
    for (const { note } of await h.events('long')) assert.ok(note.length <= 1024);
  });
});
