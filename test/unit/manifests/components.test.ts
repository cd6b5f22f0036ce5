import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { parse } from 'yaml';
import { EVENT_TYPE } from '../../../shared/constants.ts';
import { renderManifests, renderWith } from '../../local/knative/render.ts';
import { typedManifests } from '../../local/knative/typed.ts';
import { CLUSTER_TIMEOUT_MS } from '../../local/kube/shared.ts';
import { changes } from './changes.ts';

const NAME = 'lldap-operator';
const ROOT = join(import.meta.dirname, '../../..');
const WITH_LLDAP = ['attribute-schema', 'group', 'membership', 'startup', 'user'];
const FUNCTIONS = [...WITH_LLDAP, 'requeue'].sort();
/** In the order in which an installation of its own name lists them. */
const ALL = ['ldaps', 'tracing', 'drift', 'network-policies', 'kafka-broker', 'oidc', 'instance'].map((name) => `components/${name}`);

const eachOf = (names: string[], kind: string, lines: string[]) =>
  names.flatMap((name) => lines.map((line) => `${kind} ${NAME}-${name} ${line}`)).sort();

describe('Of the components,', function () {
  this.timeout(CLUSTER_TIMEOUT_MS);
  let base: string;

  before(async () => {
    base = await renderManifests('overlays/all-namespaces');
  });

  const container = '.spec.template.spec.containers[function]';
  const jobToken = (at: string) => [
    `${at}.containers[call-startup].env[STARTUP_TOKEN_FILE].name: STARTUP_TOKEN_FILE`,
    `${at}.containers[call-startup].env[STARTUP_TOKEN_FILE].value: /etc/${NAME}/functions/token`,
    `${at}.containers[call-startup].volumeMounts[functions-token].mountPath: /etc/${NAME}/functions`,
    `${at}.containers[call-startup].volumeMounts[functions-token].name: functions-token`,
    `${at}.containers[call-startup].volumeMounts[functions-token].readOnly: true`,
    `${at}.volumes[functions-token].name: functions-token`,
    `${at}.volumes[functions-token].projected.sources[0].serviceAccountToken.audience: ${NAME}`,
    `${at}.volumes[functions-token].projected.sources[0].serviceAccountToken.path: token`,
  ];
  const table: Record<string, string[]> = {
    drift: [`CronJob ${NAME}-drift .spec.suspend: false`],
    tracing: [`ConfigMap ${NAME} .data.OTEL_EXPORTER_OTLP_ENDPOINT: http://opentelemetry-collector.observability.svc.cluster.local:4318`],
    ldaps: [
      `ConfigMap ${NAME} .data.LLDAP_LDAP_URL: ldaps://lldap.lldap.svc.cluster.local:6360`,
      ...eachOf(WITH_LLDAP, 'KnativeService', [
        `${container}.env[LLDAP_CA].name: LLDAP_CA`,
        `${container}.env[LLDAP_CA].valueFrom.configMapKeyRef.key: ca.crt`,
        `${container}.env[LLDAP_CA].valueFrom.configMapKeyRef.name: lldap-ca`,
      ]),
    ],
    'network-policies': ['call-startup', 'functions', 'lldap', 'sources'].map((name) => `+ NetworkPolicy ${NAME}-${name}`),
    'kafka-broker': [
      `- Broker ${NAME}`,
      `+ Broker ${NAME}-kafka`,
      ...FUNCTIONS.flatMap((name) => [`- Trigger ${NAME}-${name}`, `+ Trigger ${NAME}-${name}-kafka`]),
      ...eachOf(['resources', 'secrets'], 'ApiServerSource', [`.spec.sink.ref.name: ${NAME}-kafka`]),
      `ConfigMap ${NAME} .data.BROKER_URL: http://kafka-broker-ingress.knative-eventing.svc.cluster.local/${NAME}/${NAME}-kafka`,
    ],
    oidc: [
      `+ ClusterRole ${NAME}-token-reviews`,
      `+ ClusterRoleBinding ${NAME}-token-reviews`,
      `ServiceAccount ${NAME}-requeue .automountServiceAccountToken: true`,
      ...eachOf(['install'], 'Job', jobToken('.spec.template.spec')),
      ...eachOf(['startup', 'drift'], 'CronJob', jobToken('.spec.jobTemplate.spec.template.spec')),
      ...eachOf(FUNCTIONS, 'Trigger', [`.spec.subscriber.audience: ${NAME}`]),
      ...eachOf(WITH_LLDAP, 'Trigger', [`.spec.delivery.deadLetterSink.audience: ${NAME}`]),
      `+ EventPolicy ${NAME}-functions`,
      `+ EventPolicy ${NAME}-sources`,
      ...eachOf(FUNCTIONS, 'KnativeService', [
        '.metadata.annotations.lldap-operator.lukidoescode.com/broker-token: mounted',
        `${container}.env[BROKER_TOKEN_FILE].name: BROKER_TOKEN_FILE`,
        `${container}.env[BROKER_TOKEN_FILE].value: /etc/${NAME}/broker/token`,
        `${container}.env[TOKEN_AUDIENCE].name: TOKEN_AUDIENCE`,
        `${container}.env[TOKEN_AUDIENCE].value: ${NAME}`,
        `${container}.volumeMounts[broker-token].mountPath: /etc/${NAME}/broker`,
        `${container}.volumeMounts[broker-token].name: broker-token`,
        `${container}.volumeMounts[broker-token].readOnly: true`,
        '.spec.template.spec.volumes[broker-token].name: broker-token',
        `.spec.template.spec.volumes[broker-token].projected.sources[0].serviceAccountToken.audience: eventing.knative.dev/broker/${NAME}/${NAME}`,
        '.spec.template.spec.volumes[broker-token].projected.sources[0].serviceAccountToken.path: token',
      ]),
    ],
  };
  for (const [component, expected] of Object.entries(table)) {
    it(`${component} changes only what it is for`, async () => {
      const rendered = await renderWith([`components/${component}`]);
      typedManifests(rendered);
      assert.deepEqual(changes(base, rendered), [...expected].sort());
    });
  }

  it("ldaps, added to the kustomization on the installation's page, sends passwords encrypted", async () => {
    const page = readFileSync(join(ROOT, 'docs/install.md'), 'utf8');
    const [, printed = assert.fail()] = /<<'END'\n(apiVersion: kustomize[\s\S]*?)^END$/m.exec(page) ?? [];
    const folder = await mkdtemp(join(tmpdir(), 'install-page-'));
    try {
      const install = join(folder, 'install');
      await mkdir(install);
      await symlink(join(ROOT, 'knative'), join(folder, 'knative'));
      await writeFile(join(install, 'install.yaml'), base);
      await writeFile(join(install, 'kustomization.yaml'), `${printed}  - ../knative/components/ldaps\n`);
      const { config } = typedManifests(await renderManifests(relative(join(ROOT, 'knative'), install)));
      assert.match(config.LLDAP_LDAP_URL ?? '', /^ldaps:/);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it('kafka-broker adds a Broker and Triggers beside those of a running installation, for the same events and functions', async () => {
    const { brokers, triggers } = typedManifests(await renderWith(['components/kafka-broker']));
    assert.deepEqual(
      brokers.map(({ metadata, spec }) => [metadata?.name, metadata?.annotations, spec?.config]),
      [
        [
          `${NAME}-kafka`,
          { 'eventing.knative.dev/broker.class': 'Kafka' },
          { apiVersion: 'v1', kind: 'ConfigMap', name: 'kafka-broker-config', namespace: 'knative-eventing' },
        ],
      ],
    );
    const former = typedManifests(base).triggers.map(({ metadata, spec }) => [
      `${metadata?.name}-kafka`,
      { ...spec, broker: `${NAME}-kafka` },
    ]);
    assert.deepEqual(
      triggers.map(({ metadata, spec }) => [metadata?.name, { ...spec }]),
      former,
    );
    for (const { metadata } of triggers)
      assert.deepEqual(metadata?.annotations, { 'kafka.eventing.knative.dev/delivery.order': 'unordered' });
  });

  it('each has the same effect on a rendered file, as in a release', async () => {
    for (const components of [...ALL.map((each) => [each]), ['overlays/second-instance/settings', 'components/instance']])
      assert.deepEqual(changes(await renderWith(components), await renderWith(components, undefined, base)), [], components.join());
  });

  it("none adds an object outside the operator's namespace", async () => {
    for (const { kind, metadata } of typedManifests(await renderWith(ALL, undefined, base)).all)
      assert.equal(
        metadata.namespace === undefined,
        ['Namespace', 'ClusterRole', 'ClusterRoleBinding'].includes(kind),
        `${kind} ${metadata.name}`,
      );
  });

  it('all work together, in both overlays', async () => {
    for (const overlay of ['all-namespaces', 'single-namespace']) typedManifests(await renderWith(ALL, overlay));
  });

  it('oidc lets the sources and the six functions post to the Broker, and nobody else', async () => {
    const { eventPolicies, sources, services } = typedManifests(await renderWith(['components/oidc']));
    const allowed = eventPolicies.flatMap(({ spec }) => spec?.from ?? []);
    assert.deepEqual(
      allowed.flatMap(({ ref }) => (ref ? [`${ref.apiVersion} ${ref.kind} ${ref.name}`] : [])),
      sources.map(({ metadata }) => `sources.knative.dev/v1 ApiServerSource ${metadata?.name}`),
    );
    assert.deepEqual(
      allowed.flatMap(({ sub }) => sub ?? []).sort(),
      services.map(({ spec }) => `system:serviceaccount:${NAME}:${spec?.template?.spec?.serviceAccountName}`).sort(),
    );
    for (const { spec } of eventPolicies)
      assert.deepEqual(spec?.to, [{ ref: { apiVersion: 'eventing.knative.dev/v1', kind: 'Broker', name: NAME } }]);
  });

  it('oidc lets the six functions create token reviews, in every namespace of the installation, and gives no other right', async () => {
    for (const [components, namespace, name] of [
      [['components/oidc'], NAME, `${NAME}-token-reviews`],
      [['overlays/second-instance/settings', 'components/oidc', 'components/instance'], 'lldap-second', `${NAME}-token-reviews-second`],
    ] as const) {
      const { roles, bindings, services } = typedManifests(await renderWith([...components]));
      const rules = [{ apiGroups: ['authentication.k8s.io'], resources: ['tokenreviews'], verbs: ['create'] }];
      assert.deepEqual(roles.find((role) => role.metadata.name === name)?.rules, rules);
      const binding = bindings.find(({ roleRef }) => roleRef.name === name) ?? assert.fail();
      assert.deepEqual(
        binding.subjects.map((subject) => `${subject.namespace}/${subject.name}`).sort(),
        services.map(({ spec }) => `${namespace}/${spec?.template?.spec?.serviceAccountName}`).sort(),
      );
    }
  });

  it('instance adapts everything to namespace and instance, in the other components, too', async () => {
    const components = ['components/ldaps', 'overlays/second-instance/settings', ...ALL.slice(1)];
    const rendered = await renderWith(components);
    assert.doesNotMatch(rendered, /namespace: lldap-operator$/m);
    assert.doesNotMatch(rendered, /lldap-operator\/lldap-operator|serviceaccount:lldap-operator|lldap-operator-startup\.lldap-operator\./);
    const { config, eventPolicies, services } = typedManifests(rendered);
    assert.equal(config.BROKER_URL, 'http://kafka-broker-ingress.knative-eventing.svc.cluster.local/lldap-second/lldap-operator-kafka');
    assert.equal(config.LLDAP_LDAP_URL, 'ldap://lldap.lldap-second.svc.cluster.local:3890');
    const subs = eventPolicies.flatMap(({ spec }) => spec?.from?.flatMap(({ sub }) => sub ?? []) ?? []);
    assert.ok(subs.length === 6 && subs.every((sub) => sub.startsWith('system:serviceaccount:lldap-second:lldap-operator-')));
    const audiences = services.flatMap(({ spec }) =>
      spec?.template?.spec?.volumes?.flatMap((volume) => JSON.stringify(volume.projected) ?? []),
    );
    assert.equal(audiences.filter((each) => each?.includes('"eventing.knative.dev/broker/lldap-second/lldap-operator-kafka"')).length, 6);
  });

  for (const components of [
    ['components/kafka-broker', 'components/oidc'],
    ['components/oidc', 'components/kafka-broker'],
  ]) {
    it(`${components.join(' and then ')} let the functions post to the Broker on Kafka`, async () => {
      const { brokers, eventPolicies, services } = typedManifests(await renderWith(components));
      const broker = brokers[0]?.metadata?.name;
      assert.equal(broker, `${NAME}-kafka`);
      assert.deepEqual(
        eventPolicies.map(({ spec }) => spec?.to?.map(({ ref }) => ref?.name)),
        [[broker], [broker]],
      );
      const tokens = services.map(({ spec }) => spec?.template?.spec?.volumes?.find(({ name }) => name === 'broker-token'));
      const audiences = tokens.map((token) => token?.projected?.sources?.[0]?.serviceAccountToken?.audience);
      assert.deepEqual(audiences, Array(6).fill(`eventing.knative.dev/broker/${NAME}/${broker}`));
    });
  }

  describe('network-policies', () => {
    interface Policy {
      kind: string;
      metadata: { name: string };
      spec: {
        podSelector: { matchExpressions?: { key: string; values: string[] }[]; matchLabels?: Record<string, string> };
        policyTypes: string[];
        ingress?: Rule[];
        egress: Rule[];
      };
    }
    interface Rule {
      from?: { namespaceSelector: object }[];
      to?: { namespaceSelector: { matchLabels?: Record<string, string> } }[];
      ports: { port: number; protocol?: string }[];
    }
    let policies: Map<string, Policy>;
    let typed: ReturnType<typeof typedManifests>;

    before(async () => {
      typed = typedManifests(await renderWith(['components/network-policies']));
      const found = typed.all.filter(({ kind }) => kind === 'NetworkPolicy') as unknown as Policy[];
      policies = new Map(found.map((policy) => [policy.metadata.name.replace(`${NAME}-`, ''), policy]));
    });

    const policy = (name: string) => policies.get(name) ?? assert.fail(`no policy ${name}`);
    const selected = (name: string) => policy(name).spec.podSelector.matchExpressions?.flatMap(({ values }) => values) ?? [];
    const ports = (name: string, namespace: string) =>
      policy(name)
        .spec.egress.filter(({ to }) =>
          to?.some(({ namespaceSelector }) => Object.values(namespaceSelector.matchLabels ?? {}).includes(namespace)),
        )
        .flatMap((rule) => rule.ports.map(({ port }) => port));

    it("select every function, every source and the Jobs' pods", () => {
      assert.deepEqual(selected('functions').sort(), typed.services.map(({ metadata }) => metadata?.name).sort());
      assert.deepEqual(
        selected('sources'),
        typed.sources.map(({ metadata }) => metadata?.name),
      );
      const label = policy('call-startup').spec.podSelector.matchLabels;
      assert.deepEqual(label, { 'app.kubernetes.io/component': 'call-startup' });
      for (const { spec } of typed.jobs) assert.deepEqual(spec.template.metadata?.labels?.['app.kubernetes.io/component'], 'call-startup');
      for (const { spec } of typed.cronJobs)
        assert.deepEqual(spec.jobTemplate.spec.template.metadata?.labels?.['app.kubernetes.io/component'], 'call-startup');
    });

    it('admit only Knative, and nobody to Jobs and sources', () => {
      assert.equal(policy('functions').spec.ingress?.length, 1);
      for (const name of ['call-startup', 'sources']) {
        assert.deepEqual(policy(name).spec.policyTypes, ['Ingress', 'Egress']);
        assert.equal(policy(name).spec.ingress, undefined);
      }
    });

    it('let all pods reach DNS, and sources and functions the Broker', () => {
      for (const name of ['functions', 'call-startup', 'sources']) assert.deepEqual(ports(name, 'kube-system'), [53, 53]);
      for (const name of ['functions', 'sources']) assert.deepEqual(ports(name, 'knative-eventing'), [8080, 8443]);
    });

    it("let only functions with lldap's account reach lldap, at the ports of the settings", () => {
      const withAccount = typed.services.filter(({ spec }) => spec?.template?.spec?.volumes?.some(({ name }) => name === 'credentials'));
      assert.deepEqual(selected('lldap').sort(), withAccount.map(({ metadata }) => metadata?.name).sort());
      const reached = ports('lldap', 'lldap').map(String);
      for (const setting of ['LLDAP_URL', 'LLDAP_LDAP_URL'])
        assert.ok(reached.includes(new URL(typed.config[setting] ?? '').port), setting);
    });

    it('let every function reach the API server', () => {
      const open = policy('functions').spec.egress.filter(({ to }) => to === undefined);
      assert.deepEqual(
        open.flatMap((rule) => rule.ports.map(({ port }) => port)),
        [443, 6443],
      );
    });

    it('let the functions reach the collector of the component tracing', async () => {
      const { config } = typedManifests(await renderWith(['components/tracing']));
      const { hostname, port } = new URL(config.OTEL_EXPORTER_OTLP_ENDPOINT ?? '');
      assert.deepEqual(ports('functions', hostname.split('.')[1] ?? ''), [Number(port)]);
    });
  });
});

describe('The version of this project', () => {
  it('is the version of every image and label', () => {
    const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
    const { version } = JSON.parse(read('package.json'));
    const base = parse(read('knative/base/kustomization.yaml'));
    assert.equal(base.images[0].newTag, version);
    for (const path of ['knative/base', 'knative/components/oidc', 'knative/components/network-policies']) {
      const { labels } = parse(read(`${path}/kustomization.yaml`));
      assert.equal(labels[0].pairs['app.kubernetes.io/version'], version, path);
    }
  });
});

// Named here, since a component is no place for a filter of its own: none may touch what is routed where.
describe('No component', function () {
  this.timeout(CLUSTER_TIMEOUT_MS);
  it('changes a filter', async () => {
    const filters = async (rendered: Promise<string>) => typedManifests(await rendered).triggers.map(({ spec }) => spec?.filters);
    const all = await filters(renderWith(ALL));
    assert.deepEqual(all, await filters(renderManifests()));
    assert.ok(JSON.stringify(all).includes(EVENT_TYPE.startup));
  });
});
