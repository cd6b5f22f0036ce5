import assert from 'node:assert/strict';
import { API_GROUP } from '../../../shared/constants.ts';
import { renderManifests } from '../../local/knative/render.ts';
import { type Role, type Typed, typedManifests } from '../../local/knative/typed.ts';
import { CLUSTER_TIMEOUT_MS } from '../../local/kube/shared.ts';

const NAME = 'lldap-operator';

describe('The manifests give rights', function () {
  this.timeout(CLUSTER_TIMEOUT_MS);
  let typed: Typed;

  before(async () => {
    typed = typedManifests(await renderManifests());
  });

  /** `verb resource.group`, all that an account may do, in the whole cluster and in the operator's own namespace. */
  function rightsOf(account: string): { everywhere: string[]; ownNamespace: string[] } {
    const roles = typed.bindings
      .filter(({ subjects }) => subjects.some(({ name }) => name === account))
      .map(
        ({ roleRef }) =>
          typed.roles.find(({ kind, metadata }) => kind === roleRef.kind && metadata.name === roleRef.name) ??
          assert.fail(`no ${roleRef.kind} ${roleRef.name}`),
      );
    const rights = (kind: string) =>
      roles
        .filter((role) => role.kind === kind)
        .flatMap(allowed)
        .sort();
    return { everywhere: rights('ClusterRole'), ownNamespace: rights('Role') };
  }

  const allowed = ({ rules }: Role) =>
    rules.flatMap(({ apiGroups, resources, verbs }) =>
      apiGroups.flatMap((group) => resources.flatMap((resource) => verbs.map((verb) => `${verb} ${resource}${group && `.${group}`}`))),
    );
  const ours = (right: string) => `${right}.${API_GROUP}`;

  const table: [string, string[], string[]?][] = [
    [
      'user',
      [
        ours('get lldapusers'),
        ours('list lldapusers'),
        ours('patch lldapusers'),
        ours('patch lldapusers/status'),
        ours('list lldapattributeschemas'),
        ours('list lldapmemberships'),
        'get secrets',
        'create events.events.k8s.io',
      ],
    ],
    [
      'group',
      [
        'get namespaces',
        ours('get lldapgroups'),
        ours('list lldapgroups'),
        ours('patch lldapgroups'),
        ours('patch lldapgroups/status'),
        ours('list lldapattributeschemas'),
        ours('list lldapmemberships'),
        'create events.events.k8s.io',
      ],
    ],
    [
      'membership',
      [
        'get namespaces',
        ours('get lldapmemberships'),
        ours('list lldapmemberships'),
        ours('patch lldapmemberships'),
        ours('patch lldapmemberships/status'),
        ours('get lldapusers'),
        ours('list lldapusers'),
        ours('get lldapgroups'),
        ours('list lldapgroups'),
        'create events.events.k8s.io',
      ],
    ],
    [
      'attribute-schema',
      [
        ours('get lldapattributeschemas'),
        ours('list lldapattributeschemas'),
        ours('patch lldapattributeschemas'),
        ours('patch lldapattributeschemas/status'),
        ours('list lldapusers'),
        ours('list lldapgroups'),
        'create events.events.k8s.io',
      ],
    ],
    [
      'startup',
      [
        ...['lldapusers', 'lldapgroups', 'lldapmemberships', 'lldapattributeschemas'].map((plural) => ours(`list ${plural}`)),
        'list namespaces',
        'get secrets',
        'list secrets',
        'create events.events.k8s.io',
      ],
      [ours('create lldapgroups'), ours('patch lldapgroups'), ours('patch lldapgroups/status'), 'create secrets'],
    ],
    ['requeue', []],
    ['call-startup', []],
    [
      'resources-source',
      ['lldapusers', 'lldapgroups', 'lldapmemberships', 'lldapattributeschemas'].flatMap((plural) =>
        ['get', 'list', 'watch'].map((verb) => ours(`${verb} ${plural}`)),
      ),
    ],
    ['secrets-source', ['get secrets', 'list secrets', 'watch secrets']],
  ];
  for (const [account, everywhere, ownNamespace = []] of table) {
    it(`to ${account}: exactly these`, () => {
      assert.deepEqual(rightsOf(`${NAME}-${account}`), { everywhere: [...everywhere].sort(), ownNamespace: [...ownNamespace].sort() });
    });
  }

  it('to these accounts only, each of which exists', () => {
    const names = table.map(([account]) => `${NAME}-${account}`).sort();
    assert.deepEqual(typed.accounts.map(({ metadata }) => metadata.name).sort(), names);
    for (const { subjects } of typed.bindings) {
      assert.equal(subjects.length, 1);
      for (const { kind, name, namespace } of subjects)
        assert.ok(kind === 'ServiceAccount' && namespace === NAME && names.includes(name), name);
    }
  });

  it('to Secrets for three identities: user, startup and the source of Secrets', () => {
    const readers = typed.roles
      .filter((role) => allowed(role).some((right) => /^(get|list|watch) secrets$/.test(right)))
      .map(({ metadata }) => metadata.name);
    assert.deepEqual(readers.sort(), [`${NAME}-secrets-source`, `${NAME}-startup`, `${NAME}-user`]);
  });

  it('never with a wildcard', () => {
    for (const { rules } of typed.roles) {
      for (const { apiGroups, resources, verbs } of rules) assert.ok(![...apiGroups, ...resources, ...verbs].includes('*'));
    }
  });

  it('with an account for each function and source, and one for the Jobs', () => {
    const users = [
      ...typed.services.map(({ spec }) => spec?.template?.spec?.serviceAccountName),
      ...typed.sources.map(({ spec }) => spec?.serviceAccountName),
    ];
    const callers = [
      ...typed.jobs.map(({ spec }) => spec.template.spec),
      ...typed.cronJobs.map(({ spec }) => spec.jobTemplate.spec.template.spec),
    ];
    assert.deepEqual(new Set(callers.map(({ serviceAccountName }) => serviceAccountName)), new Set([`${NAME}-call-startup`]));
    assert.deepEqual([...users, `${NAME}-call-startup`].sort(), typed.accounts.map(({ metadata }) => metadata.name).sort());
  });

  it('without a token for pods that call no API', () => {
    const tokenless = typed.accounts
      .filter(({ automountServiceAccountToken }) => automountServiceAccountToken === false)
      .map(({ metadata }) => metadata.name);
    assert.deepEqual(tokenless.sort(), [`${NAME}-call-startup`, `${NAME}-requeue`]);
  });
});
