import { parseAllDocuments, stringify } from 'yaml';
import {
  type Broker,
  type EventPolicy,
  readBroker,
  readEventPolicy,
  readSource,
  readTrigger,
  type Source,
  type Trigger,
} from './eventing.ts';
import { Fields, isRecord } from './fields.ts';
import { type FunctionModel, type JobModel, readCronJob, readFunction, readJob } from './workload.ts';

/** Rendered manifests, divided into what the local Knative does itself and what the API server keeps. */
export interface Manifests {
  brokers: Broker[];
  triggers: Trigger[];
  eventPolicies: EventPolicy[];
  sources: Source[];
  functions: FunctionModel[];
  jobs: JobModel[];
  cronJobs: JobModel[];
  /** Ordinary objects, as YAML, namespaces first. */
  plain: string;
}

/** @throws Error for a Knative object that says something that the local Knative does not do */
export function readManifests(rendered: string): Manifests {
  const manifests: Manifests = {
    brokers: [],
    triggers: [],
    eventPolicies: [],
    sources: [],
    functions: [],
    jobs: [],
    cronJobs: [],
    plain: '',
  };
  const objects = parseManifests(rendered);
  const tokenless = tokenlessAccounts(objects);
  const plain: Fields[] = [];
  const read: Record<string, (object: Fields) => number> = {
    'eventing.knative.dev/v1 Broker': (object) => manifests.brokers.push(readBroker(object)),
    'eventing.knative.dev/v1 Trigger': (object) => manifests.triggers.push(readTrigger(object)),
    'eventing.knative.dev/v1alpha1 EventPolicy': (object) => manifests.eventPolicies.push(readEventPolicy(object)),
    'sources.knative.dev/v1 ApiServerSource': (object) => manifests.sources.push(readSource(object)),
    'serving.knative.dev/v1 Service': (object) => manifests.functions.push(readFunction(object, tokenless)),
    'batch/v1 Job': (object) => manifests.jobs.push(readJob(object, tokenless)),
    'batch/v1 CronJob': (object) => manifests.cronJobs.push(readCronJob(object, tokenless)),
  };
  for (const object of objects) {
    const type = `${object.string('apiVersion')} ${object.string('kind')}`;
    const reader = read[type];
    if (!reader && type.includes('knative.dev/')) throw new Error(`the local Knative does not know a ${type}`);
    if (reader) reader(object);
    else plain.push(object);
  }
  const isNamespace = (object: Fields) => object.string('kind') === 'Namespace';
  const ordered = [...plain.filter(isNamespace), ...plain.filter((object) => !isNamespace(object))];
  manifests.plain = ordered.map((object) => stringify(object.all())).join('---\n');
  return manifests;
}

/** Every object of a YAML stream. */
export function parseManifests(rendered: string): Fields[] {
  return parseAllDocuments(rendered).flatMap((document) => {
    const [error] = document.errors;
    if (error) throw error;
    const object: unknown = document.toJS();
    if (object === null || object === undefined) return [];
    return [new Fields(object, describe(object))];
  });
}

/** ServiceAccounts, as `namespace/name`, whose token is not mounted into their pods. */
function tokenlessAccounts(objects: Fields[]): Set<string> {
  const names = objects
    .filter((object) => object.string('kind') === 'ServiceAccount' && object.optionalBoolean('automountServiceAccountToken') === false)
    .map((object) => object.object('metadata'))
    .map((metadata) => `${metadata.string('namespace')}/${metadata.string('name')}`);
  return new Set(names);
}

function describe(object: unknown): string {
  return isRecord(object) && isRecord(object.metadata) ? `${object.kind} ${object.metadata.name}` : 'a manifest';
}
