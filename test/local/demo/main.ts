import { dirname, relative } from 'node:path';
import { MARK_ATTRIBUTE } from '../../../shared/constants.ts';
import { createLldapClient } from '../../../shared/lldap/client.ts';
import { createLldapPasswords } from '../../../shared/lldap/passwords.ts';
import { createLog } from '../../../shared/telemetry/log.ts';
import { type Stack, startStack } from '../stack.ts';
import { findTools } from '../tools/find.ts';
import { Narrator } from './narrator.ts';

/** `make demo`: the whole way from a manifest to a login, told as it goes. Exits with 0 if everything came out as told. */

const TEAM = relative(process.cwd(), `${import.meta.dirname}/../../../docs/examples/team.yaml`);
const EVERYTHING = ['get', 'llu,llg,llm,llas', '-n', 'team'];
/** What any step may take on a slow machine. */
const PATIENCE_S = 120;
const FIRST_PASSWORD = 'correct-horse-battery';
const SECOND_PASSWORD = 'staple-a-new-horse';

const narrator = new Narrator();
process.once('uncaughtException', (error) => {
  process.stderr.write(`\nThe demo has failed: ${error.message}\n`);
  process.exit(1);
});
const stack = await start();
try {
  await installed();
  await apply();
  await look();
  await outage();
  await rotate();
  await remove();
  await idle();
  summary();
  if (process.env.KEEP) await keep();
} finally {
  narrator.end();
  await stack.stop();
}

async function start(): Promise<Stack> {
  narrator.section('Starting: nothing here needs Docker or a cluster');
  const parts = {
    kubernetes: 'Kubernetes: a real kube-apiserver and etcd, with the custom resources and RBAC on',
    lldap: process.env.LLDAP_URL
      ? `lldap: the real one at ${process.env.LLDAP_URL}`
      : 'lldap: a stand-in that behaves as lldap was measured to',
    knative: 'Knative: a local double that does what the manifests in knative/base say',
  };
  return startStack({
    tools: await findTools((line) => narrator.say(line)),
    onPart: (part) => narrator.say(parts[part]),
    onEvent: (happening) => narrator.hear(happening),
  });
}

async function installed(): Promise<void> {
  narrator.say('Up. No function is running: each starts with its first event. The install Job calls startup:');
  await until('the install Job has ended', async () => narrator.installed !== undefined);
  if (narrator.installed !== 0) throw new Error('startup met a problem, which the Job names above: correct the setting and try again.');
  await until(
    'startup has made the virtual groups',
    async () => (await kubectl(['get', 'llg', '-n', 'lldap-operator', '-o', 'name'])).split('\n').length > 3,
  );
}

async function apply(): Promise<void> {
  narrator.section('One file: a membership, a user, a group, an attribute and a password, in the worst order');
  narrator.show(`kubectl apply -f ${TEAM}`, await kubectl(['apply', '-f', TEAM]));
  await ready('everything is Ready');
  narrator.show(`kubectl ${EVERYTHING.join(' ')}`, await kubectl(EVERYTHING));
}

async function look(): Promise<void> {
  narrator.section('What lldap has now');
  const { client, passwords, close } = eyes();
  const alice = await client.user('alice');
  if (!alice) throw new Error('lldap has no user alice');
  const values = (name: string) => alice.attributes.find((a) => a.name === name)?.value.join();
  narrator.say(
    `user ${alice.id} <${alice.email}> "${values('display_name')}", desk ${values('desk')}, groups: ${alice.groups.map((g) => g.displayName).join(', ')}`,
  );
  await expect(await passwords.verify('alice', FIRST_PASSWORD), 'alice can log in over LDAP with the Secret’s password');
  await close();
}

async function outage(): Promise<void> {
  const { local } = stack.lldap;
  narrator.section('lldap goes down while somebody changes a user');
  if (!local) return narrator.say('Left out: this lldap is yours, and the demo does not stop it.');
  await local.stop();
  narrator.say('lldap is down.');
  await kubectl(['patch', 'llu', 'alice', '-n', 'team', '--type=merge', '-p', '{"spec":{"displayName":"Alice in Wonderland"}}']);
  await until('the user says so', async () => (await reason('alice')) === 'LldapUnavailable');
  narrator.show('kubectl get llu alice -n team -o wide', await kubectl(['get', 'llu', 'alice', '-n', 'team', '-o', 'wide']));
  await local.start();
  narrator.say('lldap is back. Nobody does anything; the retry is an event that the requeue function holds until it is due:');
  await ready('the user is Ready again');
}

async function rotate(): Promise<void> {
  narrator.section('A password is rotated: only the Secret changes');
  const data = JSON.stringify({ stringData: { password: SECOND_PASSWORD } });
  await kubectl(['patch', 'secret', 'alice-password', '-n', 'team', '--type=merge', '-p', data]);
  const { passwords, close } = eyes();
  await until('the new password works', () => passwords.verify('alice', SECOND_PASSWORD));
  await expect(!(await passwords.verify('alice', FIRST_PASSWORD)), 'the old one does not');
  await close();
}

async function remove(): Promise<void> {
  narrator.section('The user is deleted');
  narrator.show('kubectl delete llu alice -n team', await kubectl(['delete', 'llu', 'alice', '-n', 'team', '--timeout', `${PATIENCE_S}s`]));
  const { client, close } = eyes();
  await expect((await client.user('alice')) === undefined, 'lldap has no user alice any more');
  await until('the membership says what it misses', async () => (await kubectl([...EVERYTHING])).includes('DependencyNotReady'));
  narrator.show('kubectl get llm -n team -o wide', await kubectl(['get', 'llm', '-n', 'team', '-o', 'wide']));
  narrator.say('The rest of the file goes, too:');
  await kubectl(['delete', 'llm,llg,llas', '--all', '-n', 'team', '--timeout', `${PATIENCE_S}s`]);
  await expect(!(await client.groups()).some((g) => g.displayName === 'Developers'), 'lldap has no group Developers any more');
  await close();
}

async function idle(): Promise<void> {
  narrator.section('Nothing to do');
  await until('all functions have stopped', async () => narrator.running.size === 0);
  narrator.say('Not one process of the operator is running.');
}

function summary(): void {
  if (!stack.lldap.local)
    narrator.say(
      `Your lldap keeps the hidden attribute ${MARK_ATTRIBUTE} of users and groups, in which the operator records what it owns. Delete both definitions in lldap's settings if you do not install the operator.`,
    );
  const { events, coldStarts, slowestColdStartMs } = narrator.totals;
  narrator.section('Done');
  narrator.say(
    `${events} events, ${coldStarts} starts from zero (the slowest took ${(slowestColdStartMs / 1000).toFixed(2)} s), 0 processes now.`,
  );
}

async function keep(): Promise<void> {
  narrator.section('KEEP=1: all stays up until you press Ctrl-C. In another terminal:');
  const { cluster, knative, lldap } = stack;
  process.stdout.write(`
  export KUBECONFIG=${cluster.kubeconfig}
  export PATH=$PATH:${dirname(stack.cluster.kubectlPath)}

  kubectl apply -f ${TEAM}
  kubectl get lldap -A
  kubectl describe llu alice -n team

  # Knative is a local double: this cluster has no Knative Services, Triggers or sources to get.

  # Ask for a full reconcile, as an event:
  curl -i -X POST ${knative.brokerUrl} -H 'ce-specversion: 1.0' -H 'ce-id: 1' -H 'ce-source: me' \\
    -H 'ce-type: com.lukidoescode.lldap-operator.reconcile' \\
    -H 'ce-kind: LldapUser' -H 'ce-namespace: team' -H 'ce-name: alice'

  # Ask a function directly, and be told what it did:
  curl -s -X POST ${knative.serviceUrl('lldap-operator-user')} -H 'Prefer: return=representation' -H 'ce-specversion: 1.0' \\
    -H 'ce-id: 2' -H 'ce-source: me' -H 'ce-type: com.lukidoescode.lldap-operator.reconcile' \\
    -H 'ce-kind: LldapUser' -H 'ce-namespace: team' -H 'ce-name: alice'
  curl -s -X POST ${knative.serviceUrl('lldap-operator-startup')} -H 'Prefer: return=representation' -H 'ce-specversion: 1.0' \\
    -H 'ce-id: 3' -H 'ce-source: me' -H 'ce-type: com.lukidoescode.lldap-operator.startup'

  # To clean up, delete the resources and leave the namespace: no controller runs here that could end one.
  kubectl delete llm,llu,llg,llas --all -n team

  lldap: ${lldap.url} and ${lldap.ldapUrl}, as ${lldap.admin.username}${lldap.local ? ` with the password ${lldap.admin.password}` : ''}

`);
  await new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve());
  });
  process.stdout.write('\n');
  narrator.say('Stopping everything.');
}

/** What a person would look with. */
function eyes() {
  const { url, ldapUrl, ca, admin } = stack.lldap;
  const common = { credentials: async () => admin, log: createLog('error'), ...(ca && { ca }) };
  const client = createLldapClient({ url, ...common });
  const passwords = createLldapPasswords({ url: ldapUrl, ...common });
  const close = async () => {
    client.close();
    await passwords.close();
  };
  return { client, passwords, close };
}

async function kubectl(args: string[]): Promise<string> {
  const { stdout, stderr, code } = await stack.cluster.kubectl(args);
  if (code !== 0) throw new Error(`kubectl ${args.join(' ')}: ${stderr}`);
  return stdout;
}

async function ready(what: string): Promise<void> {
  await kubectl(['wait', 'llu,llg,llm,llas', '--all', '-n', 'team', '--for=condition=Ready', `--timeout=${PATIENCE_S}s`]);
  await tell(what);
}

async function reason(user: string): Promise<string> {
  return kubectl(['get', 'llu', user, '-n', 'team', '-o', 'jsonpath={.status.conditions[?(@.type=="Ready")].reason}']);
}

async function expect(fact: boolean, what: string): Promise<void> {
  if (!fact) throw new Error(`not so: ${what}`);
  await tell(what);
}

/** A function's log line comes a moment after the status that it wrote: what was done is told before what came of it. */
async function tell(what: string): Promise<void> {
  // Requeue holds its requests until retries are due.
  const isBusy = () => stack.knative.processes().some(({ service, inFlight }) => inFlight > 0 && service !== 'lldap-operator-requeue');
  while (isBusy()) await new Promise((resolve) => setTimeout(resolve, 20));
  narrator.say(`✔ ${what}`);
}

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + PATIENCE_S * 1000;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`not within ${PATIENCE_S} s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  await tell(what);
}
