import { request } from 'node:http';

/**
 * Fills a cluster with copies of resources in steady state, since to reconcile as many would take longer than all the rest. They are
 * written into etcd, from where the API server reads them like all others. lldap has none of their objects, which nothing looks for while
 * nothing changes.
 */

/** etcd allows 128 operations in a transaction. */
const PER_TRANSACTION = 100;
const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/;
const UUID_START = 24;
const UUID_LENGTH = 36;

/**
 * @param key of etcd, whose last part is the name of the resource to copy; the copies are called `steady-0` and so on
 * @param groups how many groups the memberships are spread over
 */
export async function multiply(etcdSocket: string, key: string, count: number, groups: number): Promise<void> {
  const range = (await ask(etcdSocket, '/v3/kv/range', { key: base64(key) })) as { kvs?: { value: string }[] };
  const value = range.kvs?.[0]?.value;
  if (value === undefined) throw new Error(`etcd has no ${key}`);
  const object = Buffer.from(value, 'base64').toString();
  const name = key.slice(key.lastIndexOf('/') + 1);
  const copies = Array.from({ length: count }, (_, i) => ({
    key: base64(key.replace(name, `steady-${i}`)),
    value: base64(copyOf(object, name, i, groups)),
  }));
  while (copies.length > 0)
    await ask(etcdSocket, '/v3/kv/txn', { success: copies.splice(0, PER_TRANSACTION).map((requestPut) => ({ requestPut })) });
}

/** Everything that must be unique differs, and what refers to another resource refers to one of the copies. */
function copyOf(object: string, name: string, i: number, groups: number): string {
  const copy = JSON.parse(object, (field, value) => {
    const number = field.startsWith('group') ? i % groups : i;
    if (field === 'groupId') return value + 1_000_000 + number;
    if (typeof value !== 'string') return value;
    const uuidEnd = number.toString(16).padStart(UUID_LENGTH - UUID_START, '0');
    return value.replace(name, `steady-${number}`).replace(UUID, (uuid) => uuid.slice(0, UUID_START) + uuidEnd);
  });
  return JSON.stringify(copy);
}

/** By the gateway for JSON that every etcd has. */
function ask(socketPath: string, path: string, body: object): Promise<unknown> {
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  const outgoing = request({ socketPath, path, method: 'POST' }, async (incoming) => {
    try {
      let text = '';
      for await (const chunk of incoming.setEncoding('utf8')) text += chunk;
      if (incoming.statusCode === 200) resolve(JSON.parse(text));
      else reject(new Error(`etcd answered ${incoming.statusCode}: ${text}`));
    } catch (error) {
      reject(error);
    }
  });
  outgoing.on('error', reject).end(JSON.stringify(body));
  return promise;
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}
