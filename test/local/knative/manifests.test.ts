import assert from 'node:assert/strict';
import { parse, stringify } from 'yaml';
import { readManifests } from './manifests.ts';
import { withSettings } from './render.ts';

const SERVICE = `
apiVersion: serving.knative.dev/v1
kind: Service
metadata: {name: f, namespace: ns}
spec:
  template:
    metadata:
      annotations:
        autoscaling.knative.dev/min-scale: "0"
        autoscaling.knative.dev/max-scale: "1"
    spec:
      serviceAccountName: f
      containerConcurrency: 0
      timeoutSeconds: 600
      responseStartTimeoutSeconds: 500
      containers:
        - image: x
          args: [user]
          env: [{name: A, value: b}]
          envFrom: [{configMapRef: {name: settings}}]
          readinessProbe: {httpGet: {path: /ready}}
          volumeMounts: [{name: v, mountPath: /etc/v}]
      volumes: [{name: v, secret: {secretName: s}}]
`;

/** The Service with something added to its revision. */
function serviceWith(change: (revision: Record<string, unknown>) => void): string {
  const object = parse(SERVICE);
  change(object.spec.template.spec);
  return stringify(object);
}

describe('The local Knative reads manifests', () => {
  it('of a Service: its process, environment, files, probe and limits', () => {
    const { functions } = readManifests(SERVICE);
    const workload = {
      namespace: 'ns',
      name: 'f',
      serviceAccount: 'f',
      mountsToken: true,
      args: ['user'],
      env: { A: 'b' },
      configMaps: ['settings'],
      volumes: [{ mountPath: '/etc/v', secret: 's' }],
    };
    assert.deepEqual(functions, [{ workload, readinessPath: '/ready', minScale: 0, timeoutMs: 600_000, responseStartMs: 500_000 }]);
  });

  it('of a volume with a token of its ServiceAccount: for whom that is', () => {
    const sources = [{ serviceAccountToken: { audience: 'them', path: 'token' } }];
    const { functions } = readManifests(serviceWith((spec) => Object.assign(spec, { volumes: [{ name: 'v', projected: { sources } }] })));
    assert.deepEqual(functions[0]?.workload.volumes, [{ mountPath: '/etc/v', audience: 'them', path: 'token' }]);
  });

  it('of an EventPolicy: which accounts may post to the Broker, those that Eventing makes for sources among them', () => {
    const { eventPolicies } = readManifests(`
apiVersion: eventing.knative.dev/v1alpha1
kind: EventPolicy
metadata: {name: p, namespace: ns}
spec:
  to: [{ref: {apiVersion: eventing.knative.dev/v1, kind: Broker, name: b}}]
  from: [{sub: "system:serviceaccount:ns:f"}, {ref: {apiVersion: sources.knative.dev/v1, kind: ApiServerSource, name: s}}]
`);
    const subjects = ['system:serviceaccount:ns:f', 'system:serviceaccount:ns:s-oidc-sources.knative.dev-apiserversource'];
    assert.deepEqual(eventPolicies, [{ namespace: 'ns', broker: 'b', subjects }]);
  });

  it('of a ServiceAccount: its pods have no token when it says so', () => {
    const account = 'apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: f, namespace: ns}\nautomountServiceAccountToken: false\n';
    assert.equal(readManifests(`${SERVICE}---\n${account}`).functions[0]?.workload.mountsToken, false);
  });

  it('of a CronJob: its schedule, and none when it is suspended', () => {
    const cronJob = (suspend: boolean) => `
apiVersion: batch/v1
kind: CronJob
metadata: {name: c, namespace: ns}
spec: {schedule: "*/5 * * * *", suspend: ${suspend}, concurrencyPolicy: Forbid, jobTemplate: {spec: {template: {spec: {containers: [{args: [call]}]}}}}}
`;
    const [job] = readManifests(cronJob(false)).cronJobs;
    assert.deepEqual([job?.schedule, job?.forbidConcurrent, job?.workload.args], ['*/5 * * * *', true, ['call']]);
    assert.equal(readManifests(cronJob(true)).cronJobs[0]?.schedule, undefined);
  });

  it('and leaves ordinary objects to the API server, namespaces first', () => {
    const { plain, functions } = readManifests(
      'apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: ns}\n---\n',
    );
    assert.ok(plain.indexOf('Namespace') < plain.indexOf('Secret'));
    assert.equal(functions.length, 0);
  });

  const refused: [string, string, RegExp][] = [
    [
      'a misspelt field',
      serviceWith((spec) => Object.assign(spec, { timeoutSecond: 3 })),
      /Service f.spec.template.spec says in: timeoutSecond/,
    ],
    ['a limit of concurrency', serviceWith((spec) => Object.assign(spec, { containerConcurrency: 5 })), /no limit of concurrency/],
    ['two containers', serviceWith((spec) => Object.assign(spec, { containers: [{ args: [] }, { args: [] }] })), /one container/],
    ['more than one pod', SERVICE.replace('max-scale: "1"', 'max-scale: "2"'), /one process at most/],
    [
      'a volume that is no Secret',
      serviceWith((spec) => Object.assign(spec, { volumes: [{ name: 'v', emptyDir: {} }] })),
      /secret is not an object/,
    ],
    [
      'an environment variable from a field',
      SERVICE.replace('value: b', 'valueFrom: {fieldRef: {fieldPath: metadata.namespace}}'),
      /value is not a string/,
    ],
    [
      'another kind of Knative',
      'apiVersion: eventing.knative.dev/v1\nkind: EventPolicy\nmetadata: {name: x, namespace: ns}\n',
      /does not know a eventing.knative.dev\/v1 EventPolicy/,
    ],
    ['broken YAML', 'a: [', /Flow sequence|flow/i],
  ];
  for (const [sentence, rendered, message] of refused) {
    it(`and refuses ${sentence}`, () => assert.throws(() => readManifests(rendered), message));
  }

  it('with other settings, but none that the ConfigMap does not have', () => {
    const config = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: lldap-operator}\ndata: {LOG_LEVEL: info}\n';
    assert.equal(parse(withSettings(config, { LOG_LEVEL: 'debug' })).data.LOG_LEVEL, 'debug');
    assert.throws(() => withSettings(config, { LOGLEVEL: 'debug' }), /no setting LOGLEVEL/);
  });
});
