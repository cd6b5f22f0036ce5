import { Broker } from '@kubernetes-models/knative/eventing.knative.dev/v1/Broker';
import { Trigger } from '@kubernetes-models/knative/eventing.knative.dev/v1/Trigger';
import { EventPolicy } from '@kubernetes-models/knative/eventing.knative.dev/v1alpha1/EventPolicy';
import { Service } from '@kubernetes-models/knative/serving.knative.dev/v1/Service';
import { ApiServerSource } from '@kubernetes-models/knative/sources.knative.dev/v1/ApiServerSource';
import { parseAllDocuments } from 'yaml';

/** Rendered manifests as typed objects, for tests that look at what they say. */

interface Named {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string; labels?: Record<string, string>; annotations?: Record<string, string> };
}

export interface Rule {
  apiGroups: string[];
  resources: string[];
  verbs: string[];
}

export interface Role extends Named {
  rules: Rule[];
}

export interface Binding extends Named {
  roleRef: { kind: string; name: string };
  subjects: { kind: string; name: string; namespace: string }[];
}

type Quantities = Record<string, string | number>;

export interface PodSpec {
  serviceAccountName?: string;
  automountServiceAccountToken?: boolean;
  volumes?: { name: string; secret?: { secretName?: string } }[];
  containers: {
    image?: string;
    args?: string[];
    env?: { name: string; value?: string }[];
    envFrom?: { configMapRef?: { name?: string } }[];
    securityContext?: object;
    resources?: { requests?: Quantities; limits?: Quantities };
  }[];
}

export interface Job extends Named {
  spec: { template: { metadata?: { labels?: Record<string, string> }; spec: PodSpec } };
}

export interface CronJob extends Named {
  spec: { schedule: string; concurrencyPolicy?: string; suspend?: boolean; jobTemplate: { spec: Job['spec'] } };
}

export interface Typed {
  brokers: Broker[];
  triggers: Trigger[];
  sources: ApiServerSource[];
  services: Service[];
  eventPolicies: EventPolicy[];
  roles: Role[];
  bindings: Binding[];
  accounts: (Named & { automountServiceAccountToken?: boolean })[];
  jobs: Job[];
  cronJobs: CronJob[];
  config: Record<string, string>;
  all: Named[];
}

/** @throws the schema's complaint about a Knative object */
export function typedManifests(rendered: string): Typed {
  const all = parseAllDocuments(rendered).map((document) => document.toJS());
  const ofKind = <T>(type: string): T[] => all.filter(({ apiVersion, kind }) => `${apiVersion} ${kind}` === type);
  const checked = <T extends { validate(): void }>(type: string, Model: new (data: object) => T): T[] =>
    ofKind<object>(type).map((object) => {
      const model = new Model(object);
      model.validate();
      return model;
    });
  return {
    brokers: checked('eventing.knative.dev/v1 Broker', Broker),
    triggers: checked('eventing.knative.dev/v1 Trigger', Trigger),
    sources: checked('sources.knative.dev/v1 ApiServerSource', ApiServerSource),
    services: checked('serving.knative.dev/v1 Service', Service),
    eventPolicies: checked('eventing.knative.dev/v1alpha1 EventPolicy', EventPolicy),
    roles: [...ofKind<Role>('rbac.authorization.k8s.io/v1 ClusterRole'), ...ofKind<Role>('rbac.authorization.k8s.io/v1 Role')],
    bindings: [
      ...ofKind<Binding>('rbac.authorization.k8s.io/v1 ClusterRoleBinding'),
      ...ofKind<Binding>('rbac.authorization.k8s.io/v1 RoleBinding'),
    ],
    accounts: ofKind('v1 ServiceAccount'),
    jobs: ofKind('batch/v1 Job'),
    cronJobs: ofKind('batch/v1 CronJob'),
    config: ofKind<{ data: Record<string, string> }>('v1 ConfigMap')[0]?.data ?? {},
    all,
  };
}
