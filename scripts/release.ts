import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { type Document, parseAllDocuments } from 'yaml';
import packageJson from '../package.json' with { type: 'json' };

/**
 * `make release`: writes the files to apply to a cluster, rendered by the `kubectl` on the PATH.
 *
 * - `dist/crds.yaml`: the CRDs and the admission policy, to be applied first;
 * - `dist/install.yaml`: an overlay of `knative/overlays`, `all-namespaces` by default, with the name of the image;
 * - `dist/kn/`: the same for kn: a file for each Service, and `others.yaml` with the objects that kn cannot create.
 */

const ROOT = join(import.meta.dirname, '..');
const OVERLAYS = join(ROOT, 'knative/overlays');
const DIST = join(ROOT, 'dist');
const LABELS = { 'app.kubernetes.io/name': 'lldap-operator', 'app.kubernetes.io/part-of': 'lldap-operator' };
/** The image that the manifests name. */
const IMAGE = `lldap-knative-operator:${packageJson.version}`;

try {
  const [image = '', overlay = ''] = process.argv.slice(2);
  await release(image || IMAGE, overlay || 'all-namespaces');
  if (!image) process.stderr.write(`Warning: IMAGE is not set, so the files name ${IMAGE}, which a cluster can rarely pull.\n`);
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
  process.exitCode = 1;
}

async function release(image: string, overlay: string): Promise<void> {
  const overlays = (await readdir(OVERLAYS)).sort();
  if (!overlays.includes(overlay)) throw new Error(`There is no overlay ${overlay}. Set OVERLAY to one of ${overlays.join(', ')}.`);
  const install = await render(overlay, image);
  await rm(join(DIST, 'kn'), { recursive: true, force: true });
  await write('crds.yaml', await crds());
  await write('install.yaml', install);
  for (const document of install.filter(isService)) await write(`kn/services/${document.getIn(['metadata', 'name'])}.yaml`, [document]);
  await write(
    'kn/others.yaml',
    install.filter((document) => !isService(document) && !isBroker(document) && !isSourceOfItsNamespace(document)),
  );
  process.stdout.write(`Wrote dist/crds.yaml, dist/install.yaml and dist/kn/ from the overlay ${overlay}, with the image ${image}.\n`);
}

async function crds(): Promise<Document[]> {
  const folder = join(ROOT, 'crds');
  const files = (await readdir(folder)).filter((name) => name.endsWith('.yaml')).sort();
  const texts = await Promise.all(files.map((name) => readFile(join(folder, name), 'utf8')));
  const documents = texts.flatMap(parse);
  for (const document of documents) document.setIn(['metadata', 'labels'], LABELS);
  return documents;
}

async function render(overlay: string, image: string): Promise<Document[]> {
  const args = ['kustomize', join(OVERLAYS, overlay)];
  const { stdout } = await promisify(execFile)('kubectl', args, { maxBuffer: 16 * 1024 * 1024 }).catch((error: Error) => {
    throw 'code' in error && error.code === 'ENOENT' ? new Error('kubectl is needed: install it and put it on the PATH.') : error;
  });
  return parse(stdout.replaceAll(`image: ${IMAGE}\n`, `image: ${image}\n`));
}

function parse(text: string): Document[] {
  return parseAllDocuments(text).map((document) => {
    const [error] = document.errors;
    if (error) throw error;
    return document;
  });
}

function isService(document: Document): boolean {
  return document.get('apiVersion') === 'serving.knative.dev/v1' && document.get('kind') === 'Service';
}

function isBroker(document: Document): boolean {
  return document.get('kind') === 'Broker';
}

/** A source without a namespace selector: kn has no flag for one. */
function isSourceOfItsNamespace(document: Document): boolean {
  return document.get('kind') === 'ApiServerSource' && !document.hasIn(['spec', 'namespaceSelector']);
}

async function write(file: string, documents: Document[]): Promise<void> {
  const path = join(DIST, file);
  const texts = documents.map((document) => document.toString({ lineWidth: 0, directives: false }));
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, texts.join('---\n'));
}
