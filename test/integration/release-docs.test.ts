import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parse, stringify } from 'yaml';
import { API_VERSION, FINALIZER, INSTANCE_LABEL } from '../../shared/constants.ts';
import { type LocalKnative, startKnative } from '../local/knative/knative.ts';
import { type Cluster, startCluster } from '../local/kube/cluster.ts';
import { CLUSTER_TIMEOUT_MS } from '../local/kube/shared.ts';
import { type LocalLldap, startLldap } from '../local/lldap/start.ts';
import { ensureTools } from '../local/tools/build.ts';
import { allPages, blocksOf, fencedIn, installKnativeKinds, type Place, preparePlace, RUN_BY } from './support/pages.ts';

const BUNDLE = fileURLToPath(new URL('../../dist/main.cjs', import.meta.url));

/** Somebody who follows the pages from an empty cluster on: every command of theirs that does not say what it needs. */
describe('Who follows the pages', function () {
  this.timeout(CLUSTER_TIMEOUT_MS);
  let cluster: Cluster;
  let lldap: LocalLldap & { close(): Promise<void> };
  /** Of lldap, before anything is in it. */
  let empty: Awaited<ReturnType<LocalLldap['snapshot']>>;
  let place: Place;
  let knative: LocalKnative | undefined;
  const places: Place[] = [];
  /** Blocks of the pages. */
  const ran = new Set<string>();

  before(async () => {
    assert.ok(existsSync(BUNDLE), 'build it first: make build');
    lldap = await startLldap({ passwordCost: 'cheap' });
    empty = await lldap.snapshot();
    cluster = await startCluster();
    await installKnativeKinds(cluster);
    place = await newPlace();
  });
  after(async () => {
    await knative?.stop();
    await cluster?.stop();
    await lldap.close();
    for (const each of places) await each.remove();
  });

  async function newPlace(): Promise<Place> {
    const made = await preparePlace(cluster, lldap.admin.password);
    places.push(made);
    const run = (script: string) => {
      ran.add(script);
      return made.run(script);
    };
    return { ...made, run };
  }

  /** Runs the one block that holds the text. */
  async function runOne(blocks: string[], text: string): Promise<string> {
    const chosen = blocks.filter((block) => block.includes(text));
    assert.equal(chosen.length, 1, text);
    return place.run(chosen[0] ?? '');
  }

  /** Functions that are being started. */
  const starting = new Set<string>();
  /** Ids of events that were brought to a function, which has answered. */
  const delivered = new Set<string>();

  /** Knative's part: from here on functions run. CronJobs don't, or one may do what a page's reader is about to see. */
  async function startFunctions(): Promise<void> {
    const { kubectl } = await ensureTools();
    const { stdout: manifests } = await promisify(execFile)(kubectl, ['kustomize', join(place.folder, 'install')]);
    knative = await startKnative({
      cluster,
      manifests,
      command: (args) => [process.execPath, BUNDLE, ...args],
      jobs: 'on demand',
      onEvent: (happening) => {
        if (happening.what === 'starting') starting.add(happening.service);
        if (happening.what === 'ready') starting.delete(happening.service);
        if (happening.what === 'delivered') delivered.add(happening.event.id);
      },
      addresses: {
        'http://lldap.lldap.svc.cluster.local:17170': lldap.url,
        'ldap://lldap.lldap.svc.cluster.local:3890': lldap.ldapUrl,
      },
    });
    Object.assign(place.addresses, {
      'http://broker-ingress.knative-eventing.svc.cluster.local/lldap-operator/lldap-operator': knative.brokerUrl,
      'http://lldap-operator-user.lldap-operator.svc.cluster.local': knative.serviceUrl('lldap-operator-user'),
      'http://lldap-operator-startup.lldap-operator.svc.cluster.local': knative.serviceUrl('lldap-operator-startup'),
    });
    const { code, output } = await knative.runJob('lldap-operator-install');
    assert.equal(code, 0, output);
  }

  async function atRest(...services: string[]): Promise<void> {
    const isAtRest = (service: string) => !starting.has(service) && knative?.processes(service).length === 0;
    await until(`${services.join(' and ')} at rest`, async () => services.every(isAtRest));
  }

  async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
    // The gaps between tries grow up to five minutes.
    const deadline = Date.now() + 600_000;
    for (; !(await holds()); await sleep(200)) assert.ok(Date.now() < deadline, what);
  }

  const reason = () => get('llu', 'alice', '-n', 'team', '-o', 'jsonpath={.status.conditions[?(@.type=="Ready")].reason}');

  const get = async (...what: string[]): Promise<string> => {
    const { stdout, stderr, code } = await cluster.kubectl(['get', ...what]);
    assert.equal(code, 0, stderr);
    return stdout;
  };

  it('of installing has a user that is Ready, whom lldap knows', async () => {
    for (const block of await blocksOf('docs/install.md')) {
      await place.run(block);
      if (block.includes('kubectl apply -k install') && !knative) await startFunctions();
    }
    const alice = (await lldap.users()).find(({ id }) => id === 'alice');
    assert.deepEqual(alice?.groups, ['Developers']);
    assert.equal(await lldap.check('alice', 'correct-horse-battery'), true);
    assert.match(await get('networkpolicies', '-n', 'lldap-operator', '-o', 'name'), /lldap-operator-functions/);
    assert.equal(await get('cronjob', 'lldap-operator-drift', '-n', 'lldap-operator', '-o', 'jsonpath={.spec.suspend}'), 'false');
  });

  it('finds each manifest of theirs accepted', async () => {
    const folder = join(place.folder, 'manifest');
    await mkdir(folder);
    const manifests = (await Promise.all((await allPages()).map((page) => fencedIn(page, 'yaml')))).flat();
    for (const manifest of manifests) {
      const part = parse(manifest) as object | unknown[];
      // Rules of Prometheus, which test/unit/docs.test.ts looks at.
      if ('groups' in part) continue;
      const kustomization = Array.isArray(part)
        ? { resources: ['../install'], [part.every((entry) => typeof entry === 'string') ? 'components' : 'patches']: part }
        : { resources: ['resource.yaml'] };
      await writeFile(join(folder, 'resource.yaml'), manifest);
      await writeFile(join(folder, 'kustomization.yaml'), stringify(kustomization));
      await place.run('kubectl apply --server-side --force-conflicts --dry-run=server -k manifest');
    }
  });

  it('sees what they show', async () => {
    const withoutAge = (text: string) => text.trim().replace(/\b(\d+[smh])+ *$/gm, '');
    for (const shown of await fencedIn('README.md', 'console')) {
      const [, command = '', output = ''] = /^\$ (.*)\n([\s\S]*)$/.exec(shown) ?? [];
      assert.equal(withoutAge(await place.run(command)), withoutAge(output));
    }
  });

  it('of asking for a reconcile is answered', async () => {
    const blocks = await blocksOf('docs/triggering.md');
    await runOne(blocks, 'kubectl annotate');
    const handled = () => get('llu', 'alice', '-n', 'team', '-o', 'jsonpath={.status.lastHandledReconcileAt}');
    await until('the token is repeated', async () => (await handled()) !== '');
    assert.match(await runOne(blocks, 'http://broker-ingress'), /^HTTP\/1\.1 202 /);
    await until('the event is delivered, whose id the page gives', async () => delivered.has('1'));
    await atRest('lldap-operator-user');
    // Nothing else looks at her meanwhile, such as a late event of the source.
    const undrop = knative?.faults.drop(({ attributes }) => attributes.name === 'alice');
    try {
      await lldap.edit('mutation { updateUser(user: {id: "alice", displayName: "Somebody Else"}) { ok } }');
      const [example = ''] = await fencedIn('docs/triggering.md', 'json');
      assert.deepEqual(JSON.parse(await runOne(blocks, 'http://lldap-operator-user')), JSON.parse(example));
    } finally {
      undrop?.();
    }
    assert.match(await runOne(blocks, 'kubectl create token'), /^[\w-]+\.[\w-]+\.[\w-]+\n?$/);
    await runOne(blocks, 'create job');
    assert.equal((await knative?.runCronJob('lldap-operator-startup'))?.code, 0);
  });

  it('of restoring lldap has back what its backup lacked', async () => {
    const [call = assert.fail(), ...others] = await blocksOf('docs/backup.md');
    assert.deepEqual(others, []);
    await lldap.restore(empty);
    const answer = await place.run(call);
    const { ok, modes } = JSON.parse(answer) as { ok: boolean; modes: string[] };
    assert.deepEqual([ok, modes], [true, ['full']], answer);
    await until('alice is back', () => lldap.check('alice', 'correct-horse-battery'));
    await until('alice is in her group', async () => (await lldap.users()).some(({ id, groups }) => id === 'alice' && groups.length > 0));
  });

  const wrong: [address: string, message: RegExp][] = [
    [
      'http://lldap.lldap.svc.cluster.local:17171',
      /Message: +lldap does not answer.* LLDAP_URL and LLDAP_LDAP_URL.* in the ConfigMap lldap-operator/,
    ],
    [
      'lldap.lldap.svc.cluster.local:17170',
      /Message: +LLDAP_URL is not an address of the form http:\/\/host:port.* in the ConfigMap lldap-operator/,
    ],
  ];
  for (const [address, message] of wrong) {
    it(`of troubleshooting finds by kubectl describe alone that lldap’s address ${address} is wrong, and mends it`, async () => {
      const blocks = await blocksOf('docs/troubleshooting.md');
      const settings = await blocksOf('docs/configure.md');
      const right = 'http://lldap.lldap.svc.cluster.local:17170';
      await place.run(`sed -i 's,${right},${address},' install/kustomization.yaml && kubectl apply -k install`);
      // What had started before has the right address yet.
      await atRest('lldap-operator-user', 'lldap-operator-startup');
      await place.run(`kubectl annotate llu alice -n team lldap-operator.lukidoescode.com/requested-at=${address.length} --overwrite`);
      await until('alice is not Ready', async () => (await reason()) === 'LldapUnavailable');
      assert.equal((await knative?.runCronJob('lldap-operator-startup'))?.code, 1);
      const described = await runOne(blocks, 'kubectl describe llu');
      assert.match(described, message);
      assert.match(described, /Warning +StartupFailed .*LLDAP_URL/);
      await place.run(`sed -i 's, ${address}, ${right},' install/kustomization.yaml`);
      await runOne(settings, 'kubectl delete pod');
      await until('alice is Ready again', async () => (await reason()) === 'Reconciled');
    });
  }

  it('of troubleshooting sees Events, Jobs, and what must be Ready', async () => {
    const blocks = await blocksOf('docs/troubleshooting.md');
    assert.match(await runOne(blocks, 'kubectl get events -n team'), /Warning +LldapUnavailable/);
    assert.equal(await runOne(blocks, 'kubectl get lldapusers,'), '');
    await runOne(blocks, 'kubectl get jobs');
    assert.match(await runOne(blocks, 'apiserversources'), /lldap-operator-user/);
  });

  it('of letting a resource go takes its finalizer away', async () => {
    const blocks = await blocksOf('docs/troubleshooting.md');
    await runOne(blocks, 'deletionPolicy');
    await runOne(blocks, '/metadata/finalizers');
    const finalizers = () => get('llu', 'alice', '-n', 'team', '-o', 'jsonpath={.metadata.finalizers}');
    await until('who is not being deleted has it again', async () => (await finalizers()) !== '');
  });

  it('of moving over lists the finalizers of all', async () => {
    const [list = assert.fail(), ...others] = await blocksOf('docs/moving.md');
    assert.deepEqual(others, []);
    assert.match(await place.run(list), /^LldapUser team\/alice \["lldap-operator\.lukidoescode\.com\/cleanup"\]$/m);
  });

  it('of configuring has the same account as before', async () => {
    for (const block of await blocksOf('docs/configure.md')) await place.run(block);
    const password = await get('secret', 'lldap-operator-credentials', '-n', 'lldap-operator', '-o', 'jsonpath={.data.password}');
    assert.equal(Buffer.from(password, 'base64').toString(), lldap.admin.password);
  });

  it('of upgrading keeps the settings and has the install Job anew', async () => {
    const uid = () => get('job', 'lldap-operator-install', '-n', 'lldap-operator', '-o', 'jsonpath={.metadata.uid}');
    await cluster.kubectl(['create', 'job', 'lldap-operator-install', '-n', 'lldap-operator', '--image=old']);
    const former = await uid();
    for (const text of ['make release', '--all-namespaces']) await runOne(await blocksOf('docs/upgrade.md'), text);
    assert.notEqual(await uid(), former);
    assert.equal(
      await get('configmap', 'lldap-operator', '-n', 'lldap-operator', '-o', 'jsonpath={.data.LLDAP_URL}'),
      'http://lldap.lldap.svc.cluster.local:17170',
    );
  });

  it('of upgrading changes to another Broker without a gap, and back', async () => {
    const blocks = await blocksOf('docs/upgrade.md');
    const [component = ''] = await fencedIn('docs/upgrade.md', 'yaml');
    const names = async (resource: string, field = 'metadata.name') =>
      (await get(resource, '-n', 'lldap-operator', '-o', `jsonpath={.items[*].${field}}`)).split(' ');
    await place.run(`cp install/kustomization.yaml former.yaml && echo '${component.trimEnd()}' >> install/kustomization.yaml`);
    await runOne(blocks, 'sweep-on-new-broker');
    assert.deepEqual(await names('brokers'), ['lldap-operator', 'lldap-operator-kafka']);
    assert.equal((await names('triggers')).length, 12);
    await runOne(blocks, 'delete broker');
    assert.deepEqual(await names('brokers'), ['lldap-operator-kafka']);
    assert.deepEqual(new Set(await names('triggers', 'spec.broker')), new Set(['lldap-operator-kafka']));
    assert.deepEqual(new Set(await names('apiserversources', 'spec.sink.ref.name')), new Set(['lldap-operator-kafka']));
    // Back in the same way, with the other names.
    await place.run('mv former.yaml install/kustomization.yaml && kubectl apply -k install');
    assert.deepEqual(await names('brokers'), ['lldap-operator', 'lldap-operator-kafka']);
    const back = blocks
      .filter((block) => block.includes('delete broker'))
      .map((block) => block.replace('broker lldap-operator ', 'broker lldap-operator-kafka ').replace('$function"', '$function-kafka"'));
    for (const block of back) await place.run(block);
    assert.deepEqual(await names('brokers'), ['lldap-operator']);
    assert.deepEqual(new Set(await names('triggers', 'spec.broker')), new Set(['lldap-operator']));
  });

  it('of several instances has another one beside the first', async () => {
    const other = await newPlace();
    for (const block of await blocksOf('docs/multi-instance.md')) await other.run(block);
    assert.equal(await get('configmap', 'lldap-operator', '-n', 'lldap-staging', '-o', 'jsonpath={.data.LLDAP_INSTANCE}'), 'staging');
    const roles = await get('clusterroles', '-o', 'name');
    for (const name of ['lldap-operator-user', 'lldap-operator-user-staging'])
      assert.ok(roles.includes(`clusterrole.rbac.authorization.k8s.io/${name}\n`), name);
    const bound = 'jsonpath={.roleRef.name} {.subjects[0].namespace}';
    assert.equal(await get('clusterrolebinding', 'lldap-operator-user-staging', '-o', bound), 'lldap-operator-user-staging lldap-staging');
  });

  describe('of uninstalling', () => {
    let blocks: string[];
    const run = (text: string) => runOne(blocks, text);

    before(async () => {
      blocks = await blocksOf('docs/uninstall.md');
    });

    it('keeps in lldap what shall stay, and ends every resource while the functions run', async () => {
      await run('deletionPolicy');
      await run('delete llm,llu,llg,llas');
      assert.equal(await get('llm,llu,llg,llas', '--all-namespaces', '-o', 'name'), '');
      assert.deepEqual((await lldap.users()).find(({ id }) => id === 'alice')?.groups, ['Developers']);
      assert.equal(await get('cronjobs,jobs', '-n', 'lldap-operator', '-o', 'name'), '');
    });

    it('deletes the sources and the Broker before the Triggers', async () => {
      await run('delete broker');
      assert.equal(await get('brokers,apiserversources', '-n', 'lldap-operator', '-o', 'name'), '');
      assert.notEqual(await get('triggers', '-n', 'lldap-operator', '-o', 'name'), '');
    });

    it('gets rid of a resource whose function has gone', async () => {
      await knative?.stop();
      knative = undefined;
      const metadata = { name: 'left', namespace: 'team', labels: { [INSTANCE_LABEL]: 'default' }, finalizers: [FINALIZER] };
      await cluster.apply(stringify({ apiVersion: API_VERSION, kind: 'LldapGroup', metadata, spec: { displayName: 'Left' } }));
      await cluster.kubectl(['delete', 'llg', 'left', '-n', 'team', '--wait=false']);
      assert.match(await get('llg', '-n', 'team', '-o', 'name'), /left/);
      await run('finalizers');
      assert.equal(await get('llg', '-n', 'team', '-o', 'name'), '');
    });

    it('has nothing left in the cluster', async () => {
      await run('delete -k install');
      await run('delete namespace team');
      const names = await get('clusterroles,clusterrolebindings,networkpolicies', '-A', '-o', 'name');
      assert.deepEqual(
        names.split('\n').filter((name) => name.includes('lldap-operator') && !name.endsWith('-staging')),
        [],
      );
      const namespaced = 'configmaps,serviceaccounts,roles,rolebindings,services.serving.knative.dev,brokers,triggers';
      assert.doesNotMatch(await get(namespaced, '-n', 'lldap-operator', '-o', 'name'), /lldap-operator/);
      assert.equal(await get('namespace', 'lldap-operator', '-o', 'jsonpath={.status.phase}'), 'Terminating');
      const { code } = await cluster.kubectl(['wait', '--for=delete', 'crd/lldapusers.lldap-operator.lukidoescode.com', '--timeout=5m']);
      assert.equal(code, 0);
    });

    it('has by now run every command of the pages that does not say what it needs', async () => {
      const pages = Object.keys(RUN_BY).filter((page) => RUN_BY[page] === 'release-docs.test.ts');
      const blocks = (await Promise.all(pages.map((page) => blocksOf(page)))).flat();
      assert.deepEqual(
        blocks.filter((block) => !ran.has(block)),
        [],
      );
    });
  });
});
