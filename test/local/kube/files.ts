import { generateKeyPairSync } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** What kube-apiserver reads at its start. All of it is made anew for each cluster and is gone with it. */
export interface ServerFiles {
  tokens: string;
  signingKey: string;
  verifyingKey: string;
  auditPolicy: string;
}

export async function writeServerFiles(directory: string, adminToken: string): Promise<ServerFiles> {
  const files = {
    tokens: join(directory, 'tokens.csv'),
    signingKey: join(directory, 'service-account.key'),
    verifyingKey: join(directory, 'service-account.pub'),
    auditPolicy: join(directory, 'audit-policy.json'),
  };
  // kube-apiserver doesn't derive the public half from a PKCS #8 key.
  const pair = generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  });
  const auditPolicy = { apiVersion: 'audit.k8s.io/v1', kind: 'Policy', omitStages: ['RequestReceived'], rules: [{ level: 'Metadata' }] };
  await Promise.all([
    writePrivate(files.tokens, `${adminToken},local-admin,local-admin,"system:masters"\n`),
    writePrivate(files.signingKey, pair.privateKey),
    writePrivate(files.verifyingKey, pair.publicKey),
    writePrivate(files.auditPolicy, JSON.stringify(auditPolicy)),
  ]);
  return files;
}

/** The CA of the certificate that kube-apiserver made for itself: the last one in the file. */
export async function readCa(certificateFile: string): Promise<string> {
  const certificates = (await readFile(certificateFile, 'utf8')).match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n/g);
  const ca = certificates?.at(-1);
  if (ca === undefined) throw new Error('kube-apiserver wrote no certificate');
  return ca;
}

/** JSON, which every reader of YAML reads. */
export async function writeKubeconfig(
  path: string,
  { url, ca, token, namespace }: { url: string; ca: string; token: string; namespace: string },
): Promise<string> {
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'local', cluster: { server: url, 'certificate-authority-data': Buffer.from(ca).toString('base64') } }],
    users: [{ name: 'local', user: { token } }],
    contexts: [{ name: 'local', context: { cluster: 'local', user: 'local', namespace } }],
    'current-context': 'local',
  };
  await writePrivate(path, JSON.stringify(config, undefined, 2));
  return path;
}

function writePrivate(path: string, text: string): Promise<void> {
  return writeFile(path, text, { mode: 0o600 });
}
