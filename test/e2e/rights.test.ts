import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { parseManifests } from '../local/knative/manifests.ts';
import { renderManifests } from '../local/knative/render.ts';
import { CLUSTER_TIMEOUT_MS } from '../local/kube/shared.ts';
import { until, World } from './support.ts';

const OPERATOR = 'lldap-operator';
/** Knative's controller checks that a source's account may get what it watches, and an apply that creates is told as a patch. */
const NEEDED_ELSEWHERE = /-source may get |startup may create lldapgroups$/;
const PREFIX = `system:serviceaccount:${OPERATOR}:`;

describe('the rights of the manifests against the calls that are really made', () => {
  let world: World;
  before(async function () {
    this.timeout(CLUSTER_TIMEOUT_MS);
    world = await World.start();
    await everythingThatFunctionsDo(world);
  });
  after(() => world.stop());

  it('no call was refused for want of a right', async () => {
    const refused = (await calls()).filter(({ code }) => code === 403);
    assert.deepEqual([...new Set(refused.map(describeCall))], []);
  });

  it('no right is there that no call needs', async () => {
    const made = new Set((await calls()).map(describeCall));
    const given = await rights();
    assert.ok(given.length > 30);
    assert.deepEqual(
      given.filter((right) => !made.has(right) && !NEEDED_ELSEWHERE.test(right)),
      [],
    );
  });

  it('Secrets are read by three identities only', async () => {
    const readers = new Set(
      (await calls()).filter(({ resource, verb }) => resource === 'secrets' && verb !== 'create').map(({ account }) => account),
    );
    assert.deepEqual([...readers].sort(), ['lldap-operator-secrets-source', 'lldap-operator-startup', 'lldap-operator-user']);
  });

  interface Call {
    account: string;
    verb: string;
    resource: string;
    code: number;
  }

  function describeCall({ account, verb, resource }: Call): string {
    return `${account} may ${verb} ${resource}`;
  }

  async function calls(): Promise<Call[]> {
    const lines = (await readFile(world.stack.cluster.auditLog, 'utf8')).trim().split('\n');
    return lines.flatMap((line) => {
      const { user, verb, objectRef, responseStatus } = JSON.parse(line) as AuditEvent;
      if (!user.username.startsWith(PREFIX) || !objectRef?.resource) return [];
      const resource = objectRef.subresource ? `${objectRef.resource}/${objectRef.subresource}` : objectRef.resource;
      return [{ account: user.username.slice(PREFIX.length), verb, resource, code: responseStatus?.code ?? 0 }];
    });
  }

  interface AuditEvent {
    user: { username: string };
    verb: string;
    objectRef?: { resource: string; subresource?: string };
    responseStatus?: { code: number };
  }

  /** Every verb on every resource that a ServiceAccount of the manifests is given, in whatever namespace. */
  async function rights(): Promise<string[]> {
    const objects = parseManifests(await renderManifests()).map((object) => object.all() as unknown as Rbac);
    const roles = new Map(
      objects.filter(({ kind }) => /^(Cluster)?Role$/.test(kind)).map((role) => [`${role.kind}/${role.metadata.name}`, role.rules ?? []]),
    );
    const bindings = objects.filter(({ kind }) => /^(Cluster)?RoleBinding$/.test(kind));
    const all = bindings.flatMap(({ roleRef, subjects = [] }) =>
      subjects.flatMap((subject) =>
        (roles.get(`${roleRef?.kind}/${roleRef?.name}`) ?? []).flatMap(({ resources, verbs }) =>
          resources.flatMap((resource) => verbs.map((verb) => `${subject.name} may ${verb} ${resource}`)),
        ),
      ),
    );
    return [...new Set(all)].sort();
  }

  interface Rbac {
    kind: string;
    metadata: { name: string };
    rules?: { resources: string[]; verbs: string[] }[];
    roleRef?: { kind: string; name: string };
    subjects?: { name: string }[];
  }
});

/** One of each: what functions do in a year, in a minute. */
async function everythingThatFunctionsDo(world: World): Promise<void> {
  const ns = 'rights';
  await world.kubectl('create', 'namespace', ns);
  const user = (name: string, spec: object) =>
    world.resource('LldapUser', ns, name, { username: name, email: `${name}@example.com`, ...spec });
  const password = { passwordSecretRef: { name: 'password', key: 'password' } };
  await world.apply(
    world.secret(ns, 'password', { password: 'a password for the rights' }),
    world.resource('LldapAttributeSchema', ns, 'color', { attributeName: 'color', attributeType: 'String', target: 'User' }),
    world.resource('LldapAttributeSchema', ns, 'size', { attributeName: 'size', attributeType: 'String', target: 'Group' }),
    user('anna', { ...password, attributes: [{ name: 'color', value: ['red'] }] }),
    world.resource('LldapGroup', ns, 'team', { displayName: 'Rights', attributes: [{ name: 'size', value: ['large'] }] }),
    world.resource('LldapMembership', ns, 'anna-team', { userName: 'anna', groupName: 'Rights' }),
  );
  await world.ready(ns);

  // Marks that name others, and marks that are gone, make functions look for the owner.
  await world.apply(user('rival', { ...password, username: 'anna' }), world.resource('LldapGroup', ns, 'rival', { displayName: 'RIGHTS' }));
  await until(
    'the rivals say so',
    async () => (await world.reason('llu', ns, 'rival')) === 'Conflict' && (await world.reason('llg', ns, 'rival')) === 'Conflict',
  );
  await world.lldap.edit('mutation { deleteUserAttribute(name: "k8s-owner") { ok } }');
  await world.lldap.edit('mutation { deleteGroupAttribute(name: "k8s-owner") { ok } }');
  await world.kubectl('annotate', 'llu,llg,llm', '--all', '-n', ns, 'lldap-operator.lukidoescode.com/requested-at=now');
  await until('the marks are back', async () =>
    (await world.lldap.users()).some(({ attributes }) => JSON.stringify(attributes).includes(`${ns}/anna`)),
  );

  // A user whose resource went and left it: its mark names nobody, and a membership looks for who that was.
  await world.apply(
    user('kept', { passwordPolicy: 'Ignore', deletionPolicy: 'Retain' }),
    world.resource('LldapMembership', ns, 'kept-team', { userName: 'kept', groupName: 'Rights' }),
  );
  await world.kubectl('wait', 'llm', 'kept-team', '-n', ns, '--for=condition=Ready', '--timeout=120s');
  await world.kubectl('delete', 'llu', 'kept', '-n', ns, '--timeout=120s');
  const found = () =>
    world.kubectl('get', 'llm', 'kept-team', '-n', ns, '-o', 'jsonpath={.status.conditions[?(@.type=="DependenciesReady")].reason}');
  await until('the membership finds the user in lldap', async () => (await found()) === 'FoundInLldap');

  // A group that admits namespaces by their labels, and then others.
  const guests = `${ns}-guests`;
  const only = (name: string) =>
    world.resource('LldapGroup', ns, 'team', {
      displayName: 'Rights',
      attributes: [{ name: 'size', value: ['large'] }],
      allowedMemberships: { namespaces: { from: 'Selector', selector: { matchLabels: { 'kubernetes.io/metadata.name': name } } } },
    });
  await world.kubectl('create', 'namespace', guests);
  await world.apply(only(guests), world.resource('LldapMembership', guests, 'guest', { userName: 'kept', groupName: 'Rights' }));
  await world.kubectl('wait', 'llm', 'guest', '-n', guests, '--for=condition=Ready', '--timeout=120s');
  await world.apply(only('nobody'));
  await until('the guest is told', async () => (await world.reason('llm', guests, 'guest')) === 'Forbidden');
  await world.kubectl('delete', 'llm', 'guest', '-n', guests, '--timeout=120s');

  // What is refused leaves an Event.
  await world.apply(
    world.resource('LldapAttributeSchema', ns, 'color-number', { attributeName: 'color', attributeType: 'Integer', target: 'User' }),
    world.resource('LldapMembership', ns, 'anna-admin', { userName: 'anna', groupName: 'lldap_admin' }),
  );
  await until('what is refused says so', async () => {
    const reasons = [await world.reason('llas', ns, 'color-number'), await world.reason('llm', ns, 'anna-admin')];
    return reasons.join() === 'SchemaMismatch,Forbidden';
  });

  // A built-in group, from the privileged namespace.
  await world.apply(
    world.resource('LldapUser', OPERATOR, 'root', { username: 'root', email: 'root@example.com', passwordPolicy: 'Ignore' }),
    world.resource('LldapMembership', OPERATOR, 'root-admin', { userName: 'root', groupName: 'lldap_admin' }),
  );
  await world.ready(OPERATOR);

  // Startup with a rotated Secret that it must read by name, and a virtual group that somebody deleted.
  await world.kubectl('label', 'secret', 'password', '-n', ns, 'lldap-operator.lukidoescode.com/lldap-instance-');
  await world.kubectl('delete', 'llg', 'lldap-password-manager', '-n', OPERATOR);
  await world.lldap.stop();
  await world.stack.knative.runCronJob('lldap-operator-startup');
  await world.lldap.start();
  await world.stack.knative.runCronJob('lldap-operator-startup');
  await world.stack.knative.runCronJob('lldap-operator-drift');
  // By itself: where its user or group is gone already, nobody needs to know who else declares the pair.
  await world.kubectl('delete', 'llm', 'anna-team', '-n', ns, '--timeout=120s');
  await world.kubectl('delete', 'llm,llu,llg', '--all', '-n', ns, '--timeout=120s');
  await world.kubectl('delete', 'llas', '--all', '-n', ns, '--timeout=120s');
  await world.kubectl('delete', 'llm,llu', '--all', '-n', OPERATOR, '--timeout=120s');
}
