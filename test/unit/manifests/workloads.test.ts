import assert from 'node:assert/strict';
import { renderManifests } from '../../local/knative/render.ts';
import { type PodSpec, type Typed, typedManifests } from '../../local/knative/typed.ts';
import { CLUSTER_TIMEOUT_MS } from '../../local/kube/shared.ts';

const NAME = 'lldap-operator';
const FUNCTIONS = ['attribute-schema', 'group', 'membership', 'requeue', 'startup', 'user'];
const SETTINGS = [
  'ADOPTION',
  'BROKER_URL',
  'LLDAP_BASE_DN',
  'LLDAP_CA',
  'LLDAP_INSTANCE',
  'LLDAP_LDAP_URL',
  'LLDAP_MAX_CONCURRENT_REQUESTS',
  'LLDAP_URL',
  'LOG_LEVEL',
  'MAX_CONCURRENT_RECONCILES',
  'MAX_DELAYED_RETRIES',
  'NAMESPACES',
  'PASSWORD_MIN_LENGTH',
  'PRIVILEGED_NAMESPACES',
  'RETRY_MAX_SECONDS',
  'SWEEP_EVENTS_PER_SECOND',
];

describe('The manifests run functions and Jobs', function () {
  this.timeout(CLUSTER_TIMEOUT_MS);
  let typed: Typed;
  /** The pods of the functions, by the function's short name. */
  let pods: Map<string, PodSpec>;
  let callers: PodSpec[];

  before(async () => {
    typed = typedManifests(await renderManifests());
    pods = new Map(
      typed.services.map(({ metadata, spec }) => [metadata?.name?.replace(`${NAME}-`, '') ?? '', spec?.template?.spec ?? assert.fail()]),
    );
    callers = [
      ...typed.jobs.map(({ spec }) => spec.template.spec),
      ...typed.cronJobs.map(({ spec }) => spec.jobTemplate.spec.template.spec),
    ];
  });

  const pod = (each: string): PodSpec => pods.get(each) ?? assert.fail(`no Service for ${each}`);
  const container = (spec: PodSpec) => spec.containers[0] ?? assert.fail('no container');
  const everyone = () => [...pods.values(), ...callers];

  it('as one Service for each function, all from one image, chosen by the argument', () => {
    assert.deepEqual([...pods.keys()].sort(), FUNCTIONS);
    for (const each of FUNCTIONS) assert.deepEqual(container(pod(each)).args, [each]);
    assert.deepEqual(
      callers.map((caller) => container(caller).args),
      [['call-startup'], ['call-startup', 'drift'], ['call-startup']],
    );
    assert.equal(new Set(everyone().map((spec) => container(spec).image)).size, 1);
  });

  it('from zero pods to one, and reachable from inside the cluster only', () => {
    for (const { metadata, spec } of typed.services) {
      const { 'autoscaling.knative.dev/min-scale': min, 'autoscaling.knative.dev/max-scale': max } =
        spec?.template?.metadata?.annotations ?? {};
      assert.deepEqual([min, max], ['0', '1'], metadata?.name);
      assert.equal(metadata?.labels?.['networking.knative.dev/visibility'], 'cluster-local');
    }
  });

  it('without a concurrency limit below the requests that a function keeps open', () => {
    for (const { spec } of typed.services) {
      const target = Number(spec?.template?.metadata?.annotations?.['autoscaling.knative.dev/target']);
      assert.equal(spec?.template?.spec?.containerConcurrency, 0);
      // The autoscaler aims at 70 % of it.
      assert.ok(target * 0.7 > Number(typed.config.MAX_DELAYED_RETRIES));
    }
  });

  it('with the longest timeouts that Knative allows', () => {
    for (const { spec } of typed.services)
      assert.deepEqual([spec?.template?.spec?.timeoutSeconds, spec?.template?.spec?.responseStartTimeoutSeconds], [600, 600]);
  });

  it('under restricted Pod Security', () => {
    for (const spec of everyone()) {
      assert.deepEqual(container(spec).securityContext, {
        runAsNonRoot: true,
        runAsUser: 65532,
        readOnlyRootFilesystem: true,
        allowPrivilegeEscalation: false,
        capabilities: { drop: ['ALL'] },
        seccompProfile: { type: 'RuntimeDefault' },
      });
    }
    const namespace = typed.all.find(({ kind }) => kind === 'Namespace');
    assert.equal(namespace?.metadata.labels?.['pod-security.kubernetes.io/enforce'], 'restricted');
  });

  it('with nothing in a pod of a Service that Knative refuses by default', () => {
    for (const spec of pods.values()) assert.equal('securityContext' in spec, false);
  });

  it('with requests and limits, each request below its limit', () => {
    for (const spec of everyone()) {
      const { requests = {}, limits = {} } = container(spec).resources ?? {};
      assert.deepEqual(
        [requests, limits].map((each) => Object.keys(each).sort()),
        [
          ['cpu', 'memory'],
          ['cpu', 'memory'],
        ],
      );
      for (const resource of ['cpu', 'memory']) assert.ok(quantity(requests[resource]) < quantity(limits[resource]), resource);
    }
  });

  it('with probes at their health paths', () => {
    for (const { spec } of typed.services) {
      const [{ readinessProbe, livenessProbe, ports } = assert.fail()] = spec?.template?.spec?.containers ?? [];
      assert.deepEqual(ports, [{ containerPort: 8080 }]);
      assert.deepEqual(
        [readinessProbe?.httpGet, livenessProbe?.httpGet],
        [
          { path: '/health/readiness', port: 8080 },
          { path: '/health/liveness', port: 8080 },
        ],
      );
    }
  });

  it('without a period of the readiness probe, for which Knative asks every 50 ms instead of every second', () => {
    for (const { spec } of typed.services) assert.equal(spec?.template?.spec?.containers?.[0]?.readinessProbe?.periodSeconds, undefined);
  });

  it('with every setting from the ConfigMap', () => {
    assert.deepEqual(Object.keys(typed.config).sort(), SETTINGS);
    for (const spec of everyone()) assert.deepEqual(container(spec).envFrom, [{ configMapRef: { name: NAME } }]);
  });

  it("with lldap's account only in functions that call lldap", () => {
    for (const [each, spec] of pods) {
      const mounted = each !== 'requeue';
      assert.deepEqual(
        spec.volumes?.map(({ secret }) => secret?.secretName),
        mounted ? ['lldap-operator-credentials'] : undefined,
        each,
      );
      assert.deepEqual(
        container(spec).env?.map(({ name }) => name),
        mounted ? ['CREDENTIALS_DIR'] : undefined,
        each,
      );
    }
    for (const caller of callers) assert.equal(caller.volumes, undefined);
  });

  it('with the addresses of the Broker and of startup', () => {
    assert.equal(
      typed.config.BROKER_URL,
      `http://broker-ingress.knative-eventing.svc.cluster.local/${NAME}/${typed.brokers[0]?.metadata?.name}`,
    );
    for (const caller of callers) {
      assert.deepEqual(container(caller).env, [{ name: 'STARTUP_URL', value: `http://lldap-operator-startup.${NAME}.svc.cluster.local` }]);
    }
  });

  it('startup every five minutes, one run at a time, and once at installation; the drift search is off', () => {
    const cronJobs = typed.cronJobs.map(({ metadata, spec }) => [metadata.name, spec.schedule, spec.concurrencyPolicy, spec.suspend]);
    assert.deepEqual(cronJobs, [
      ['lldap-operator-drift', '17 3 * * *', 'Forbid', true],
      ['lldap-operator-startup', '*/5 * * * *', 'Forbid', undefined],
    ]);
    assert.deepEqual(
      typed.jobs.map(({ metadata }) => metadata.name),
      ['lldap-operator-install'],
    );
  });
});

/** Of CPU in thousandths, of memory in MiB: the units that the manifests use. */
function quantity(text: string | number = ''): number {
  const [, number, unit] = /^(\d+)(m|Mi|)$/.exec(String(text)) ?? assert.fail(`not a quantity that is expected here: ${text}`);
  return Number(number) * (unit === '' ? 1_000 : 1);
}
