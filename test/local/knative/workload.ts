import { readMetadata } from './eventing.ts';
import type { Fields } from './fields.ts';

/** Pods as the manifests describe them: what of it can be had without a kubelet. */

export interface Workload {
  namespace: string;
  /** The Service's or Job's name. */
  name: string;
  serviceAccount: string;
  /** Whether the pod has its ServiceAccount's token. */
  mountsToken: boolean;
  args: string[];
  env: Record<string, string | ConfigMapKey>;
  /** ConfigMaps whose data are environment variables as well; `env` wins. */
  configMaps: string[];
  volumes: Mounted[];
}

export interface ConfigMapKey {
  configMap: string;
  key: string;
}

/** A Secret, or a token of the pod's ServiceAccount for one audience. */
export type Volume = { secret: string } | { audience: string; path: string };
export type Mounted = Volume & { mountPath: string };

/** A Knative Service. */
export interface FunctionModel {
  workload: Workload;
  readinessPath: string;
  minScale: number;
  /** Also the grace period between SIGTERM and SIGKILL. */
  timeoutMs: number;
  responseStartMs: number;
}

export interface JobModel {
  workload: Workload;
  /** Five fields, for a CronJob that isn't suspended. */
  schedule?: string;
  /** A run that falls due while one is under way is left out. */
  forbidConcurrent?: boolean;
}

/** For Kustomize; Knative ignores them. */
const OWN_ANNOTATIONS = 'lldap-operator.lukidoescode.com/';

/** @param tokenless `namespace/name` of the ServiceAccounts that say that their token is not mounted */
export function readFunction(object: Fields, tokenless: Set<string>): FunctionModel {
  const { namespace, name, annotations } = readMetadata(object);
  if (Object.keys(annotations).some((key) => !key.startsWith(OWN_ANNOTATIONS)))
    throw new Error(`the local Knative does not know the annotations of ${object.path}`);
  const spec = object.object('spec');
  const template = spec.object('template');
  const metadata = template.object('metadata');
  const minScale = readScale(metadata);
  metadata.done();
  const revision = template.object('spec');
  if (revision.number('containerConcurrency') !== 0) throw new Error(`${revision.path}: the local Knative knows no limit of concurrency`);
  const model = {
    timeoutMs: revision.number('timeoutSeconds') * 1000,
    responseStartMs: revision.number('responseStartTimeoutSeconds') * 1000,
    minScale,
    ...readPod(revision, namespace, name, tokenless),
  };
  for (const each of [template, spec, object]) each.done();
  return model;
}

function readScale(metadata: Fields): number {
  const scaling = metadata.object('annotations');
  if (scaling.string('autoscaling.knative.dev/max-scale') !== '1')
    throw new Error(`${scaling.path}: the local Knative starts one process at most`);
  scaling.leave('autoscaling.knative.dev/target');
  const minScale = Number(scaling.string('autoscaling.knative.dev/min-scale'));
  scaling.done();
  return minScale;
}

export function readJob(object: Fields, tokenless: Set<string>): JobModel {
  const { namespace, name } = readMetadata(object);
  const spec = object.object('spec');
  const model = readJobSpec(spec, namespace, name, tokenless);
  object.done();
  return model;
}

export function readCronJob(object: Fields, tokenless: Set<string>): JobModel {
  const { namespace, name } = readMetadata(object);
  const spec = object.object('spec');
  spec.leave('startingDeadlineSeconds', 'successfulJobsHistoryLimit', 'failedJobsHistoryLimit');
  const schedule = spec.string('schedule');
  const suspended = spec.optionalBoolean('suspend') ?? false;
  const forbidConcurrent = spec.optionalString('concurrencyPolicy') === 'Forbid';
  const template = spec.object('jobTemplate');
  const model = readJobSpec(template.object('spec'), namespace, name, tokenless);
  for (const each of [template, spec, object]) each.done();
  return { ...model, forbidConcurrent, ...(!suspended && { schedule }) };
}

function readJobSpec(spec: Fields, namespace: string, name: string, tokenless: Set<string>): JobModel {
  spec.leave('backoffLimit', 'activeDeadlineSeconds', 'ttlSecondsAfterFinished');
  const template = spec.object('template');
  template.leave('metadata');
  const { workload } = readPod(template.object('spec'), namespace, name, tokenless);
  for (const each of [template, spec]) each.done();
  return { workload };
}

function readPod(spec: Fields, namespace: string, name: string, tokenless: Set<string>): { workload: Workload; readinessPath: string } {
  spec.leave('enableServiceLinks', 'restartPolicy');
  const serviceAccount = spec.optionalString('serviceAccountName') ?? 'default';
  const mountsToken = spec.optionalBoolean('automountServiceAccountToken') ?? !tokenless.has(`${namespace}/${serviceAccount}`);
  const volumes = new Map(spec.objects('volumes').map(readVolume));
  const [container, second] = spec.objects('containers');
  if (!container || second) throw new Error(`${spec.path}: the local Knative runs one container`);
  spec.done();
  const workload = { namespace, name, serviceAccount, mountsToken, ...readContainer(container, volumes) };
  const readinessPath = readProbe(container, 'readinessProbe');
  readProbe(container, 'livenessProbe');
  container.done();
  return { workload, readinessPath };
}

function readContainer(container: Fields, all: Map<string, Volume>): Pick<Workload, 'args' | 'env' | 'configMaps' | 'volumes'> {
  container.leave('name', 'image', 'ports', 'resources', 'securityContext');
  const volumes = container.objects('volumeMounts').map((mount) => {
    mount.leave('readOnly');
    const volume = all.get(mount.string('name'));
    const mountPath = mount.string('mountPath');
    mount.done();
    if (volume === undefined) throw new Error(`${mount.path} names no volume`);
    return { mountPath, ...volume };
  });
  return { args: container.strings('args'), env: readEnv(container), configMaps: readEnvFrom(container), volumes };
}

function readVolume(volume: Fields): [string, Volume] {
  const name = volume.string('name');
  const read = volume.has('projected') ? readProjection(volume.object('projected')) : readSecretVolume(volume.object('secret'));
  volume.done();
  return [name, read];
}

function readSecretVolume(secret: Fields): Volume {
  const result = { secret: secret.string('secretName') };
  secret.done();
  return result;
}

function readProjection(projected: Fields): Volume {
  const [source, second] = projected.objects('sources');
  if (!source || second) throw new Error(`${projected.path}: the local Knative projects one token`);
  const token = source.object('serviceAccountToken');
  const result = { audience: token.string('audience'), path: token.string('path') };
  for (const each of [token, source, projected]) each.done();
  return result;
}

function readEnv(container: Fields): Workload['env'] {
  const entries = container.objects('env').map((variable): [string, string | ConfigMapKey] => {
    const name = variable.string('name');
    const from = variable.optionalObject('valueFrom');
    const value = from?.has('configMapKeyRef') ? readConfigMapKey(from) : variable.string('value');
    variable.done();
    return [name, value];
  });
  return Object.fromEntries(entries);
}

function readConfigMapKey(from: Fields): ConfigMapKey {
  const ref = from.object('configMapKeyRef');
  const result = { configMap: ref.string('name'), key: ref.string('key') };
  for (const each of [ref, from]) each.done();
  return result;
}

function readEnvFrom(container: Fields): string[] {
  return container.objects('envFrom').map((source) => {
    const ref = source.object('configMapRef');
    const name = ref.string('name');
    for (const each of [ref, source]) each.done();
    return name;
  });
}

function readProbe(container: Fields, name: string): string {
  const probe = container.optionalObject(name);
  if (!probe) return '/';
  const get = probe.object('httpGet');
  get.leave('port');
  const path = get.string('path');
  for (const each of [get, probe]) each.done();
  return path;
}
