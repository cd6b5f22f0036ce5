import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { type Document, parseAllDocuments } from 'yaml';
import packageJson from '../package.json' with { type: 'json' };

/**
 * `make release`: writes what a cluster is given, rendered by the `kubectl` on the PATH.
 *
 * - `dist/crds.yaml`: the kinds and the admission policy, which come first;
 * - `dist/install.yaml`: an overlay of `knative/overlays`, all namespaces unless another is named, with the image's name in it;
 * - `dist/kn/`: the same for those who use kn: a file for each Service, and `others.yaml` with what kn cannot create.
 */

const ROOT = join(import.meta.dirname, '..');
const DIST = join(ROOT, 'dist');
const LABELS = { 'app.kubernetes.io/name': 'lldap-operator', 'app.kubernetes.io/part-of': 'lldap-operator' };
/** As the manifests have it. */
const IMAGE = `lldap-knative-operator:${packageJson.version}`;

try {
  const [image = '', overlay = ''] = process.argv.slice(2);
  await release(image || IMAGE, overlay || 'all-namespaces');
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
  process.exitCode = 1;
}

async function release(image: string, overlay: string): Promise<void> {
  const install = await render(overlay, image);
  await rm(join(DIST, 'kn'), { recursive: true, force: true });
  await write('crds.yaml', await crds());
  await write('install.yaml', install);
  for (const document of install.filter(isService)) await write(`kn/services/${document.getIn(['metadata', 'name'])}.yaml`, [document]);
  await write(
    'kn/others.yaml',
    install.filter((document) => !isService(document) && !isBroker(document) && !isSourceOfItsNamespace(document)),
  );
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
  const args = ['kustomize', join(ROOT, 'knative/overlays', overlay)];
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

/** kn knows no selector of namespaces. */
function isSourceOfItsNamespace(document: Document): boolean {
  return document.get('kind') === 'ApiServerSource' && !document.hasIn(['spec', 'namespaceSelector']);
}

async function write(file: string, documents: Document[]): Promise<void> {
  const path = join(DIST, file);
  const texts = documents.map((document) => document.toString({ lineWidth: 0, directives: false }));
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, texts.join('---\n'));
}
