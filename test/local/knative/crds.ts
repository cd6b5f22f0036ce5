import { stringify } from 'yaml';

/** Kinds of Knative as the API server can keep them: any fields, and nobody who acts on them. */
const KINDS = [
  ['serving.knative.dev', 'v1', 'Service', 'services'],
  ['eventing.knative.dev', 'v1', 'Broker', 'brokers'],
  ['eventing.knative.dev', 'v1', 'Trigger', 'triggers'],
  ['eventing.knative.dev', 'v1alpha1', 'EventPolicy', 'eventpolicies'],
  ['sources.knative.dev', 'v1', 'ApiServerSource', 'apiserversources'],
] as const;

/** `<plural>.<group>` of each. */
export const KNATIVE_RESOURCES = KINDS.map(([group, , , plural]) => `${plural}.${group}`);

/** What Knative's webhooks refuse to change, in the words of CEL. */
const IMMUTABLE = [
  {
    plural: 'brokers',
    validations: [
      {
        expression: 'object.spec.?config.orValue({}) == oldObject.spec.?config.orValue({})',
        message: 'Immutable fields changed: spec.config',
      },
      {
        expression: ['object', 'oldObject']
          .map((each) => `${each}.metadata.?annotations[?'eventing.knative.dev/broker.class'].orValue('')`)
          .join(' == '),
        message: 'Immutable annotations changed: eventing.knative.dev/broker.class',
      },
    ],
  },
  {
    plural: 'triggers',
    validations: [{ expression: 'object.spec.broker == oldObject.spec.broker', message: 'Immutable fields changed: spec.broker' }],
  },
];

/** The admission policies that stand in for Knative's webhooks, as YAML. */
export function knativePolicies(): string {
  const apiVersion = 'admissionregistration.k8s.io/v1';
  const rule = { apiGroups: ['eventing.knative.dev'], apiVersions: ['*'], operations: ['UPDATE'] };
  const objects = IMMUTABLE.flatMap(({ plural, validations }) => {
    const metadata = { name: `${plural}.eventing.knative.dev` };
    return [
      {
        apiVersion,
        kind: 'ValidatingAdmissionPolicy',
        metadata,
        spec: { matchConstraints: { resourceRules: [{ ...rule, resources: [plural] }] }, validations },
      },
      {
        apiVersion,
        kind: 'ValidatingAdmissionPolicyBinding',
        metadata,
        spec: { policyName: metadata.name, validationActions: ['Deny'] },
      },
    ];
  });
  return objects.map((object) => stringify(object)).join('---\n');
}

/** CustomResourceDefinitions, as YAML, for tests of what kubectl and kn create. */
export function knativeCrds(): string {
  const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } };
  const definitions = KINDS.map(([group, version, kind, plural]) => ({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    // kn finds kinds of sources by this label.
    metadata: { name: `${plural}.${group}`, ...(group.startsWith('sources') && { labels: { 'duck.knative.dev/source': 'true' } }) },
    spec: {
      group,
      scope: 'Namespaced',
      names: { kind, plural, singular: kind.toLowerCase() },
      versions: [{ name: version, served: true, storage: true, schema, subresources: { status: {} } }],
    },
  }));
  return definitions.map((definition) => stringify(definition)).join('---\n');
}
