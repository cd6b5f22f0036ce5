import { strict as assert } from 'node:assert';
import { FINALIZER, INSTANCE_LABEL, VIRTUAL_LABEL } from '../../shared/constants.ts';
import { type KindName, PLURALS } from '../../shared/kube/resources.ts';
import { type Cluster, startCluster } from '../local/kube/cluster.ts';
import { CRD_FOLDER, installCrds, LEAST_SPEC } from '../local/kube/crds.ts';
import { CLUSTER_TIMEOUT_MS } from '../local/kube/shared.ts';
import { ACCEPTED, assertVerdict, Bench, eventually, judge, useBench } from './support/crds.ts';

const MISSING = `the label ${INSTANCE_LABEL} is missing or empty: set it under metadata.labels to the name of the lldap instance that this object belongs to, for example default`;
const CHANGED = `the label ${INSTANCE_LABEL} cannot be changed from main: delete this object and create it again with the other label`;
const VIRTUAL = `the label ${VIRTUAL_LABEL} marks the operator's own objects for lldap's built-in groups: do not change or set it`;

const label = (instance: string | null) => ({ metadata: { labels: { [INSTANCE_LABEL]: instance } } });
const virtual = (value: string | null) => ({ metadata: { labels: { [VIRTUAL_LABEL]: value } } });
const MARKED = { labels: { [INSTANCE_LABEL]: 'main', [VIRTUAL_LABEL]: 'true' } };

describe('the instance label', () => {
  const bench = useBench('crds-label');

  for (const kind of Object.keys(PLURALS) as KindName[]) {
    it(`must be there when an ${kind} is created`, async () => {
      assertVerdict(await bench().tryCreate(kind, LEAST_SPEC[kind], { labels: {} }), MISSING);
    });

    it(`must not be empty when an ${kind} is created`, async () => {
      assertVerdict(await bench().tryCreate(kind, LEAST_SPEC[kind], { labels: { [INSTANCE_LABEL]: '' } }), MISSING);
    });

    it(`of an ${kind} cannot be changed, emptied or removed, and other labels can`, async () => {
      const name = await bench().create(kind, LEAST_SPEC[kind]);
      assertVerdict(await bench().tryPatch(kind, name, label('other')), CHANGED);
      assertVerdict(await bench().tryPatch(kind, name, label('')), CHANGED);
      assertVerdict(await bench().tryPatch(kind, name, label(null)), CHANGED);
      assertVerdict(await bench().tryPatch(kind, name, { metadata: { labels: { team: 'blue' } } }), ACCEPTED);
    });
  }

  it('cannot be changed while the object is being deleted, and finalizers can go', async () => {
    const name = await bench().create('LldapGroup', LEAST_SPEC.LldapGroup, { finalizers: [FINALIZER] });
    await bench().cluster.request('DELETE', bench().path('LldapGroup', name));
    assertVerdict(await bench().tryPatch('LldapGroup', name, label('other')), CHANGED);
    assertVerdict(await bench().tryPatch('LldapGroup', name, label(null)), CHANGED);
    assertVerdict(await bench().tryPatch('LldapGroup', name, { metadata: { finalizers: null } }), ACCEPTED);
  });
});

describe('an object that is older than the label policy', () => {
  let cluster: Cluster;
  let name: string;
  let bench: Bench;

  before(async function () {
    this.timeout(CLUSTER_TIMEOUT_MS);
    cluster = await startCluster();
    const { stderr, code } = await cluster.kubectl(['apply', '-f', `${CRD_FOLDER}/lldapgroup.yaml`]);
    assert.equal(code, 0, stderr);
    bench = new Bench(cluster, await cluster.createNamespace('older'));
    // What serves the kind learns of its being established after it was so.
    await eventually(async () => {
      name = await bench.create('LldapGroup', LEAST_SPEC.LldapGroup, { labels: {} });
    });
    await installCrds(cluster);
  });
  after(() => cluster?.stop());

  it('can be given the instance label, and cannot be written otherwise', async () => {
    assertVerdict(await bench.tryPatch('LldapGroup', name, { spec: { displayName: 'Other' } }), MISSING);
    assertVerdict(await bench.tryPatch('LldapGroup', name, label('main')), ACCEPTED);
  });

  it('can have its status written', async () => {
    const options = { body: { status: { observedGeneration: 1 } }, contentType: 'application/merge-patch+json' };
    assert.equal(judge(await cluster.request('PATCH', `${bench.path('LldapGroup', name)}/status`, options)), ACCEPTED);
  });

  it('can be deleted', async () => {
    const { code } = await cluster.request('DELETE', bench.path('LldapGroup', name));
    assert.equal(code, 200);
  });
});

describe('the virtual label', () => {
  const bench = useBench('crds-virtual');
  const elsewhere = useBench('crds-elsewhere');
  const least = LEAST_SPEC.LldapGroup;

  before(async () => {
    for (const { cluster, namespace } of [bench(), elsewhere()]) {
      for (const serviceAccount of ['lldap-operator-startup', 'lldap-operator-group']) {
        await cluster.apply(mayDoAll(namespace, serviceAccount, bench().namespace));
        const token = await cluster.tokenFor(namespace, serviceAccount);
        await eventually(async () => assertVerdict(await bench().tryCreate('LldapGroup', least, {}, token), ACCEPTED));
      }
    }
  });

  it('cannot be set by a person, an administrator included', async () => {
    assertVerdict(await bench().tryCreate('LldapGroup', least, MARKED), VIRTUAL);
    const name = await bench().create('LldapGroup', least);
    assertVerdict(await bench().tryPatch('LldapGroup', name, virtual('true')), VIRTUAL);
  });

  it('cannot be set by another function of the operator', async () => {
    const token = await bench().cluster.tokenFor(bench().namespace, 'lldap-operator-group');
    assertVerdict(await bench().tryCreate('LldapGroup', least, MARKED, token), VIRTUAL);
  });

  it("cannot be set by a ServiceAccount of the startup function's name from another namespace", async () => {
    const token = await bench().cluster.tokenFor(elsewhere().namespace, 'lldap-operator-startup');
    assertVerdict(await bench().tryCreate('LldapGroup', least, MARKED, token), VIRTUAL);
  });

  it('can be set, changed and removed by the startup function in its own namespace', async () => {
    const token = await bench().cluster.tokenFor(bench().namespace, 'lldap-operator-startup');
    assertVerdict(await bench().tryCreate('LldapGroup', least, MARKED, token), ACCEPTED);
    const name = await createVirtual(bench(), token);
    assertVerdict(await bench().tryPatch('LldapGroup', name, virtual('false'), token), ACCEPTED);
    assertVerdict(await bench().tryPatch('LldapGroup', name, virtual(null), token), ACCEPTED);
  });

  describe('once it is there', () => {
    let name = '';
    before(async () => {
      name = await createVirtual(bench(), await bench().cluster.tokenFor(bench().namespace, 'lldap-operator-startup'));
    });

    it('cannot be changed or removed by a person', async () => {
      assertVerdict(await bench().tryPatch('LldapGroup', name, virtual('false')), VIRTUAL);
      assertVerdict(await bench().tryPatch('LldapGroup', name, virtual(null)), VIRTUAL);
    });

    it('lets a person change what else there is', async () => {
      assertVerdict(await bench().tryPatch('LldapGroup', name, { metadata: { annotations: { note: 'x' } } }), ACCEPTED);
    });

    it('lets any function write the status', async () => {
      const options = {
        body: { status: { groupId: 1 } },
        contentType: 'application/merge-patch+json',
        token: await bench().cluster.tokenFor(bench().namespace, 'lldap-operator-group'),
      };
      assert.equal(judge(await bench().cluster.request('PATCH', `${bench().path('LldapGroup', name)}/status`, options)), ACCEPTED);
    });

    it('lets a person delete the object, which startup then makes again', async () => {
      const { code } = await bench().cluster.request('DELETE', `${bench().path('LldapGroup', name)}?dryRun=All`);
      assert.equal(code, 200);
    });
  });
});

async function createVirtual(bench: Bench, token: string): Promise<string> {
  const body = bench.manifest('LldapGroup', LEAST_SPEC.LldapGroup, MARKED);
  assert.equal(judge(await bench.cluster.request('POST', bench.path('LldapGroup'), { body, token })), ACCEPTED);
  return body.metadata.name;
}

/** A ServiceAccount that may do everything with the four kinds in one namespace: only the policy is left to refuse. */
function mayDoAll(namespace: string, serviceAccount: string, where: string): string {
  return `
apiVersion: v1
kind: ServiceAccount
metadata: { name: ${serviceAccount}, namespace: ${namespace} }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: { name: lldap-all, namespace: ${where} }
rules: [{ apiGroups: [lldap-operator.lukidoescode.com], resources: ["*"], verbs: ["*"] }]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: { name: ${namespace}-${serviceAccount}, namespace: ${where} }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: Role, name: lldap-all }
subjects: [{ kind: ServiceAccount, name: ${serviceAccount}, namespace: ${namespace} }]
`;
}
