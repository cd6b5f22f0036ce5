/** Built-in objects, with the fields that the functions use. */

export interface Secret {
  metadata: { name: string; namespace: string; labels?: Record<string, string> };
  /** Base64. */
  data?: Record<string, string>;
}

export interface Namespace {
  /** Every namespace has at least the label with its name. */
  metadata: { name: string; labels: Record<string, string> };
}

/** `events.k8s.io/v1`. */
export interface KubernetesEvent {
  metadata: { namespace: string; name: string };
  /** RFC 3339 with microseconds. */
  eventTime: string;
  type: 'Normal' | 'Warning';
  reason: string;
  action: string;
  note: string;
  regarding: { apiVersion: string; kind: string; namespace: string; name: string; uid?: string; resourceVersion?: string };
  reportingController: string;
  reportingInstance: string;
}
